//! Native: the few GPU objects that the driver uses are wgpu's.

use std::num::NonZeroU64;

use crate::driver::gpu::open::{OpenOptions, PowerPreference};
use crate::driver::gpu::platform::Limits;
use crate::driver::gpu::scope::one_line;
use crate::driver::limits::AdapterInfo;
use crate::error::Result;

/// A buffer.
pub type Buffer = wgpu::Buffer;
pub(in crate::driver::gpu) type BindGroup = wgpu::BindGroup;
pub(in crate::driver::gpu) type BindGroupLayout = wgpu::BindGroupLayout;
pub(in crate::driver::gpu) type Commands = wgpu::CommandBuffer;
pub(in crate::driver::gpu) type Pipeline = wgpu::ComputePipeline;
pub(in crate::driver::gpu) type PipelineLayout = wgpu::PipelineLayout;
pub(in crate::driver::gpu) type ShaderModule = wgpu::ShaderModule;
pub(in crate::driver::gpu) type Submission = wgpu::SubmissionIndex;

/// An opened device with its queue. Clones are the same device.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
}

fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

/// What the adapters of the machine are, and the limits of their own.
pub(in crate::driver::gpu) async fn adapters() -> Vec<(AdapterInfo, Limits)> {
    let adapters = instance().enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters
        .iter()
        .map(|adapter| (adapter_info(&adapter.get_info()), limits(&adapter.limits(), adapter.features())))
        .collect()
}

async fn request_adapter(options: &OpenOptions) -> Result<wgpu::Adapter> {
    let instance = instance();
    if let Some(ordinal) = options.ordinal {
        let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
        if ordinal as usize >= adapters.len() {
            return Err(super::no_such_adapter(ordinal, adapters.len()));
        }
        return Ok(adapters.swap_remove(ordinal as usize));
    }
    let power_preference = match options.power_preference {
        PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
        PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
    };
    let request = wgpu::RequestAdapterOptions { power_preference, ..wgpu::RequestAdapterOptions::default() };
    instance.request_adapter(&request).await.map_err(|_| super::no_adapter())
}

impl Device {
    /// Opens the device of an adapter.
    pub(in crate::driver::gpu) async fn open(options: &OpenOptions) -> Result<Self> {
        let adapter = request_adapter(options).await?;
        let (required_features, required_limits) = if options.is_default_limits() {
            (wgpu::Features::empty(), wgpu::Limits::default())
        } else {
            (adapter.features() & wgpu::Features::SUBGROUP, adapter.limits())
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("wgslab"),
            required_features,
            required_limits,
            // We make few, large buffers and allocate in them ourselves; a second pool below would be waste.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|error| super::refused_device(&adapter.get_info().name, &one_line(&error.to_string())))?;
        Ok(Self { device, queue })
    }

    pub(in crate::driver::gpu) fn info(&self) -> AdapterInfo {
        adapter_info(&self.device.adapter_info())
    }

    pub(in crate::driver::gpu) fn limits(&self) -> Limits {
        limits(&self.device.limits(), self.device.features())
    }

    pub(in crate::driver::gpu) fn destroy(&self) {
        self.device.destroy();
    }

    /// A buffer for those [`usage`](super::usage)s.
    pub(in crate::driver::gpu) fn create_buffer(&self, label: &str, size: u64, usage: u32) -> Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage: wgpu::BufferUsages::from_bits_truncate(usage),
            mapped_at_creation: false,
        })
    }

    /// Group 0: one storage binding per heap, which is as large as a vector at least.
    pub(in crate::driver::gpu) fn heaps_layout(&self, read_only: &[bool]) -> BindGroupLayout {
        let ty = |&read_only: &bool| wgpu::BufferBindingType::Storage { read_only };
        let entries: Vec<_> =
            read_only.iter().enumerate().map(|(at, read_only)| entry(at, ty(read_only), super::VECTOR_BYTES)).collect();
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some("wgslab heaps"), entries: &entries };
        self.device.create_bind_group_layout(&descriptor)
    }

    /// Group 1: the parameter block, at a dynamic offset.
    pub(in crate::driver::gpu) fn params_layout(&self, slot_bytes: u64) -> BindGroupLayout {
        let entries = [entry(0, wgpu::BufferBindingType::Uniform, slot_bytes)];
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some("wgslab params"), entries: &entries };
        self.device.create_bind_group_layout(&descriptor)
    }

    pub(in crate::driver::gpu) fn pipeline_layout(
        &self,
        heaps: &BindGroupLayout,
        params: &BindGroupLayout,
    ) -> PipelineLayout {
        self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("wgslab pipeline"),
            bind_group_layouts: &[Some(heaps), Some(params)],
            immediate_size: 0,
        })
    }

    /// Binds a range of each buffer, from a byte on and so many, or all of each.
    pub(in crate::driver::gpu) fn bind(
        &self,
        label: &str,
        layout: &BindGroupLayout,
        buffers: &[&Buffer],
        ranges: &[(u64, u64)],
    ) -> BindGroup {
        let entry = |(binding, buffer)| {
            let (offset, size) = ranges.get(binding).map_or((0, None), |(start, len)| (*start, NonZeroU64::new(*len)));
            let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size });
            wgpu::BindGroupEntry { binding: binding as u32, resource }
        };
        let entries: Vec<_> = buffers.iter().copied().enumerate().map(entry).collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some(label), layout, entries: &entries })
    }

    /// The module and the pipeline of a text with one entry point.
    pub(in crate::driver::gpu) fn create_pipeline(
        &self,
        label: &str,
        text: &str,
        layout: &PipelineLayout,
    ) -> (ShaderModule, Pipeline) {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(label),
            source: wgpu::ShaderSource::Wgsl(super::native::for_naga(text).into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(layout),
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        (module, pipeline)
    }

    pub(in crate::driver::gpu) fn encoder(&self, label: &str) -> Encoder {
        Encoder(self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(label) }))
    }

    /// Hands commands to the queue, or only what was written to it.
    pub(in crate::driver::gpu) fn submit(&self, commands: Option<Commands>) -> Submission {
        self.queue.submit(commands)
    }
}

