//! Strided moves: bytes that lie along axes, to and from the host and within the device.
//!
//! A few long runs go by commands. Everything else goes by one kernel, and what comes from or goes to the host by way of
//! a row: a temporary range that is placed as a slab is, and free again as soon as its users are recorded, since the
//! queue runs in order.

use std::sync::Arc;

use crate::driver::bytes::Bytes;
use crate::driver::gpu::builtin::{Builtin, copy_grid};
use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::HeapClass;
use crate::driver::gpu::memory::HeapRange;
use crate::driver::gpu::readback::GpuStaged;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::limits::ALIGNMENT_BYTES;
use crate::error::{Error, Result};
use crate::slab::loc::BufferLoc;
use crate::slab::strided::{Axis, Strided};

/// Runs that go by a command each, at most.
const FEW_RUNS: u64 = 16;
/// Runs of that many bytes are worth a command each: a row would move them twice.
const LONG_RUN_BYTES: u64 = 16 << 10;
/// Axes of the kernel, as its parameter block has room; those outside them are dispatches of their own.
const KERNEL_AXES: usize = 14;

impl GpuRunner {
    pub(super) fn upload_strided(self: &Arc<Self>, loc: BufferLoc, to: &Strided, bytes: Bytes<'_>) -> Result<GpuEvent> {
        let len = to.len_bytes();
        if bytes.len_bytes() != len {
            return Err(Error::bug(format!("a block of {len} bytes was given {}", bytes.len_bytes())));
        }
        let mut state = self.begin()?;
        let place = self.resolve(&state, loc, to.dst_reach())?;
        if goes_by_commands(to) {
            to.each_run(&mut |start, dst| {
                self.upload_part(&mut state, place.offset_by(dst), bytes, start, to.run_bytes)
            })?;
        } else {
            self.with_row(&mut state, len, &mut |state, row| {
                self.upload_part(state, row, bytes, 0, len)?;
                let place = self.resolve(state, loc, to.dst_reach())?;
                self.move_strided(state, row, place, to)
            })?;
        }
        state.stats.uploads += 1;
        state.advance();
        self.recorded(state)
    }

    pub(super) fn copy_strided(self: &Arc<Self>, src: BufferLoc, dst: BufferLoc, moved: &Strided) -> Result<GpuEvent> {
        if moved.axes.is_empty() {
            return self.copy(src, dst, moved.run_bytes);
        }
        let mut state = self.begin()?;
        let from = self.resolve(&state, src, moved.src_reach())?;
        let to = self.resolve(&state, dst, moved.dst_reach())?;
        let apart = from.offset + moved.src_reach() <= to.offset || to.offset + moved.dst_reach() <= from.offset;
        if from.heap != to.heap || apart {
            self.move_strided(&mut state, from, to, moved)?;
        } else {
            self.with_row(&mut state, moved.len_bytes(), &mut |state, row| {
                let from = self.resolve(state, src, moved.src_reach())?;
                let to = self.resolve(state, dst, moved.dst_reach())?;
                self.move_strided(state, from, row, &moved.to_row())?;
                self.move_strided(state, row, to, &moved.from_row())
            })?;
        }
        state.stats.copies += 1;
        state.advance();
        self.recorded(state)
    }

    pub(super) fn stage_strided(self: &Arc<Self>, loc: BufferLoc, from: &Strided) -> Result<GpuStaged> {
        if from.axes.is_empty() {
            return self.stage(&[(loc, from.run_bytes)]);
        }
        let mut state = self.begin()?;
        let place = self.resolve(&state, loc, from.src_reach())?;
        let part = if goes_by_commands(from) && unit_bytes(place, place, from) == 4 {
            Some(self.stage_runs(&mut state, place, from)?)
        } else {
            let (len, mut part) = (from.len_bytes(), None);
            self.with_row(&mut state, len, &mut |state, row| {
                let place = self.resolve(state, loc, from.src_reach())?;
                self.move_strided(state, place, row, from)?;
                part = Some(self.stage_range(state, row, len)?);
                Ok(())
            })?;
            part
        };
        self.staged(state, part.into_iter().collect())
    }

