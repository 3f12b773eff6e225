//! Hand-written kernels on wgpu itself: what they bind, how they run, and what the adapter can do at most.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::native::raw::Raw;
use crate::native::rows::Dispatch;

/// A kernel with what it works on.
#[derive(Debug)]
pub struct Step {
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    groups: [u32; 3],
}

/// Buffers by the names of tensors.
pub type Buffers = BTreeMap<String, wgpu::Buffer>;

/// Bytes and additions or multiplications a second. The browser's look the same.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Peaks {
    pub bytes_per_second: f64,
    pub flops_per_second: f64,
}

impl Peaks {
    /// The higher of two measurements: a busy machine lowers one.
    pub fn higher(self, other: Self) -> Self {
        Self {
            bytes_per_second: self.bytes_per_second.max(other.bytes_per_second),
            flops_per_second: self.flops_per_second.max(other.flops_per_second),
        }
    }
}

const COPIED_VEC4S: u32 = 1 << 22;
const COPIERS: u32 = 1 << 18;
const ADDERS: u32 = 1 << 14;
const LOOPS: u32 = 512;
/// Floats that an invocation multiplies and adds in one loop.
const FLOATS_A_LOOP: f64 = 64.0;
/// For how long each kernel of the peaks is repeated; the fastest time counts.
const PEAK_TIME: Duration = Duration::from_secs(1);
/// As many at once as take long beside what a submission costs.
const PEAK_BATCH: u32 = 4;

impl Raw {
    /// A storage buffer with those bytes.
    pub fn filled(&self, bytes: &[u8]) -> wgpu::Buffer {
        let buffer = self.storage(bytes.len() as u64);
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    /// A kernel over buffers.
    pub fn step(&self, dispatch: &Dispatch, buffers: &Buffers) -> Step {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(&dispatch.kernel),
            source: wgpu::ShaderSource::Wgsl(dispatch.text().into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&dispatch.kernel),
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let bound = (0..).zip(&dispatch.tensors);
        let entries: Vec<_> = bound
            .map(|(binding, name)| wgpu::BindGroupEntry { binding, resource: buffers[name].as_entire_binding() })
            .collect();
        let layout = pipeline.get_bind_group_layout(0);
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
        Step { bindings: self.device.create_bind_group(&descriptor), pipeline, groups: dispatch.groups }
    }

    /// Runs steps in order, all of them that often, until the device is done.
    pub fn run(&self, steps: &[Step], count: u32) {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for _ in 0..count {
            for Step { pipeline, bindings, groups: [x, y, z] } in steps {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, bindings, &[]);
                pass.dispatch_workgroups(*x, *y, *z);
            }
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.wait();
    }

    /// The floats of a buffer.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Vec<f32> {
        let staging = self.buffer(buffer.size(), wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("a mapping"));
        self.wait();
        let mapped = staging.get_mapped_range(..).expect("a mapped range");
        mapped.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    /// What the adapter can do at most, by kernels that do nothing else.
    pub fn peaks(&self) -> Peaks {
        let floats = |count: u32| self.storage(u64::from(count) * 4);
        let factors: Vec<u8> =
            [0.5f32, 0.25, 0.125, 0.75, 1.0, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let buffers: Buffers = [
            ("source", floats(COPIED_VEC4S * 4)),
            ("copy", floats(COPIED_VEC4S * 4)),
            ("factors", self.filled(&factors)),
            ("sums", floats(ADDERS * 4)),
        ]
        .into_iter()
        .map(|(name, buffer)| (name.to_owned(), buffer))
        .collect();
        let seconds = |kernel: &str, constants: &[(&str, u32)], tensors: [&str; 2], groups: u32| {
            let dispatch = Dispatch {
                kernel: kernel.to_owned(),
                constants: constants.iter().map(|(name, value)| ((*name).to_owned(), format!("{value}u"))).collect(),
                tensors: tensors.map(str::to_owned).to_vec(),
                groups: [groups, 1, 1],
            };
            self.least_seconds(&self.step(&dispatch, &buffers))
        };
        let copying =
            seconds("peak_copy", &[("COUNT", COPIED_VEC4S), ("STRIDE", COPIERS)], ["source", "copy"], COPIERS / 256);
        let adding = seconds("peak_arithmetic", &[("LOOPS", LOOPS)], ["factors", "sums"], ADDERS / 64);
        Peaks {
            bytes_per_second: 2.0 * 16.0 * f64::from(COPIED_VEC4S) / copying,
            flops_per_second: 2.0 * FLOATS_A_LOOP * f64::from(ADDERS) * f64::from(LOOPS) / adding,
        }
    }

    fn least_seconds(&self, step: &Step) -> f64 {
        let step = std::slice::from_ref(step);
        self.run(step, 1);
        let started = Instant::now();
        let mut least = Duration::MAX;
        while started.elapsed() < PEAK_TIME {
            let start = Instant::now();
            self.run(step, PEAK_BATCH);
            least = least.min(start.elapsed());
        }
        least.as_secs_f64() / f64::from(PEAK_BATCH)
    }
}
