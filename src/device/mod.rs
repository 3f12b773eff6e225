//! The device record: one opened device and what we own on it.

pub mod merge;
pub mod open;
pub mod pools;
mod record;
pub mod registry;
#[cfg(all(feature = "notation", not(target_arch = "wasm32")))]
pub(crate) mod tuned;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Serialize;

use crate::device::record::Record;
#[cfg(all(feature = "notation", not(target_arch = "wasm32")))]
use crate::device::tuned::Tuned;
use crate::driver::Driver;
use crate::driver::limits::{AdapterInfo, Compaction, DeviceLimits, RunnerStats};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::node::{MemoryMode, NodeId, TensorNode};
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::report::MemoryReport;

/// In a page, the nodes that schedules are measured on: what was measured the page keeps.
#[cfg(all(feature = "notation", target_arch = "wasm32"))]
type Tuned = Vec<crate::node::TensorNode>;

/// The name of a device, unique over all devices of all drivers in the process, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct DeviceId(pub u32);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

static NEXT_DEVICE_ID: AtomicU32 = AtomicU32::new(1);

/// One opened device. Cheap to clone; clones are the same device.
///
/// Its memory goes when the last clone, context, routine and event of it go.
pub struct Device<D: Driver> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Driver> {
    dev: D::Dev,
    runner: Arc<D::Runner>,
    ordinal: u32,
    device_id: DeviceId,
    name: String,
    record: Mutex<Record>,
}

impl<D: Driver> Drop for Inner<D> {
    fn drop(&mut self) {
        D::let_go(&self.runner);
    }
}

impl<D: Driver> Device<D> {
    /// A device around what a driver opened. `ordinal` counts the devices of that driver.
    pub fn new(dev: D::Dev, runner: D::Runner, ordinal: u32) -> Self {
        let device_id = DeviceId(NEXT_DEVICE_ID.fetch_add(1, Ordering::Relaxed));
        let name = format!("{}:{ordinal}:{device_id}", D::name(&dev));
        D::set_name(&runner, &name);
        let record = Mutex::new(Record::new());
        let (runner, record) = (Arc::new(runner), record);
        let inner = Arc::new(Inner { dev, runner, ordinal, device_id, name, record });
        let device = Self { inner };
        registry::register(&device);
        device
    }

    /// The device, without keeping it.
    fn downgrade(&self) -> WeakDevice<D> {
        WeakDevice { inner: Arc::downgrade(&self.inner) }
    }

    /// `driver:ordinal:device_id`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The driver's own device.
    pub fn dev(&self) -> &D::Dev {
        &self.inner.dev
    }

    /// The device's FIFO.
    pub fn runner(&self) -> &Arc<D::Runner> {
        &self.inner.runner
    }

    /// Which of the driver's devices this is.
    pub fn ordinal(&self) -> u32 {
        self.inner.ordinal
    }

    /// Unique over all devices of all drivers in the process.
    pub fn device_id(&self) -> DeviceId {
        self.inner.device_id
    }

    /// The pool that the next slab will get.
    pub fn next_pool_id(&self) -> PoolId {
        self.record().next_pool_id
    }

    /// The node that the merge buffer holds, and where; `None` while it holds none.
    pub fn merge_buffer(&self) -> Option<(TensorNode, BufferLoc)> {
        self.record().merge_buffer.clone()
    }

    /// Bytes of the merge buffer, pool 0.
    pub fn merge_buffer_capacity(&self) -> u64 {
        self.record().merge_buffer_capacity
    }

    /// The event of the last work that writes to that node; `None` if nothing on this device has written to it.
    pub fn updating_for(&self, node: NodeId) -> Option<Event<D>> {
        let seq = self.record().updating_for.get(&node).copied();
        seq.map(|seq| Event::new(D::event(self.runner(), seq)))
    }

    /// The event of the last work that writes to the merge buffer.
    pub fn updating_for_merge_buffer(&self) -> Option<Event<D>> {
        let seq = self.record().updating_for_merge_buffer;
        seq.map(|seq| Event::new(D::event(self.runner(), seq)))
    }

    /// Where the constants are that this device shares between contexts.
    pub fn constant_buffer_cache(&self) -> Vec<(NodeId, BufferLoc)> {
        let mut locs = Vec::new();
        for (node, loc) in self.record().constant_buffer_cache.iter() {
            locs.push((*node, *loc));
        }
        locs
    }

