//! The runner: the device's single FIFO.
//!
//! Tasks are recorded as plain data and handed to the queue in batches: when somebody awaits or reads back, and at
//! bounds by count, bytes and estimated time. Sequence numbers count recorded work; an event is one of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::builtin::{Builtin, Builtins, SLOT_BYTES};
use crate::driver::gpu::encode::encode;
use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heap_gate::HeapGate;
use crate::driver::gpu::heaps::{HeapId, Heaps, SlabRange};
use crate::driver::gpu::hold::Holds;
use crate::driver::gpu::open::GpuDev;
use crate::driver::gpu::params::{GroupKey, HeapGroups, Layouts, ParamRing};
use crate::driver::gpu::pipelines::PipelineCache;
use crate::driver::gpu::platform::{self, BindGroup, Buffer, Device, InFlight, UploadStaging};
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::readback::{Staging, StagingPool};
use crate::driver::gpu::scope::scoped;
use crate::driver::gpu::task::{Dispatch, Task};
use crate::driver::gpu::upload::UploadRing;
use crate::driver::gpu::zeros::{PendingZeros, ZeroRange};
use crate::driver::limits::{DriverMemory, RunnerStats};
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::PoolId;
use crate::sorted_map::SortedMap;

/// Tasks of a batch. Recording costs a tenth of a microsecond, so the device does not wait long for its first work.
const MAX_TASKS: usize = 1024;
/// Units of work in a batch, at most.
const MAX_UNITS: u64 = 1 << 20;
/// How long a batch may take, as estimated, in milliseconds. Browsers want submissions under about a second, and a
/// readback waits for the batches before it.
const MAX_BATCH_MS: f64 = 50.0;
/// Units of work that always fit a batch: 128 small dispatches, so that a busy machine does not make thousands of runs
/// thousands of submissions.
const MIN_UNITS: u64 = 128 * (DISPATCH_UNITS + 1);
/// What a dispatch costs beside its workgroups, in workgroups: passes and barriers.
const DISPATCH_UNITS: u64 = 16;
/// Bytes written straight to heaps in a batch: wgpu stages them until the submission.
const MAX_DIRECT_BYTES: u64 = 64 << 20;
/// Batches in flight before [`GpuRunner::ready`] asks for patience, and native recording waits.
pub(super) const MAX_IN_FLIGHT: usize = 32;

/// The FIFO of one GPU device, with its heaps and pool table.
#[derive(Debug)]
pub struct GpuRunner {
    pub(super) dev: GpuDev,
    state: Mutex<State>,
    progress: Arc<Progress>,
    pub(super) staging_pool: Arc<StagingPool>,
    pub(super) pipelines: PipelineCache,
    pub(super) heap_gate: HeapGate,
    pub(super) upload_staging: UploadStaging,
}

/// Everything that recording changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) heaps: Heaps<Buffer>,
    pub(super) pools: SortedMap<PoolId, SlabRange>,
    pub(super) in_use_bytes: u64,
    pub(super) peak_bytes: u64,
    /// Grows whenever a placement ends: what was resolved under an older one must be resolved again.
    pub(super) generation: u64,
    pub(super) tasks: Vec<Task>,
    /// The last recorded sequence number.
    pub(super) seq: u64,
    /// The last sequence number that is in no open batch: with the queue, or sealed behind a hold.
    pub(super) closed_seq: u64,
    /// The last sequence number handed to the queue.
    pub(super) submitted_seq: u64,
    /// What waits for something else before it goes to the queue.
    pub(super) holds: Holds,
    /// Counts batches, so that a parameter block is known to be of the open one.
    pub(super) batch: u64,
    /// Heaps that tasks of the open batch touch: a queue write to them would run ahead.
    pub(super) touched: Vec<HeapId>,
    /// What must be zero before something uses it.
    pub(super) zeros: PendingZeros,
    /// Work of the open batch, and how much it may be, in units of a workgroup.
    pub(super) units: u64,
    max_units: u64,
    pub(super) direct_bytes: u64,
    pub(super) params: ParamRing,
    pub(super) upload_ring: Option<UploadRing>,
    /// Buffers of single uploads of the open batch.
    pub(super) one_offs: Vec<Arc<Buffer>>,
    /// Staging buffers of the open batch, to be mapped after it.
    pub(super) staging: Vec<Arc<Staging>>,
    pub(super) layouts: Layouts,
    pub(super) heap_groups: HeapGroups,
    pub(super) builtins: Builtins,
    in_flight: InFlight,
    pub(super) stats: RunnerStats,
}

