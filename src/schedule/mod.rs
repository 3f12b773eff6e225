//! How the points of a nest are spread over the device. A pure choice, made before any text.

use crate::loops::ir::{Nest, Store};
use crate::loops::lower::any_load;
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
    let accumulates = matches!(nest.store, Store::Fresh(..) | Store::Onto(_));
    let reduced = iterations(&nest.indices, &nest.reduced);
    let is_long = (LONG_REDUCTION..MOST_ITERATIONS).contains(&reduced);
    // While one invocation stores, others would read.
    let reads_target = any_load(&nest.value, &mut |load| load.node == nest.target);
    if accumulates && is_long && !reads_target && iterations(&nest.indices, &nest.free) <= MANY_POINTS {
        Schedule::PerWorkgroup
    } else {
        Schedule::PerPoint
    }
}

/// How many points some indices have together; saturates.
pub fn iterations(indices: &[LoopIndex], over: &[IndexId]) -> u64 {
    over.iter().fold(1, |product, index| product.saturating_mul(extent(&indices[*index])))
}

/// How many values an index has.
pub fn extent(index: &LoopIndex) -> u64 {
    index.hi.saturating_sub(index.lo).max(0) as u64
}
