//! What became of a program's tensors, and what its kernels do, in words.

use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Loops, Nest};
use crate::loops::optimise::operations;
use crate::node::List;
use crate::schedule::{Schedule, iterations};

/// A line for each tensor: where it is, and why.
pub fn tensors(loops: &Loops) -> String {
    let mut text = String::new();
    for (at, Buffer { name, dtype, shape, kind, note }) in loops.buffers.iter().enumerate() {
        let place = match kind {
            BufferKind::Node(_) => "on device",
            BufferKind::Temporary if loops.nests.iter().any(|nest| nest.writes(at) || nest.reads(at)) => "local",
            BufferKind::Temporary => "virtual",
        };
        text.push_str(&format!("\n{name}: {dtype}{} {place}", List(shape)));
        if *kind == BufferKind::Temporary && !note.is_empty() {
            text.push_str(": ");
            text.push_str(note);
        }
    }
    text
}

/// A line for a nest: its points, what it reads and writes, and its operations.
pub fn nest(loops: &Loops, nest: &Nest, schedule: &Schedule) -> String {
    let points = iterations(&nest.indices, &nest.free);
    let who = match schedule {
        Schedule::PerPoint => "an invocation each".to_owned(),
        Schedule::Tiled(tile) => format!("an invocation for {}", List(tile)),
        Schedule::PerWorkgroup => "a workgroup each".to_owned(),
    };
    let all = |is_used: &dyn Fn(BufferIndex) -> bool| {
        let (mut names, mut bytes) = (String::new(), 0u64);
        for (_, buffer) in loops.buffers.iter().enumerate().filter(|(at, _)| is_used(*at)) {
            if !names.is_empty() {
                names.push_str(", ");
            }
            names.push_str(&buffer.name);
            let elements = buffer.shape.iter().fold(1u64, |count, extent| count.saturating_mul(u64::from(*extent)));
            bytes = bytes.saturating_add(elements.saturating_mul(buffer.dtype.size_bytes()));
        }
        if names.is_empty() { "nothing".to_owned() } else { format!("{names} ({bytes} bytes)") }
    };
    format!(
        "{points} points, {who}; reads {}, writes {}, {} operations",
        all(&|buffer| nest.reads(buffer)),
        all(&|buffer| nest.writes(buffer)),
        operations(nest)
    )
}
