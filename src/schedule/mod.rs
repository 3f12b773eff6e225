//! How the points of a nest are spread over the device. A pure choice, made before any text.

pub mod explain;

use crate::loops::ir::{Nest, Stage};
use crate::notation::program::{IndexId, LoopIndex};

/// Who computes a point of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// One invocation, which goes over the reduced indices by itself.
    PerPoint,
    /// One workgroup, whose invocations share the reduced indices and add up what they have in a tree.
    PerWorkgroup,
}

/// Points from which on there is enough to do without sharing one among a workgroup. Devices have a few thousand
/// invocations in flight.
const MANY_POINTS: u64 = 4096;
/// Reduced iterations below which a workgroup would mostly wait for itself.
const LONG_REDUCTION: u64 = 256;
/// Iterations that a 32-bit counter with a stride holds without wrapping.
const MOST_ITERATIONS: u64 = 1 << 31;

/// The schedule of a nest.
pub fn choose(nest: &Nest) -> Schedule {
    let is_long = |stage: &Stage| {
        let over = stage.fold.iter().map(|fold| iterations(&nest.indices, &fold.over));
        over.into_iter().any(|count| (LONG_REDUCTION..MOST_ITERATIONS).contains(&count))
    };
    let is_short =
        |stage: &Stage| stage.fold.as_ref().is_none_or(|fold| iterations(&nest.indices, &fold.over) < MOST_ITERATIONS);
    let is_shared = nest.stages.iter().any(is_long)
        && nest.stages.iter().all(is_short)
        && nest.stores().all(|store| store.atomic.is_none())
        && iterations(&nest.indices, &nest.free) <= MANY_POINTS;
    if is_shared { Schedule::PerWorkgroup } else { Schedule::PerPoint }
}

/// How many points some indices have together; saturates.
pub fn iterations(indices: &[LoopIndex], over: &[IndexId]) -> u64 {
    over.iter().fold(1, |product, index| product.saturating_mul(extent(&indices[*index])))
}

/// How many values an index has.
pub fn extent(index: &LoopIndex) -> u64 {
    index.hi.saturating_sub(index.lo).max(0) as u64
}
