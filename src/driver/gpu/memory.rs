//! Pools and bytes: allocation, freeing, zeroing and copies. Every operation moves exact bytes.
//!
//! WebGPU's commands move multiples of 4: the aligned interior goes by command, and the at most three bytes on either
//! side by a built-in kernel that sets some bits of one word.

use std::sync::Arc;

use crate::driver::SlabRef;
use crate::driver::gpu::builtin::{Builtin, SLOT_BYTES, copy_params};
use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::{GUARD_BYTES, HeapClass, HeapId, SlabRange};
use crate::driver::gpu::platform::{self, Buffer, usage};
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::scope::scoped;
use crate::driver::gpu::task::Task;
use crate::driver::gpu::zeros::ZeroRange;
use crate::driver::limits::{ALIGNMENT_BYTES, DriverMemory};
use crate::error::{Error, ErrorKind, Result};
use crate::node::MemoryMode;
use crate::slab::loc::{BufferLoc, PoolId, bad_alignment, check_range, no_such_pool};

/// A range that was resolved: its heap, and bytes from the start of the heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapRange {
    pub(super) heap: HeapId,
    pub(super) offset: u64,
}

/// A byte range split at word boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) head_len: u64,
    pub(super) interior_len: u64,
    pub(super) tail_len: u64,
}

impl Split {
    pub(super) fn of(offset: u64, len: u64) -> Self {
        let head_len = (offset.next_multiple_of(4) - offset).min(len);
        let interior_len = (len - head_len) / 4 * 4;
        Self { head_len, interior_len, tail_len: len - head_len - interior_len }
    }
}

impl GpuRunner {
    pub(super) fn alloc_pool(
        &self,
        pool_id: PoolId,
        size_bytes: u64,
        alignment: u64,
        mode: Option<MemoryMode>,
    ) -> Result<()> {
        if !alignment.is_power_of_two() || alignment > self.dev.heap_cap_bytes {
            return Err(bad_alignment(pool_id, alignment));
        }
        let largest = self.dev.heap_cap_bytes - 2 * GUARD_BYTES;
        if size_bytes.saturating_add(alignment.saturating_sub(ALIGNMENT_BYTES)) > largest {
            let message = format_args!(
                "pool {pool_id}: a slab of {size_bytes} bytes is over the {largest}-byte limit of the device's storage \
                 bindings; split it"
            );
            return Err(Error::say(ErrorKind::LimitExceeded, message));
        }
        self.free_pool_if_present(pool_id)?;
        let mut state = self.begin()?;
        let size = size_bytes.max(1).next_multiple_of(ALIGNMENT_BYTES);
        let class = HeapClass::from(mode);
        let range = self
            .place(&mut state, size, alignment, class)
            .map_err(|error| error.context(format_args!("pool {pool_id}")))?;
        state.add_pool(pool_id, range);
        Ok(())
    }