impl GpuRunner {
    pub(super) fn new(dev: GpuDev, progress: Arc<Progress>) -> Self {
        let params = ParamRing::new(&dev.device);
        let state = State {
            heaps: Heaps::new(dev.heap_cap_bytes, dev.heap_fixed_bytes, dev.budget_bytes),
            pools: SortedMap::new(),
            in_use_bytes: 0,
            peak_bytes: 0,
            generation: 0,
            tasks: Vec::with_capacity(MAX_TASKS),
            seq: 0,
            closed_seq: 0,
            submitted_seq: 0,
            holds: Holds::default(),
            batch: 0,
            touched: Vec::new(),
            zeros: PendingZeros::default(),
            units: 0,
            max_units: MAX_UNITS,
            direct_bytes: 0,
            params,
            upload_ring: None,
            one_offs: Vec::new(),
            staging: Vec::new(),
            layouts: Layouts::default(),
            heap_groups: HeapGroups::default(),
            builtins: Builtins::default(),
            in_flight: InFlight::default(),
            stats: RunnerStats { buffers_created: 1, ..RunnerStats::default() },
        };
        Self {
            dev,
            state: Mutex::new(state),
            progress,
            staging_pool: Arc::default(),
            pipelines: PipelineCache::default(),
            heap_gate: HeapGate::default(),
            upload_staging: UploadStaging::default(),
        }
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for recording; an error if the device is lost.
    pub(super) fn begin(&self) -> Result<MutexGuard<'_, State>> {
        self.progress.check_alive()?;
        Ok(self.lock())
    }

    /// Ends a recording call: flushes at the bounds, and gives the event of what was recorded.
    pub(super) fn recorded(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> Result<GpuEvent> {
        let seq = state.seq;
        if state.is_full() {
            self.flush_state(&mut state)?;
            drop(state);
            self.throttle();
        }
        Ok(GpuEvent::new(self.clone(), seq))
    }

    /// Hands everything recorded so far to the queue.
    pub(super) fn flush(&self) -> Result<()> {
        let mut state = self.begin()?;
        self.flush_state(&mut state)
    }

    /// As [`GpuRunner::flush`], if `seq` is not with the queue yet.
    pub(super) fn flush_through(&self, seq: u64) -> Result<()> {
        let mut state = self.begin()?;
        if seq > state.closed_seq { self.flush_state(&mut state) } else { Ok(()) }
    }

    /// Closes the open batch: it goes to the queue, or behind a hold.
    pub(super) fn flush_state(&self, state: &mut State) -> Result<()> {
        if state.seq == state.closed_seq {
            if state.tasks.is_empty() {
                return Ok(());
            }
            // In the middle of an operation that opened the batch: what it has recorded so far gets a number of its own.
            state.advance();
        }
        if !state.holds.is_empty() {
            state.seal();
            return Ok(());
        }
        self.submit(state, state.seq)
    }

    /// Hands the open batch, which ends at `last`, to the queue.
    pub(super) fn submit(&self, state: &mut State, last: u64) -> Result<()> {
        let first = state.submitted_seq + 1;
        let touched = state.touched.clone();
        let tasks = std::mem::take(&mut state.tasks);
        let device = &self.dev.device;
        let (submitted, verdict) = scoped(device, || {
            let ParamRing { buffer, bytes, .. } = &state.params;
            if !bytes.is_empty() {
                platform::write_buffer(device, buffer, 0, Bytes::Slice(bytes), 0, bytes.len() as u64)?;
            }
            encode(device, state, &tasks).map(|commands| device.submit(commands))
        });
        self.progress.submitted(first, last, state.units, platform::now_ms());
        state.end_batch(last, tasks);
        let estimated = self.progress.unit_ms().map_or(MAX_UNITS, |unit_ms| (MAX_BATCH_MS / unit_ms) as u64);
        state.max_units = estimated.clamp(MIN_UNITS, MAX_UNITS);
        let (progress, gate) = (self.progress.clone(), self.heap_gate.clone());
        platform::settle(verdict, move |caught| {
            let outcome = caught.map_or(Ok(()), |caught| {
                // Using a heap that turned out not to be there is no fault of the batch: the cause is the heap's.
                let cause = touched.into_iter().find_map(|heap| gate.failure_of(heap));
                Err(cause.unwrap_or_else(|| caught.into_error("a submitted batch failed", ErrorKind::Bug)))
            });
            progress.verified(last, outcome);
        });
        let index = submitted.inspect_err(|error| self.progress.fail(first, error.clone()))?;
        self.upload_staging.recycle();
        state.one_offs.drain(..).for_each(|buffer| platform::discard(&buffer));
        for staging in state.staging.drain(..) {
            staging.map(&self.progress);
            state.stats.maps += 1;
        }
        platform::watch_done(device, &self.progress, last);
        state.in_flight.push(last, index, self.progress.done_seq());
        state.stats.submissions += 1;
        Ok(())
    }

    /// Waits natively until the bound on batches in flight holds; on the web, nothing may block: see `ready`.
    fn throttle(&self) {
        #[cfg(not(target_arch = "wasm32"))]
        while self.held_bound_seq().is_some() && self.wait_for_hold() {}
        #[cfg(not(target_arch = "wasm32"))]
        while let Some(seq) = self.progress.bound_seq(MAX_IN_FLIGHT)
            && self.progress.outcome(seq).is_none()
        {
            self.wait_for(seq);
        }
    }

    /// Blocks until `seq`, which is with the queue, is done.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wait_for_queue(&self, seq: u64) {
        let index = self.lock().in_flight.index_of(seq);
        match index {
            Some(index) => platform::wait(&self.dev.device, index),
            // It is done, and its callbacks are due, here or on the thread that polled before.
            None => {
                platform::poll(&self.dev.device);
                std::thread::yield_now();
            }
        }
    }

