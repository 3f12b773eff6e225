//! Expressions, compiled for evaluation over lanes: neighbouring points of a loop, so that the walk over the expression is
//! paid once for many values.

use crate::driver::host::nest::math::{Callee, binary, function, unary};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::loops::ir::{Buffer, Loops};
use crate::notation::ast::{BinaryOp, Function, ReduceOp};
use crate::notation::program::{Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Position, Term, Ty};

/// Points that are evaluated together.
pub(super) const LANES: usize = 128;

/// A value per lane, as its 32 bits.
pub(super) type Lanes = [u32; LANES];

/// Where an evaluation is: the values of the indices, one of which counts on from lane to lane.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    /// The value of each index in the first lane.
    pub(super) indices: Vec<i64>,
    /// The index that is one larger in each next lane.
    pub(super) along: Option<IndexId>,
    /// Lanes in use.
    pub(super) count: usize,
    pub(super) statics: &'a [i32],
    /// The bytes of each buffer that is read.
    pub(super) memory: &'a [&'a [u8]],
}

/// An affine position: its value in the first lane, and how much it grows from lane to lane.
fn affine(affine: &Affine, place: &Place<'_>) -> (i64, i64) {
    let (mut start, mut step) = (affine.constant, 0);
    for (term, factor) in &affine.terms {
        match term {
            Term::Index(index) => {
                start += factor * place.indices[*index];
                if place.along == Some(*index) {
                    step += factor;
                }
            }
            Term::Static(index) => start += factor * i64::from(place.statics[*index]),
        }
    }
    (start, step)
}

/// A compiled expression.
pub(super) enum Code {
    Const(u32),
    Index(IndexId),
    Static(usize),
    /// Every position affine and in range.
    Plain {
        buffer: usize,
        dtype: DType,
        offset: Affine,
    },
    Load(Box<LoadCode>),
    One(fn(u32) -> u32, Box<Code>),
    Two(fn(u32, u32) -> u32, Box<Code>, Box<Code>),
    /// Sums and products of floats, which are most of the work.
    Add(Box<Code>, Box<Code>),
    Mul(Box<Code>, Box<Code>),
    Three(fn(u32, u32, u32) -> u32, Box<Code>, Box<Code>, Box<Code>),
    Four(fn(u32, u32, u32, u32) -> u32, Box<[Code; 4]>),
    Select(Box<Code>, Box<Code>, Box<Code>),
    Reduce(Box<ReduceCode>),
}

/// A load with positions that must be clamped or checked.
pub(super) struct LoadCode {
    buffer: usize,
    dtype: DType,
    axes: Vec<(PositionCode, i64)>,
    pad: Option<Code>,
}

/// A position on an axis.
pub(super) enum PositionCode {
    Affine(Affine),
    /// Of type u32 or i32.
    Computed(Code, Ty),
}

/// A reduction inside an expression.
pub(super) struct ReduceCode {
    op: ReduceOp,
    indices: Vec<(IndexId, LoopIndex)>,
    body: Code,
    ty: Ty,
    step: fn(u32, u32) -> u32,
    start: u32,
}

/// Which of the buffers that are read a buffer is.
pub(super) struct Compiler<'a> {
    pub(super) loops: &'a Loops,
    pub(super) indices: &'a [LoopIndex],
    /// The buffers, in the order of the memory that evaluation is given.
    pub(super) buffers: &'a [usize],
}

