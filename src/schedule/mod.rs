//! How the points of a nest are spread over the device. A pure choice, made before any text: a list of candidates, each with
//! an estimate of what it costs, of which the first is taken unless a device was measured.

mod cost;
pub mod explain;
mod online;
pub mod staged;

use std::fmt;

use crate::loops::ir::{Nest, Stage};
use crate::loops::optimise::Rows;
use crate::loops::rewrite::each_child;
use crate::notation::ast::Function;
pub use crate::notation::program::points as iterations;
use crate::notation::program::{Expr, ExprKind, LoopIndex};
use crate::notation::spec::{Binding, Forced};
use crate::schedule::cost::Parts;
pub use crate::schedule::online::online;

/// Changes whenever a schedule comes to mean other text: what was measured before is measured again then.
pub const VERSION: u32 = 4;

/// How the points of a nest are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Who computes them.
    pub spread: Spread,
    /// Invocations of a workgroup: 64 or 256; on a CPU also less.
    pub lanes: u32,
    /// Turns of a reduction that an invocation does in a row, at most.
    pub turns: u32,
    /// Whether floats in a row are loaded and stored by fours.
    pub by_fours: bool,
    /// How the kernel reaches its tensors.
    pub binding: Binding,
    /// Whether a maximum and the sum of the exponentials below it take one turn over the row, not two.
    pub is_online: bool,
    /// Whether the subgroups of a workgroup each put together what their invocations have, and not a tree.
    pub subgroups: bool,
}

/// Who computes the points of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One invocation each, which goes over the reduced indices by itself.
    PerPoint,
    /// One invocation several: so many values of each free index together, so that what they share is computed once.
    Tiled(Vec<u32>),
    /// One workgroup each, whose invocations share the reduced indices and add up what they have, in a tree or by subgroups.
    PerWorkgroup,
    /// One invocation several, as in `Tiled`, of two free indices; its workgroup computes what several invocations want of so
    /// many turns of the reduction together, and has it in its memory.
    Staged {
        /// Values of each free index: of two of them several.
        tile: Vec<u32>,
        /// Turns that are in memory together.
        turns: u32,
    },
}

/// A schedule that is legal for a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The schedule.
    pub schedule: Schedule,
    /// What it is likely to cost, in simple operations one after the other on a device that is kept busy. Comparable for one
    /// nest on one device.
    pub cost: u64,
}

/// What a schedule is chosen for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Whether kernels run on the CPU: a few cores, to which barriers are dear.
    pub is_cpu: bool,
    /// Whether a kernel may read what it stored: the host driver stores when all points are computed.
    pub has_rows: bool,
    /// Whether loops are left after some turns: Mesa's llvmpipe (22.3) does so after 65,535 of all loops of a kernel.
    pub leaves_loops: bool,
    /// Whether every tensor starts at a multiple of four floats.
    pub is_aligned: bool,
    /// Invocations of a workgroup, at most.
    pub most_lanes: u32,
    /// Bytes of memory of a workgroup, at most.
    pub most_bytes: u32,
    /// Whether kernels may use subgroup operations.
    pub has_subgroups: bool,
    /// Whether the spread is settled.
    pub forced: Option<Forced>,
    /// How the kernel reaches its tensors, if that is settled.
    pub binding: Option<Binding>,
}

/// Whether schedules can be settled by whoever compiles: nobody can ask the npm package for that, and the code would be a burden.
const CAN_SETTLE: bool = !cfg!(feature = "npm");

impl Target {
    /// The spread, if it is settled.
    pub const fn forced(&self) -> Option<Forced> {
        if CAN_SETTLE { self.forced } else { None }
    }

    /// How the kernel reaches its tensors, if that is settled.
    pub const fn binding(&self) -> Option<Binding> {
        if CAN_SETTLE { self.binding } else { None }
    }
}

/// Points from which on there is enough to do without sharing one among a workgroup. Devices have a few thousand
/// invocations in flight.
const MANY_POINTS: u64 = 4096;
/// The same where a core runs a few invocations at once.
const MANY_POINTS_ON_CPU: u64 = 32;
/// Reduced iterations below which a workgroup would mostly wait for itself.
const LONG_REDUCTION: u64 = 256;
/// Iterations that a 32-bit counter with a stride holds without wrapping.
const MOST_ITERATIONS: u64 = 1 << 31;
/// Turns of loops that an invocation takes, at most, where loops are left.
const MOST_TURNS: u64 = 1 << 15;

