//! What became of a program's tensors, and what its kernels do, in words.

use std::fmt::{self, Write};

use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Loops, Nest};
use crate::loops::optimise::operations;
use crate::node::{List, add_part};
use crate::schedule::{Candidate, Spread, iterations};

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerPoint => f.write_str("an invocation each"),
            Self::Tiled(tile) => write!(f, "an invocation for {}", List(tile)),
            Self::PerWorkgroup => f.write_str("a workgroup each"),
            Self::Staged { tile, .. } => write!(f, "lanes that share what they load for {}", List(tile)),
        }
    }
}

/// A line for each tensor: where it is, and why.
pub fn tensors(loops: &Loops) -> String {
    let mut text = String::new();
    for (at, Buffer { name, dtype, shape, kind, note }) in loops.buffers.iter().enumerate() {
        let place = match kind {
            BufferKind::Node(_) => "on device",
            BufferKind::Temporary if loops.nests.iter().any(|nest| nest.writes(at) || nest.reads(at)) => "local",
            BufferKind::Temporary => "virtual",
        };
        let _ = write!(text, "\n{name}: {dtype}{} {place}", List(shape));
        if *kind == BufferKind::Temporary && !note.is_empty() {
            text.push_str(": ");
            text.push_str(note);
        }
    }
    text
}

/// A line for a nest: its points, what it reads and writes, its operations, and which of its schedules was chosen.
pub fn nest(loops: &Loops, nest: &Nest, candidates: &[Candidate], chosen: usize) -> String {
    let points = iterations(&nest.indices, &nest.free);
    let Some(Candidate { schedule, .. }) = candidates.get(chosen) else { return String::new() };
    let who = &schedule.spread;
    let all = |is_used: &dyn Fn(BufferIndex) -> bool| {
        let (mut names, mut bytes) = (String::new(), 0u64);
        for (_, buffer) in loops.buffers.iter().enumerate().filter(|(at, _)| is_used(*at)) {
            add_part(&mut names, ", ", &buffer.name);
            let elements = buffer.shape.iter().fold(1u64, |count, extent| count.saturating_mul(u64::from(*extent)));
            bytes = bytes.saturating_add(elements.saturating_mul(buffer.dtype.size_bytes()));
        }
        if names.is_empty() { "nothing".to_owned() } else { format!("{names} ({bytes} bytes)") }
    };
    format!(
        "{points} points, {who}; reads {}, writes {}, {} operations; schedule {schedule}: {}",
        all(&|buffer| nest.reads(buffer)),
        all(&|buffer| nest.writes(buffer)),
        operations(nest),
        why(candidates, chosen),
    )
}

/// Why a schedule was chosen, if it was: it is the first, or what it is among the others.
fn why(candidates: &[Candidate], chosen: usize) -> String {
    let count = candidates.len();
    match candidates {
        [own, next, ..] if chosen == 0 => {
            format!("least of {count} estimates, {}; then {}, {}", own.cost, next.schedule, next.cost)
        }
        [_, ..] if count > 1 => format!("number {} of {count} estimates, {}", chosen + 1, candidates[chosen].cost),
        _ => "the only one".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_said_by_who_computes_a_point() {
        assert_eq!(Spread::PerPoint.to_string(), "an invocation each");
        assert_eq!(Spread::Tiled(vec![4, 8]).to_string(), "an invocation for [4, 8]");
        assert_eq!(Spread::PerWorkgroup.to_string(), "a workgroup each");
        let staged = Spread::Staged { tile: vec![4, 8], turns: 16 };
        assert_eq!(staged.to_string(), "lanes that share what they load for [4, 8]");
    }
}
