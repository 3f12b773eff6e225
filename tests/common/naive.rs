//! What a checked program means, point by point: an evaluator that shares nothing with the loops, the kernels and the
//! host driver.

mod functions;
mod value;

use std::collections::BTreeMap;

use wgslab::DType;
use wgslab::notation::ast::{Accumulate, BinaryOp, Function, ReduceOp};
use wgslab::notation::program::{
    Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Origin, Position, Program, Statement, Term, Ty, Value, Write,
};

pub use value::Val;
use value::{ALONE, bitcast, cast, extremum, quantum, stored};

/// The elements of every node of a program.
pub type State = Vec<Vec<Val>>;

/// The elements of a node from bytes.
pub fn decode(dtype: DType, bytes: &[u8]) -> Vec<Val> {
    let one = |bytes: &[u8]| match (dtype, bytes) {
        (DType::F32, &[a, b, c, d]) => Val::f32(f32::from_le_bytes([a, b, c, d])),
        (DType::I32, &[a, b, c, d]) => Val::i32(i32::from_le_bytes([a, b, c, d])),
        (_, &[a, b, c, d]) => Val::u32(u32::from_le_bytes([a, b, c, d])),
        (DType::F16, &[a, b]) => Val::f32(half::f16::from_le_bytes([a, b]).to_f32()),
        (_, &[a, b]) => Val::f32(half::bf16::from_le_bytes([a, b]).to_f32()),
        (DType::I8, &[a]) => Val::i32(i32::from(a as i8)),
        (DType::U8, &[a]) => Val::u32(u32::from(a)),
        (_, &[a]) => Val::bool(a != 0),
        _ => unreachable!("no dtype has {} bytes", bytes.len()),
    };
    bytes.chunks_exact(dtype.size_bytes() as usize).map(one).collect()
}

/// Zeros for every node.
pub fn zeros(program: &Program) -> State {
    let of = |node: &wgslab::notation::program::ProgramNode| {
        let len = node.shape.iter().map(|extent| *extent as usize).product();
        vec![Val { ty: Ty::of(node.dtype), bits: 0, err: 0.0, sum: ALONE }; len]
    };
    program.nodes.iter().map(of).collect()
}

/// Runs a program once.
pub fn run(program: &Program, statics: &[i32], state: &mut State) {
    for (node, elements) in program.nodes.iter().zip(state.iter_mut()) {
        if node.origin == Origin::Created {
            elements.fill(Val::unknown(Ty::of(node.dtype)));
        }
    }
    for statement in &program.statements {
        let before = state.clone();
        let mut run = Run { program, statement, statics, before: &before, at: vec![0; statement.indices.len()] };
        run.statement(&mut state[statement.target]);
    }
}

struct Run<'a> {
    program: &'a Program,
    statement: &'a Statement,
    statics: &'a [i32],
    before: &'a State,
    at: Vec<i64>,
}

/// What a position says.
enum Spot {
    At(i64),
    Unknown,
}