/// Invocations of a workgroup: a power of two that every device has, and few enough for small nests.
const LANES: u32 = 64;
/// As few, on a CPU, as fill its vectors, and a few vectors.
const FEW_LANES: u32 = 8;
const WAITING_LANES: u32 = 16;
/// Workgroups that keep the cores of a CPU busy, whichever ends last.
const MANY_GROUPS: f64 = 16.0;
/// Another power of two, that every device has as WebGPU's limits ask for it.
const MANY_LANES: u32 = 256;
/// Turns of a reduction that are done in a row, where they have no branches.
const UNROLLED: u32 = 4;
/// Spreads that are kept, the cheapest ones.
const MOST_SPREADS: usize = 6;
/// Spreads of which there are variants.
const VARIED: usize = 2;
/// How much longer it takes on a CPU where values go through workgroup memory, at least.
const STAGED_ON_CPU: u64 = 4;

/// Ways in which long reductions are split.
pub const SPLITTINGS: usize = 4;

/// Points that keep a device busy: so many parts long reductions are split into, in the way of that number. The others are into
/// a fourth as many, four times as many, and as few as may be.
pub const fn busy(is_cpu: bool, splitting: usize) -> u64 {
    (if is_cpu { 4096 } else { 16384 }) * [4, 1, 16, 0][splitting % SPLITTINGS] / 4
}

/// Rows that keep a device busy, and their length from which on that is as good as a kernel of their elements: by neighbouring
/// invocations, or one after the other on a CPU. To a CPU exponentials are dear, to other devices accesses. Where schedules are
/// forced, all of that is tried, whatever it is worth.
pub const fn rows(target: &Target) -> Rows {
    let keeps = target.is_cpu && !matches!(target.forced(), Some(Forced::PerWorkgroup | Forced::Subgroups));
    match (target.forced(), target.is_cpu) {
        (Some(_), _) => Rows { least: 1, length: 1, keeps },
        (None, true) => Rows { least: 64, length: 1, keeps },
        (None, false) => Rows { least: 256, length: LONG_REDUCTION, keeps },
    }
}

/// What a variant of a schedule has otherwise.
#[derive(Clone, Copy)]
enum Change {
    Online,
    Fours,
    Subgroups,
    Lanes,
    Binding,
}

impl Change {
    const ALL: [Self; 5] = [Self::Online, Self::Fours, Self::Subgroups, Self::Lanes, Self::Binding];
}

/// The schedules of a nest, the one with the least estimate first; at least one.
pub fn candidates(nest: &Nest, target: &Target) -> Vec<Candidate> {
    // On other devices neighbouring invocations take neighbouring elements, and the device puts their accesses together.
    let by_fours = target.is_cpu && target.is_aligned;
    let binding = target.binding().unwrap_or(Binding::Pooled);
    let turns = if target.is_cpu && has_branches(nest) { 1 } else { UNROLLED };
    let may_group = |spread: &Spread| target.has_subgroups && *spread == Spread::PerWorkgroup && accumulates(nest);
    let is_grouped = target.forced() != Some(Forced::PerWorkgroup);
    let parts = Parts::new(nest, target.is_cpu, by_fours);
    let schedule = |spread: Spread| {
        let subgroups = is_grouped && may_group(&spread);
        let is_staged = matches!(spread, Spread::Staged { .. });
        let lanes = if target.is_cpu && !is_staged { few_lanes(&spread, parts.invocations(&spread)) } else { LANES };
        let by_fours = by_fours && !is_staged;
        Schedule { spread, lanes, turns, by_fours, binding, is_online: false, subgroups }
    };
    let mut all = Vec::new();
    let (spreads, may_stage) = spreads(nest, target, &parts);
    for spread in spreads {
        let cost = parts.estimate(&spread);
        insert(&mut all, Candidate { schedule: schedule(spread), cost });
    }
    all.truncate(MOST_SPREADS);
    let least = all.first().map_or(0, |candidate| candidate.cost);
    let mut staged = Vec::new();
    if may_stage {
        staged::add(nest, target, &schedule, &mut staged);
    }
    if target.forced().is_some() && !staged.is_empty() {
        all.clear();
    }
    for mut candidate in staged {
        if target.is_cpu {
            // A core has no such memory: it waits for barriers, and copies what its cache holds anyway.
            candidate.cost = candidate.cost.max(least).saturating_mul(STAGED_ON_CPU);
        }
        insert(&mut all, candidate);
    }
    let online = online(nest);
    let others = Parts::new(nest, target.is_cpu, !by_fours && target.is_aligned);
    for at in 0..all.len().min(VARIED) {
        for change in Change::ALL {
            let mut other = all[at].clone();
            let Candidate { schedule, cost } = &mut other;
            let dearer = cost.saturating_add(*cost / 8);
            let is_there = match change {
                // One exponential more for each element, and a load of it less.
                Change::Online => {
                    *cost = cost.saturating_add(*cost / if target.is_cpu { 4 } else { 16 });
                    schedule.is_online = true;
                    online.is_some()
                }
                Change::Fours => {
                    *cost = if by_fours { others.estimate(&schedule.spread) } else { dearer };
                    schedule.by_fours = !by_fours;
                    (if by_fours { &parts } else { &others }).has_rows(&schedule.spread)
                }
                Change::Subgroups => {
                    *cost = dearer;
                    schedule.subgroups = !schedule.subgroups;
                    may_group(&schedule.spread)
                }
                Change::Lanes => {
                    *cost = dearer;
                    schedule.lanes = MANY_LANES;
                    // As many bytes as before.
                    if let Spread::Staged { turns, .. } = &mut schedule.spread {
                        *turns /= 2;
                    }
                    target.most_lanes >= MANY_LANES
                }
                Change::Binding => {
                    *cost = dearer;
                    schedule.binding = Binding::Direct;
                    target.binding().is_none()
                }
            };
            if is_there {
                all.push(other);
            }
        }
    }
    let mut sorted = Vec::new();
    for candidate in all {
        insert(&mut sorted, candidate);
    }
    sorted
}

