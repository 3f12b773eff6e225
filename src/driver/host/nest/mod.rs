//! Loop nests on the host driver: compiled once, evaluated over lanes, on as many threads as there are.
//!
//! Every point's value is computed before the first is stored, so a nest sees the values from before it.

mod cast;
mod lanes;
mod math;

use crate::driver::host::nest::lanes::{Code, Compiler, LANES, Lanes, Place, PositionCode};
use crate::driver::host::nest::math::binary;
use crate::driver::host::threads;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::loops::ir::{Loops, Nest, Store};
use crate::notation::ast::{Accumulate, BinaryOp, Function, ReduceOp};
use crate::notation::program::{IndexId, LoopIndex, Ty};

/// Work of a thread, at least: points times what is reduced in each.
const POINTS_PER_THREAD: u64 = 1 << 15;

/// A compiled nest.
pub(super) struct NestCode {
    indices: Vec<LoopIndex>,
    free: Vec<IndexId>,
    reduced: Vec<IndexId>,
    /// The index that lanes run along, and whether it is a reduced one.
    along: Option<(IndexId, bool)>,
    positions: Vec<(PositionCode, i64)>,
    value: Code,
    store: Store,
    /// The target's place among the buffers, and its dtype.
    target: usize,
    dtype: DType,
    step: fn(u32, u32) -> u32,
}

/// What a reduction does with two values, and what it starts from. For a place: whether the second is better.
fn reduction(op: ReduceOp, ty: Ty) -> (fn(u32, u32) -> u32, u32) {
    let accumulate = |op| (accumulation(op, ty), start(op, ty));
    match op {
        ReduceOp::Sum => accumulate(Accumulate::Add),
        ReduceOp::Prod => accumulate(Accumulate::Mul),
        ReduceOp::Max => accumulate(Accumulate::Max),
        ReduceOp::Min => accumulate(Accumulate::Min),
        ReduceOp::ArgMax => (binary(BinaryOp::Lt, ty, ty), 0),
        ReduceOp::ArgMin => (binary(BinaryOp::Gt, ty, ty), 0),
    }
}

fn start(op: Accumulate, ty: Ty) -> u32 {
    let dtype = match ty {
        Ty::F32 => DType::F32,
        Ty::I32 => DType::I32,
        Ty::U32 => DType::U32,
        Ty::Bool => DType::Bool,
    };
    crate::loops::lower::neutral(dtype, op).bits()
}

fn accumulation(op: Accumulate, ty: Ty) -> fn(u32, u32) -> u32 {
    let two = |callee| match math::function(callee, ty) {
        math::Callee::Two(call) => call,
        _ => |a, _| a,
    };
    match op {
        Accumulate::Add => binary(BinaryOp::Add, ty, ty),
        Accumulate::Mul => binary(BinaryOp::Mul, ty, ty),
        Accumulate::Max => two(Function::Max),
        Accumulate::Min => two(Function::Min),
    }
}

impl NestCode {
    /// Compiles a nest. `buffers` are those that it reads or writes, in the order of the memory that it is run on.
    pub(super) fn compile(loops: &Loops, nest: &Nest, buffers: &[usize]) -> Result<Self> {
        let compiler = Compiler { loops, indices: &nest.indices, buffers };
        let target = loops.buffers.get(nest.target).zip(buffers.iter().position(|buffer| *buffer == nest.target));
        let (buffer, target) = target.ok_or_else(|| Error::bug("a nest without its target"))?;
        let positions = nest.positions.iter().zip(&buffer.shape);
        let positions = positions.map(|(position, extent)| Ok((compiler.position(position)?, i64::from(*extent))));
        let op = match nest.store {
            Store::Set => Accumulate::Add,
            Store::Fresh(op, _) | Store::Onto(op) | Store::Atomic(op) => op,
        };
        let extent = |index: &&IndexId| nest.indices[**index].hi - nest.indices[**index].lo;
        let last = |list: &[IndexId]| list.last().copied();
        let is_short = nest.free.last().is_none_or(|index| extent(&index) < 8);
        let along = match (last(&nest.free), last(&nest.reduced)) {
            (_, Some(index)) if is_short => Some((index, true)),
            (Some(index), _) => Some((index, false)),
            _ => None,
        };
        Ok(Self {
            indices: nest.indices.clone(),
            free: nest.free.clone(),
            reduced: nest.reduced.clone(),
            along,
            positions: positions.collect::<Result<_>>()?,
            value: compiler.expr(&nest.value)?,
            store: nest.store,
            target,
            dtype: buffer.dtype,
            step: accumulation(op, Ty::of(buffer.dtype)),
        })
    }