    /// Places a slab, in a new heap where the present ones have no room. Where the budget or the system refuses one,
    /// room is made by moving slabs: whoever resolved a location before must resolve it again.
    pub(super) fn place(&self, state: &mut State, size: u64, alignment: u64, class: HeapClass) -> Result<SlabRange> {
        self.note_failures(state);
        if let Some(range) = state.heaps.place(size, alignment, class) {
            return Ok(range);
        }
        match self.place_in_new_heap(state, size, alignment, class) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                self.place_in_made_room(state, (size, alignment), class, error)
            }
            outcome => outcome,
        }
    }

    pub(super) fn place_in_new_heap(
        &self,
        state: &mut State,
        size: u64,
        alignment: u64,
        class: HeapClass,
    ) -> Result<SlabRange> {
        let heap_bytes = state.heaps.new_heap_bytes(size, alignment, 0)?;
        self.grow(state, heap_bytes, class, (size, alignment))?;
        let placed = state.heaps.place(size, alignment, class);
        placed.ok_or_else(|| Error::bug(format!("a new heap of {heap_bytes} bytes has no room for {size}")))
    }

    /// Makes a heap. Natively a failure is known at once; on the web it is known later, and fails what was recorded
    /// in the meantime.
    pub(super) fn grow(
        &self,
        state: &mut State,
        size_bytes: u64,
        class: HeapClass,
        slab: (u64, u64),
    ) -> Result<HeapId> {
        let what = match class {
            HeapClass::Working => "working",
            HeapClass::Constant => "constant",
            HeapClass::Landing => "landing",
        };
        let label = format!("wgslab {what} heap of {size_bytes} bytes");
        let (buffer, verdict) = scoped(&self.dev.device, || {
            self.dev.device.create_buffer(&label, size_bytes, usage::STORAGE | usage::COPY_SRC | usage::COPY_DST)
        });
        state.stats.buffers_created += 1;
        let id = state.heaps.add(buffer, size_bytes, class, slab);
        let gate = self.heap_gate.clone();
        gate.begin(id);
        platform::settle(verdict, move |caught| {
            let doing = format!("allocating a heap of {size_bytes} bytes");
            gate.end(id, caught.map(|caught| caught.into_error(&doing, ErrorKind::LimitExceeded)));
        });
        if let Some(error) = self.heap_gate.failure_of(id) {
            state.heaps.remove(id);
            return Err(error);
        }
        Ok(id)
    }

    fn free_pool_if_present(&self, pool_id: PoolId) -> Result<()> {
        let present = self.lock().pools.contains_key(&pool_id);
        if present { self.free_pool(pool_id) } else { Ok(()) }
    }

    pub(super) fn free_pool(&self, pool_id: PoolId) -> Result<()> {
        let mut state = self.lock();
        let Some(range) = state.pools.remove(&pool_id) else { return Err(no_such_pool(pool_id)) };
        state.in_use_bytes -= range.size_bytes;
        state.generation += 1;
        state.zeros.forget(range.heap, range.offset);
        state.heaps.free(range);
        self.give_back_spares(&mut state)
    }

    /// Destroys the empty heaps but one of each class.
    pub(super) fn give_back_spares(&self, state: &mut State) -> Result<()> {
        self.note_failures(state);
        while let Some(spare) = state.heaps.spare() {
            self.give_back(state, spare)?;
        }
        Ok(())
    }

    /// Gives everything back to the driver that holds no slab: empty heaps and idle staging buffers. Gives the bytes.
    pub(super) fn trim(&self) -> Result<u64> {
        let before = self.memory();
        let mut state = self.begin()?;
        self.give_back_empty(&mut state)?;
        drop(state);
        self.staging_pool.trim();
        self.upload_staging.trim();
        let after = self.memory();
        let taken = |memory: DriverMemory| memory.reserved_bytes + memory.staging_bytes;
        Ok(taken(before) - taken(after))
    }

    /// Destroys the empty heaps.
    pub(super) fn give_back_empty(&self, state: &mut State) -> Result<()> {
        while let Some(empty) = state.heaps.empty() {
            self.give_back(state, empty)?;
        }
        Ok(())
    }

    /// Notes the heaps that turned out not to be there.
    pub(super) fn note_failures(&self, state: &mut State) {
        self.heap_gate.failed().into_iter().for_each(|heap| state.heaps.set_failed(heap));
    }

    /// Destroys an empty heap.
    fn give_back(&self, state: &mut State, heap: HeapId) -> Result<()> {
        if !state.holds.is_empty() {
            state.heap_groups.forget(heap);
            state.heaps.retire(heap);
            return Ok(());
        }
        // Recorded work may still use the buffer: it must be with the queue before the buffer is destroyed.
        if state.is_touched(heap) && self.progress().lost().is_none() {
            self.flush_state(state)?;
        }
        state.heap_groups.forget(heap);
        if let Some(heap) = state.heaps.remove(heap) {
            platform::discard(&heap.buffer);
        }
        Ok(())
    }

    pub(super) fn pool_size_bytes(&self, pool_id: PoolId) -> Option<u64> {
        self.lock().pools.get(&pool_id).map(|slab| slab.size_bytes)
    }

    pub(super) fn resolve_pool(&self, loc: BufferLoc) -> Result<SlabRef<Buffer>> {
        let mut state = self.lock();
        let range = self.resolve(&state, loc, 0)?;
        // Whoever has the buffer may look at all of it.
        state.clear_pending(range.heap);
        Ok(SlabRef { slab: state.heaps.get(range.heap)?.buffer.clone(), offset: range.offset })
    }

    /// Where `len` bytes from `loc` lie.
    pub(super) fn resolve(&self, state: &State, loc: BufferLoc, len: u64) -> Result<HeapRange> {
        let slab = self.slab(state, loc.pool_id)?;
        check_range(loc, len, slab.size_bytes)?;
        Ok(HeapRange { heap: slab.heap, offset: slab.offset + loc.offset })
    }

    /// The slab of a pool, in a heap that is there as far as is known.
    pub(super) fn slab<'a>(&self, state: &'a State, pool_id: PoolId) -> Result<&'a SlabRange> {
        let slab = state.pools.get(&pool_id).ok_or_else(|| no_such_pool(pool_id))?;
        self.heap_gate.failure_of(slab.heap).map_or(Ok(slab), Err)
    }

    /// Notes what of a new slab must be cleared before something uses its heap.
    pub(super) fn clear_recycled(&self, pool_id: PoolId) -> Result<()> {
        let mut state = self.begin()?;
        let slab = state.pools.get(&pool_id).ok_or_else(|| no_such_pool(pool_id))?;
        let (heap, offset, len) = (slab.heap, slab.offset, slab.fresh_from - slab.offset);
        if len > 0 {
            state.zeros.add(ZeroRange { heap, offset, len });
        }
        Ok(())
    }

    pub(super) fn zero(self: &Arc<Self>, loc: BufferLoc, len: u64) -> Result<GpuEvent> {
        let mut state = self.begin()?;
        let HeapRange { heap, offset } = self.resolve(&state, loc, len)?;
        let split = Split::of(offset, len);
        self.poke(&mut state, heap, offset, &[0; 3][..split.head_len as usize])?;
        let interior = offset + split.head_len;
        if split.interior_len > 0 {
            state.push_command(heap, Task::Zero { heap, offset: interior, len: split.interior_len });
        }
        self.poke(&mut state, heap, interior + split.interior_len, &[0; 3][..split.tail_len as usize])?;
        state.stats.zeros += 1;
        state.advance();
        self.recorded(state)
    }

    /// Sets at most three bytes that lie in one word.
    pub(super) fn poke(&self, state: &mut State, heap: HeapId, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let lane = (offset % 4) as usize;
        let (mut mask, mut bits) = ([0; 4], [0; 4]);
        mask[lane..lane + bytes.len()].fill(0xff);
        bits[lane..lane + bytes.len()].copy_from_slice(bytes);
        let words = [(offset / 4) as u32, u32::from_le_bytes(mask), u32::from_le_bytes(bits), 0];
        self.builtin(state, Builtin::Poke, &[heap], &words, [1, 1, 1])
    }

    pub(super) fn builtin(
        &self,
        state: &mut State,
        builtin: Builtin,
        heaps: &[HeapId],
        words: &[u32],
        grid: [u32; 3],
    ) -> Result<()> {
        if !state.params.has_room(SLOT_BYTES) {
            self.flush_state(state)?;
        }
        state.push_builtin(&self.dev.device, builtin, heaps, words, grid)
    }

    pub(super) fn copy(self: &Arc<Self>, src: BufferLoc, dst: BufferLoc, len: u64) -> Result<GpuEvent> {
        let mut state = self.begin()?;
        let from = self.resolve(&state, src, len)?;
        let to = self.resolve(&state, dst, len)?;
        if len > 0 && (from.heap, from.offset) != (to.heap, to.offset) {
            if from.heap == to.heap && words_overlap(from.offset, to.offset, len) {
                self.copy_by_bounce(&mut state, src, dst, len)?;
            } else {
                self.copy_disjoint(&mut state, from, to, len)?;
            }
            state.stats.copies += 1;
        }
        state.advance();
        self.recorded(state)
    }

    /// Copies between ranges that share no word.
    pub(super) fn copy_disjoint(&self, state: &mut State, from: HeapRange, to: HeapRange, len: u64) -> Result<()> {
        if from.heap != to.heap && [from.offset, to.offset, len].iter().all(|bytes| bytes % 4 == 0) {
            let (src, dst) = (from.heap, to.heap);
            let task = Task::Copy { src, src_offset: from.offset, dst, dst_offset: to.offset, len };
            state.touch(src);
            state.push_command(dst, task);
            return Ok(());
        }
        let (words, grid) = copy_params(from.offset, to.offset, len);
        if from.heap == to.heap {
            self.builtin(state, Builtin::CopyWithin, &[to.heap], &words, grid)
        } else {
            self.builtin(state, Builtin::CopyAcross, &[to.heap, from.heap], &words, grid)
        }
    }

    /// Copies between overlapping ranges, by way of a range that overlaps neither.
    fn copy_by_bounce(&self, state: &mut State, src: BufferLoc, dst: BufferLoc, len: u64) -> Result<()> {
        let size = len.next_multiple_of(ALIGNMENT_BYTES);
        let bounce = self.place(state, size, ALIGNMENT_BYTES, HeapClass::Working)?;
        let (from, to) = (self.resolve(state, src, len)?, self.resolve(state, dst, len)?);
        let middle = HeapRange { heap: bounce.heap, offset: bounce.offset };
        let copied =
            self.copy_disjoint(state, from, middle, len).and_then(|()| self.copy_disjoint(state, middle, to, len));
        // The queue runs in order: whoever gets this range next comes after both copies.
        state.heaps.free(bounce);
        copied.and_then(|()| self.give_back_spares(state))
    }
}