impl Compiler<'_> {
    fn buffer(&self, index: usize) -> Result<(usize, &Buffer)> {
        let position = self.buffers.iter().position(|buffer| *buffer == index);
        position.zip(self.loops.buffers.get(index)).ok_or_else(|| Error::bug(format!("a nest reads buffer {index}")))
    }

    /// Compiles an expression.
    pub(super) fn expr(&self, expr: &Expr) -> Result<Code> {
        let boxed = |expr: &Expr| self.expr(expr).map(Box::new);
        Ok(match &expr.kind {
            ExprKind::Const(value) => Code::Const(value.bits()),
            ExprKind::Index(index) => Code::Index(*index),
            ExprKind::Static(index) => Code::Static(*index),
            ExprKind::Load(load) => self.load(load)?,
            ExprKind::Unary(op, a) => Code::One(unary(*op, a.ty), boxed(a)?),
            ExprKind::Binary(BinaryOp::Add, a, b) if a.ty == Ty::F32 => Code::Add(boxed(a)?, boxed(b)?),
            ExprKind::Binary(BinaryOp::Mul, a, b) if a.ty == Ty::F32 => Code::Mul(boxed(a)?, boxed(b)?),
            ExprKind::Binary(op, a, b) => Code::Two(binary(*op, a.ty, b.ty), boxed(a)?, boxed(b)?),
            ExprKind::Conditional(c, a, b) => Code::Select(boxed(c)?, boxed(a)?, boxed(b)?),
            ExprKind::Call(Function::Select, arguments) => match &arguments[..] {
                [c, a, b] => Code::Select(boxed(c)?, boxed(a)?, boxed(b)?),
                _ => return Err(Error::bug("select of other than three")),
            },
            ExprKind::Call(callee, arguments) => {
                let ty = arguments.first().map_or(expr.ty, |argument| argument.ty);
                match (function(*callee, ty), &arguments[..]) {
                    (Callee::One(call), [a]) => Code::One(call, boxed(a)?),
                    (Callee::Two(_), [a, b]) if *callee == Function::Pow => {
                        Code::Two(binary(BinaryOp::Pow, a.ty, b.ty), boxed(a)?, boxed(b)?)
                    }
                    (Callee::Two(call), [a, b]) => Code::Two(call, boxed(a)?, boxed(b)?),
                    (Callee::Three(call), [a, b, c]) => Code::Three(call, boxed(a)?, boxed(b)?, boxed(c)?),
                    (Callee::Four(call), [a, b, c, d]) => {
                        Code::Four(call, Box::new([self.expr(a)?, self.expr(b)?, self.expr(c)?, self.expr(d)?]))
                    }
                    _ => return Err(Error::bug(format!("{} of {} arguments", callee.name(), arguments.len()))),
                }
            }
            ExprKind::Cast(dtype, a) => Code::One(super::cast::cast(*dtype, a.ty), boxed(a)?),
            ExprKind::Bitcast(a) => self.expr(a)?,
            ExprKind::Reduce { op, indices, body } => {
                let ranges = indices.iter().map(|index| (*index, self.indices[*index].clone())).collect();
                let (step, start) = super::reduction(*op, body.ty);
                let (body, ty) = (self.expr(body)?, body.ty);
                Code::Reduce(Box::new(ReduceCode { op: *op, indices: ranges, body, ty, step, start }))
            }
        })
    }

    /// Compiles a position.
    pub(super) fn position(&self, position: &Position) -> Result<PositionCode> {
        Ok(match position {
            Position::Affine(affine) => PositionCode::Affine(affine.clone()),
            Position::Computed(expr) => PositionCode::Computed(self.expr(expr)?, expr.ty),
        })
    }

    fn load(&self, load: &Load) -> Result<Code> {
        let (buffer, Buffer { dtype, shape, .. }) = self.buffer(load.node)?;
        let is_affine = load.positions.iter().all(|position| matches!(position, Position::Affine(_)));
        if is_affine && load.pad.is_none() {
            return Ok(Code::Plain { buffer, dtype: *dtype, offset: flat(&load.positions, shape) });
        }
        let axes = load
            .positions
            .iter()
            .zip(shape)
            .map(|(position, extent)| Ok((self.position(position)?, i64::from(*extent))));
        let pad = load.pad.as_ref().map(|pad| self.expr(pad)).transpose()?;
        Ok(Code::Load(Box::new(LoadCode { buffer, dtype: *dtype, axes: axes.collect::<Result<_>>()?, pad })))
    }
}

/// The flat offset of affine positions, in elements.
fn flat(positions: &[Position], shape: &[u32]) -> Affine {
    let mut offset = Affine::default();
    let mut stride = 1;
    for (position, extent) in positions.iter().zip(shape).rev() {
        if let Position::Affine(affine) = position {
            offset.constant += stride * affine.constant;
            for (term, factor) in &affine.terms {
                match offset.terms.iter_mut().find(|(known, _)| known == term) {
                    Some((_, sum)) => *sum += stride * factor,
                    None => offset.terms.push((*term, stride * factor)),
                }
            }
        }
        stride *= i64::from(*extent);
    }
    offset
}

impl Code {
    /// The value of each lane.
    pub(super) fn eval(&self, place: &mut Place<'_>) -> Lanes {
        let count = place.count;
        match self {
            Code::Const(bits) => [*bits; LANES],
            Code::Index(index) => counted(place.indices[*index], i64::from(place.along == Some(*index))),
            Code::Static(index) => [place.statics[*index] as u32; LANES],
            Code::Plain { buffer, dtype, offset } => {
                let (start, step) = affine(offset, place);
                super::cast::read(*dtype, place.memory[*buffer], start, step, count)
            }
            Code::Load(load) => load.eval(place),
            Code::One(call, a) => map(a.eval(place), count, call),
            Code::Two(call, a, b) => zip(a.eval(place), &b.eval(place), count, call),
            Code::Add(a, b) => {
                let add = |a, b| (f32::from_bits(a) + f32::from_bits(b)).to_bits();
                zip(a.eval(place), &b.eval(place), LANES, add)
            }
            Code::Mul(a, b) => {
                let mul = |a, b| (f32::from_bits(a) * f32::from_bits(b)).to_bits();
                zip(a.eval(place), &b.eval(place), LANES, mul)
            }
            Code::Three(call, a, b, c) => {
                let (mut a, b, c) = (a.eval(place), b.eval(place), c.eval(place));
                for lane in 0..count {
                    a[lane] = call(a[lane], b[lane], c[lane]);
                }
                a
            }
            Code::Four(call, arguments) => {
                let [mut a, b, c, d] = arguments.each_ref().map(|argument| argument.eval(place));
                for lane in 0..count {
                    a[lane] = call(a[lane], b[lane], c[lane], d[lane]);
                }
                a
            }
            Code::Select(c, a, b) => {
                let (c, mut a, b) = (c.eval(place), a.eval(place), b.eval(place));
                for lane in 0..LANES {
                    a[lane] = if c[lane] == 0 { b[lane] } else { a[lane] };
                }
                a
            }
            Code::Reduce(reduce) => reduce.eval(place),
        }
    }
}

