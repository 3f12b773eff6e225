//! Uploads: host → slab, to the byte, in the order of recording.
//!
//! A queue write runs before the open batch. So it goes straight into a heap only where no recorded task touches the
//! heap; otherwise into a part of the upload ring that no task of the batch reads, with a copy recorded behind. Large
//! uploads go natively through staging buffers that are kept mapped, since wgpu would make a new one for each write.

use std::sync::Arc;

use crate::driver::bytes::Bytes;
use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::HeapId;
use crate::driver::gpu::memory::{HeapRange, Split};
use crate::driver::gpu::platform::{self, Buffer, usage};
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::task::Task;
use crate::error::{Error, Result};
use crate::slab::loc::BufferLoc;

/// The ring; larger uploads flush where they must be ordered.
pub(super) const UPLOAD_RING_BYTES: u64 = 1 << 20;

/// The buffer through which uploads are ordered behind recorded work.
#[derive(Debug)]
pub(super) struct UploadRing {
    pub(super) buffer: Arc<Buffer>,
    pub(super) cursor: u64,
}

/// The aligned part of an upload.
#[derive(Clone, Copy, Debug)]
struct Words<'a> {
    heap: HeapId,
    offset: u64,
    bytes: Bytes<'a>,
    start: u64,
    len: u64,
}

impl GpuRunner {
    pub(super) fn upload(self: &Arc<Self>, loc: BufferLoc, bytes: Bytes<'_>) -> Result<GpuEvent> {
        let len = bytes.len_bytes();
        let mut state = self.begin()?;
        let range = self.resolve(&state, loc, len)?;
        self.upload_part(&mut state, range, bytes, 0, len)?;
        state.stats.uploads += 1;
        state.advance();
        self.recorded(state)
    }

    /// Uploads `len` of the bytes, from `start` on.
    pub(super) fn upload_part(
        &self,
        state: &mut State,
        to: HeapRange,
        bytes: Bytes<'_>,
        start: u64,
        len: u64,
    ) -> Result<()> {
        let HeapRange { heap, offset } = to;
        let split = Split::of(offset, len);
        let interior = offset + split.head_len;
        let words = Words { heap, offset: interior, bytes, start: start + split.head_len, len: split.interior_len };
        self.upload_words(state, words)?;
        let mut edge = [0; 3];
        let head = &mut edge[..split.head_len as usize];
        bytes.copy_to(start, head);
        self.poke(state, heap, offset, head)?;
        let tail = &mut edge[..split.tail_len as usize];
        bytes.copy_to(start + split.head_len + split.interior_len, tail);
        self.poke(state, heap, interior + split.interior_len, tail)
    }

    fn upload_words(&self, state: &mut State, words: Words<'_>) -> Result<()> {
        if words.len == 0 {
            return Ok(());
        }
        // What waits to be cleared must not be cleared after the write.
        state.clear_pending(words.heap);
        let is_held = !state.holds.is_empty();
        if is_held && words.len > UPLOAD_RING_BYTES {
            return self.upload_by_one_off(state, words);
        }
        if !is_held && platform::STAGED_UPLOAD_BYTES.is_some_and(|least| words.len >= least) {
            return self.upload_staged(state, words);
        }
        if state.is_touched(words.heap) {
            if words.len <= UPLOAD_RING_BYTES {
                return self.upload_through_ring(state, words);
            }
            self.flush_state(state)?;
        }
        self.upload_straight(state, words)
    }

    /// Writes into the heap, ahead of the open batch.
    fn upload_straight(&self, state: &mut State, words: Words<'_>) -> Result<()> {
        let Words { heap, offset, bytes, start, len } = words;
        platform::write_buffer(&self.dev.device, &state.heaps.get(heap)?.buffer, offset, bytes, start, len)?;
        state.direct_bytes += len;
        Ok(())
    }

    fn upload_through_ring(&self, state: &mut State, words: Words<'_>) -> Result<()> {
        let Words { heap, offset, bytes, start, len } = words;
        let (source, source_offset) = self.reserve_ring(state, len)?;
        platform::write_buffer(&self.dev.device, &source, source_offset, bytes, start, len)?;
        state.push_command(heap, Task::Upload { heap, offset, source, source_offset, len });
        Ok(())
    }

    /// A part of the upload ring that nothing else in the open batch uses; flushes where there is none.
    pub(super) fn reserve_ring(&self, state: &mut State, len: u64) -> Result<(Arc<Buffer>, u64)> {
        if state.upload_ring.as_ref().is_some_and(|ring| ring.cursor + len > UPLOAD_RING_BYTES) {
            self.flush_state(state)?;
        }
        if state.upload_ring.is_none() {
            let buffer = self.dev.device.create_buffer(
                "wgslab upload ring",
                UPLOAD_RING_BYTES,
                usage::COPY_SRC | usage::COPY_DST,
            );
            state.stats.buffers_created += 1;
            state.upload_ring = Some(UploadRing { buffer: Arc::new(buffer), cursor: 0 });
        }
        let Some(ring) = &mut state.upload_ring else { return Err(Error::bug("the upload ring is gone")) };
        let start = ring.cursor;
        ring.cursor += len;
        Ok((ring.buffer.clone(), start))
    }

    /// Copies through a buffer that is made for this upload: behind a hold, nothing else is free.
    fn upload_by_one_off(&self, state: &mut State, words: Words<'_>) -> Result<()> {
        let Words { heap, offset, bytes, start, len } = words;
        let buffer =
            self.dev.device.create_buffer("wgslab upload behind a hold", len, usage::COPY_SRC | usage::COPY_DST);
        state.stats.buffers_created += 1;
        platform::write_buffer(&self.dev.device, &buffer, 0, bytes, start, len)?;
        let source = Arc::new(buffer);
        state.one_offs.push(source.clone());
        state.push_command(heap, Task::Upload { heap, offset, source, source_offset: 0, len });
        state.direct_bytes += len;
        Ok(())
    }

    /// Copies through staging buffers, piece by piece. Where none is free the rest goes straight, in order.
    fn upload_staged(&self, state: &mut State, words: Words<'_>) -> Result<()> {
        let Words { heap, offset, bytes, start, len } = words;
        let mut done = 0;
        while done < len {
            let piece = (len - done).min(platform::UPLOAD_PIECE_BYTES);
            let Some(source) = self.upload_staging.fill(&self.dev.device, bytes, start + done, piece) else {
                if state.is_touched(heap) {
                    self.flush_state(state)?;
                }
                let rest = Words { heap, offset: offset + done, bytes, start: start + done, len: len - done };
                return self.upload_straight(state, rest);
            };
            state
                .push_command(heap, Task::Upload { heap, offset: offset + done, source, source_offset: 0, len: piece });
            state.direct_bytes += piece;
            done += piece;
        }
        Ok(())
    }
}
