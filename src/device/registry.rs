//! The devices of the process: who is there, and what each says of itself. One of the files that know the target: a page
//! has one thread, and what lives on it.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::device::{Device, WeakDevice};
use crate::driver::Driver;
use crate::driver::limits::{AdapterInfo, DeviceLimits, RunnerStats};
use crate::driver::maybe_send::MaybeSend;
use crate::slab::report::MemoryReport;

/// What a device does not change: one entry per device of a driver that the machine has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticProperties {
    /// What to open it with.
    pub ordinal: u32,
    /// What it runs on.
    pub adapter: AdapterInfo,
    /// The limits that a device with the adapter's own would have.
    pub limits: DeviceLimits,
}

/// The state of a device, for a bug report.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DebugInfo {
    /// `driver:ordinal:device_id`.
    pub name: String,
    /// What it runs on.
    pub adapter: AdapterInfo,
    /// Its limits.
    pub limits: DeviceLimits,
    /// Its memory, pool by pool.
    pub memory: MemoryReport,
    /// What its runner has done.
    pub stats: RunnerStats,
    /// The sequence number of the last recorded work.
    pub recorded_seq: u64,
    /// Whether everything recorded is done.
    pub is_idle: bool,
    /// The node that the merge buffer holds.
    pub merge_buffer: Option<String>,
    /// Bytes of the merge buffer.
    pub merge_buffer_capacity: u64,
    /// Constants that contexts share.
    pub constant_count: usize,
    /// The pool that the next slab will get.
    pub next_pool_id: u32,
}

impl<D: Driver> Device<D> {
    /// The state of the device, for a bug report.
    pub fn debug_info(&self) -> DebugInfo {
        let all_work = self.all_work();
        DebugInfo {
            name: self.name().to_owned(),
            adapter: self.adapter().clone(),
            limits: self.limits().clone(),
            memory: self.report(),
            stats: self.stats(),
            recorded_seq: all_work.seq(),
            is_idle: all_work.is_done(),
            merge_buffer: self.merge_buffer().map(|(node, _)| node.to_string()),
            merge_buffer_capacity: self.merge_buffer_capacity(),
            constant_count: self.constant_buffer_cache().len(),
            next_pool_id: self.next_pool_id().0,
        }
    }
}

/// A device that is there for as long as somebody keeps it.
trait Registered: MaybeSend {
    fn debug_info(&self) -> Option<DebugInfo>;
    fn is_alive(&self) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<D: Driver> Registered for WeakDevice<D> {
    fn debug_info(&self) -> Option<DebugInfo> {
        self.upgrade().map(|device| device.debug_info())
    }

    fn is_alive(&self) -> bool {
        self.upgrade().is_some()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Entry {
    device: Box<dyn Registered>,
    /// Whether those who ask for the device of an ordinal get this one. A device that somebody opened is theirs alone.
    is_shared: bool,
}

type Registry = Mutex<Vec<Entry>>;

#[cfg(not(target_arch = "wasm32"))]
static REGISTRY: Registry = Registry::new(Vec::new());

#[cfg(target_arch = "wasm32")]
thread_local! {
    static REGISTRY: Registry = const { Registry::new(Vec::new()) };
}

fn with_registry<T>(body: impl FnOnce(&mut Vec<Entry>) -> T) -> T {
    let locked = |registry: &Registry| body(&mut registry.lock().unwrap_or_else(PoisonError::into_inner));
    #[cfg(not(target_arch = "wasm32"))]
    return locked(&REGISTRY);
    #[cfg(target_arch = "wasm32")]
    REGISTRY.with(locked)
}

/// Enters a device, until it is gone.
pub(super) fn register<D: Driver>(device: &Device<D>) {
    let entry = Entry { device: Box::new(device.downgrade()), is_shared: false };
    with_registry(|registry| {
        registry.retain(|entry| entry.device.is_alive());
        registry.push(entry);
    });
}

/// The device, for all who ask for the device of its ordinal from here on.
pub(super) fn share<D: Driver>(device: Device<D>) -> Device<D> {
    let is_it = |entry: &&mut Entry| {
        let known = entry.device.as_any().downcast_ref::<WeakDevice<D>>().and_then(WeakDevice::upgrade);
        known.is_some_and(|known| known == device)
    };
    with_registry(|registry| registry.iter_mut().filter(is_it).for_each(|entry| entry.is_shared = true));
    device
}

/// The living device of a driver that is shared under that ordinal.
pub(super) fn find<D: Driver>(ordinal: u32) -> Option<Device<D>> {
    with_registry(|registry| {
        registry
            .iter()
            .filter(|entry| entry.is_shared)
            .filter_map(|entry| entry.device.as_any().downcast_ref::<WeakDevice<D>>())
            .filter_map(WeakDevice::upgrade)
            .find(|device| device.ordinal() == ordinal && !device.is_lost())
    })
}

/// The state of every device of the process, of all drivers, in the order in which they were opened.
pub fn global_debug_info() -> Vec<DebugInfo> {
    with_registry(|registry| {
        let mut all = Vec::new();
        for entry in registry.iter() {
            all.extend(entry.device.debug_info());
        }
        all
    })
}