    /// Gives everything back to the system that holds no slab: empty heaps, idle staging buffers. Gives the bytes.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub fn trim(&self) -> Result<u64> {
        D::trim(self.runner())
    }

    /// Moves slabs together, so that what is free is in one piece and fewer buffers hold the slabs; empty buffers go back
    /// to the system. Every location stays as it is, and work that was recorded is not disturbed. An allocation that
    /// would be refused compacts by itself.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub fn compact(&self) -> Result<Compaction> {
        D::compact(self.runner())
    }

    /// Frees the constants that no context uses any more; gives the bytes of their pools. Without it they stay with the
    /// device, ready for the next context.
    pub fn free_unused_constants(&self) -> u64 {
        let unused = self.record().take_unused_constants();
        let mut freed_bytes = 0;
        for pool_id in unused {
            // Nobody else keeps it; if it was freed by hand, it is free.
            let size_bytes = D::pool_size_bytes(self.runner(), pool_id).unwrap_or(0);
            if pools::free_pool(self, pool_id).is_ok() {
                freed_bytes += size_bytes;
            }
        }
        freed_bytes
    }

    /// Shares a constant that has its bytes with all contexts of the device; does nothing for other nodes.
    pub(crate) fn share(&self, node: &TensorNode, loc: BufferLoc) {
        if node.mode() == MemoryMode::Constant && node.base().is_none() {
            self.record().cache_constant(node, loc);
        }
    }

    /// The limits that planning, compiling and linking respect.
    pub fn limits(&self) -> &DeviceLimits {
        D::limits(self.dev())
    }

    /// What the device runs on.
    pub fn adapter(&self) -> &AdapterInfo {
        D::adapter(self.dev())
    }

    /// Counters since the device was opened.
    pub fn stats(&self) -> RunnerStats {
        D::stats(self.runner())
    }

    /// Bytes of all slabs.
    pub fn used_memory(&self) -> u64 {
        D::memory(self.runner()).in_use_bytes
    }

    /// Reserved, in use, padding and peak, per pool, with node labels.
    pub fn report(&self) -> MemoryReport {
        let memory = D::memory(self.runner());
        let pools = self.record().pool_reports();
        MemoryReport {
            reserved_bytes: memory.reserved_bytes,
            heap_count: memory.heap_count,
            in_use_bytes: memory.in_use_bytes,
            padding_bytes: pools.iter().map(|pool| pool.padding_bytes).sum(),
            peak_bytes: memory.peak_bytes,
            staging_bytes: memory.staging_bytes,
            pools,
        }
    }

    /// The event of everything recorded so far.
    pub fn all_work(&self) -> Event<D> {
        Event::new(D::all_work(self.runner()))
    }

    /// Waits for everything recorded so far.
    pub async fn await_idle(&self) -> Result<()> {
        self.all_work().await
    }

    /// Waits for everything recorded so far, blocking the thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn sync(&self) -> Result<()> {
        self.all_work().sync()
    }

    /// Whether everything recorded so far is done.
    pub fn is_idle(&self) -> bool {
        self.all_work().is_done()
    }

    /// Hands everything recorded so far to the device, without waiting.
    pub fn flush(&self) -> Result<()> {
        D::flush(self.runner())
    }

    /// Waits until few enough batches are in flight that recording more keeps queued work bounded. Natively recording
    /// waits by itself; on the web nothing blocks, and a long loop awaits this now and then.
    pub async fn ready(&self) -> Result<()> {
        Event::<D>::new(D::ready(self.runner())).await
    }

    /// The event with that sequence number, as [`Event::seq`] gave it.
    pub fn event(&self, seq: u64) -> Event<D> {
        Event::new(D::event(self.runner(), seq))
    }

    /// Destroys the device. Everything pending settles with [`crate::ErrorKind::DeviceLost`], and so does every later
    /// call.
    pub fn destroy(&self) {
        D::destroy(self.runner());
    }

    /// Whether the device is lost, or was destroyed.
    pub fn is_lost(&self) -> bool {
        D::is_lost(self.runner())
    }

    /// Resolves with the cause when the device is lost; never, as long as it is not.
    pub fn lost(&self) -> impl Future<Output = Error> + use<D> {
        D::lost(self.runner())
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.inner.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sequence number of the last write to the bytes of a node.
    #[cfg(feature = "notation")]
    pub(crate) fn last_write(&self, node: &TensorNode) -> Option<u64> {
        self.record().updating_for.get(&node.root().id()).copied()
    }

    /// Notes that the work with that event writes to those nodes.
    pub(crate) fn wrote<'a>(&self, nodes: impl IntoIterator<Item = &'a NodeId>, event: &Event<D>) {
        let mut record = self.record();
        for node in nodes {
            record.updating_for.insert(*node, event.seq());
        }
    }
}

/// A device that others keep.
pub(crate) struct WeakDevice<D: Driver> {
    inner: Weak<Inner<D>>,
}

impl<D: Driver> WeakDevice<D> {
    fn upgrade(&self) -> Option<Device<D>> {
        self.inner.upgrade().map(|inner| Device { inner })
    }
}

impl<D: Driver> Clone for Device<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: Driver> PartialEq for Device<D> {
    fn eq(&self, other: &Self) -> bool {
        self.device_id() == other.device_id()
    }
}

impl<D: Driver> fmt::Debug for Device<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.name(), self.adapter().name)
    }
}
