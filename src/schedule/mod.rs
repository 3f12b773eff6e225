//! How the points of a nest are spread over the device. A pure choice, made before any text.

pub mod explain;
mod tile;

use crate::loops::ir::{Nest, Stage};
use crate::loops::rewrite::each_child;
use crate::notation::ast::Function;
pub use crate::notation::program::points as iterations;
use crate::notation::program::{Expr, ExprKind, LoopIndex};
use crate::notation::spec::Forced;

/// Who computes the points of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// One invocation each, which goes over the reduced indices by itself.
    PerPoint,
    /// One invocation several: so many values of each free index together, so that what they share is computed once.
    Tiled(Vec<u32>),
    /// One workgroup each, whose invocations share the reduced indices and add up what they have in a tree.
    PerWorkgroup,
}

/// What a schedule is chosen for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Whether kernels run on the CPU: a few cores, to which barriers are dear.
    pub is_cpu: bool,
    /// Whether loops are left after some turns: Mesa's llvmpipe (22.3) does so after 65,535 of all loops of a kernel.
    pub leaves_loops: bool,
    /// Whether the kind is settled.
    pub forced: Option<Forced>,
}

/// Points from which on there is enough to do without sharing one among a workgroup. Devices have a few thousand
/// invocations in flight.
const MANY_POINTS: u64 = 4096;
/// The same where a core runs a few invocations at once.
const MANY_POINTS_ON_CPU: u64 = 256;
/// Reduced iterations below which a workgroup would mostly wait for itself.
const LONG_REDUCTION: u64 = 256;
/// Iterations that a 32-bit counter with a stride holds without wrapping.
const MOST_ITERATIONS: u64 = 1 << 31;

/// Turns of loops that an invocation takes, at most, where loops are left.
const MOST_TURNS: u64 = 1 << 15;

/// Points that keep a device busy.
pub const fn busy(is_cpu: bool) -> u64 {
    if is_cpu { 4096 } else { 16384 }
}

/// The schedule of a nest.
pub fn choose(nest: &Nest, target: &Target) -> Schedule {
    let is_long = |stage: &Stage| {
        let over = stage.fold.iter().map(|fold| iterations(&nest.indices, &fold.over));
        over.into_iter().any(|count| (LONG_REDUCTION..MOST_ITERATIONS).contains(&count))
    };
    let is_short =
        |stage: &Stage| stage.fold.as_ref().is_none_or(|fold| iterations(&nest.indices, &fold.over) < MOST_ITERATIONS);
    let may_share = nest.stages.iter().all(is_short) && !nest.is_atomic();
    let points = iterations(&nest.indices, &nest.free);
    let many = if target.is_cpu { MANY_POINTS_ON_CPU } else { MANY_POINTS };
    let is_shared = match target.forced {
        None => {
            nest.stages.iter().any(is_long) && points <= many
                || target.leaves_loops && nest.has_fold() && turns(nest) > MOST_TURNS
        }
        forced => forced == Some(Forced::PerWorkgroup),
    };
    if is_shared && may_share {
        return Schedule::PerWorkgroup;
    }
    // Points that a u32 does not count are looped over.
    let tile = match target.forced {
        _ if points > u64::from(u32::MAX) || target.is_cpu && has_branches(nest) => None,
        None => tile::choose(nest, target.is_cpu),
        forced => (forced == Some(Forced::Tiled)).then(|| tile::forced(nest)),
    };
    tile.map_or(Schedule::PerPoint, Schedule::Tiled)
}

/// Whether a function that branches is called in a loop. SwiftShader's compiler takes time and memory that double with each
/// branch of a loop, so those are not repeated there; all other functions select.
pub fn has_branches(nest: &Nest) -> bool {
    nest.has_fold()
        && nest.any_part(&mut |part| {
            matches!(part.kind, ExprKind::Call(Function::Sin | Function::Cos | Function::Tan | Function::Normal, _))
        })
}

/// Turns of loops at a point.
fn turns(nest: &Nest) -> u64 {
    let of_stage = |stage: &Stage| match &stage.fold {
        Some(fold) => {
            iterations(&nest.indices, &fold.over).saturating_mul(1 + inner_turns(&stage.value, &nest.indices))
        }
        None => inner_turns(&stage.value, &nest.indices),
    };
    nest.stages.iter().map(of_stage).fold(0, u64::saturating_add)
}

fn inner_turns(expr: &Expr, indices: &[LoopIndex]) -> u64 {
    let mut inner = 0u64;
    each_child(expr, &mut |child| inner = inner.saturating_add(inner_turns(child, indices)));
    match &expr.kind {
        ExprKind::Reduce { indices: over, .. } => iterations(indices, over).saturating_mul(inner.saturating_add(1)),
        _ => inner,
    }
}