    fn extent(&self, index: IndexId) -> u64 {
        (self.indices[index].hi - self.indices[index].lo).max(0) as u64
    }

    /// Runs the nest: the new elements of its target, as offsets and bits, in the order in which they are to be stored.
    pub(super) fn values(&self, memory: &[&[u8]], statics: &[i32]) -> Vec<(i64, u32)> {
        let along_free = self.along.filter(|(_, is_reduced)| !is_reduced).map(|(index, _)| index);
        let outer: Vec<IndexId> = self.free.iter().copied().filter(|index| Some(*index) != along_free).collect();
        let rows: u64 = outer.iter().map(|index| self.extent(*index)).product();
        let work = rows
            .saturating_mul(along_free.map_or(1, |index| self.extent(index)))
            .saturating_mul(self.reduced.iter().map(|index| self.extent(*index)).product::<u64>().max(1));
        let run = |range: std::ops::Range<u64>| {
            let mut place = Place {
                indices: self.indices.iter().map(|index| index.lo).collect(),
                along: self.along.map(|(index, _)| index),
                count: 1,
                statics,
                memory,
            };
            let mut out = Vec::new();
            for row in range {
                let mut rest = row;
                for &index in outer.iter().rev() {
                    let extent = self.extent(index);
                    place.indices[index] = self.indices[index].lo + (rest % extent) as i64;
                    rest /= extent;
                }
                match along_free {
                    Some(index) => self.row(index, &mut place, &mut out),
                    None => self.point(&mut place, &mut out),
                }
            }
            out
        };
        threads::in_parts(rows, work / POINTS_PER_THREAD, run)
    }

    /// The points of a row, lane by lane.
    fn row(&self, along: IndexId, place: &mut Place<'_>, out: &mut Vec<(i64, u32)>) {
        let LoopIndex { lo, hi, .. } = self.indices[along];
        let mut first = lo;
        while first < hi {
            place.indices[along] = first;
            place.count = ((hi - first) as usize).min(LANES);
            let mut sum = self.first(place);
            if self.reduced.is_empty() {
                let value = self.value.eval(place);
                sum = if self.accumulates() { self.accumulate(sum, &value, place.count) } else { value };
            } else {
                self.reduce(&self.reduced, place, &mut sum);
            }
            self.emit(place, &sum, out);
            first += LANES as i64;
        }
        place.indices[along] = lo;
    }

    /// One point, its reduction lane by lane.
    fn point(&self, place: &mut Place<'_>, out: &mut Vec<(i64, u32)>) {
        place.count = 1;
        let mut sum = self.first(place);
        match self.along {
            Some((along, true)) => {
                let outer: Vec<IndexId> = self.reduced.iter().copied().filter(|index| *index != along).collect();
                sum[0] = self.reduce_along(&outer, along, place, sum[0]);
            }
            _ => {
                let value = self.value.eval(place);
                sum = if self.accumulates() { self.accumulate(sum, &value, 1) } else { value };
            }
        }
        place.count = 1;
        self.emit(place, &sum, out);
    }

    /// Whether the value is accumulated onto [`NestCode::first`], here rather than by whoever stores it.
    fn accumulates(&self) -> bool {
        matches!(self.store, Store::Fresh(..) | Store::Onto(_))
    }

