//! Holds: points in the order of work that nothing passes before something else is done, such as the work of another
//! device.
//!
//! Nothing blocks: what is recorded behind a hold is sealed in batches, as plain data, and goes to the queue when the
//! hold is released. Queue writes run ahead of that, so meanwhile uploads go through buffers of their own, and heaps that
//! are given back stay until the sealed batches are with the queue.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, TryLockError};
use std::task::{Context, Poll};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::{HeapClass, HeapId};
use crate::driver::gpu::memory::HeapRange;
use crate::driver::gpu::platform::{self, Buffer};
use crate::driver::gpu::readback::Staging;
use crate::driver::gpu::runner::{GpuRunner, MAX_IN_FLIGHT, State};
use crate::driver::gpu::task::Task;
use crate::driver::gpu::upload::UploadRing;
use crate::driver::limits::ALIGNMENT_BYTES;
use crate::driver::maybe_send::BoxFuture;
use crate::error::{Error, Result};
use crate::slab::loc::{BufferLoc, PoolId};

/// A point that nothing passes before its future is ready.
pub(super) struct Hold {
    /// What fails if the future does.
    seq: u64,
    /// `None` when it was ready. Whoever waits for it keeps the lock, so that nobody takes its wake-up away.
    future: Mutex<Option<BoxFuture<Result<()>>>>,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hold({})", self.seq)
    }
}

/// A batch that is complete and waits for a hold.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    last_seq: u64,
    batch: u64,
    tasks: Vec<Task>,
    touched: Vec<HeapId>,
    units: u64,
    direct_bytes: u64,
    params: Vec<u8>,
    upload_ring: Option<UploadRing>,
    one_offs: Vec<Arc<Buffer>>,
    staging: Vec<Arc<Staging>>,
}

/// What stands between the queue and the open batch, in order. A hold comes first, if there is anything.
#[derive(Debug)]
pub(super) enum Held {
    Hold(Arc<Hold>),
    Batch(Box<Sealed>),
}

/// The holds and sealed batches of a runner.
#[derive(Debug, Default)]
pub(super) struct Holds {
    queue: VecDeque<Held>,
}

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn front(&self) -> Option<Arc<Hold>> {
        match self.queue.front() {
            Some(Held::Hold(hold)) => Some(hold.clone()),
            _ => None,
        }
    }

    fn pop_batch(&mut self) -> Option<Box<Sealed>> {
        match self.queue.pop_front() {
            Some(Held::Batch(sealed)) => Some(sealed),
            Some(hold) => {
                self.queue.push_front(hold);
                None
            }
            None => None,
        }
    }

    /// The batch that must be gone before more than `bound` are sealed no longer.
    pub(super) fn bound_seq(&self, bound: usize) -> Option<u64> {
        let sealed = self.queue.iter().filter_map(|held| match held {
            Held::Batch(sealed) => Some(sealed.last_seq),
            Held::Hold(_) => None,
        });
        sealed.rev().nth(bound)
    }
}

impl GpuRunner {
    /// Nothing recorded from here on goes to the queue before `future` is ready; what it waits for must be recorded
    /// already, somewhere. If it fails, everything from here on fails. Gives the event of the point itself.
    pub(super) fn hold(self: &Arc<Self>, future: BoxFuture<Result<()>>) -> Result<GpuEvent> {
        let mut state = self.begin()?;
        self.flush_state(&mut state)?;
        state.advance();
        let seq = state.seq;
        let is_first = state.holds.is_empty();
        let hold = Arc::new(Hold { seq, future: Mutex::new(Some(future)) });
        state.holds.queue.push_back(Held::Hold(hold));
        drop(state);
        if is_first {
            platform::drive_holds(self);
        }
        Ok(GpuEvent::new(self.clone(), seq))
    }

    /// A slab in a heap of its own, which no work has touched.
    pub(super) fn alloc_fresh(&self, pool_id: PoolId, size_bytes: u64) -> Result<()> {
        let mut state = self.begin()?;
        let slab = (size_bytes, ALIGNMENT_BYTES);
        let heap_bytes = state.heaps.landing_heap_bytes(size_bytes)?;
        let heap = self.grow(&mut state, heap_bytes, HeapClass::Landing, slab)?;
        let range = state.heaps.place_in(heap, slab.0, slab.1);
        let range = range.ok_or_else(|| Error::bug(format!("a new heap of {heap_bytes} bytes has no room")))?;
        state.add_pool(pool_id, range);
        Ok(())
    }

    /// Writes to such a slab: no recorded work touches it, so nothing can be in the wrong order.
    pub(super) fn write_ahead(&self, loc: BufferLoc, bytes: &[u8]) -> Result<()> {
        let state = self.begin()?;
        let HeapRange { heap, offset } = self.resolve(&state, loc, bytes.len() as u64)?;
        let (words, tail) = bytes.split_at(bytes.len() / 4 * 4);
        let buffer = &state.heaps.get(heap)?.buffer;
        let (device, words_len) = (&self.dev.device, words.len() as u64);
        if !words.is_empty() {
            platform::write_buffer(device, buffer, offset, Bytes::Slice(words), 0, words_len)?;
        }
        if !tail.is_empty() {
            let mut word = [0; 4];
            word[..tail.len()].copy_from_slice(tail);
            platform::write_buffer(device, buffer, offset + words_len, Bytes::Slice(&word), 0, 4)?;
        }
        // wgpu stages writes until something is submitted.
        device.submit(None);
        Ok(())
    }