    /// Waits natively until everything recorded is done, so that buffers that were given back are gone; on the web they
    /// are gone when they are destroyed.
    pub(super) fn drain(&self, state: &mut State) -> Result<()> {
        self.flush_state(state)?;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(index) = state.in_flight.index_of(state.submitted_seq) {
            platform::wait(&self.dev.device, index);
        }
        Ok(())
    }

    /// The event of everything recorded so far.
    pub(super) fn all_work(self: &Arc<Self>) -> GpuEvent {
        let seq = self.lock().seq;
        GpuEvent::new(self.clone(), seq)
    }

    /// An event that is done when few enough batches are in flight.
    pub(super) fn ready(self: &Arc<Self>) -> GpuEvent {
        let seq = self.held_bound_seq().or_else(|| self.progress.bound_seq(MAX_IN_FLIGHT));
        GpuEvent::new(self.clone(), seq.unwrap_or(0))
    }

    pub(super) fn stats(&self) -> RunnerStats {
        self.lock().stats
    }

    pub(super) fn memory(&self) -> DriverMemory {
        let state = self.lock();
        let ring = state.upload_ring.as_ref().map_or(0, |ring| ring.buffer.size());
        DriverMemory {
            reserved_bytes: state.heaps.reserved_bytes(),
            heap_count: state.heaps.iter().count(),
            in_use_bytes: state.in_use_bytes,
            peak_bytes: state.peak_bytes,
            staging_bytes: ring + self.staging_pool.bytes() + self.upload_staging.bytes(),
        }
    }

    /// Destroys the device: pending events and readbacks settle with [`ErrorKind::DeviceLost`].
    pub(super) fn destroy(&self) {
        self.progress.lose("destroyed by the program");
        let mut state = self.lock();
        state.tasks.clear();
        state.staging.clear();
        let holds = std::mem::take(&mut state.holds);
        if self.dev.is_borrowed {
            self.destroy_buffers(&state);
        }
        drop(state);
        // What they wait with may hold pools of ours, and lets go of them.
        drop(holds);
        if !self.dev.is_borrowed {
            self.dev.device.destroy();
        }
    }

    /// Gives back what is ours on a device that somebody else goes on using.
    fn destroy_buffers(&self, state: &State) {
        state.heaps.iter().for_each(|heap| heap.buffer.destroy());
        state.params.buffer.destroy();
        state.one_offs.iter().for_each(|buffer| buffer.destroy());
        state.upload_ring.iter().for_each(|ring| ring.buffer.destroy());
        self.staging_pool.trim();
    }
}