    /// What the accumulation of each lane starts from.
    fn first(&self, place: &mut Place<'_>) -> Lanes {
        match self.store {
            Store::Fresh(_, value) => [value.bits(); LANES],
            Store::Onto(_) => {
                let offsets = self.offsets(place);
                let mut old = [0; LANES];
                for lane in 0..place.count {
                    old[lane] = offsets[lane].map_or(0, |at| cast::read_one(self.dtype, place.memory[self.target], at));
                }
                old
            }
            Store::Set | Store::Atomic(_) => [0; LANES],
        }
    }

    fn accumulate(&self, mut sum: Lanes, value: &Lanes, count: usize) -> Lanes {
        for (sum, value) in sum[..count].iter_mut().zip(value) {
            *sum = (self.step)(*sum, *value);
        }
        sum
    }

    fn reduce(&self, indices: &[IndexId], place: &mut Place<'_>, sum: &mut Lanes) {
        let [index, rest @ ..] = indices else {
            let value = self.value.eval(place);
            *sum = match self.store {
                // The usual sum, without a call for each lane.
                Store::Fresh(Accumulate::Add, _) | Store::Onto(Accumulate::Add) if Ty::of(self.dtype) == Ty::F32 => {
                    let mut sum = *sum;
                    for (sum, value) in sum.iter_mut().zip(&value) {
                        *sum = (f32::from_bits(*sum) + f32::from_bits(*value)).to_bits();
                    }
                    sum
                }
                _ => self.accumulate(*sum, &value, place.count),
            };
            return;
        };
        let LoopIndex { lo, hi, .. } = self.indices[*index];
        for value in lo..hi {
            place.indices[*index] = value;
            self.reduce(rest, place, sum);
        }
        place.indices[*index] = lo;
    }

    fn reduce_along(&self, outer: &[IndexId], along: IndexId, place: &mut Place<'_>, mut sum: u32) -> u32 {
        if let [index, rest @ ..] = outer {
            let LoopIndex { lo, hi, .. } = self.indices[*index];
            for value in lo..hi {
                place.indices[*index] = value;
                sum = self.reduce_along(rest, along, place, sum);
            }
            place.indices[*index] = lo;
            return sum;
        }
        let LoopIndex { lo, hi, .. } = self.indices[along];
        let mut first = lo;
        while first < hi {
            place.indices[along] = first;
            place.count = ((hi - first) as usize).min(LANES);
            let value = self.value.eval(place);
            sum = value[..place.count].iter().fold(sum, |sum, value| (self.step)(sum, *value));
            first += LANES as i64;
        }
        place.indices[along] = lo;
        sum
    }

    /// Where each lane is stored; `None` where it is dropped.
    fn offsets(&self, place: &mut Place<'_>) -> [Option<i64>; LANES] {
        let mut offsets = [Some(0i64); LANES];
        for (position, extent) in &self.positions {
            let at = position.eval(place);
            for lane in 0..place.count {
                let inside = Some(at[lane]).filter(|at| (0..*extent).contains(at));
                offsets[lane] = offsets[lane].zip(inside).map(|(offset, at)| offset * extent + at);
            }
        }
        offsets
    }

    fn emit(&self, place: &mut Place<'_>, values: &Lanes, out: &mut Vec<(i64, u32)>) {
        let offsets = self.offsets(place);
        out.extend(offsets[..place.count].iter().zip(values).filter_map(|(offset, value)| Some(((*offset)?, *value))));
    }

    /// Stores what [`NestCode::values`] gave into the bytes of the target.
    pub(super) fn store(&self, values: &[(i64, u32)], target: &mut [u8]) {
        for &(offset, bits) in values {
            let bits = match self.store {
                Store::Atomic(_) => (self.step)(cast::read_one(self.dtype, target, offset), bits),
                _ => bits,
            };
            cast::write_one(self.dtype, target, offset as usize, bits);
        }
    }

    /// The target's place among the buffers.
    pub(super) fn target(&self) -> usize {
        self.target
    }
}

impl std::fmt::Debug for NestCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NestCode({:?})", self.store)
    }
}