    /// Releases what can be released. Ready when nothing is held; otherwise the waker of `cx` is woken when it is worth
    /// asking again, unless somebody else is waiting.
    pub(super) fn poll_holds(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(hold) = self.lock().holds.front() else { return Poll::Ready(()) };
            let mut future = match hold.future.try_lock() {
                Ok(future) => future,
                Err(TryLockError::WouldBlock) => return Poll::Pending,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            };
            let outcome = match future.as_mut().map(|future| future.as_mut().poll(cx)) {
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(outcome)) => outcome,
                None => Ok(()),
            };
            *future = None;
            drop(future);
            self.release(&hold, outcome);
        }
    }

    /// Blocks until `seq`, which is with the queue, is done; or until the first hold before it is released.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wait_for(&self, seq: u64) {
        if self.is_held(seq) {
            self.wait_for_hold();
        } else {
            self.wait_for_queue(seq);
        }
    }

    /// Whether a hold keeps that work from the queue.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn is_held(&self, seq: u64) -> bool {
        let state = self.lock();
        seq > state.submitted_seq && !state.holds.is_empty()
    }

    /// Blocks until the first hold is released; false if there is none.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wait_for_hold(&self) -> bool {
        let Some(hold) = self.lock().holds.front() else { return false };
        // Others who wait for the same hold wait here, and find it released.
        let mut future = hold.future.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let outcome = match future.take() {
            Some(future) => crate::driver::block::wait_for(future).unwrap_or(Ok(())),
            None => return true,
        };
        drop(future);
        self.release(&hold, outcome);
        true
    }

    /// Hands the batches behind a hold to the queue, up to the next hold.
    fn release(&self, hold: &Arc<Hold>, outcome: Result<()>) {
        let mut state = self.lock();
        if !state.holds.front().is_some_and(|front| Arc::ptr_eq(&front, hold)) {
            return;
        }
        state.holds.queue.pop_front();
        if let Err(error) = outcome {
            self.progress().fail(hold.seq, error);
        }
        // Whoever drives may be resting until the next hold is the first.
        self.progress().stir();
        if state.holds.queue.is_empty() || self.progress().lost().is_some() {
            self.end_holding(&mut state);
            return;
        }
        let open = state.take_batch();
        while let Some(sealed) = state.holds.pop_batch() {
            let last = sealed.last_seq;
            state.install(*sealed);
            // A failure is noted in the progress, from this batch on.
            let _ = self.submit(&mut state, last);
        }
        state.install(open);
        if state.holds.is_empty() {
            self.end_holding(&mut state);
        }
    }

    fn end_holding(&self, state: &mut State) {
        // The open batch may use them too: it must be with the queue before they are destroyed.
        if state.heaps.retired().any(|heap| state.is_touched(heap)) && self.progress().lost().is_none() {
            let _ = self.flush_state(state);
        }
        state.heaps.take_retired().into_iter().for_each(|heap| platform::discard(&heap.buffer));
        // Failures of giving back are failures of the device, which every later call meets.
        let _ = self.give_back_spares(state);
    }

    /// An event that is done when few enough batches are sealed.
    pub(super) fn held_bound_seq(&self) -> Option<u64> {
        self.lock().holds.bound_seq(MAX_IN_FLIGHT)
    }
}

impl State {
    /// Closes the open batch behind a hold.
    pub(super) fn seal(&mut self) {
        let sealed = self.take_batch();
        self.closed_seq = sealed.last_seq;
        self.batch += 1;
        self.holds.queue.push_back(Held::Batch(Box::new(sealed)));
    }

    /// Takes the open batch away; an empty one is open then.
    fn take_batch(&mut self) -> Sealed {
        Sealed {
            last_seq: self.seq,
            batch: self.batch,
            tasks: std::mem::take(&mut self.tasks),
            touched: std::mem::take(&mut self.touched),
            units: std::mem::take(&mut self.units),
            direct_bytes: std::mem::take(&mut self.direct_bytes),
            params: std::mem::take(&mut self.params.bytes),
            upload_ring: self.upload_ring.take(),
            one_offs: std::mem::take(&mut self.one_offs),
            staging: std::mem::take(&mut self.staging),
        }
    }

    /// Makes a batch the open one, in place of an empty one.
    fn install(&mut self, sealed: Sealed) {
        let Sealed { last_seq: _, batch, tasks, touched, units, direct_bytes, params, upload_ring, one_offs, staging } =
            sealed;
        (self.batch, self.tasks, self.touched, self.units) = (batch, tasks, touched, units);
        (self.direct_bytes, self.params.bytes, self.one_offs, self.staging) = (direct_bytes, params, one_offs, staging);
        if let Some(spare) = upload_ring.and_then(|ring| self.upload_ring.replace(ring)) {
            platform::discard(&spare.buffer);
        }
    }
}
