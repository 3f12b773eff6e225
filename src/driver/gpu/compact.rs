//! Slabs that move: compaction, room where an allocation would be refused, and kernels over too many heaps.
//!
//! A move is a copy in the queue, behind whatever was recorded before, and every location stays as it is: what was
//! recorded keeps its placement, and what is recorded later is resolved anew, because the generation grows.

use std::sync::Arc;

use crate::driver::gpu::heaps::{GUARD_BYTES, HeapClass, HeapId, SlabRange, units_of};
use crate::driver::gpu::pack::{Move, Packing, Wanted};
use crate::driver::gpu::platform::Buffer;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::task::Task;
use crate::driver::gpu::upload::UPLOAD_RING_BYTES;
use crate::driver::limits::{ALIGNMENT_BYTES, Compaction};
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::PoolId;

/// Empty heaps that wait for the slabs of a kernel, and which go where.
#[derive(Debug)]
pub(super) struct Gathering {
    heaps: Vec<(HeapId, Vec<PoolId>)>,
}

impl GpuRunner {
    pub(super) fn compact(self: &Arc<Self>) -> Result<Compaction> {
        let mut state = self.begin()?;
        self.note_failures(&mut state);
        let reserved_bytes = state.heaps.reserved_bytes();
        let moved_bytes = match self.pack(&state, None) {
            Some(packing) => self.take_up(&mut state, packing)?.0,
            None => 0,
        };
        self.give_back_empty(&mut state)?;
        let freed_bytes = reserved_bytes - state.heaps.reserved_bytes();
        self.recorded(state)?;
        Ok(Compaction { moved_bytes, freed_bytes })
    }

    /// Heaps that are not known to be there take no part: what is moved must not be lost with them.
    fn pack(&self, state: &State, wanted: Option<Wanted>) -> Option<Packing> {
        state.heaps.pack(wanted, &state.pools, |heap| self.heap_gate.is_sound(heap))
    }

