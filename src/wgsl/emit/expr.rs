//! Expressions: every value by the operator of WGSL where that is defined as the language says, else by a function of
//! [`crate::wgsl::math`].

use crate::dtype::DType;
use crate::notation::ast::{BinaryOp, Function, UnaryOp};
use crate::notation::program::{Expr, ExprKind, IndexId, StaticIndex, Ty, Value};
use crate::wgsl::emit::Emitter;
use crate::wgsl::emit::block::Operand;

impl Emitter<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Operand {
        // Sums of many terms lean to the left: they need no stack.
        let mut spine = Vec::new();
        let mut leftmost = expr;
        while let ExprKind::Binary(op, left, right) = &leftmost.kind {
            spine.push((*op, left, right));
            leftmost = left;
        }
        let mut value = self.operand(leftmost);
        for (op, left, right) in spine.into_iter().rev() {
            let other = self.expr(right);
            value = self.binary(op, (left, value), (right, other));
        }
        value
    }

    fn operand(&mut self, expr: &Expr) -> Operand {
        match &expr.kind {
            ExprKind::Const(value) => self.constant(*value),
            ExprKind::Index(index) => self.index_value(*index),
            ExprKind::Static(index) => self.static_value(*index),
            ExprKind::Load(load) => self.load(load),
            ExprKind::Unary(op, a) => {
                let a = self.expr(a);
                self.unary(*op, a, expr.ty)
            }
            ExprKind::Binary(..) => self.expr(expr),
            ExprKind::Conditional(condition, a, b) => self.conditional(condition, a, b),
            ExprKind::Call(Function::Select, arguments) => match &arguments[..] {
                [condition, a, b] => self.conditional(condition, a, b),
                _ => self.constant(Value::U32(0)),
            },
            ExprKind::Call(function, arguments) => self.function(*function, arguments, expr.ty),
            ExprKind::Cast(dtype, a) => {
                let value = self.expr(a);
                self.cast(*dtype, value, a.ty)
            }
            ExprKind::Bitcast(a) => {
                let value = self.expr(a);
                self.bitcast(value, a.ty, expr.ty)
            }
            ExprKind::Reduce { op, indices, body } => self.reduce(*op, indices, body),
        }
    }

    /// A literal, or a value where the front end might refuse one.
    pub(super) fn constant(&mut self, value: Value) -> Operand {
        match value {
            Value::F32(number) => match decimal(number) {
                Some(text) => Operand::literal(text),
                None => self.block.value(0, format!("lab_f({:#x}u)", number.to_bits())),
            },
            Value::I32(i32::MIN) => self.block.value(0, "bitcast<i32>(0x80000000u)".to_owned()),
            Value::I32(number) if number < 0 => Operand::literal(format!("({number}i)")),
            Value::I32(number) => Operand::literal(format!("{number}i")),
            Value::U32(number) => Operand::literal(format!("{number}u")),
            Value::Bool(flag) => Operand::literal(if flag { "true" } else { "false" }.to_owned()),
        }
    }

    /// A value that the front end does not know.
    pub(super) fn runtime(&mut self, operand: Operand) -> Operand {
        if operand.is_literal { self.block.value(0, operand.text) } else { operand }
    }

    pub(super) fn runtime_copy(&mut self, operand: &Operand) -> Operand {
        self.runtime(operand.clone())
    }

    pub(super) fn infix(&mut self, op: &str, a: Operand, b: Operand) -> Operand {
        let a = if b.is_literal { self.runtime(a) } else { a };
        self.block.value(a.depth.max(b.depth), format!("{} {op} {}", a.text, b.text))
    }

    /// A call of a function of the library, or of a builtin: those get no literals.
    pub(super) fn call(&mut self, name: &str, operands: &[Operand]) -> Operand {
        let mut text = format!("{name}(");
        let mut depth = 0;
        let is_own = name.starts_with("lab_");
        for (at, operand) in operands.iter().enumerate() {
            let operand = if is_own { operand.clone() } else { self.runtime_copy(operand) };
            depth = depth.max(operand.depth);
            if at > 0 {
                text.push_str(", ");
            }
            text.push_str(&operand.text);
        }
        text.push(')');
        self.block.value(depth, text)
    }

    /// An expression in which `$` stands for an operand.
    fn with(&mut self, pattern: &str, operand: Operand) -> Operand {
        let operand = self.runtime(operand);
        let mut text = String::new();
        for piece in pattern.split_inclusive('$') {
            match piece.strip_suffix('$') {
                Some(before) => {
                    text.push_str(before);
                    text.push_str(&operand.text);
                }
                None => text.push_str(piece),
            }
        }
        self.block.value(operand.depth, text)
    }

    /// The 32 bits of an integer as a u32.
    pub(super) fn as_u32(&mut self, value: Operand, ty: Ty) -> Operand {
        self.bitcast(value, ty, Ty::U32)
    }

    fn bitcast(&mut self, value: Operand, from: Ty, to: Ty) -> Operand {
        match to {
            _ if from == to => value,
            Ty::F32 => self.with("bitcast<f32>($)", value),
            Ty::I32 => self.with("bitcast<i32>($)", value),
            _ => self.with("bitcast<u32>($)", value),
        }
    }

    pub(super) fn static_value(&mut self, index: StaticIndex) -> Operand {
        if !self.statics.contains(&index) {
            self.statics.push(index);
        }
        self.block.value(0, format!("static_s{index}()"))
    }

    pub(super) fn index_value(&mut self, index: IndexId) -> Operand {
        let (counter, lo) = self.counter(index);
        if lo == 0 {
            return self.with("bitcast<i32>($)", counter);
        }
        self.with(&format!("bitcast<i32>($ + {}u)", lo as u32), counter)
    }

    fn unary(&mut self, op: UnaryOp, a: Operand, ty: Ty) -> Operand {
        match (op, ty) {
            (UnaryOp::Neg, Ty::U32) => self.with("0u - $", a),
            (UnaryOp::Neg, _) => self.with("-$", a),
            (UnaryOp::Not, _) => self.with("!$", a),
            (UnaryOp::BitNot, _) => self.with("~$", a),
        }
    }

    fn conditional(&mut self, condition: &Expr, a: &Expr, b: &Expr) -> Operand {
        let (condition, a, b) = (self.expr(condition), self.expr(a), self.expr(b));
        let condition = self.runtime(condition);
        let depth = condition.depth.max(a.depth).max(b.depth);
        self.block.value(depth, format!("select({}, {}, {})", b.text, a.text, condition.text))
    }

    fn binary(&mut self, op: BinaryOp, (left, a): (&Expr, Operand), (right, b): (&Expr, Operand)) -> Operand {
        let (ty, right_ty) = (left.ty, right.ty);
        // Mesa (llvmpipe) takes 0 * x for 0, also where x is known to be infinite.
        if let (ExprKind::Const(Value::F32(x)), ExprKind::Const(Value::F32(y))) = (&left.kind, &right.kind)
            && let Some(known) = folded(op, *x, *y)
        {
            return self.constant(Value::F32(known));
        }
        match (op, ty) {
            (BinaryOp::Pow, _) => self.power((left, a), (right, b)),
            // Mesa 22.3 (llvmpipe) makes 0 of 0 / 0 where it knows the divisor.
            (BinaryOp::Div, Ty::F32) if is_zero(right) => {
                let sign = if let ExprKind::Const(value) = right.kind { value.bits() } else { 0 };
                let infinity = self.constant(Value::F32(f32::from_bits(sign | f32::INFINITY.to_bits())));
                self.infix("*", a, infinity)
            }
            (BinaryOp::Div, Ty::I32) => self.call("lab_div_i", &[a, b]),
            (BinaryOp::Div, Ty::U32) => self.call("lab_div_u", &[a, b]),
            (BinaryOp::Rem, Ty::I32) => self.call("lab_rem_i", &[a, b]),
            (BinaryOp::Rem, Ty::U32) => self.call("lab_rem_u", &[a, b]),
            (BinaryOp::Rem, _) => self.call("lab_fmod", &[a, b]),
            (BinaryOp::Shl | BinaryOp::Shr, _) => {
                let amount = self.as_u32(b, right_ty);
                let amount = self.with("($ & 31u)", amount);
                self.infix(if op == BinaryOp::Shl { "<<" } else { ">>" }, a, amount)
            }
            // The only way to ask for NaN that a driver cannot take for a tautology.
            (BinaryOp::Ne, Ty::F32) if a.text == b.text => self.call("lab_isnan", &[a]),
            (BinaryOp::Eq, Ty::F32) if a.text == b.text => {
                let is_nan = self.call("lab_isnan", &[a]);
                self.with("!$", is_nan)
            }
            // naga's `!=` is false for NaN (OpFOrdNotEqual).
            (BinaryOp::Ne, Ty::F32) => {
                let is_equal = self.infix("==", a, b);
                self.with("!$", is_equal)
            }
            _ => self.infix(symbol(op), a, b),
        }
    }

    fn power(&mut self, (left, a): (&Expr, Operand), (right, b): (&Expr, Operand)) -> Operand {
        if let (Ty::F32, ExprKind::Const(Value::F32(exponent))) = (left.ty, &right.kind) {
            let square = |emitter: &mut Self| emitter.infix("*", a.clone(), a.clone());
            if *exponent == 2.0 {
                return square(self);
            }
            if *exponent == 3.0 {
                let square = square(self);
                return self.infix("*", square, a);
            }
        }
        match (left.ty, right.ty) {
            (Ty::I32, Ty::I32) => self.call("lab_pow_i", &[a, b]),
            (Ty::U32, Ty::I32) => self.call("lab_pow_ui", &[a, b]),
            (Ty::U32, _) => self.call("lab_pow_u", &[a, b]),
            (Ty::I32, _) => {
                let base = self.as_u32(a, Ty::I32);
                let power = self.call("lab_pow_u", &[base, b]);
                self.bitcast(power, Ty::U32, Ty::I32)
            }
            _ => self.call("lab_pow", &[a, b]),
        }
    }

    fn cast(&mut self, dtype: DType, a: Operand, from: Ty) -> Operand {
        match dtype {
            DType::F32 => self.as_f32(a, from),
            DType::F16 => {
                let wide = self.as_f32(a, from);
                self.call("lab_f16", &[wide])
            }
            DType::BF16 => {
                let wide = self.as_f32(a, from);
                self.call("lab_bf16", &[wide])
            }
            DType::I8 if from == Ty::F32 => {
                let wide = self.call("lab_f_to_i", &[a]);
                self.with("clamp($, -128i, 127i)", wide)
            }
            DType::U8 if from == Ty::F32 => {
                let wide = self.call("lab_f_to_u", &[a]);
                self.with("min($, 255u)", wide)
            }
            DType::I32 | DType::I8 => {
                let wide = match from {
                    Ty::F32 => self.call("lab_f_to_i", &[a]),
                    Ty::Bool => self.with("select(0i, 1i, $)", a),
                    _ => self.bitcast(a, from, Ty::I32),
                };
                if dtype == DType::I8 { self.with("extractBits($, 0u, 8u)", wide) } else { wide }
            }
            DType::U32 | DType::U8 => {
                let wide = match from {
                    Ty::F32 => self.call("lab_f_to_u", &[a]),
                    Ty::Bool => self.with("select(0u, 1u, $)", a),
                    _ => self.bitcast(a, from, Ty::U32),
                };
                if dtype == DType::U8 { self.with("$ & 0xffu", wide) } else { wide }
            }
            DType::Bool => match from {
                Ty::F32 => self.with("(bitcast<u32>($) & 0x7fffffffu) != 0u", a),
                Ty::I32 => self.with("$ != 0i", a),
                Ty::U32 => self.with("$ != 0u", a),
                Ty::Bool => a,
            },
        }
    }

    fn as_f32(&mut self, a: Operand, from: Ty) -> Operand {
        match from {
            Ty::F32 => a,
            Ty::I32 => self.call("lab_i_to_f", &[a]),
            Ty::U32 => self.call("lab_u_to_f", &[a]),
            Ty::Bool => self.with("select(0.0f, 1.0f, $)", a),
        }
    }

    fn function(&mut self, function: Function, arguments: &[Expr], ty: Ty) -> Operand {
        let mut operands: Vec<Operand> = arguments.iter().map(|argument| self.expr(argument)).collect();
        let is_float = ty == Ty::F32;
        match function {
            Function::Pow => match arguments {
                [base, exponent] => {
                    let other = operands.swap_remove(1);
                    self.power((base, operands.swap_remove(0)), (exponent, other))
                }
                _ => self.constant(Value::U32(0)),
            },
            Function::Abs if ty == Ty::U32 => operands.swap_remove(0),
            Function::Sign if ty == Ty::I32 => self.with("clamp($, -1i, 1i)", operands.swap_remove(0)),
            Function::Sign if ty == Ty::U32 => self.with("min($, 1u)", operands.swap_remove(0)),
            Function::Relu if ty == Ty::U32 => operands.swap_remove(0),
            Function::Relu => {
                let zero = self.constant(if is_float { Value::F32(0.0) } else { Value::I32(0) });
                self.call(extremum("max", is_float), &[operands.swap_remove(0), zero])
            }
            Function::Max => self.call(extremum("max", is_float), &operands),
            Function::Min => self.call(extremum("min", is_float), &operands),
            Function::Clamp => match <[Operand; 3]>::try_from(operands) {
                Ok([value, least, most]) => {
                    let value = self.call(extremum("max", is_float), &[value, least]);
                    self.call(extremum("min", is_float), &[value, most])
                }
                Err(_) => self.constant(Value::U32(0)),
            },
            Function::Floor
            | Function::Ceil
            | Function::Round
            | Function::Trunc
            | Function::Sqrt
            | Function::Fma
            | Function::Abs => self.call(function.name(), &operands),
            Function::Rsqrt => self.call("inverseSqrt", &operands),
            Function::Threefry => self.call("lab_threefry", &operands),
            _ => self.call(&format!("lab_{}", function.name()), &operands),
        }
    }
}

