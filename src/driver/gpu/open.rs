//! Opening a GPU device.

use std::fmt;
use std::sync::Arc;

use crate::driver::gpu::heaps::GUARD_BYTES;
use crate::driver::gpu::platform;
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::one_line;
use crate::driver::limits::{ALIGNMENT_BYTES, AdapterInfo, DeviceLimits};
use crate::error::{Error, ErrorKind, Result};

/// Which limits a device is opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitsChoice {
    /// The adapter's own, so that large tensors work.
    #[default]
    Adapter,
    /// WebGPU's defaults: what runs under them runs everywhere.
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

/// An opened GPU: wgpu's device and queue, with what they can do. Clones are the same device.
#[derive(Clone)]
pub struct GpuDev {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) limits: Arc<DeviceLimits>,
    pub(super) adapter: Arc<AdapterInfo>,
    /// The largest heap.
    pub(super) heap_cap_bytes: u64,
    pub(super) heap_fixed_bytes: Option<u64>,
    pub(super) budget_bytes: Option<u64>,
    /// Whether somebody else has the `wgpu::Device` too, and goes on using it: ours then ends without destroying it.
    pub(super) is_borrowed: bool,
}

impl fmt::Debug for GpuDev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuDev({}, {:?})", self.adapter.name, self.limits)
    }
}

/// Opens an adapter's device. With `is_borrowed` the adapter gives a device that is somebody else's: it is not destroyed
/// with ours, and errors outside our scopes stay theirs.
///
/// # Errors
/// [`ErrorKind::NoAdapter`] where there is no adapter, or it refuses the device; [`ErrorKind::LimitExceeded`] for
/// options that no device can satisfy.
pub(crate) async fn open(options: OpenOptions, is_borrowed: bool) -> Result<(GpuDev, GpuRunner)> {
    let segment_cap = options.segment_cap_bytes.map(|cap| cap / ALIGNMENT_BYTES * ALIGNMENT_BYTES);
    if segment_cap == Some(0) {
        let message = format_args!("segment_cap_bytes must be at least {ALIGNMENT_BYTES}, the alignment of tensors");
        return Err(Error::say(ErrorKind::LimitExceeded, message));
    }
    let adapter = request_adapter(&options).await?;
    let info = adapter.get_info();
    let required_limits = match options.limits {
        LimitsChoice::Adapter => adapter.limits(),
        LimitsChoice::Default => wgpu::Limits::default(),
    };
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("wgslab"),
        required_features: wgpu::Features::empty(),
        required_limits,
        // We make few, large buffers and allocate in them ourselves; a second pool below would be waste.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..wgpu::DeviceDescriptor::default()
    };
    let (device, queue) = adapter.request_device(&descriptor).await.map_err(|error| {
        let message =
            format_args!("adapter \"{}\" refused to open a device: {}", info.name, one_line(&error.to_string()));
        Error::say(ErrorKind::NoAdapter, message)
    })?;
    let dev = GpuDev { is_borrowed, ..describe(device, queue, &info, segment_cap, &options) };
    let progress = Arc::new(Progress::default());
    let shared = progress.clone();
    platform::watch(&dev.device, !is_borrowed, move |kind, from, said| report(&shared, kind, from, &one_line(said)));
    let runner = GpuRunner::new(dev.clone(), progress);
    Ok((dev, runner))
}

fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

/// What the adapters of the machine are, and the limits of their own; a browser shows one.
pub(crate) async fn adapters() -> Vec<(AdapterInfo, DeviceLimits)> {
    if platform::check_webgpu().is_err() {
        return Vec::new();
    }
    let adapters = instance().enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters
        .iter()
        .map(|adapter| {
            let info = adapter.get_info();
            let (limits, _) = device_limits(&adapter.limits(), None);
            (adapter_info(info.name.clone(), &info), limits)
        })
        .collect()
}