impl Run<'_> {
    fn statement(&mut self, target: &mut [Val]) {
        let Statement { free, reduced, positions, .. } = self.statement;
        let node = &self.program.nodes[self.statement.target];
        let mut values: BTreeMap<usize, Vec<Val>> = BTreeMap::new();
        let mut is_lost = false;
        let all: Vec<IndexId> = free.iter().chain(reduced).copied().collect();
        self.each(&all, &mut |run| {
            let mut offset = Some(0usize);
            for (position, extent) in positions.iter().zip(&node.shape) {
                match run.spot(position) {
                    Spot::Unknown => is_lost = true,
                    Spot::At(at) if (0..i64::from(*extent)).contains(&at) => {
                        offset = offset.map(|offset| offset * *extent as usize + at as usize);
                    }
                    Spot::At(at) => {
                        assert!(matches!(position, Position::Computed(_)), "{at} is outside of {extent}");
                        offset = None;
                    }
                }
            }
            if let Some(offset) = offset.filter(|_| !is_lost) {
                let value = run.expr(&run.statement.value);
                values.entry(offset).or_default().push(value);
            }
        });
        if is_lost {
            // Nobody knows where it went.
            target.fill(Val::unknown(Ty::of(node.dtype)));
            return;
        }
        match self.statement.write {
            Write::Set => {
                for (offset, values) in values {
                    assert_eq!(values.len(), 1, "= meets element {offset} of \"{}\" twice", node.name);
                    target[offset] = stored(node.dtype, values[0]);
                }
            }
            Write::Onto(op) => {
                for (offset, mut values) in values {
                    values.insert(0, target[offset]);
                    target[offset] = stored(node.dtype, accumulate(op, &values));
                }
            }
            Write::Fresh(op) => {
                for offset in self.addressed(&node.shape) {
                    target[offset] = neutral(node.dtype, op);
                }
                for (offset, mut values) in values {
                    values.insert(0, neutral(node.dtype, op));
                    target[offset] = stored(node.dtype, accumulate(op, &values));
                }
            }
        }
    }

    /// Every element that the left side can address.
    fn addressed(&mut self, shape: &[u32]) -> Vec<usize> {
        let positions = &self.statement.positions;
        let mut indices: Vec<IndexId> = Vec::new();
        for position in positions {
            if let Position::Affine(affine) = position {
                for (term, _) in &affine.terms {
                    if let Term::Index(index) = term {
                        indices.push(*index);
                    }
                }
            }
        }
        indices.sort_unstable();
        indices.dedup();
        let mut found = Vec::new();
        self.each(&indices, &mut |run| {
            let mut offsets = vec![0usize];
            for (position, extent) in positions.iter().zip(shape) {
                let extent = *extent as usize;
                let on_axis: Vec<usize> = match position {
                    Position::Affine(affine) => vec![run.affine(affine) as usize],
                    Position::Computed(_) => (0..extent).collect(),
                };
                offsets =
                    offsets.iter().flat_map(|offset| on_axis.iter().map(move |at| offset * extent + at)).collect();
            }
            found.extend(offsets);
        });
        found
    }

    /// Every point of some indices.
    fn each(&mut self, indices: &[IndexId], body: &mut dyn FnMut(&mut Self)) {
        let Some((first, rest)) = indices.split_first() else { return body(self) };
        let LoopIndex { lo, hi, .. } = self.statement.indices[*first];
        for value in lo..hi {
            self.at[*first] = value;
            self.each(rest, body);
        }
    }

    fn affine(&self, affine: &Affine) -> i64 {
        let of = |(term, factor): &(Term, i64)| {
            factor
                * match term {
                    Term::Index(index) => self.at[*index],
                    Term::Static(index) => i64::from(self.statics[*index]),
                }
        };
        affine.constant + affine.terms.iter().map(of).sum::<i64>()
    }

    fn spot(&mut self, position: &Position) -> Spot {
        match position {
            Position::Affine(affine) => Spot::At(self.affine(affine)),
            Position::Computed(expr) => {
                let value = self.expr(expr);
                if value.is_known() { Spot::At(value.whole()) } else { Spot::Unknown }
            }
        }
    }

    fn load(&mut self, load: &Load) -> Val {
        let node = &self.program.nodes[load.node];
        let ty = Ty::of(node.dtype);
        let mut offset = 0usize;
        let mut is_outside = false;
        for (position, extent) in load.positions.iter().zip(&node.shape) {
            let Spot::At(at) = self.spot(position) else { return Val::unknown(ty) };
            let last = i64::from(*extent) - 1;
            let clamped = at.min(last).max(0);
            if clamped != at || last < 0 {
                is_outside = true;
                let may = load.pad.is_some() || matches!(position, Position::Computed(_));
                assert!(may, "{at} is outside of axis of {extent} of \"{}\"", node.name);
            }
            offset = offset * *extent as usize + clamped as usize;
        }
        match &load.pad {
            Some(pad) if is_outside => self.expr(pad),
            _ => self.before[load.node][offset],
        }
    }

    fn expr(&mut self, expr: &Expr) -> Val {
        let value = match &expr.kind {
            ExprKind::Const(value) => match *value {
                Value::F32(value) => Val::f32(value),
                Value::I32(value) => Val::i32(value),
                Value::U32(value) => Val::u32(value),
                Value::Bool(value) => Val::bool(value),
            },
            ExprKind::Index(index) => Val::i32(self.at[*index] as i32),
            ExprKind::Static(index) => Val::i32(self.statics[*index]),
            ExprKind::Load(load) => self.load(load),
            ExprKind::Stage(_) => unreachable!("programs have no stages"),
            ExprKind::Unary(op, a) => functions::unary(*op, self.expr(a)),
            ExprKind::Binary(op, a, b) => value::binary(*op, self.expr(a), self.expr(b)),
            ExprKind::Conditional(c, a, b) => self.choose(c, a, b),
            ExprKind::Call(Function::Select, arguments) => self.choose(&arguments[0], &arguments[1], &arguments[2]),
            ExprKind::Call(function, arguments) => {
                let values: Vec<Val> = arguments.iter().map(|argument| self.expr(argument)).collect();
                functions::call(*function, &values)
            }
            ExprKind::Cast(dtype, a) => cast(*dtype, self.expr(a)),
            ExprKind::Bitcast(a) => bitcast(expr.ty, self.expr(a)),
            ExprKind::Reduce { op, indices, body } => {
                let mut values = Vec::new();
                self.each(indices, &mut |run| {
                    let value = run.expr(body);
                    values.push((run.at[*indices.last().unwrap()], value));
                });
                match op {
                    ReduceOp::ArgMax => best(true, &values),
                    ReduceOp::ArgMin => best(false, &values),
                    _ => {
                        let op = match op {
                            ReduceOp::Sum => Accumulate::Add,
                            ReduceOp::Prod => Accumulate::Mul,
                            ReduceOp::Max => Accumulate::Max,
                            _ => Accumulate::Min,
                        };
                        let wide = match body.ty {
                            Ty::F32 => DType::F32,
                            Ty::I32 => DType::I32,
                            Ty::U32 => DType::U32,
                            Ty::Bool => DType::Bool,
                        };
                        let all: Vec<Val> =
                            std::iter::once(neutral(wide, op)).chain(values.iter().map(|(_, value)| *value)).collect();
                        accumulate(op, &all)
                    }
                }
            }
        };
        assert_eq!(value.ty, expr.ty, "{:?}", expr.kind);
        value
    }

    fn choose(&mut self, condition: &Expr, a: &Expr, b: &Expr) -> Val {
        let (condition, a, b) = (self.expr(condition), self.expr(a), self.expr(b));
        let chosen = if condition.truth() { a } else { b };
        chosen.or_unknown(condition.is_known() || a.bits == b.bits && a.is_known() && b.is_known())
    }
}

