//! Loops → loops with fewer nests, which mean the same.
//!
//! 1. Each full redefinition of a buffer gets a buffer of its own (`versions`), so that a value is known by its buffer.
//! 2. Temporaries that are set element by element are computed where they are read (`inline`), where that is as cheap.
//! 3. Nests over the same points become the stages of one (`merge`): what feeds a reduction at its points, what follows it,
//!    and elementwise nests side by side.
//! 4. Reductions inside expressions become stages; long ones are split for a device (`split`), if asked for.
//! 5. What nobody reads is dropped, and buffers that did not need one of their own go back.
//!
//! A value that moves behind a nest that writes what it reads would be another value: nothing moves that far.

mod cost;
pub(crate) mod inline;
mod merge;
mod split;
pub(crate) mod versions;

#[cfg(test)]
mod tests;

use crate::loops::ir::{BufferIndex, BufferKind, Loops, Nest};
use crate::notation::program::{Load, Position, Term};

pub use cost::operations;
pub use split::split;

/// Parts of the expressions of a nest, at most: they are compiled each time a program is.
const MOST_PARTS: u64 = 1500;
/// Operators above each other, at most.
const MOST_DEPTH: u32 = 200;

/// The same program in fewer nests.
pub fn optimise(loops: &mut Loops) {
    loops.nests.retain(has_points);
    let made = versions::split(loops);
    inline::inline(loops, false);
    merge::merge(loops);
    loops.nests.iter_mut().for_each(split::hoist);
    drop_unread(loops);
    versions::restore(loops, &made);
}

/// Whether a nest does anything.
pub fn has_points(nest: &Nest) -> bool {
    nest.free.iter().all(|index| nest.indices[*index].lo < nest.indices[*index].hi)
}

/// Drops stores into temporaries that are not read, and nests that store nothing.
fn drop_unread(loops: &mut Loops) {
    loop {
        let is_read: Vec<bool> =
            (0..loops.buffers.len()).map(|buffer| loops.nests.iter().any(|nest| nest.reads(buffer))).collect();
        let Loops { buffers, nests, .. } = loops;
        let is_needed = |target: BufferIndex| is_read[target] || buffers[target].kind != BufferKind::Temporary;
        let mut is_changed = false;
        for nest in nests.iter_mut() {
            for stage in &mut nest.stages {
                if stage.store.as_ref().is_some_and(|store| !is_needed(store.target)) {
                    stage.store = None;
                    is_changed = true;
                }
            }
            // Stages behind the last store are of no use; those before it may be.
            while nest.stages.last().is_some_and(|stage| stage.store.is_none()) {
                nest.stages.pop();
            }
        }
        nests.retain(|nest| !nest.stages.is_empty());
        if !is_changed {
            return;
        }
    }
}

/// For each axis the index that runs over all of it, alone, and over no other axis; `None` for an axis of one element at
/// position 0. Nothing where a store does not set each element of its buffer, by a point of its own.
pub(crate) fn whole(
    loops: &Loops,
    nest: &Nest,
    positions: &[Position],
    buffer: BufferIndex,
) -> Option<Vec<Option<usize>>> {
    let mut seen: Vec<usize> = Vec::new();
    let mut axes = Vec::with_capacity(positions.len());
    for (position, extent) in positions.iter().zip(&loops.buffers[buffer].shape) {
        let Position::Affine(affine) = position else { return None };
        match (affine.constant, &affine.terms[..]) {
            (0, [(Term::Index(index), 1)]) if !seen.contains(index) => {
                let range = &nest.indices[*index];
                if (range.lo, range.hi) != (0, i64::from(*extent)) {
                    return None;
                }
                seen.push(*index);
                axes.push(Some(*index));
            }
            (0, []) if *extent == 1 => axes.push(None),
            _ => return None,
        }
    }
    let others = nest.free.iter().filter(|index| !seen.contains(index));
    others.into_iter().all(|index| nest.indices[*index].count() == 1).then_some(axes)
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