/// Invocations of a workgroup on a CPU, whose cores take a workgroup each: so many that there are enough of those. Where they wait
/// for each other, a core goes from one vector of them to the next at each barrier.
fn few_lanes(spread: &Spread, invocations: f64) -> u32 {
    if *spread == Spread::PerWorkgroup {
        return WAITING_LANES;
    }
    let mut lanes = LANES;
    while lanes > FEW_LANES && invocations < f64::from(lanes) * MANY_GROUPS {
        lanes /= 2;
    }
    lanes
}

/// Puts a candidate behind those that cost as much.
fn insert(sorted: &mut Vec<Candidate>, candidate: Candidate) {
    let at = sorted.iter().take_while(|known| known.cost <= candidate.cost).count();
    sorted.insert(at, candidate);
}

/// The spreads that are legal, and not known to be much too slow; and whether some may stage something too.
fn spreads(nest: &Nest, target: &Target, parts: &Parts<'_>) -> (Vec<Spread>, bool) {
    let folded = |stage: &Stage| stage.fold.as_ref().map(|fold| iterations(&nest.indices, &fold.over));
    let is_short = |stage: &Stage| folded(stage).is_none_or(|count| count < MOST_ITERATIONS);
    let is_long = |stage: &Stage| folded(stage).is_some_and(|count| count >= LONG_REDUCTION);
    let may_share = nest.stages.iter().all(is_short) && !nest.is_atomic();
    let must_share = target.leaves_loops && nest.has_fold() && turns(nest) > MOST_TURNS;
    // Points that a u32 does not count are looped over.
    let may_tile =
        iterations(&nest.indices, &nest.free) <= u64::from(u32::MAX) && !(target.is_cpu && has_branches(nest));
    let spreads = match target.forced() {
        _ if must_share && may_share => vec![Spread::PerWorkgroup],
        Some(Forced::PerWorkgroup | Forced::Subgroups) if may_share => vec![Spread::PerWorkgroup],
        Some(Forced::Tiled) if may_tile => vec![Spread::Tiled(cost::forced(nest))],
        Some(_) => vec![Spread::PerPoint],
        None => {
            let mut all = Vec::new();
            if may_share && nest.stages.iter().any(is_long) {
                all.push(Spread::PerWorkgroup);
            }
            all.push(Spread::PerPoint);
            if may_tile {
                parts.tiles(&mut all);
            }
            all
        }
    };
    let is_asked = matches!(target.forced(), None | Some(Forced::Staged));
    (spreads, is_asked && may_tile && may_share && !must_share)
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spread {
            Spread::PerPoint => f.write_str("point")?,
            Spread::PerWorkgroup => f.write_str("workgroup")?,
            Spread::Tiled(tile) | Spread::Staged { tile, .. } => {
                for (at, length) in tile.iter().enumerate() {
                    write!(f, "{}{length}", if at == 0 { "tile " } else { "x" })?;
                }
            }
        }
        if let Spread::Staged { turns, .. } = &self.spread {
            write!(f, " staged by {turns}")?;
        }
        let subgroups = if self.subgroups { " by subgroups" } else { "" };
        let online = if self.is_online { " online" } else { "" };
        let fours = if self.by_fours { " by fours" } else { "" };
        let binding = if self.binding == Binding::Direct { " direct" } else { "" };
        write!(f, "{subgroups} of {} lanes{fours}{online}{binding}", self.lanes)
    }
}

/// Whether lanes have something to put together.
fn accumulates(nest: &Nest) -> bool {
    nest.stages.iter().any(|stage| stage.fold.as_ref().is_some_and(|fold| fold.op.is_some()))
}

/// Whether a function that branches is called in a loop. SwiftShader's compiler takes time and memory that double with each
/// branch of a loop, so those are not repeated there; all other functions select.
fn has_branches(nest: &Nest) -> bool {
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
