//! The built-in kernels: masked words for unaligned edges, and copies that the copy commands cannot do.
//!
//! `copyBufferToBuffer` is forbidden within one buffer, and every command wants multiples of 4. Each invocation owns
//! whole words, so neighbours of an unaligned range keep their bytes.

use std::sync::Arc;

use crate::driver::gpu::params::Layouts;

/// Invocations of a copy's workgroup.
const COPY_GROUP: u64 = 256;
/// A row of a folded grid: WebGPU's default limit of workgroups per dimension.
const GRID_ROW: u64 = 65535;

/// The parameter block of every built-in kernel.
pub(super) const SLOT_BYTES: u64 = 256;

const POKE: &str = "
@group(0) @binding(0) var<storage, read_write> heap: array<u32>;
@group(1) @binding(0) var<uniform> p: vec4<u32>; // word, mask, bits
@compute @workgroup_size(1) fn main() { heap[p.x] = (heap[p.x] & ~p.y) | p.z; }
";

/// Byte `i` of the destination comes from byte `i` of the source; offsets are bytes. `source_word` reads the heap that
/// is copied from, which may be the destination itself where the ranges share no word.
const COPY: &str = "
@group(0) @binding(0) var<storage, read_write> heap: array<u32>;
@group(1) @binding(0) var<uniform> p: vec4<u32>; // source, destination, length, words
fn source_byte(at: u32) -> u32 { return (source_word(at >> 2u) >> ((at & 3u) * 8u)) & 0xffu; }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = (group.y * 65535u + group.x) * 256u + lane;
  if (i >= p.w) { return; }
  let word = (p.y >> 2u) + i;
  let first = word * 4u;
  let last = p.y + p.z;
  if (first >= p.y && first + 4u <= last) {
    let at = p.x + (first - p.y);
    let shift = (at & 3u) * 8u;
    var value = source_word(at >> 2u) >> shift;
    if (shift != 0u) { value |= source_word((at >> 2u) + 1u) << (32u - shift); }
    heap[word] = value;
  } else {
    var value = heap[word];
    for (var k = 0u; k < 4u; k++) {
      let at = first + k;
      if (at >= p.y && at < last) {
        value = (value & ~(0xffu << (k * 8u))) | (source_byte(p.x + (at - p.y)) << (k * 8u));
      }
    }
    heap[word] = value;
  }
}
";

const WITHIN: &str = "fn source_word(i: u32) -> u32 { return heap[i]; }";

const ACROSS: &str = "
@group(0) @binding(1) var<storage, read_write> source: array<u32>;
fn source_word(i: u32) -> u32 { return source[i]; }";

/// A built-in kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    /// Sets some bits of one word: `word, mask, bits`.
    Poke,
    /// Copies bytes within one heap: `source, destination, length, words`.
    CopyWithin,
    /// Copies bytes between two heaps, bound destination first.
    CopyAcross,
}

impl Builtin {
    fn text(self) -> String {
        match self {
            Builtin::Poke => POKE.to_owned(),
            Builtin::CopyWithin => [WITHIN, COPY].concat(),
            Builtin::CopyAcross => [ACROSS, COPY].concat(),
        }
    }

    fn heap_count(self) -> usize {
        if self == Builtin::CopyAcross { 2 } else { 1 }
    }
}

/// The parameters and the grid of a copy.
pub(super) fn copy_params(src_offset: u64, dst_offset: u64, len: u64) -> ([u32; 4], [u32; 3]) {
    let words = (dst_offset % 4 + len).div_ceil(4);
    let groups = words.div_ceil(COPY_GROUP);
    let params = [src_offset as u32, dst_offset as u32, len as u32, words as u32];
    (params, [groups.min(GRID_ROW) as u32, groups.div_ceil(GRID_ROW) as u32, 1])
}

/// Pipelines of the built-in kernels, made when first needed.
#[derive(Debug, Default)]
pub(super) struct Builtins {
    pipelines: [Option<Arc<wgpu::ComputePipeline>>; 3],
}

impl Builtins {
    /// The pipeline; the second value says whether it was just made.
    pub(super) fn pipeline(
        &mut self,
        device: &wgpu::Device,
        layouts: &mut Layouts,
        builtin: Builtin,
    ) -> (Arc<wgpu::ComputePipeline>, bool) {
        let slot = &mut self.pipelines[builtin as usize];
        if let Some(pipeline) = slot {
            return (pipeline.clone(), false);
        }
        let label = format!("wgslab {builtin:?}");
        let layout = layouts.pipeline(device, &vec![false; builtin.heap_count()], SLOT_BYTES);
        let pipeline = Arc::new(create_pipeline(device, &label, &builtin.text(), &layout).1);
        *slot = Some(pipeline.clone());
        (pipeline, true)
    }
}

/// Creates the module and the pipeline of a text with one entry point.
pub(super) fn create_pipeline(
    device: &wgpu::Device,
    label: &str,
    text: &str,
    layout: &wgpu::PipelineLayout,
) -> (wgpu::ShaderModule, wgpu::ComputePipeline) {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(label),
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(label),
        layout: Some(layout),
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    (module, pipeline)
}
