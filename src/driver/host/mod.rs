//! The `host` driver: slabs are plain memory, and every task is done when its call returns.
//!
//! It is the reference that the GPU is compared with, and works where there is no GPU. It cannot execute raw WGSL: a
//! kernel runs here by its host twin, and one without is refused when it is compiled.

mod kernel;
#[cfg(feature = "notation")]
mod nest;
mod pools;
#[cfg(feature = "notation")]
mod threads;

use std::future::{Future, Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::driver::block::wait_for;
use crate::driver::bytes::Bytes;
use crate::driver::event::DriverEvent;
use crate::driver::host::kernel::{HAS_TWINS, HostKernel, HostLinked};
use crate::driver::host::pools::Pools;
use crate::driver::limits::{ALIGNMENT_BYTES, AdapterInfo, Compaction, DeviceLimits, DriverMemory, RunnerStats};
use crate::driver::maybe_send::BoxFuture;
use crate::driver::{Driver, ReadbackBytes, SlabRef};
use crate::error::{Error, ErrorKind, Result};
use crate::node::MemoryMode;
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::strided::Strided;
use crate::wgsl::slots::Slots;
use crate::wgsl::spec::KernelSpec;

/// The driver type: `Device<Host>`, `Context<Host>`.
#[derive(Clone, Copy, Debug)]
pub struct Host;

/// How to open a host device.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Lowers the largest slab, in bytes (rounded down to 256), so that tests split nodes over pools without using
    /// memory.
    pub segment_cap_bytes: Option<u64>,
    /// What the slabs of the device may take together, in bytes; allocations over it are refused with `OutOfMemory`.
    pub memory_budget_bytes: Option<u64>,
}

/// The largest slab of the host driver: WebGPU's default binding limit less the guards of a heap, so that both drivers
/// split nodes at the same place on a device with default limits.
const SEGMENT_CAP_BYTES: u64 = (128 << 20) - 2 * ALIGNMENT_BYTES;

/// What was opened.
#[derive(Clone, Debug)]
pub struct HostDev {
    limits: DeviceLimits,
    adapter: AdapterInfo,
    budget_bytes: Option<u64>,
}

/// Opens plain memory.
pub(crate) fn open(options: &OpenOptions) -> Result<(HostDev, HostRunner)> {
    let segment_cap_bytes = match options.segment_cap_bytes.map(|cap| cap / ALIGNMENT_BYTES * ALIGNMENT_BYTES) {
        Some(0) => {
            let message =
                format_args!("segment_cap_bytes must be at least {ALIGNMENT_BYTES}, the alignment of tensors");
            return Err(Error::say(ErrorKind::LimitExceeded, message));
        }
        Some(cap) => cap.min(SEGMENT_CAP_BYTES),
        None => SEGMENT_CAP_BYTES,
    };
    let limits = DeviceLimits {
        segment_cap_bytes,
        alignment_bytes: ALIGNMENT_BYTES,
        storage_buffers: u32::MAX,
        workgroups_per_dimension: u32::MAX,
        invocations_per_workgroup: u32::MAX,
        workgroup_storage_bytes: u32::MAX,
        uniform_binding_bytes: u64::from(u32::MAX),
        has_subgroups: false,
    };
    let adapter = AdapterInfo {
        name: "host memory".to_owned(),
        backend: "host".to_owned(),
        driver: env!("CARGO_PKG_VERSION").to_owned(),
        device_type: "cpu".to_owned(),
    };
    let budget_bytes = options.memory_budget_bytes;
    let runner = HostRunner::default();
    runner.lock().pools.set_budget(budget_bytes);
    Ok((HostDev { limits, adapter, budget_bytes }, runner))
}

#[derive(Debug, Default)]
struct State {
    pools: Pools,
    seq: u64,
    stats: RunnerStats,
    name: String,
    lost: Option<Error>,
    lost_wakers: Vec<Waker>,
}

/// The pool table, and the count of what was done.
#[derive(Debug, Default)]
pub struct HostRunner {
    state: Mutex<State>,
}

impl HostRunner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        match &state.lost {
            Some(error) => Err(error.clone()),
            None => Ok(state),
        }
    }

    /// Does a task, and gives its event.
    fn task(&self, work: impl FnOnce(&mut State) -> Result<()>) -> Result<HostEvent> {
        let mut state = self.begin()?;
        work(&mut state)?;
        state.seq += 1;
        Ok(HostEvent { seq: state.seq })
    }
}

/// Whatever was recorded on the host driver is done.
#[derive(Clone, Debug)]
pub struct HostEvent {
    seq: u64,
}

impl DriverEvent for HostEvent {
    type Wait = Ready<Result<()>>;

    fn seq(&self) -> u64 {
        self.seq
    }

    fn precedes_all_on(&self, _runner: *const ()) -> bool {
        // It is done: nothing has to wait for it.
        true
    }

