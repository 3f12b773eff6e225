//! Opening a GPU device.

use std::fmt;
use std::sync::Arc;

use crate::driver::gpu::heaps::GUARD_BYTES;
use crate::driver::gpu::platform::{self, Device, Limits};
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::one_line;
use crate::driver::limits::{ALIGNMENT_BYTES, AdapterInfo, DeviceLimits};
use crate::error::{Error, ErrorKind, Result};

/// Which limits a device is opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitsChoice {
    /// The adapter's own, so that large tensors work, and subgroups where it has them.
    #[default]
    Adapter,
    /// WebGPU's defaults, without optional features: what runs under them runs everywhere.
    Default,
}

/// A hint for adapters that have a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerPreference {
    /// Prefer the fast adapter.
    #[default]
    HighPerformance,
    /// Prefer the economical adapter.
    LowPower,
}

/// How to open a device.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Which of the machine's adapters, in the order of `gpu::static_properties`; the preferred one if left out.
    pub ordinal: Option<u32>,
    /// Which limits to ask for.
    pub limits: LimitsChoice,
    /// Which adapter to prefer.
    pub power_preference: PowerPreference,
    /// Lowers the largest slab, in bytes (rounded down to 256), so that tests split nodes over pools without using
    /// memory.
    pub segment_cap_bytes: Option<u64>,
    /// Gives every heap this size, in bytes, so that tests reach kernels over several heaps; a slab that needs more
    /// still gets a heap of its size.
    pub heap_bytes: Option<u64>,
    /// What the heaps of the device may take together, in bytes. WebGPU cannot say how much memory there is, so a
    /// program that must leave some says how much it wants; allocations over it are refused with `OutOfMemory`.
    pub memory_budget_bytes: Option<u64>,
}

impl OpenOptions {
    pub(super) fn is_default_limits(&self) -> bool {
        self.limits == LimitsChoice::Default
    }
}

/// An opened GPU: a device with its queue, and what it can do. Clones are the same device.
#[derive(Clone)]
pub struct GpuDev {
    pub(super) device: Device,
    pub(super) limits: Arc<DeviceLimits>,
    pub(super) adapter: Arc<AdapterInfo>,
    /// The largest heap.
    pub(super) heap_cap_bytes: u64,
    pub(super) heap_fixed_bytes: Option<u64>,
    pub(super) budget_bytes: Option<u64>,
    /// Whether somebody else has the device too, and goes on using it: ours then ends without destroying it.
    pub(super) is_borrowed: bool,
}

impl fmt::Debug for GpuDev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuDev({}, {:?})", self.adapter.name, self.limits)
    }
}

/// A device that somebody else has, and goes on using.
pub(crate) type Lent = Device;

/// Opens an adapter's device, or takes one that is `lent`: that is not destroyed with ours, and errors outside our scopes
/// stay its owner's.
///
/// # Errors
/// [`ErrorKind::NoAdapter`] where there is no adapter, or it refuses the device; [`ErrorKind::LimitExceeded`] for
/// options that no device can satisfy.
pub(crate) async fn open(options: OpenOptions, lent: Option<Lent>) -> Result<(GpuDev, GpuRunner)> {
    let segment_cap = options.segment_cap_bytes.map(|cap| cap / ALIGNMENT_BYTES * ALIGNMENT_BYTES);
    if segment_cap == Some(0) {
        let message = format_args!("segment_cap_bytes must be at least {ALIGNMENT_BYTES}, the alignment of tensors");
        return Err(Error::say(ErrorKind::LimitExceeded, message));
    }
    let is_borrowed = lent.is_some();
    let device = match lent {
        Some(device) => device,
        None => Device::open(&options).await?,
    };
    let (limits, heap_cap_bytes) = device_limits(device.limits(), segment_cap);
    let dev = GpuDev {
        limits: Arc::new(limits),
        adapter: Arc::new(device.info()),
        device,
        heap_cap_bytes,
        heap_fixed_bytes: options.heap_bytes,
        budget_bytes: options.memory_budget_bytes,
        is_borrowed,
    };
    let progress = Arc::new(Progress::default());
    let shared = progress.clone();
    platform::watch(&dev.device, !is_borrowed, move |kind, from, said| report(&shared, kind, from, &one_line(said)));
    let runner = GpuRunner::new(dev.clone(), progress);
    Ok((dev, runner))
}

/// What the adapters of the machine are, and the limits of their own; a browser shows one.
pub(crate) fn adapters() -> impl Future<Output = Vec<(AdapterInfo, Limits)>> {
    platform::adapters()
}

/// What planning and linking respect, and the largest heap, under those limits of an adapter or a device.
pub(crate) fn device_limits(limits: Limits, segment_cap: Option<u64>) -> (DeviceLimits, u64) {
    // A heap is bound whole, and addressed by 32-bit byte offsets.
    let bindable = limits.buffer_bytes.min(limits.storage_binding_bytes).min(u64::from(u32::MAX));
    let heap_cap_bytes = bindable / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    let largest_slab = heap_cap_bytes.saturating_sub(2 * GUARD_BYTES);
    let device_limits = DeviceLimits {
        segment_cap_bytes: segment_cap.map_or(largest_slab, |cap| cap.min(largest_slab)),
        alignment_bytes: ALIGNMENT_BYTES,
        storage_buffers: limits.storage_buffers,
        workgroups_per_dimension: limits.workgroups_per_dimension,
        invocations_per_workgroup: limits.invocations_per_workgroup,
        workgroup_storage_bytes: limits.workgroup_storage_bytes,
        uniform_binding_bytes: limits.uniform_binding_bytes.min(super::params::RING_BYTES),
        has_subgroups: limits.has_subgroups,
    };
    (device_limits, heap_cap_bytes)
}

/// Takes the loss of the device, and errors outside any scope.
fn report(progress: &Progress, kind: ErrorKind, from: &str, said: &str) {
    if kind == ErrorKind::DeviceLost {
        progress.lose(if said.is_empty() { from } else { said });
    } else {
        progress.fail_unsettled(Error::say(kind, format_args!("{from}: {said}")));
    }
}