impl Drop for GpuRunner {
    fn drop(&mut self) {
        if self.dev.is_borrowed {
            self.destroy_buffers(&self.lock());
        } else {
            platform::release(&self.dev.device);
        }
    }
}

impl State {
    pub(super) fn is_full(&self) -> bool {
        self.tasks.len() >= MAX_TASKS || self.units >= self.max_units || self.direct_bytes >= MAX_DIRECT_BYTES
    }

    fn end_batch(&mut self, last: u64, mut tasks: Vec<Task>) {
        tasks.clear();
        self.tasks = tasks;
        self.submitted_seq = last;
        self.closed_seq = self.closed_seq.max(last);
        self.batch += 1;
        self.touched.clear();
        self.units = 0;
        self.direct_bytes = 0;
        self.params.bytes.clear();
        if let Some(ring) = &mut self.upload_ring {
            ring.cursor = 0;
        }
    }

    /// Takes the next sequence number.
    pub(super) fn advance(&mut self) {
        self.seq += 1;
    }

    /// Notes that the task to be recorded next uses a heap; what waits to be cleared there is cleared before.
    pub(super) fn touch(&mut self, heap: HeapId) {
        self.clear_pending(heap);
        self.note_touched(heap);
    }

    /// Records the clearing of what waits in a heap.
    pub(super) fn clear_pending(&mut self, heap: HeapId) {
        for ZeroRange { heap, offset, len } in self.zeros.take(heap) {
            self.note_touched(heap);
            self.stats.zeros += 1;
            self.tasks.push(Task::Zero { heap, offset, len });
        }
    }

    fn note_touched(&mut self, heap: HeapId) {
        if !self.touched.contains(&heap) {
            self.touched.push(heap);
        }
    }

    pub(super) fn is_touched(&self, heap: HeapId) -> bool {
        // Behind a hold a queue write would run ahead of everything that waits.
        !self.holds.is_empty() || self.touched.contains(&heap)
    }

    /// Records a kernel; its heaps are touched.
    pub(super) fn push_dispatch(&mut self, dispatch: Dispatch, heaps: impl IntoIterator<Item = HeapId>) {
        heaps.into_iter().for_each(|heap| self.touch(heap));
        self.units += DISPATCH_UNITS + dispatch.grid.iter().map(|&groups| u64::from(groups)).product::<u64>();
        self.stats.dispatches += 1;
        self.tasks.push(Task::Dispatch(dispatch));
    }

    /// The bind group of those heaps, or of those ranges of them.
    pub(super) fn heap_group(&mut self, device: &Device, key: GroupKey) -> Result<Arc<BindGroup>> {
        if let Some(group) = self.heap_groups.get(&key) {
            return Ok(group);
        }
        let mut buffers = Vec::with_capacity(key.0.len());
        for (heap, _) in &key.0 {
            buffers.push(&self.heaps.get(*heap)?.buffer);
        }
        self.stats.bind_groups_created += 1;
        Ok(self.heap_groups.make(device, &mut self.layouts, key, &buffers))
    }

    /// Records a built-in kernel over one or two heaps, the destination first. The ring must have room for a slot.
    pub(super) fn push_builtin(
        &mut self,
        device: &Device,
        builtin: Builtin,
        heaps: &[HeapId],
        words: &[u32],
        grid: [u32; 3],
    ) -> Result<()> {
        if !self.params.has_room(SLOT_BYTES) {
            return Err(Error::bug("a built-in kernel was recorded without room for its parameters"));
        }
        let (pipeline, made) = self.builtins.pipeline(device, &mut self.layouts, builtin);
        self.stats.pipelines_created += u64::from(made);
        let key = heaps.iter().map(|&heap| (heap, false)).collect();
        let group = self.heap_group(device, (key, Vec::new()))?;
        let params = self.params.group(device, &mut self.layouts, SLOT_BYTES);
        let params_offset = self.params.push(words, SLOT_BYTES);
        let dispatch = Dispatch { pipeline, heaps: group, params, params_offset, grid };
        self.push_dispatch(dispatch, heaps.iter().copied());
        Ok(())
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