/// Commands being encoded.
pub(in crate::driver::gpu) struct Encoder(wgpu::CommandEncoder);

impl Encoder {
    /// Copies between different buffers.
    pub(in crate::driver::gpu) fn copy(&mut self, src: &Buffer, src_at: u64, dst: &Buffer, dst_at: u64, len: u64) {
        self.0.copy_buffer_to_buffer(src, src_at, dst, dst_at, len);
    }

    pub(in crate::driver::gpu) fn clear(&mut self, buffer: &Buffer, offset: u64, len: u64) {
        self.0.clear_buffer(buffer, offset, Some(len));
    }

    /// Begins a compute pass, which ends when it is dropped.
    pub(in crate::driver::gpu) fn pass(&mut self, label: &str) -> Pass<'_> {
        Pass(self.0.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some(label), timestamp_writes: None }))
    }

    pub(in crate::driver::gpu) fn finish(self) -> Commands {
        self.0.finish()
    }
}

/// A compute pass.
pub(in crate::driver::gpu) struct Pass<'a>(wgpu::ComputePass<'a>);

impl Pass<'_> {
    pub(in crate::driver::gpu) fn set_pipeline(&mut self, pipeline: &Pipeline) {
        self.0.set_pipeline(pipeline);
    }

    pub(in crate::driver::gpu) fn set_heaps(&mut self, heaps: &BindGroup) {
        self.0.set_bind_group(0, heaps, &[]);
    }

    pub(in crate::driver::gpu) fn set_params(&mut self, params: &BindGroup, offset: u32) {
        self.0.set_bind_group(1, params, &[offset]);
    }

    pub(in crate::driver::gpu) fn dispatch(&mut self, [x, y, z]: [u32; 3]) {
        self.0.dispatch_workgroups(x, y, z);
    }
}

fn entry(binding: usize, ty: wgpu::BufferBindingType, min_bytes: u64) -> wgpu::BindGroupLayoutEntry {
    let (has_dynamic_offset, min_binding_size) = (ty == wgpu::BufferBindingType::Uniform, NonZeroU64::new(min_bytes));
    wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size },
        count: None,
    }
}

fn limits(limits: &wgpu::Limits, features: wgpu::Features) -> Limits {
    Limits {
        buffer_bytes: limits.max_buffer_size,
        storage_binding_bytes: limits.max_storage_buffer_binding_size,
        uniform_binding_bytes: limits.max_uniform_buffer_binding_size,
        storage_buffers: limits.max_storage_buffers_per_shader_stage,
        workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        invocations_per_workgroup: limits.max_compute_invocations_per_workgroup,
        workgroup_storage_bytes: limits.max_compute_workgroup_storage_size,
        has_subgroups: features.contains(wgpu::Features::SUBGROUP),
    }
}

fn adapter_info(info: &wgpu::AdapterInfo) -> AdapterInfo {
    let device_type = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => "discrete",
        wgpu::DeviceType::IntegratedGpu => "integrated",
        wgpu::DeviceType::VirtualGpu => "virtual",
        wgpu::DeviceType::Cpu => "cpu",
        wgpu::DeviceType::Other => "other",
    };
    AdapterInfo {
        name: info.name.clone(),
        backend: info.backend.to_str().to_owned(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        device_type: device_type.to_owned(),
    }
}