impl State {
    /// Enters a slab in the pool table.
    pub(super) fn add_pool(&mut self, pool_id: PoolId, range: SlabRange) {
        self.in_use_bytes += range.size_bytes;
        self.peak_bytes = self.peak_bytes.max(self.in_use_bytes);
        self.pools.insert(pool_id, range);
    }

    /// Records a command that writes to that heap.
    pub(super) fn push_command(&mut self, heap: HeapId, task: Task) {
        self.touch(heap);
        self.tasks.push(task);
    }
}

/// Whether two ranges of one heap share a word: then one invocation could read what another writes.
fn words_overlap(a: u64, b: u64, len: u64) -> bool {
    let (a_first, b_first) = (a / 4, b / 4);
    let (a_end, b_end) = ((a + len).div_ceil(4), (b + len).div_ceil(4));
    a_first < b_end && b_first < a_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_at_words() {
        assert_eq!(Split::of(8, 12), Split { head_len: 0, interior_len: 12, tail_len: 0 });
        assert_eq!(Split::of(5, 12), Split { head_len: 3, interior_len: 8, tail_len: 1 });
        assert_eq!(Split::of(5, 2), Split { head_len: 2, interior_len: 0, tail_len: 0 });
        assert_eq!(Split::of(4, 3), Split { head_len: 0, interior_len: 0, tail_len: 3 });
        assert_eq!(Split::of(6, 0), Split { head_len: 0, interior_len: 0, tail_len: 0 });
    }

    #[test]
    fn neighbours_in_one_word_overlap() {
        assert!(words_overlap(0, 6, 6));
        assert!(!words_overlap(0, 8, 6));
        assert!(words_overlap(8, 4, 100));
    }
}