fn counted(start: i64, step: i64) -> Lanes {
    let mut lanes = [0; LANES];
    for (lane, value) in lanes.iter_mut().enumerate() {
        *value = (start + step * lane as i64) as u32;
    }
    lanes
}

fn map(mut a: Lanes, count: usize, call: impl Fn(u32) -> u32) -> Lanes {
    for a in &mut a[..count] {
        *a = call(*a);
    }
    a
}

fn zip(mut a: Lanes, b: &Lanes, count: usize, call: impl Fn(u32, u32) -> u32) -> Lanes {
    for (a, b) in a[..count].iter_mut().zip(b) {
        *a = call(*a, *b);
    }
    a
}

impl PositionCode {
    /// The position of each lane.
    pub(super) fn eval(&self, place: &mut Place<'_>) -> [i64; LANES] {
        let mut out = [0; LANES];
        match self {
            PositionCode::Affine(position) => {
                let (start, step) = affine(position, place);
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = start + step * lane as i64;
                }
            }
            PositionCode::Computed(code, ty) => {
                let values = code.eval(place);
                for (out, value) in out.iter_mut().zip(values) {
                    *out = if *ty == Ty::I32 { i64::from(value as i32) } else { i64::from(value) };
                }
            }
        }
        out
    }
}

impl LoadCode {
    fn eval(&self, place: &mut Place<'_>) -> Lanes {
        let mut offsets = [0i64; LANES];
        let mut is_inside = [true; LANES];
        for (position, extent) in &self.axes {
            let at = position.eval(place);
            for lane in 0..place.count {
                is_inside[lane] &= (0..*extent).contains(&at[lane]);
                offsets[lane] = offsets[lane] * extent + at[lane].clamp(0, (extent - 1).max(0));
            }
        }
        let memory = place.memory[self.buffer];
        let read = |offset| super::cast::read_one(self.dtype, memory, offset);
        match &self.pad {
            Some(pad) => {
                let mut out = pad.eval(place);
                for lane in (0..place.count).filter(|lane| is_inside[*lane]) {
                    out[lane] = read(offsets[lane]);
                }
                out
            }
            None => {
                let mut out = [0; LANES];
                for lane in 0..place.count {
                    out[lane] = read(offsets[lane]);
                }
                out
            }
        }
    }
}

impl ReduceCode {
    fn eval(&self, place: &mut Place<'_>) -> Lanes {
        let mut sum = [self.start; LANES];
        // The best value so far, for those who want its place; a NaN never is one.
        let mut best = [0u32; LANES];
        let mut has_best = [false; LANES];
        let is_arg = matches!(self.op, ReduceOp::ArgMax | ReduceOp::ArgMin);
        for_each(&self.indices, place, &mut |place| {
            let values = self.body.eval(place);
            if !is_arg {
                sum = zip(sum, &values, place.count, |a, b| (self.step)(a, b));
                return;
            }
            let at = self.indices.first().map_or(0, |(index, _)| place.indices[*index]) as u32;
            for lane in 0..place.count {
                let value = values[lane];
                let is_nan = self.ty == Ty::F32 && f32::from_bits(value).is_nan();
                if !is_nan && (!has_best[lane] || (self.step)(best[lane], value) != 0) {
                    (best[lane], has_best[lane], sum[lane]) = (value, true, at);
                }
            }
        });
        sum
    }
}

/// Calls `body` for every value of those indices, the last one the fastest.
fn for_each(indices: &[(IndexId, LoopIndex)], place: &mut Place<'_>, body: &mut dyn FnMut(&mut Place<'_>)) {
    match indices {
        [] => body(place),
        [(index, range), rest @ ..] => {
            let outer = place.indices[*index];
            for value in range.lo..range.hi {
                place.indices[*index] = value;
                for_each(rest, place, body);
            }
            place.indices[*index] = outer;
        }
    }
}
