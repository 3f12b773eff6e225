//! What goes through the memory of a workgroup: parts of what is accumulated that several of its invocations want, computed
//! once for all of them.

use crate::loops::ir::{Nest, any_load};
use crate::loops::rewrite::{any_part, each_child_mut, uses_index};
use crate::notation::program::{Expr, ExprKind, IndexId};
use crate::schedule::cost::{BUSY, MOST_PARTS, MOST_SUMS, Parts, WORTH};
use crate::schedule::{Candidate, LANES, Schedule, Spread, Target, insert, iterations};

/// Tiles of an invocation, along the first and the second index.
const TILES: [[u32; 2]; 5] = [[2, 2], [4, 4], [4, 8], [8, 4], [8, 8]];
/// Turns of a reduction that are staged together.
const TURNS: u32 = 16;
/// A tile and turns that no extents are likely to be multiples of.
const FORCED: ([u32; 2], u32) = ([2, 3], 8);
/// Turns of a reduction below which nothing of it is worth staging.
const LEAST: u64 = 64;
/// How many are candidates, the cheapest ones.
const MOST: usize = 2;
/// What a read of workgroup memory weighs, in simple operations.
const READ: f64 = 4.0;
/// What the two barriers weigh that are waited at for what is staged together.
const BARRIERS: f64 = 32.0;

/// The stage that accumulates, with what is staged for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged {
    /// The number of the stage.
    pub stage: usize,
    /// What it accumulates, in which [`ExprKind::Stage`] of that number and those above it are the parts.
    pub body: Expr,
    /// What is staged.
    pub parts: Vec<Part>,
}

/// What is staged.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its value.
    pub value: Expr,
    /// Which of the tile's two indices it depends on, if on one.
    pub axis: Option<usize>,
}

/// The places of the free indices that a tile has several values of, if they are two.
pub fn axes(tile: &[u32]) -> Option<[usize; 2]> {
    let mut long = (0..tile.len()).filter(|at| tile[*at] > 1);
    let axes = [long.next()?, long.next()?];
    long.next().is_none().then_some(axes)
}

/// What is staged for a tile; `None` where nothing can be.
pub fn staged(nest: &Nest, tile: &[u32]) -> Option<Staged> {
    let axes = axes(tile)?.map(|place| nest.free[place]);
    let mut folds = nest.stages.iter().enumerate().filter(|(_, stage)| stage.fold.is_some());
    let (number, stage) = folds.next()?;
    let fold = stage.fold.as_ref()?;
    let is_one = folds.next().is_none() && fold.op.is_some() && !fold.is_each;
    if !is_one || nest.is_atomic() || iterations(&nest.indices, &fold.over) == 0 {
        return None;
    }
    let mut staged = Staged { stage: number, body: stage.value.clone(), parts: Vec::new() };
    take(&mut staged.body, number, &fold.over, axes, &mut staged.parts);
    (!staged.parts.is_empty()).then_some(staged)
}

/// Takes the largest parts that are staged out of an expression.
fn take(expr: &mut Expr, stage: usize, over: &[IndexId], axes: [IndexId; 2], parts: &mut Vec<Part>) {
    let uses = axes.map(|index| uses_index(expr, index));
    let is_staged = any_load(expr, &mut |_| true)
        && over.iter().any(|index| uses_index(expr, *index))
        && uses != [true, true]
        // Earlier stages are those of a point.
        && !any_part(expr, &mut |part| matches!(part.kind, ExprKind::Stage(_)));
    if is_staged {
        let at = parts.iter().position(|known| known.value == *expr).unwrap_or(parts.len());
        let taken = std::mem::replace(expr, Expr::new(ExprKind::Stage(stage + at), expr.ty));
        if at == parts.len() {
            parts.push(Part { value: taken, axis: uses.iter().position(|uses| *uses) });
        }
    } else if !matches!(expr.kind, ExprKind::Reduce { .. }) {
        each_child_mut(expr, &mut |child| take(child, stage, over, axes, parts));
    }
}

/// Invocations of a workgroup along each of the two indices.
pub fn side(lanes: u32) -> u32 {
    1 << (lanes.trailing_zeros() / 2)
}

/// Adds the schedules that stage something, the cheapest ones, with what they cost where a workgroup has memory of its own.
pub(super) fn add(nest: &Nest, target: &Target, schedule: &dyn Fn(Spread) -> Schedule, all: &mut Vec<Candidate>) {
    let is_forced = target.forced().is_some();
    let (tiles, turns) = if is_forced { (&[FORCED.0][..], FORCED.1) } else { (&TILES[..], TURNS) };
    for second in 1..nest.free.len() {
        for first in 0..second {
            for lengths in tiles {
                let mut tile = vec![1; nest.free.len()];
                (tile[first], tile[second]) = (lengths[0], lengths[1]);
                if let Some(cost) = estimate(nest, target, [first, second], &tile, turns) {
                    insert(all, Candidate { schedule: schedule(Spread::Staged { tile, turns }), cost });
                }
            }
        }
    }
    all.truncate(if is_forced || target.is_cpu { 1 } else { MOST });
}

/// What it costs; `None` where it is not possible, or not worth a thought.
fn estimate(nest: &Nest, target: &Target, axes: [usize; 2], tile: &[u32], turns: u32) -> Option<u64> {
    let staged = staged(nest, tile)?;
    let (mut rest, mut shared) = (Parts::none(nest), Parts::none(nest));
    for (at, stage) in nest.stages.iter().enumerate() {
        rest.add_stage(stage, if at == staged.stage { &staged.body } else { &stage.value });
    }
    let points = u64::from(tile[axes[0]] * tile[axes[1]]);
    let is_small = points * rest.registers() <= MOST_SUMS && points * rest.count() <= MOST_PARTS;
    let mut block = tile.to_vec();
    let mut invocations = f64::from(LANES);
    for place in axes {
        block[place] *= side(LANES);
    }
    for (index, length) in nest.free.iter().zip(&block) {
        invocations *= iterations(&nest.indices, &[*index]).div_ceil(u64::from(*length)) as f64;
    }
    let (mut bytes, mut reads) = (0, 0);
    for Part { value, axis } in &staged.parts {
        shared.add(value, 1.0);
        bytes += axis.map_or(1, |axis| block[axes[axis]] + 1) * 4 * turns;
        reads += axis.map_or(1, |axis| tile[axes[axis]]);
    }
    let fold = nest.stages[staged.stage].fold.as_ref()?;
    let times = iterations(&nest.indices, &fold.over);
    if bytes > target.most_bytes || target.forced().is_none() && (!is_small || times < LEAST) {
        return None;
    }
    // Once for all invocations, and read by each.
    let turn = shared.of_tile(&block) / f64::from(LANES) + READ * f64::from(reads) + BARRIERS / f64::from(turns);
    let cost = rest.of_tile(tile) + turn * times as f64;
    Some((cost * f64::max(invocations, BUSY) / WORTH) as u64)
}

#[cfg(test)]
mod tests;