    /// Does some work with a temporary range, which is given back whatever comes of it. Slabs may have moved to make
    /// room for it: the work resolves its locations itself.
    fn with_row(
        &self,
        state: &mut State,
        len: u64,
        work: &mut dyn FnMut(&mut State, HeapRange) -> Result<()>,
    ) -> Result<()> {
        let size = len.next_multiple_of(ALIGNMENT_BYTES);
        let placed = self.place(state, size, ALIGNMENT_BYTES, HeapClass::Working);
        let placed = placed.map_err(|error| error.context(format!("a temporary range of {len} bytes for a block")))?;
        let done = work(state, HeapRange { heap: placed.heap, offset: placed.offset });
        state.heaps.free(placed);
        done?;
        self.give_back_spares(state)
    }

    /// Records the move. The bytes that it reads are none of those that it writes; where it is a single run, the two
    /// share no word.
    fn move_strided(&self, state: &mut State, from: HeapRange, to: HeapRange, moved: &Strided) -> Result<()> {
        if moved.axes.is_empty() {
            return self.copy_disjoint(state, from, to, moved.run_bytes);
        }
        let unit = unit_bytes(from, to, moved);
        let run = Axis { extent: moved.run_bytes / unit, src: unit, dst: unit };
        let axes: Vec<Axis> = moved.axes.iter().copied().chain((run.extent > 1).then_some(run)).collect();
        let (outer, inner) = axes.split_at(axes.len().saturating_sub(KERNEL_AXES));
        let within = from.heap == to.heap;
        let (builtin, heaps) = match (unit, within) {
            (4, true) => (Builtin::WordsWithin, &[to.heap][..]),
            (4, false) => (Builtin::WordsAcross, &[to.heap, from.heap][..]),
            (_, true) => (Builtin::LanesWithin, &[to.heap][..]),
            (_, false) => (Builtin::LanesAcross, &[to.heap, from.heap][..]),
        };
        let units: u64 = inner.iter().map(|axis| axis.extent).product();
        let mut words = vec![0, 0, units as u32, inner.len() as u32, 2 - unit.ilog2(), 0, 0, 0];
        for axis in inner.iter().rev() {
            words.extend([axis.extent as u32, (axis.src / unit) as u32, (axis.dst / unit) as u32, 0]);
        }
        Strided { run_bytes: 1, axes: outer.to_vec() }.each_run(&mut |src, dst| {
            words[0] = ((from.offset + src) / unit) as u32;
            words[1] = ((to.offset + dst) / unit) as u32;
            self.builtin(state, builtin, heaps, &words, copy_grid(units))
        })
    }
}

impl HeapRange {
    fn offset_by(self, bytes: u64) -> Self {
        Self { offset: self.offset + bytes, ..self }
    }
}

/// Whether a move from or to the host goes run by run.
fn goes_by_commands(moved: &Strided) -> bool {
    moved.axes.is_empty() || (moved.run_count() <= FEW_RUNS && moved.run_bytes >= LONG_RUN_BYTES)
}

/// The largest of 4, 2 and 1 bytes by which everything of a move can be counted.
fn unit_bytes(from: HeapRange, to: HeapRange, moved: &Strided) -> u64 {
    let ends = from.offset | to.offset | moved.run_bytes;
    let all = moved.axes.iter().fold(ends, |all, axis| all | axis.src | axis.dst);
    match all % 4 {
        0 => 4,
        2 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::gpu::heaps::HeapId;

    #[test]
    fn words_are_moved_where_everything_is_words() {
        let at = |offset| HeapRange { heap: HeapId(0), offset };
        let moved = |run_bytes, src, dst| Strided { run_bytes, axes: vec![Axis { extent: 2, src, dst }] };
        assert_eq!(unit_bytes(at(256), at(512), &moved(8, 12, 8)), 4);
        assert_eq!(unit_bytes(at(256), at(514), &moved(8, 12, 8)), 2);
        assert_eq!(unit_bytes(at(256), at(512), &moved(8, 10, 8)), 2);
        assert_eq!(unit_bytes(at(256), at(512), &moved(3, 12, 8)), 1);
        assert_eq!(unit_bytes(at(257), at(512), &moved(8, 12, 8)), 1);
    }
}
