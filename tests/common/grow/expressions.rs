//! What stands on the right: elements, reductions, and operators and functions by type.

use wgslab::notation::program::Ty;

use super::{Grower, STATICS, extent};

impl Grower<'_> {
    /// An integer that reads one tensor.
    pub(super) fn gather(&mut self) -> Option<String> {
        let ty = if self.chance(1, 4) { Ty::U32 } else { Ty::I32 };
        let load = self.load(ty, false);
        let is_access = load.starts_with(['t', 'c']) || load.starts_with("pad");
        let kind = self.random.below(5);
        is_access.then(|| match (kind, ty) {
            (0, _) => format!("{load} + 1"),
            (1, _) => format!("{load} * 2"),
            (2, Ty::U32) => format!("{load} - 2"),
            _ => load,
        })
    }

    /// An element as a type.
    pub(super) fn load(&mut self, ty: Ty, may_cast: bool) -> String {
        for _ in 0..8 {
            let tensor = self.tensors[self.random.index(self.tensors.len())].clone();
            let found = Ty::of(tensor.dtype);
            if found != ty && !(may_cast && self.chance(1, 4)) {
                continue;
            }
            let is_padded = self.chance(1, 6) && !tensor.shape.is_empty();
            let (cost, count) = (self.cost, self.indices.len());
            let positions: Option<Vec<String>> =
                tensor.shape.iter().map(|extent| self.position(*extent, is_padded)).collect();
            let Some(positions) = positions else {
                self.cost = cost;
                self.indices.truncate(count);
                continue;
            };
            let mut text = tensor.name.clone();
            if !positions.is_empty() {
                text = format!("{text}[{}]", positions.join(", "));
            }
            if is_padded {
                let value = if self.chance(1, 4) { self.load(found, false) } else { self.leaf(found) };
                text = format!("pad({text}, {value})");
            }
            return match (ty, found) {
                _ if ty == found => text,
                (Ty::F32, Ty::Bool) => format!("f32({text})"),
                (Ty::F32, _) if self.chance(1, 2) => format!("f32({text})"),
                (Ty::F32, _) => format!("(0.5 + {text})"),
                (Ty::I32, _) => format!("i32({text})"),
                (Ty::U32, _) => format!("u32({text})"),
                (Ty::Bool, _) => format!("bool({text})"),
            };
        }
        self.leaf(ty)
    }

    pub(super) fn leaf(&mut self, ty: Ty) -> String {
        match ty {
            Ty::F32 => self.one(&["0.5", "1.0", "2.0", "-1.25", "3.0", "0.1", "pi", "1e-3", "-0.0"]).to_owned(),
            Ty::I32 => match self.random.below(8) {
                0 => format!("@{}", STATICS[self.random.index(2)]),
                1..=4 if !self.scope.is_empty() => {
                    let index = self.scope[self.random.index(self.scope.len())];
                    self.indices[index].name.to_owned()
                }
                _ => format!("i32({})", self.one(&["0", "1", "2", "3", "-1", "7", "31", "-2147483648", "2147483647"])),
            },
            Ty::U32 => format!("u32({})", self.one(&["0", "1", "2", "3", "5", "31", "4294967295", "65536"])),
            Ty::Bool => self.one(&["true", "false"]).to_owned(),
        }
    }

    pub(super) fn reduction(&mut self, word: &str, ty: Ty, depth: u32) -> Option<String> {
        let (cost, scope) = (self.cost, self.scope.clone());
        let count = if word.starts_with("arg") { 1 } else { 1 + self.random.index(2) };
        let mut names = Vec::new();
        for _ in 0..count {
            let mut extent = i64::from(extent(self.random, &self.tensors));
            if word.starts_with("arg") {
                extent = extent.max(1);
            }
            let lo = if self.chance(1, 8) { extent / 3 } else { 0 };
            let Some(index) = self.index(lo, extent, names.is_empty()) else { break };
            let name = self.indices[index].name;
            if names.contains(&name) {
                break;
            }
            self.scope.retain(|outer| self.indices[*outer].name != name);
            self.scope.push(index);
            names.push(name);
        }
        if names.is_empty() {
            (self.cost, self.scope) = (cost, scope);
            return None;
        }
        let body = self.expr(ty, depth);
        (self.cost, self.scope) = (cost, scope);
        Some(format!("{word}[{}]({body})", names.join(", ")))
    }

    pub(super) fn expr(&mut self, ty: Ty, depth: u32) -> String {
        if depth == 0 || self.chance(1, 8) {
            return if self.chance(5, 6) { self.load(ty, true) } else { self.leaf(ty) };
        }
        let below = depth - 1;
        if self.chance(1, 10) {
            let (c, a, b) = (self.expr(Ty::Bool, below), self.expr(ty, below), self.expr(ty, below));
            return if self.chance(1, 2) { format!("select({c}, {a}, {b})") } else { format!("({c} ? {a} : {b})") };
        }
        if self.chance(1, 7) && ty != Ty::Bool {
            let word = self.one(&["sum", "sum", "prod", "max", "min"]);
            if let Some(text) = self.reduction(word, ty, below) {
                return text;
            }
        }
        match ty {
            Ty::F32 => self.float(below),
            Ty::I32 => self.signed(below),
            Ty::U32 => self.unsigned(below),
            Ty::Bool => self.truth(below),
        }
    }

    pub(super) fn infix(&mut self, ops: &[&str], ty: Ty, depth: u32) -> String {
        let (a, op, b) = (self.expr(ty, depth), self.one(ops), self.expr(ty, depth));
        if self.chance(1, 6) { format!("{a} {op} {b}") } else { format!("({a} {op} {b})") }
    }

    pub(super) fn float(&mut self, depth: u32) -> String {
        match self.random.below(24) {
            0..=7 => self.infix(&["+", "+", "-", "*", "*", "/", "%"], Ty::F32, depth),
            8..=13 => {
                let word = self.one(&[
                    "abs",
                    "sign",
                    "floor",
                    "ceil",
                    "round",
                    "trunc",
                    "sqrt",
                    "rsqrt",
                    "exp",
                    "exp2",
                    "log",
                    "log2",
                    "sin",
                    "cos",
                    "tan",
                    "asin",
                    "acos",
                    "atan",
                    "sinh",
                    "cosh",
                    "tanh",
                    "erf",
                    "sigmoid",
                    "relu",
                    "gelu",
                    "gelu_tanh",
                    "silu",
                    "softplus",
                ]);
                let a = self.expr(Ty::F32, depth);
                match word {
                    "sqrt" | "rsqrt" | "log" | "log2" if self.chance(4, 5) => format!("{word}(abs({a}) + 0.25)"),
                    "asin" | "acos" if self.chance(4, 5) => format!("{word}(clamp({a}, -1, 1))"),
                    "exp" | "exp2" | "sinh" | "cosh" if self.chance(4, 5) => format!("{word}(min({a}, 4))"),
                    _ => format!("{word}({a})"),
                }
            }
            14 => {
                let word = self.one(&["min", "max", "atan2"]);
                format!("{word}({}, {})", self.expr(Ty::F32, depth), self.expr(Ty::F32, depth))
            }
            15 => {
                let word = self.one(&["fma", "clamp"]);
                let (a, b, c) = (self.expr(Ty::F32, depth), self.expr(Ty::F32, 0), self.expr(Ty::F32, 0));
                format!("{word}({a}, {b}, {c})")
            }
            16 => {
                let power = self.one(&["2", "3", "-1", "0.5", "1.5", "0", "2.0"]);
                let a = self.expr(Ty::F32, depth);
                match power {
                    "0.5" | "1.5" => format!("pow(abs({a}), {power})"),
                    _ if self.chance(1, 2) => format!("(({a}) ** {power})"),
                    _ => format!("pow({a}, {power})"),
                }
            }
            17 => format!("pow(abs({}), {})", self.expr(Ty::F32, depth), self.expr(Ty::F32, 0)),
            18 => format!("{}({})", self.one(&["f16", "bf16", "f32"]), self.expr(Ty::F32, depth)),
            19 => format!("f32({})", self.expr(Ty::I32, depth)),
            20 => {
                let ty = [Ty::I32, Ty::U32][self.random.index(2)];
                format!("({} * {})", self.expr(Ty::F32, depth), self.expr(ty, depth))
            }
            21 => {
                let word = self.one(&["uniform", "normal"]);
                format!("{word}({}, {})", self.expr(Ty::U32, depth), self.expr(Ty::U32, 0))
            }
            22 => format!("-{}", self.expr(Ty::F32, 0)),
            _ => {
                let wide = self.one(&["bitcast_u32", "bitcast_i32"]);
                format!("bitcast_f32({wide}({}))", self.expr(Ty::F32, depth))
            }
        }
    }

    pub(super) fn signed(&mut self, depth: u32) -> String {
        match self.random.below(16) {
            0..=6 => self.infix(&["+", "-", "*", "/", "%", "&", "|", "^"], Ty::I32, depth),
            7 => self.infix(&["<<", ">>", "**"], Ty::I32, depth),
            8 => format!("({} {} {})", self.expr(Ty::I32, depth), self.one(&["<<", ">>", "**"]), self.expr(Ty::U32, 0)),
            9 => format!("{}({})", self.one(&["abs", "sign", "relu", "-", "~"]), self.expr(Ty::I32, depth)),
            10 => format!(
                "{}({}, {})",
                self.one(&["min", "max", "pow"]),
                self.expr(Ty::I32, depth),
                self.expr(Ty::I32, 0)
            ),
            11 => format!("clamp({}, {}, {})", self.expr(Ty::I32, depth), self.expr(Ty::I32, 0), self.expr(Ty::I32, 0)),
            12 => {
                let ty = [Ty::F32, Ty::U32, Ty::Bool, Ty::I32][self.random.index(4)];
                format!("{}({})", self.one(&["i32", "i8"]), self.expr(ty, depth))
            }
            13 => {
                format!("bitcast_i32({})", self.expr([Ty::F32, Ty::U32][usize::from(depth.is_multiple_of(2))], depth))
            }
            _ => {
                let word = self.one(&["argmax", "argmin"]);
                let ty = [Ty::F32, Ty::I32, Ty::U32][self.random.index(3)];
                self.reduction(word, ty, depth).unwrap_or_else(|| self.leaf(Ty::I32))
            }
        }
    }

    pub(super) fn unsigned(&mut self, depth: u32) -> String {
        match self.random.below(16) {
            0..=7 => self.infix(&["+", "-", "*", "/", "%", "&", "|", "^"], Ty::U32, depth),
            8 => self.infix(&["<<", ">>", "**"], Ty::U32, depth),
            9 => format!("({} {} {})", self.expr(Ty::U32, depth), self.one(&["<<", ">>", "**"]), self.expr(Ty::I32, 0)),
            10 => format!("{}({})", self.one(&["abs", "sign", "relu", "-", "~"]), self.expr(Ty::U32, depth)),
            11 => format!(
                "{}({}, {})",
                self.one(&["min", "max", "pow"]),
                self.expr(Ty::U32, depth),
                self.expr(Ty::U32, 0)
            ),
            12 => format!("clamp({}, {}, {})", self.expr(Ty::U32, depth), self.expr(Ty::U32, 0), self.expr(Ty::U32, 0)),
            13 => {
                let ty = [Ty::F32, Ty::I32, Ty::Bool, Ty::U32][self.random.index(4)];
                format!("{}({})", self.one(&["u32", "u8"]), self.expr(ty, depth))
            }
            14 => {
                let ty = [Ty::F32, Ty::I32][self.random.index(2)];
                format!("bitcast_u32({})", self.expr(ty, depth))
            }
            _ => format!(
                "threefry2x32({}, {}, {}, {})",
                self.expr(Ty::U32, 0),
                self.expr(Ty::U32, 0),
                self.expr(Ty::U32, 0),
                self.leaf(Ty::U32)
            ),
        }
    }

    pub(super) fn truth(&mut self, depth: u32) -> String {
        match self.random.below(10) {
            0..=3 => {
                let ty = [Ty::F32, Ty::I32, Ty::U32][self.random.index(3)];
                format!("({})", self.infix(&["<", "<=", ">", ">=", "==", "!="], ty, depth))
            }
            4..=5 => self.infix(&["&&", "||", "==", "!="], Ty::Bool, depth),
            6 => format!("!({})", self.expr(Ty::Bool, depth)),
            7 => format!("{}({})", self.one(&["isnan", "isinf"]), self.expr(Ty::F32, depth)),
            8 => {
                let ty = [Ty::F32, Ty::I32, Ty::U32][self.random.index(3)];
                format!("bool({})", self.expr(ty, depth))
            }
            _ => self.load(Ty::Bool, true),
        }
    }
}
