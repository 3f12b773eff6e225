//! The same work on wgpu itself, written as an expert would for this one case: what the ratios compare with.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on ends")]

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

const SLOT_BYTES: u64 = 256;

const SCALE: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<uniform> factor: vec4<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&data)) { data[id.x] = data[id.x] * factor.x; }
}";

/// A second device of the same adapter, with nothing between it and this file.
pub struct Raw {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
}

impl Raw {
    pub async fn open() -> Self {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = instance.request_adapter(&options).await.expect("an adapter");
        let descriptor = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
        let (device, queue) = adapter.request_device(&descriptor).await.expect("a device");
        Self { device, queue }
    }

    /// Until the device has done everything.
    pub fn wait(&self) {
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device");
    }

    pub fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    }

    /// A buffer for a tensor.
    pub fn storage(&self, size: u64) -> wgpu::Buffer {
        use wgpu::BufferUsages as Usage;
        self.buffer(size, Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST)
    }

    /// `count` dispatches in one pass, each with parameters of its own by a dynamic offset; one write, one submit.
    pub fn recorder(&self, len: u32, count: u32) -> impl Fn() -> (Duration, Duration) {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(SCALE.into()),
        });
        let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: NonZeroU64::new(16) },
            count: None,
        };
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[
                entry(0, wgpu::BufferBindingType::Storage { read_only: false }, false),
                entry(1, wgpu::BufferBindingType::Uniform, true),
            ],
        });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            bind_group_layouts: &[Some(&layout)],
            ..Default::default()
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let data = self.storage(u64::from(len) * 4);
        let ring_bytes = u64::from(count) * SLOT_BYTES;
        let ring = self.buffer(ring_bytes, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST);
        let slot = wgpu::BufferBinding { buffer: &ring, offset: 0, size: NonZeroU64::new(SLOT_BYTES) };
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: data.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::Buffer(slot) },
            ],
        });
        move || {
            let start = Instant::now();
            let mut params = vec![0u8; ring_bytes as usize];
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for run in 0..count {
                let offset = run as usize * SLOT_BYTES as usize;
                params[offset..offset + 4].copy_from_slice(&1.0f32.to_le_bytes());
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[offset as u32]);
                pass.dispatch_workgroups(len / 64, 1, 1);
            }
            drop(pass);
            let recorded = start.elapsed();
            self.queue.write_buffer(&ring, 0, &params);
            self.queue.submit([encoder.finish()]);
            self.wait();
            (recorded, start.elapsed())
        }
    }

    /// Writes into a buffer and waits until the queue has taken it.
    pub fn uploader(&self, data: &[f32]) -> impl Fn() -> Duration {
        let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
        let target = self.storage(bytes.len() as u64);
        move || {
            let start = Instant::now();
            self.queue.write_buffer(&target, 0, &bytes);
            self.queue.submit([]);
            self.wait();
            start.elapsed()
        }
    }

    /// Reads a buffer into a fresh vector, through one staging buffer that is kept.
    pub fn reader(&self, bytes: u64) -> impl Fn() -> Duration {
        let source = self.storage(bytes);
        let staging = self.buffer(bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        move || {
            let start = Instant::now();
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&source, 0, &staging, 0, bytes);
            self.queue.submit([encoder.finish()]);
            staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("a mapping"));
            self.wait();
            let copy = staging.get_mapped_range(..).expect("a mapped range").to_vec();
            staging.unmap();
            assert_eq!(copy.len() as u64, bytes);
            start.elapsed()
        }
    }

    /// Creates as many buffers as there are nodes, and destroys them, several times in a row; the time of one.
    pub fn create_and_destroy(&self, cycles: u32, count: u32, bytes: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..cycles {
            let buffers: Vec<_> = (0..count).map(|_| self.storage(bytes)).collect();
            buffers.iter().for_each(wgpu::Buffer::destroy);
        }
        let elapsed = start.elapsed() / cycles;
        self.wait();
        elapsed
    }
}
