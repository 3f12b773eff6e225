//! Values by buffer: a buffer that is set anew in full holds another value from there on.

use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Loops, Nest};
use crate::loops::optimise::{is_sound, whole};
use crate::loops::rewrite::{rename_reads, rename_writes};

/// Whether a nest sets every element of a buffer.
pub fn redefines(loops: &Loops, nest: &Nest, buffer: BufferIndex) -> bool {
    nest.stores().any(|store| {
        store.target == buffer && store.atomic.is_none() && whole(loops, nest, &store.positions, buffer).is_some()
    })
}

/// Gives each full redefinition of a buffer, but the last one, a temporary of its own. Gives those, with what they stand
/// for.
pub fn split(loops: &mut Loops) -> Vec<(BufferIndex, BufferIndex)> {
    let mut made = Vec::new();
    for buffer in 0..loops.buffers.len() {
        let defines: Vec<usize> =
            (0..loops.nests.len()).filter(|&at| redefines(loops, &loops.nests[at], buffer)).collect();
        for pair in defines.windows(2) {
            let &[from, to] = pair else { continue };
            let version = loops.buffers.len();
            let Buffer { dtype, shape, .. } = loops.buffers[buffer].clone();
            let name = loops.nests[from].name.clone();
            loops.buffers.push(Buffer { name, dtype, shape, kind: BufferKind::Temporary, note: "" });
            let renamed = |known| if known == buffer { version } else { known };
            rename_writes(&mut loops.nests[from], &renamed);
            for nest in &mut loops.nests[from + 1..to] {
                rename_reads(nest, &renamed);
                rename_writes(nest, &renamed);
            }
            rename_reads(&mut loops.nests[to], &renamed);
            made.push((version, buffer));
        }
    }
    made
}

/// Puts what still is a version of a buffer back into the buffer itself, where nothing else needs its elements meanwhile.
pub fn restore(loops: &mut Loops, made: &[(BufferIndex, BufferIndex)]) {
    for &(version, buffer) in made.iter().rev() {
        let uses = |of: BufferIndex| {
            let nests = loops.nests.iter().enumerate();
            nests.filter(move |(_, nest)| nest.reads(of) || nest.writes(of)).map(|(at, _)| at).collect::<Vec<_>>()
        };
        let of_version = uses(version);
        let (Some(&first), Some(&last)) = (of_version.first(), of_version.last()) else { continue };
        let of_buffer = uses(buffer);
        // What comes after must begin with a full redefinition, as it did.
        let next = of_buffer.iter().find(|&&at| at >= last && loops.nests[at].writes(buffer));
        let is_free = of_buffer.iter().all(|&at| at <= first || at >= last)
            && !loops.nests[first].writes(buffer)
            && redefines(loops, &loops.nests[first], version)
            && next.is_some_and(|&at| {
                redefines(loops, &loops.nests[at], buffer)
                    && (at == last || !loops.nests[last].reads(buffer))
                    && !of_buffer.iter().any(|&other| other >= last && other <= at && loops.nests[other].reads(buffer))
            });
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