fn neutral(dtype: DType, op: Accumulate) -> Val {
    let (least, most): (f64, f64) = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => (f64::NEG_INFINITY, f64::INFINITY),
        DType::I32 => (-2_147_483_648.0, 2_147_483_647.0),
        DType::I8 => (-128.0, 127.0),
        DType::U8 => (0.0, 255.0),
        _ => (0.0, 4_294_967_295.0),
    };
    let number = match op {
        Accumulate::Add => 0.0,
        Accumulate::Mul => 1.0,
        Accumulate::Max => least,
        Accumulate::Min => most,
    };
    match Ty::of(dtype) {
        Ty::F32 => Val::f32(number as f32),
        Ty::I32 => Val::i32(number as i32),
        Ty::U32 => Val::u32(number as u32),
        Ty::Bool => Val::bool(number > 0.0),
    }
}

/// The place of the first best value.
fn best(is_max: bool, values: &[(i64, Val)]) -> Val {
    let rank = |value: Val| match value.ty {
        Ty::F32 => value.as_f64(),
        _ => value.whole() as f64,
    };
    let mut found: Option<(i64, Val)> = None;
    for &(at, value) in values {
        let is_better =
            found.is_none_or(|(_, best)| if is_max { rank(value) > rank(best) } else { rank(value) < rank(best) });
        if !rank(value).is_nan() && is_better {
            found = Some((at, value));
        }
    }
    let Some((place, winner)) = found else {
        return Val::i32(0).or_unknown(values.iter().all(|(_, value)| value.is_known()));
    };
    let is_sure = values.iter().all(|&(at, value)| {
        let apart = if is_max { value.hi() < winner.lo() } else { value.lo() > winner.hi() };
        value.is_known() && (at == place || value.as_f32().is_nan() || value.err == 0.0 && winner.err == 0.0 || apart)
    });
    Val::i32(place as i32).or_unknown(is_sure || winner.ty != Ty::F32 && values.iter().all(|(_, v)| v.is_known()))
}

/// Values accumulated, in any order.
fn accumulate(op: Accumulate, values: &[Val]) -> Val {
    let ty = values[0].ty;
    if matches!(op, Accumulate::Max | Accumulate::Min) {
        return values[1..].iter().fold(values[0], |a, b| extremum(op == Accumulate::Max, a, *b));
    }
    let operator = if op == Accumulate::Add { BinaryOp::Add } else { BinaryOp::Mul };
    if ty != Ty::F32 {
        return values[1..].iter().fold(values[0], |a, b| value::binary(operator, a, *b));
    }
    // Nothing to accumulate: what is there.
    if values.len() == 1 {
        return values[0];
    }
    if values.iter().any(|value| !value.is_plain()) {
        return Val::unknown(ty);
    }
    let n = values.len() as f64;
    let errors: f64 = values.iter().map(|value| value.err).sum();
    if op == Accumulate::Add {
        let sum: f64 = values.iter().map(|value| value.as_f64()).sum();
        let size: f64 = values.iter().map(|value| value.terms().0).sum();
        // Of multiples of one power of two, fewer than a float counts, every sum is exact in any order.
        let quantum = values.iter().map(|value| value.terms().1).fold(f64::INFINITY, f64::min);
        let rounding = if size < quantum * 16_777_216.0 { 0.0 } else { 2.0 * n * size / 16_777_216.0 };
        return Val { sum: (size, quantum), ..Val::rounded(sum, errors + rounding, 1.0) };
    }
    let product = values[1..].iter().fold(values[0], |a, b| value::binary(BinaryOp::Mul, a, *b));
    let bits: f64 =
        values
            .iter()
            .map(|value| {
                if value.as_f32() == 0.0 { 0.0 } else { (value.as_f64().abs() / quantum(value.as_f32())).log2() + 1.0 }
            })
            .sum();
    // In another order a partial product may leave the range.
    let reach: f64 = values.iter().map(|value| value.as_f64().abs().max(1e-30).log2().abs()).sum();
    if bits < 23.0 && errors == 0.0 && reach < 100.0 {
        return Val { err: 0.0, ..product };
    }
    let rounding = 4.0 * n * product.as_f64().abs() / 16_777_216.0;
    Val { err: product.err * 2.0 + rounding + 1e-37, ..product }.or_unknown(reach < 100.0)
}