    /// Places a slab that found no room and no memory for another heap: gives empty heaps back, then compacts. What
    /// cannot help is not done; a refusal leaves every slab where it is.
    pub(super) fn place_in_made_room(
        &self,
        state: &mut State,
        (size, alignment): (u64, u64),
        class: HeapClass,
        refusal: Error,
    ) -> Result<SlabRange> {
        // The budget allows it: then the system has no memory, and what is given back must be back before another try.
        let is_real = state.heaps.new_heap_bytes(size, alignment, 0).is_ok();
        let empty_bytes = state.heaps.empty_bytes();
        let mut refusal = refusal;
        if empty_bytes > 0 && state.heaps.new_heap_bytes(size, alignment, empty_bytes).is_ok() {
            self.give_back_empty(state)?;
            if is_real {
                self.drain(state)?;
            }
            match self.place_in_new_heap(state, size, alignment, class) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => refusal = error,
                outcome => return outcome,
            }
        }
        let wanted = Wanted { size_bytes: size, alignment, class };
        let Some(packing) = self.pack(state, Some(wanted)) else { return Err(refusal) };
        let freed_bytes = packing.freed_bytes;
        let may_grow = freed_bytes > 0 && state.heaps.new_heap_bytes(size, alignment, freed_bytes).is_ok();
        if !may_grow && packing.made.is_none() {
            return Err(refusal);
        }
        let (_, made) = self.take_up(state, packing)?;
        let given_back = self.give_back_empty(state);
        if let Some(range) = made {
            // A failure of the queue is one of the device, which every later call meets.
            return Ok(range);
        }
        given_back?;
        if is_real {
            self.drain(state)?;
        }
        self.place_in_new_heap(state, size, alignment, class)
    }

    /// Makes new heaps for the slabs of a kernel that lie in more heaps than it may bind: those that it writes together
    /// and, where that is not enough, its constants together. `None` where that cannot help, or there is no memory.
    pub(super) fn begin_gathering(&self, state: &mut State, pools: &[PoolId]) -> Option<Gathering> {
        self.note_failures(state);
        // By class: the heaps that are there, and as few as hold those slabs, in order, with the slabs of each.
        let mut heaps: [Vec<HeapId>; 2] = Default::default();
        let mut bins: [Vec<(u64, Vec<PoolId>)>; 2] = Default::default();
        for &pool_id in pools {
            let slab = state.pools.get(&pool_id)?;
            if !self.heap_gate.is_sound(slab.heap) {
                return None;
            }
            let class = usize::from(state.heaps.get(slab.heap).ok()?.class == HeapClass::Constant);
            if !heaps[class].contains(&slab.heap) {
                heaps[class].push(slab.heap);
            }
            let bytes = units_of(slab.size_bytes, slab.alignment) * ALIGNMENT_BYTES;
            let fits = |so_far: u64| state.heaps.is_under_cap(so_far + bytes);
            match bins[class].iter_mut().find(|(so_far, _)| fits(*so_far)) {
                Some((so_far, pools)) => {
                    *so_far += bytes;
                    pools.push(pool_id);
                }
                None if fits(2 * GUARD_BYTES) => bins[class].push((2 * GUARD_BYTES + bytes, vec![pool_id])),
                None => return None,
            }
        }
        let limit = self.dev.limits.storage_buffers as usize;
        let gathered: &[usize] = if bins[0].len() + heaps[1].len() <= limit {
            &[0]
        } else if heaps[0].len() + bins[1].len() <= limit {
            &[1]
        } else if bins[0].len() + bins[1].len() <= limit {
            &[0, 1]
        } else {
            return None;
        };
        let chosen = || gathered.iter().flat_map(|&class| bins[class].iter().map(move |bin| (class, bin)));
        let bytes: u64 = chosen().map(|(_, (bytes, _))| bytes).sum();
        if !state.heaps.is_within_budget(bytes) {
            if !state.heaps.is_within_budget(bytes.saturating_sub(state.heaps.empty_bytes())) {
                return None;
            }
            self.give_back_empty(state).ok()?;
        }
        let mut made = Vec::new();
        for (class, (bytes, pools)) in chosen() {
            let class = [HeapClass::Working, HeapClass::Constant][class];
            // Its slabs are placed without the allocator's rounding, whatever it is said to be made for.
            let heap = self.grow(state, *bytes, class, (ALIGNMENT_BYTES, ALIGNMENT_BYTES)).ok()?;
            state.heaps.reserve(heap);
            made.push((heap, pools.clone()));
        }
        Some(Gathering { heaps: made })
    }

    /// Moves the slabs. False where something else happened to them, or to the heaps, in the meantime.
    pub(super) fn end_gathering(&self, state: &mut State, gathering: Gathering) -> Result<bool> {
        self.note_failures(state);
        for (heap, pools) in gathering.heaps {
            let Some(packing) = state.heaps.pack_into(heap, &pools, &state.pools) else { return Ok(false) };
            self.take_up(state, packing)?;
        }
        self.give_back_spares(state)?;
        Ok(true)
    }

    /// Gives the slabs their new places, and records the copies. Gives the bytes moved, and the place that was made.
    fn take_up(&self, state: &mut State, packing: Packing) -> Result<(u64, Option<SlabRange>)> {
        let is_slide = |(pool_id, to): &&(PoolId, SlabRange)| {
            state.pools.get(pool_id).is_some_and(|from| from.heap == to.heap && from.offset != to.offset)
        };
        let slide_bytes: u64 = packing.places.iter().filter(is_slide).map(|(_, to)| to.size_bytes).sum();
        // Nothing may fail once the places are taken up.
        let bounce_bytes = slide_bytes.min(UPLOAD_RING_BYTES);
        let bounce = if slide_bytes > 0 { Some(self.reserve_ring(state, bounce_bytes)?) } else { None };
        let State { heaps, pools, .. } = state;
        let (moves, made) = heaps.adopt(packing, pools);
        if moves.is_empty() {
            return Ok((0, made));
        }
        state.generation += 1;
        let mut slides = bounce.map(|(buffer, start)| Slides::new(buffer, start, bounce_bytes));
        for next in &moves {
            if next.from.0 == next.to.0 {
                slides.iter_mut().for_each(|slides| slides.slide(state, next));
            } else {
                state.touch(next.from.0);
                let ((src, src_offset), (dst, dst_offset)) = (next.from, next.to);
                state.push_command(dst, Task::Copy { src, src_offset, dst, dst_offset, len: next.len });
            }
        }
        slides.iter_mut().for_each(|slides| slides.land(state));
        state.advance();
        Ok((moves.iter().map(|next| next.len).sum(), made))
    }
}

/// Moves within a heap, by way of a part of the upload ring: WebGPU copies between different buffers only.
///
/// Several pieces are lifted, then put down in the same order. A piece is put down at or below where it was, and above
/// it lies only what is lifted later: nothing is overwritten that has not been lifted. Copies between heaps may come in
/// between: they take from heaps whose slabs have not been lifted, and go where nothing slides.
struct Slides {
    bounce: Arc<Buffer>,
    start: u64,
    bounce_bytes: u64,
    filled_bytes: u64,
    lifted: Vec<(HeapId, Task)>,
}

impl Slides {
    fn new(bounce: Arc<Buffer>, start: u64, bounce_bytes: u64) -> Self {
        Self { bounce, start, bounce_bytes, filled_bytes: 0, lifted: Vec::new() }
    }

    fn slide(&mut self, state: &mut State, Move { from: (heap, from), to: (_, to), len }: &Move) {
        let mut done = 0;
        while done < *len {
            if self.filled_bytes == self.bounce_bytes {
                self.land(state);
            }
            let piece = (len - done).min(self.bounce_bytes - self.filled_bytes);
            let (bounce, bounce_offset) = (self.bounce.clone(), self.start + self.filled_bytes);
            let lift = Task::Lift {
                heap: *heap,
                offset: from + done,
                target: bounce.clone(),
                target_offset: bounce_offset,
                len: piece,
            };
            state.push_command(*heap, lift);
            let put = Task::Upload {
                heap: *heap,
                offset: to + done,
                source: bounce,
                source_offset: bounce_offset,
                len: piece,
            };
            self.lifted.push((*heap, put));
            self.filled_bytes += piece;
            done += piece;
        }
    }

    /// Puts down what was lifted.
    fn land(&mut self, state: &mut State) {
        self.lifted.drain(..).for_each(|(heap, put)| state.push_command(heap, put));
        self.filled_bytes = 0;
    }
}
