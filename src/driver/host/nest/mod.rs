//! Loop nests on the host driver: compiled once to instructions over lanes, run on as many threads as there are.
//!
//! Every point's value is computed before the first is stored, so a nest sees the values from before it.

mod code;
mod functions;
mod machine;
mod math;
mod memory;

use crate::driver::host::nest::code::{Code, code};
use crate::driver::host::nest::machine::{LANES, Machine, one};
use crate::driver::host::threads;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::loops::ir::{Loops, Nest};
use crate::notation::program::{points, times};
use crate::steps::Lowering;
use crate::steps::ops::{Op, accumulation};

/// Work of a thread, at least: points times what is reduced in each.
const POINTS_PER_THREAD: u64 = 1 << 15;
/// Points in a row from which on lanes run along it, rather than along a reduction.
const LONG_ROW: u64 = 8;

/// A compiled nest.
pub(super) struct NestCode {
    code: Code,
    /// The place among the buffers, and the dtype, of each tensor, the targets first.
    tensors: Vec<(usize, DType)>,
    /// The registers that count the free indices, and how far; the last one the fastest.
    free: Vec<(usize, u64)>,
    /// How many points, neighbours in the last free index, are computed together.
    lanes: u64,
    /// How many values are reduced in each point.
    reduced: u64,
    /// How many tensors are targets.
    targets: usize,
    /// How to accumulate what is stored, if that is atomic; then there is one target.
    atomic: Option<Op>,
}

/// A new element: its tensor, its offset, its bits.
pub(super) type Stored = (u32, u32, u32);

impl NestCode {
    /// Compiles a nest. `buffers` are those that it reads or writes, in the order of the memory that it is run on.
    pub(super) fn compile(loops: &Loops, nest: &Nest, buffers: &[usize]) -> Result<Self> {
        let mut lowering = Lowering::new(loops, nest);
        lowering.block.open();
        let mut free = Vec::new();
        for index in &nest.free {
            let counter = lowering.block.apart(Op::Counter, *index as u32, &[]);
            lowering.counters[*index] = counter;
            free.push((counter as usize, nest.indices[*index].count()));
        }
        // The targets come first.
        let targets = lowering.tensors.len();
        lowering.point();
        lowering.block.close(Op::Head, 0, 0, &[], false);
        let mut tensors = Vec::new();
        for buffer in &lowering.tensors {
            let place = buffers.iter().position(|known| known == buffer);
            let place = place.ok_or_else(|| Error::bug(format_args!("a nest reads buffer {buffer}")))?;
            tensors.push((place, loops.buffers[*buffer].dtype));
        }
        // The longest reduction, the last one of those.
        let (mut reduced, mut over, mut atomic) = (1, &nest.free, None);
        let is_long = free.last().is_some_and(|(_, extent)| *extent >= LONG_ROW);
        for stage in &nest.stages {
            if let Some(fold) = &stage.fold {
                let turns = points(&nest.indices, &fold.over);
                if turns >= reduced {
                    reduced = turns;
                    over = if is_long { over } else { &fold.over };
                }
            }
            if let Some(op) = stage.store.as_ref().and_then(|store| store.atomic) {
                atomic = Some(accumulation(op, stage.value.ty));
            }
        }
        let along = over.last().or(nest.free.last());
        let is_row = along.is_some() && along == nest.free.last();
        let code = code(&lowering.block.finish(), along.copied());
        let lanes = if is_row { LANES as u64 } else { 1 };
        Ok(Self { code, tensors, free, lanes, reduced, targets, atomic })
    }

    /// Runs the nest: the new elements of its targets, in the order in which they are to be stored.
    pub(super) fn values(&self, memory: &[&[u8]], statics: &[i32]) -> Vec<Stored> {
        let last = self.free.len().saturating_sub(1);
        // In goes of as many points as there are lanes.
        let goes = |at: usize, extent: u64| if at == last { extent.div_ceil(self.lanes) } else { extent };
        let all: u64 = self.free.iter().enumerate().map(|(at, (_, extent))| goes(at, *extent)).product();
        let work = times(times(all, self.lanes), self.reduced.max(1));
        let run = |range: std::ops::Range<u64>| {
            let mut tensors = Vec::new();
            for (place, dtype) in &self.tensors {
                tensors.push((memory[*place], *dtype));
            }
            let mut machine = Machine::new(&self.code, tensors, statics);
            for go in range {
                let mut rest = go;
                machine.count = 1;
                for (at, (counter, extent)) in self.free.iter().enumerate().rev() {
                    let (goes, lanes) = (goes(at, *extent), if at == last { self.lanes } else { 1 });
                    let first = rest % goes * lanes;
                    machine.firsts[*counter] = first as u32;
                    rest /= goes;
                    if at == last {
                        machine.count = lanes.min(extent - first) as usize;
                    }
                }
                machine.point();
            }
            machine.stored
        };
        threads::in_parts(all, work / POINTS_PER_THREAD, run)
    }

    /// Stores what [`NestCode::values`] gave for a tensor into its bytes.
    pub(super) fn store(&self, tensor: usize, values: &[Stored], target: &mut [u8]) {
        let (_, dtype) = self.tensors[tensor];
        for &(_, offset, bits) in values.iter().filter(|(number, ..)| *number as usize == tensor) {
            let bits = match self.atomic {
                Some(op) => one(op, memory::read(dtype, target, offset), bits, 0),
                None => bits,
            };
            memory::write(dtype, target, offset, bits);
        }
    }

    /// The places of the targets among the buffers.
    pub(super) fn targets(&self) -> impl Iterator<Item = usize> {
        self.tensors[..self.targets].iter().map(|(place, _)| *place)
    }
}

impl std::fmt::Debug for NestCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NestCode({} instructions)", self.code.instructions.len())
    }
}
