//! Values by buffer: a buffer that is set anew in full holds another value from there on.

use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Loops, Nest};
use crate::loops::optimise::{is_sound, is_whole};
use crate::loops::rewrite::{rename_reads, rename_writes};

/// Whether a nest sets every element of a buffer.
pub fn redefines(loops: &Loops, nest: &Nest, buffer: BufferIndex) -> bool {
    nest.stores().any(|store| store.target == buffer && store.atomic.is_none() && is_whole(loops, nest, store))
}

/// Gives each full redefinition of a buffer, but the last one, a temporary of its own. Gives those, with what they stand
/// for.
pub fn split(loops: &mut Loops) -> Vec<(BufferIndex, BufferIndex)> {
    let mut made = Vec::new();
    for buffer in 0..loops.buffers.len() {
        let mut from = None;
        for to in 0..loops.nests.len() {
            if !redefines(loops, &loops.nests[to], buffer) {
                continue;
            }
            if let Some(from) = from.replace(to) {
                let version = loops.buffers.len();
                let Buffer { dtype, shape, .. } = &loops.buffers[buffer];
                let (dtype, shape, name) = (*dtype, shape.clone(), loops.nests[from].name.clone());
                loops.buffers.push(Buffer { name, dtype, shape, kind: BufferKind::Temporary, note: "" });
                let renamed = |known| if known == buffer { version } else { known };
                for at in from..=to {
                    if at > from {
                        rename_reads(&mut loops.nests[at], &renamed);
                    }
                    if at < to {
                        rename_writes(&mut loops.nests[at], &renamed);
                    }
                }
                made.push((version, buffer));
            }
        }
    }
    made
}

/// The nests that read or write a buffer.
fn uses(loops: &Loops, buffer: BufferIndex) -> Vec<usize> {
    let mut uses = Vec::new();
    for (at, nest) in loops.nests.iter().enumerate() {
        if nest.reads(buffer) || nest.writes(buffer) {
            uses.push(at);
        }
    }
    uses
}

/// Puts what still is a version of a buffer back into the buffer itself, where nothing else needs its elements meanwhile.
pub fn restore(loops: &mut Loops, made: &[(BufferIndex, BufferIndex)]) {
    for &(version, buffer) in made.iter().rev() {
        let of_version = uses(loops, version);
        let (Some(&first), Some(&last)) = (of_version.first(), of_version.last()) else { continue };
        let of_buffer = uses(loops, buffer);
        let nest = |at: usize| &loops.nests[at];
        // What comes after must begin with a full redefinition, as it did.
        let Some(&next) = of_buffer.iter().find(|&&at| at >= last && nest(at).writes(buffer)) else { continue };
        let is_read = |at: usize| (last..=next).contains(&at) && nest(at).reads(buffer);
        let is_free = of_buffer.iter().all(|&at| (at <= first || at >= last) && !is_read(at))
            && !nest(first).writes(buffer)
            && redefines(loops, nest(first), version)
            && redefines(loops, nest(next), buffer);
        if !is_free {
            continue;
        }
        let renamed = |known| if known == version { buffer } else { known };
        let mut nests = loops.nests.clone();
        for &at in &of_version {
            rename_reads(&mut nests[at], &renamed);
            rename_writes(&mut nests[at], &renamed);
        }
        if of_version.iter().all(|&at| is_sound(&nests[at])) {
            loops.nests = nests;
            loops.buffers[version].note = "it is in its node's own place";
        }
    }
}