    fn is_done(&self) -> bool {
        true
    }

    fn wait(&self) -> Ready<Result<()>> {
        ready(Ok(()))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// Bytes copied out of slabs.
#[derive(Debug)]
pub struct HostReadback {
    parts: Vec<Vec<u8>>,
}

impl HostReadback {
    /// The bytes of one part.
    pub(crate) fn part(&self, part: usize) -> Result<&[u8]> {
        let found = self.parts.get(part).map(Vec::as_slice);
        found.ok_or_else(|| Error::bug(format_args!("part {part} of a readback of {}", self.parts.len())))
    }
}

impl ReadbackBytes for HostReadback {
    fn with_bytes(&self, part: usize, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        read(self.part(part)?)
    }
}

impl Driver for Host {
    const NAME: &'static str = "host";
    const FREES_EXPLICITLY: bool = true;
    type Dev = HostDev;
    type Runner = HostRunner;
    type Event = HostEvent;
    /// Its pool: the memory itself is never handed out.
    type Slab = PoolId;
    type OptimizeCtx = crate::driver::OptimizeCtx;
    type Kernel = HostKernel;
    type Linked = HostLinked;
    type Staged = Ready<Result<HostReadback>>;
    type Readback = HostReadback;

    fn set_name(runner: &HostRunner, name: &str) {
        name.clone_into(&mut runner.lock().name);
    }

    fn limits(dev: &HostDev) -> &DeviceLimits {
        &dev.limits
    }

    fn adapter(dev: &HostDev) -> &AdapterInfo {
        &dev.adapter
    }

    fn stats(runner: &HostRunner) -> RunnerStats {
        runner.lock().stats
    }

    fn memory(runner: &HostRunner) -> DriverMemory {
        runner.lock().pools.memory()
    }

    fn alloc_pool(
        runner: &Arc<HostRunner>,
        pool_id: PoolId,
        size_bytes: u64,
        alignment: u64,
        _mode: Option<MemoryMode>,
    ) -> Result<()> {
        runner.begin()?.pools.alloc(pool_id, size_bytes, alignment)
    }

    fn alloc_fresh(runner: &Arc<HostRunner>, pool_id: PoolId, size_bytes: u64) -> Result<()> {
        runner.begin()?.pools.alloc(pool_id, size_bytes, ALIGNMENT_BYTES)
    }

    fn write_ahead(runner: &Arc<HostRunner>, loc: BufferLoc, bytes: &[u8]) -> Result<()> {
        runner.begin()?.pools.range_mut(loc, bytes.len() as u64)?.copy_from_slice(bytes);
        Ok(())
    }

    fn clear_recycled(_runner: &Arc<HostRunner>, _pool_id: PoolId) -> Result<()> {
        // Fresh memory of the host is zero.
        Ok(())
    }

    fn free_pool(runner: &Arc<HostRunner>, pool_id: PoolId) -> Result<()> {
        runner.lock().pools.free(pool_id)
    }

    fn trim(_runner: &Arc<HostRunner>) -> Result<u64> {
        // Slabs go back one by one, when they are freed.
        Ok(0)
    }

    fn compact(runner: &Arc<HostRunner>) -> Result<Compaction> {
        // Every slab has memory of its own: there are no gaps.
        runner.begin().map(|_| Compaction::default())
    }

    fn budget_bytes(dev: &HostDev) -> Option<u64> {
        dev.budget_bytes
    }

    fn memset_zero(runner: &Arc<HostRunner>, loc: BufferLoc, len_bytes: u64) -> Result<HostEvent> {
        runner.task(|state| {
            state.pools.range_mut(loc, len_bytes)?.fill(0);
            state.stats.zeros += 1;
            Ok(())
        })
    }

    fn resolve_pool(runner: &Arc<HostRunner>, loc: BufferLoc) -> Result<SlabRef<PoolId>> {
        runner.lock().pools.range(loc, 0)?;
        Ok(SlabRef { slab: loc.pool_id, offset: loc.offset })
    }

    fn pool_size_bytes(runner: &HostRunner, pool_id: PoolId) -> Option<u64> {
        runner.lock().pools.size_bytes(pool_id)
    }

    fn upload(runner: &Arc<HostRunner>, loc: BufferLoc, bytes: Bytes<'_>) -> Result<HostEvent> {
        runner.task(|state| {
            bytes.copy_to(0, state.pools.range_mut(loc, bytes.len_bytes())?);
            state.stats.uploads += 1;
            Ok(())
        })
    }

    fn copy(runner: &Arc<HostRunner>, src: BufferLoc, dst: BufferLoc, len_bytes: u64) -> Result<HostEvent> {
        runner.task(|state| {
            state.pools.copy(src, dst, len_bytes)?;
            state.stats.copies += 1;
            Ok(())
        })
    }

    fn stage(runner: &Arc<HostRunner>, ranges: &[(BufferLoc, u64)]) -> Result<Self::Staged> {
        let mut state = runner.begin()?;
        let mut parts = Vec::new();
        for &(loc, len) in ranges {
            parts.push(state.pools.range(loc, len)?.to_vec());
        }
        state.stats.readbacks += parts.len() as u64;
        state.seq += 1;
        Ok(ready(Ok(HostReadback { parts })))
    }

    fn upload_strided(runner: &Arc<HostRunner>, loc: BufferLoc, to: &Strided, bytes: Bytes<'_>) -> Result<HostEvent> {
        runner.task(|state| {
            let mut row = vec![0; bytes.len_bytes() as usize];
            bytes.copy_to(0, &mut row);
            state.pools.scatter(loc, to, &row)?;
            state.stats.uploads += 1;
            Ok(())
        })
    }

    fn copy_strided(runner: &Arc<HostRunner>, src: BufferLoc, dst: BufferLoc, moved: &Strided) -> Result<HostEvent> {
        runner.task(|state| {
            let row = state.pools.gather(src, moved)?;
            state.pools.scatter(dst, moved, &row)?;
            state.stats.copies += 1;
            Ok(())
        })
    }

    fn stage_strided(runner: &Arc<HostRunner>, loc: BufferLoc, from: &Strided) -> Result<Self::Staged> {
        let mut state = runner.begin()?;
        let row = state.pools.gather(loc, from)?;
        state.stats.readbacks += 1;
        state.seq += 1;
        Ok(ready(Ok(HostReadback { parts: vec![row] })))
    }

    fn compile(
        _runner: &Arc<HostRunner>,
        _dev: &HostDev,
        spec: Arc<KernelSpec>,
    ) -> impl Future<Output = Result<HostKernel>> {
        ready(kernel::compile(spec))
    }

    fn link(
        runner: &Arc<HostRunner>,
        kernel: &Arc<HostKernel>,
        slots: Slots,
    ) -> impl Future<Output = Result<HostLinked>> {
        ready(runner.begin().and_then(|state| kernel::link(&state.pools, kernel, slots)))
    }

    fn explain(linked: &HostLinked) -> String {
        linked.explain()
    }

    fn run<'l>(
        runner: &Arc<HostRunner>,
        linked: impl Iterator<Item = &'l HostLinked>,
        statics: &[i32],
    ) -> Result<HostEvent> {
        let mut state = runner.begin()?;
        for linked in linked {
            #[cfg(feature = "notation")]
            if linked.run_nest(&mut state.pools, statics)? {
                state.stats.dispatches += 1;
                continue;
            }
            if !HAS_TWINS {
                continue;
            }
            // A twin may look at its own device.
            let mut memory = linked.copies(&state.pools)?;
            drop(state);
            linked.call(&mut memory, statics)?;
            state = runner.begin()?;
            linked.keep(&mut state.pools, memory)?;
            state.stats.dispatches += 1;
        }
        state.seq += 1;
        Ok(HostEvent { seq: state.seq })
    }

    fn all_work(runner: &Arc<HostRunner>) -> HostEvent {
        HostEvent { seq: runner.lock().seq }
    }

    fn event(_runner: &Arc<HostRunner>, seq: u64) -> HostEvent {
        HostEvent { seq }
    }

    fn flush(runner: &Arc<HostRunner>) -> Result<()> {
        runner.begin().map(drop)
    }

    fn hold(runner: &Arc<HostRunner>, until: BoxFuture<Result<()>>) -> Result<HostEvent> {
        // Every task is done when its call returns, so waiting is blocking, where that is possible.
        let outcome = wait_for(until).unwrap_or_else(|| {
            let message = "the host driver does each task at once, and cannot wait in a page for another device; await the \
                           event first";
            Err(Error::new(ErrorKind::Unsupported, message))
        });
        outcome.and_then(|()| runner.task(|_| Ok(())))
    }

    fn ready(runner: &Arc<HostRunner>) -> HostEvent {
        Self::all_work(runner)
    }

    fn destroy(runner: &Arc<HostRunner>) {
        let mut state = runner.lock();
        let message = format!(
            "device {} is lost (destroyed by the program); what was on it is gone: open a new device and upload again",
            state.name
        );
        state.lost.get_or_insert_with(|| Error::new(ErrorKind::DeviceLost, message));
        let wakers = std::mem::take(&mut state.lost_wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn is_lost(runner: &HostRunner) -> bool {
        runner.lock().lost.is_some()
    }

    fn lost(runner: &Arc<HostRunner>) -> BoxFuture<Error> {
        let runner = runner.clone();
        Box::pin(std::future::poll_fn(move |cx| {
            let mut state = runner.lock();
            match &state.lost {
                Some(error) => Poll::Ready(error.clone()),
                None => {
                    state.lost_wakers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
}