async fn request_adapter(options: &OpenOptions) -> Result<wgpu::Adapter> {
    platform::check_webgpu()?;
    let instance = instance();
    if let Some(ordinal) = options.ordinal {
        let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
        if ordinal as usize >= adapters.len() {
            let message = format_args!(
                "there is no GPU adapter of ordinal {ordinal}: the machine has {}; leave it out for the preferred one",
                adapters.len()
            );
            return Err(Error::say(ErrorKind::NoAdapter, message));
        }
        return Ok(adapters.swap_remove(ordinal as usize));
    }
    let power_preference = match options.power_preference {
        PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
        PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
    };
    let request = wgpu::RequestAdapterOptions { power_preference, ..wgpu::RequestAdapterOptions::default() };
    instance.request_adapter(&request).await.map_err(|_| {
        Error::new(
            ErrorKind::NoAdapter,
            "no GPU adapter was found; install a Vulkan, Metal or DX12 driver (a software one will do: \
             mesa-vulkan-drivers on Debian), enable WebGPU in the browser, or open the host driver",
        )
    })
}

/// What planning and linking respect, and the largest heap, under those limits of an adapter or a device.
fn device_limits(limits: &wgpu::Limits, segment_cap: Option<u64>) -> (DeviceLimits, u64) {
    // A heap is bound whole, and addressed by 32-bit byte offsets.
    let bindable = limits.max_buffer_size.min(limits.max_storage_buffer_binding_size).min(u64::from(u32::MAX));
    let heap_cap_bytes = bindable / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    let largest_slab = heap_cap_bytes.saturating_sub(2 * GUARD_BYTES);
    let device_limits = DeviceLimits {
        segment_cap_bytes: segment_cap.map_or(largest_slab, |cap| cap.min(largest_slab)),
        alignment_bytes: ALIGNMENT_BYTES,
        storage_buffers: limits.max_storage_buffers_per_shader_stage,
        workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        invocations_per_workgroup: limits.max_compute_invocations_per_workgroup,
        workgroup_storage_bytes: limits.max_compute_workgroup_storage_size,
        uniform_binding_bytes: limits.max_uniform_buffer_binding_size.min(super::params::RING_BYTES),
    };
    (device_limits, heap_cap_bytes)
}

fn adapter_info(name: String, info: &wgpu::AdapterInfo) -> AdapterInfo {
    AdapterInfo {
        name,
        backend: match info.backend {
            wgpu::Backend::BrowserWebGpu => "webgpu".to_owned(),
            backend => backend.to_str().to_owned(),
        },
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        device_type: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete",
            wgpu::DeviceType::IntegratedGpu => "integrated",
            wgpu::DeviceType::VirtualGpu => "virtual",
            wgpu::DeviceType::Cpu => "cpu",
            wgpu::DeviceType::Other => "other",
        }
        .to_owned(),
    }
}

fn describe(
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: &wgpu::AdapterInfo,
    segment_cap: Option<u64>,
    options: &OpenOptions,
) -> GpuDev {
    let (limits, heap_cap_bytes) = device_limits(&device.limits(), segment_cap);
    let adapter = adapter_info(platform::adapter_name(&device, info), info);
    let OpenOptions { heap_bytes, memory_budget_bytes, .. } = *options;
    GpuDev {
        device,
        queue,
        limits: Arc::new(limits),
        adapter: Arc::new(adapter),
        heap_cap_bytes,
        heap_fixed_bytes: heap_bytes,
        budget_bytes: memory_budget_bytes,
        is_borrowed: false,
    }
}

/// Takes the loss of the device, and errors outside any scope.
fn report(progress: &Progress, kind: ErrorKind, from: &str, said: &str) {
    if kind == ErrorKind::DeviceLost {
        progress.lose(if said.is_empty() { from } else { said });
    } else {
        progress.fail_unsettled(Error::say(kind, format_args!("{from}: {said}")));
    }
}