pub(super) fn extremum(name: &'static str, is_float: bool) -> &'static str {
    match (name, is_float) {
        ("max", true) => "lab_max",
        ("min", true) => "lab_min",
        _ => name,
    }
}

/// The value of an operation on constants that IEEE 754 rounds correctly.
fn folded(op: BinaryOp, x: f32, y: f32) -> Option<f32> {
    match op {
        BinaryOp::Add => Some(x + y),
        BinaryOp::Sub => Some(x - y),
        BinaryOp::Mul => Some(x * y),
        BinaryOp::Div => Some(x / y),
        _ => None,
    }
}

fn is_zero(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Const(Value::F32(value)) if value == 0.0)
}

/// A number with few binary places as a decimal, exactly; none that is subnormal, infinite, NaN or -0.
fn decimal(number: f32) -> Option<String> {
    const PLACES: f32 = 1024.0;
    let scaled = number * PLACES;
    if !(scaled.abs() < 16_777_216.0 && scaled.trunc() == scaled) || number.to_bits() == 0x8000_0000 {
        return None;
    }
    let scaled = scaled as i32;
    let (whole, part) = (scaled.unsigned_abs() / 1024, scaled.unsigned_abs() % 1024);
    // 1 / 1024 is 0.0009765625.
    let digits = format!("{:010}", u64::from(part) * 9_765_625);
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    Some(if scaled < 0 { format!("(-{whole}.{digits}f)") } else { format!("{whole}.{digits}f") })
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mul => "*",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::BitOr => "|",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
        // By functions.
        BinaryOp::Pow | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => "/",
    }
}
