//! The built-in kernels: masked words for unaligned edges, and copies that the copy commands cannot do.
//!
//! `copyBufferToBuffer` is forbidden within one buffer, and every command wants multiples of 4. Each invocation owns
//! whole words, or lanes of words that it changes atomically, so neighbours keep their bytes.

use std::sync::Arc;

use crate::driver::gpu::params::Layouts;
use crate::driver::gpu::platform::{Device, Pipeline};
use crate::node::joined;

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

/// Unit `i` of a row comes from and goes to places along the axes, the innermost first; offsets and strides are units.
const STRIDED: &str = "
// source, destination, units, axes; then the lanes of a word as a shift; then per axis extent, source and destination stride
@group(1) @binding(0) var<uniform> p: array<vec4<u32>, 16>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = (group.y * 65535u + group.x) * 256u + lane;
  if (i >= p[0].z) { return; }
  var rest = i;
  var source = p[0].x;
  var destination = p[0].y;
  for (var k = 0u; k < p[0].w; k++) {
    let axis = p[k + 2u];
    let at = rest % axis.x;
    rest /= axis.x;
    source += at * axis.y;
    destination += at * axis.z;
  }
  move_unit(source, destination);
}
";

const WORDS: &str = "
@group(0) @binding(0) var<storage, read_write> heap: array<u32>;
fn move_unit(src: u32, dst: u32) { heap[dst] = source_word(src); }
";

/// Each lane is written by one invocation, but its neighbours in the word by others: clear it, then set it, atomically.
const LANES: &str = "
@group(0) @binding(0) var<storage, read_write> heap: array<atomic<u32>>;
fn move_unit(src: u32, dst: u32) {
  let shift = p[1].x;
  let bits = 32u >> shift;
  let low = (1u << shift) - 1u;
  let mask = (1u << bits) - 1u;
  let value = (source_word(src >> shift) >> ((src & low) * bits)) & mask;
  let place = (dst & low) * bits;
  atomicAnd(&heap[dst >> shift], ~(mask << place));
  atomicOr(&heap[dst >> shift], value << place);
}
";

const LANES_WITHIN: &str = "fn source_word(i: u32) -> u32 { return atomicLoad(&heap[i]); }";

/// A built-in kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    /// Sets some bits of one word: `word, mask, bits`.
    Poke,
    /// Copies bytes within one heap: `source, destination, length, words`.
    CopyWithin,
    /// Copies bytes between two heaps, bound destination first.
    CopyAcross,
    /// Moves words along axes within one heap: see [`STRIDED`].
    WordsWithin,
    /// Moves words along axes between two heaps, bound destination first.
    WordsAcross,
    /// Moves bytes or pairs of bytes along axes within one heap.
    LanesWithin,
    /// Moves bytes or pairs of bytes along axes between two heaps, bound destination first.
    LanesAcross,
}

impl Builtin {
    fn name(self) -> &'static str {
        match self {
            Builtin::Poke => "poke",
            Builtin::CopyWithin => "copy within",
            Builtin::CopyAcross => "copy across",
            Builtin::WordsWithin => "words within",
            Builtin::WordsAcross => "words across",
            Builtin::LanesWithin => "lanes within",
            Builtin::LanesAcross => "lanes across",
        }
    }

    fn text(self) -> String {
        let parts = match self {
            Builtin::Poke => [POKE, "", ""],
            Builtin::CopyWithin => [WITHIN, COPY, ""],
            Builtin::CopyAcross => [ACROSS, COPY, ""],
            Builtin::WordsWithin => [WITHIN, WORDS, STRIDED],
            Builtin::WordsAcross => [ACROSS, WORDS, STRIDED],
            Builtin::LanesWithin => [LANES_WITHIN, LANES, STRIDED],
            Builtin::LanesAcross => [ACROSS, LANES, STRIDED],
        };
        joined(parts, "")
    }

    fn heap_count(self) -> usize {
        if matches!(self, Builtin::CopyAcross | Builtin::WordsAcross | Builtin::LanesAcross) { 2 } else { 1 }
    }
}

/// The parameters and the grid of a copy.
pub(super) fn copy_params(src_offset: u64, dst_offset: u64, len: u64) -> ([u32; 4], [u32; 3]) {
    let words = (dst_offset % 4 + len).div_ceil(4);
    let params = [src_offset as u32, dst_offset as u32, len as u32, words as u32];
    (params, copy_grid(words))
}

/// The grid of so many invocations of a copy.
pub(super) fn copy_grid(invocations: u64) -> [u32; 3] {
    let groups = invocations.div_ceil(COPY_GROUP);
    [groups.min(GRID_ROW) as u32, groups.div_ceil(GRID_ROW) as u32, 1]
}

/// Pipelines of the built-in kernels, made when first needed.
#[derive(Debug, Default)]
pub(super) struct Builtins {
    pipelines: [Option<Arc<Pipeline>>; 7],
}

impl Builtins {
    /// The pipeline; the second value says whether it was just made.
    pub(super) fn pipeline(
        &mut self,
        device: &Device,
        layouts: &mut Layouts,
        builtin: Builtin,
    ) -> (Arc<Pipeline>, bool) {
        let slot = &mut self.pipelines[builtin as usize];
        if let Some(pipeline) = slot {
            return (pipeline.clone(), false);
        }
        let label = joined(["wgslab", builtin.name()], " ");
        let layout = layouts.pipeline(device, &vec![false; builtin.heap_count()], SLOT_BYTES);
        let pipeline = Arc::new(device.create_pipeline(&label, &builtin.text(), &layout).1);
        *slot = Some(pipeline.clone());
        (pipeline, true)
    }
}
