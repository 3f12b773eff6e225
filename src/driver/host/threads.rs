//! What differs between a machine and a page: work in parts, on as many threads as there are, and room for code. One of the files that know the target.

use std::ops::Range;

/// Whether every operation on many values gets a loop of its own, which is faster, and larger.
pub(super) const LOOPS_FOR_ALL: bool = cfg!(not(target_arch = "wasm32"));

/// Does `0..count` in parts, `wanted` of them at most, and gives what the parts give, in order.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn in_parts<T: Send>(count: u64, wanted: u64, part: impl Fn(Range<u64>) -> Vec<T> + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let parts = threads.min(wanted).min(count);
    if parts <= 1 {
        return part(0..count);
    }
    let bound = |index: u64| count * index / parts;
    std::thread::scope(|scope| {
        let (part, bound) = (&part, &bound);
        let running: Vec<_> =
            (1..parts).map(|index| scope.spawn(move || part(bound(index)..bound(index + 1)))).collect();
        let mut out = part(0..bound(1));
        for thread in running {
            match thread.join() {
                Ok(more) => out.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        out
    })
}

/// Does `0..count` in one part.
#[cfg(target_arch = "wasm32")]
pub(super) fn in_parts<T>(count: u64, _wanted: u64, part: impl Fn(Range<u64>) -> Vec<T>) -> Vec<T> {
    part(0..count)
}
