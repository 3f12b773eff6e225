//! Loops → loops with fewer nests, which mean the same.
//!
//! 1. Each full redefinition of a buffer gets a buffer of its own (`versions`), so that a value is known by its buffer.
//! 2. Reductions inside expressions that are the same for many points get nests of their own (`lift`).
//! 3. Temporaries that are set element by element are computed where they are read (`inline`), where that is as cheap.
//! 4. Nests over the same points become the stages of one (`merge`): what feeds a reduction at its points, what follows it,
//!    and elementwise nests side by side.
//! 5. Reductions inside expressions become stages; long ones are split for a device (`split`), if asked for.
//! 6. Elementwise nests go into those that accumulated their rows (`rows`), if asked for.
//! 7. What nobody reads is dropped, and buffers that did not need one of their own go back.
//!
//! A value that moves behind a nest that writes what it reads would be another value: nothing moves that far.

mod cost;
pub(crate) mod inline;
mod lift;
mod merge;
mod rows;
mod split;
pub(crate) mod versions;

#[cfg(test)]
mod tests;

use crate::loops::ir::{BufferIndex, BufferKind, Loops, Nest, Store};
use crate::notation::program::{Affine, Load, Position};

pub use cost::operations;
pub use rows::Rows;
pub use split::split;

/// Parts of the expressions of a nest, at most: they are compiled each time a program is.
const MOST_PARTS: u64 = 1500;
/// What a small device does in the time that a kernel costs, in units of `cost`.
pub const SMALL_WORK: u64 = 1 << 16;
/// Operators above each other, at most.
const MOST_DEPTH: u32 = 200;

/// The same program in fewer nests, of which none is made to save less work than that.
pub fn optimise(loops: &mut Loops, small_work: u64) {
    keep(loops, has_points);
    let made = versions::split(loops);
    lift::lift(loops, small_work);
    inline::inline(loops, false, small_work);
    merge::merge(loops, None);
    loops.nests.iter_mut().for_each(split::hoist);
    drop_unread(loops);
    versions::restore(loops, &made);
}

/// Does elementwise nests in those that accumulated their rows.
pub fn join_rows(loops: &mut Loops, rows: Rows) {
    merge::merge(loops, Some(rows));
}

/// Leaves the other nests out.
fn keep(loops: &mut Loops, is_kept: fn(&Nest) -> bool) {
    loops.nests.retain(is_kept);
}

/// Whether a nest does anything.
pub fn has_points(nest: &Nest) -> bool {
    nest.free.iter().all(|index| nest.indices[*index].lo < nest.indices[*index].hi)
}

/// Drops stores into temporaries that are not read, and nests that store nothing.
fn drop_unread(loops: &mut Loops) {
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        let mut needed = Vec::new();
        for (at, buffer) in loops.buffers.iter().enumerate() {
            needed.push(buffer.kind != BufferKind::Temporary || loops.nests.iter().any(|nest| nest.reads(at)));
        }
        for nest in &mut loops.nests {
            for stage in &mut nest.stages {
                if stage.store.as_ref().is_some_and(|store| !needed[store.target]) {
                    stage.store = None;
                    is_changed = true;
                }
            }
            // Stages behind the last store are of no use; those before it may be.
            while nest.stages.last().is_some_and(|stage| stage.store.is_none()) {
                nest.stages.pop();
            }
        }
        keep(loops, |nest| !nest.stages.is_empty());
    }
}

/// Whether a store sets each element of its buffer, by a point of its own: each axis is run over by an index of its own, from
/// end to end, or has one element, at position 0.
pub(crate) fn is_whole(loops: &Loops, nest: &Nest, store: &Store) -> bool {
    let mut seen: Vec<usize> = Vec::new();
    for (position, extent) in store.positions.iter().zip(&loops.buffers[store.target].shape) {
        let Position::Affine(affine) = position else { return false };
        match affine.alone() {
            Some(index) if !seen.contains(&index) && nest.indices[index].is_whole(*extent) => seen.push(index),
            None if *extent == 1 && *affine == Affine::default() => {}
            _ => return false,
        }
    }
    nest.free.iter().all(|index| seen.contains(index) || nest.indices[*index].count() == 1)
}

/// Whether each point of a nest reads, of what the nest stores, only the very elements that it stores itself, and no two
/// points or stages store one element.
fn is_sound(nest: &Nest) -> bool {
    let is_atomic = nest.is_atomic();
    for (at, one) in nest.stores().enumerate() {
        for other in nest.stores().take(at) {
            let is_apart =
                other.target != one.target || merge::are_apart(&one.positions, &other.positions, &nest.indices);
            if is_atomic || !is_apart {
                return false;
            }
        }
    }
    let is_elsewhere = |load: &Load| {
        nest.stores().any(|store| store.target == load.node && (is_atomic || store.positions != load.positions))
    };
    !nest.loads(&mut |load| is_elsewhere(load))
}

/// Whether a nest that was made of others is sound, and not too large.
fn is_fine(nest: &Nest) -> bool {
    let (parts, depth) = cost::size(nest);
    parts <= MOST_PARTS && depth <= MOST_DEPTH && is_sound(nest)
}

/// Whether what `nest` reads and writes is left alone by those in between, so that it may be done behind them, or before.
fn may_pass(nest: &Nest, between: &[Nest]) -> bool {
    between.iter().all(|other| {
        let is_touched = |target: BufferIndex| other.reads(target) || other.writes(target);
        !nest.stores().any(|store| is_touched(store.target)) && !other.stores().any(|store| nest.reads(store.target))
    })
}
