//! Kernels that come with the crate: [`fill`], [`cast`] and [`strided_copy`]. Pure text on the generated accessors, each
//! with a host twin, so they are compiled, linked, batched and sequenced like any other kernel, on both drivers.
//!
//! What a conversion gives is decided by integers and comparisons of bits wherever drivers differ, so that both drivers
//! give the same bits; only which NaN a NaN becomes is left open.

mod cast;
mod copy;
mod fill;
mod wide;

pub use cast::cast;
pub use copy::strided_copy;
pub use fill::{fill, fill_bits};

use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
use crate::wgsl::spec::KernelSpec;

/// Invocations of a workgroup.
const GROUP: u64 = 256;
/// A row of a folded grid: WebGPU's default limit of workgroups per dimension.
const GRID_ROW: u64 = 65535;

/// A kernel that runs `body` for each `i` below `len`, and for some above; `functions` stand before it.
fn elementwise(name: String, functions: &str, body: &str, len: u64) -> KernelSpec {
    let text = format!(
        "{functions}@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {{
  let i = (group.y * 65535u + group.x) * 256u + lane;
  {body}
}}
"
    );
    let groups = len.div_ceil(GROUP);
    KernelSpec::new(name, text).grid([groups.min(GRID_ROW) as u32, groups.div_ceil(GRID_ROW) as u32, 1])
}

/// Refuses two different nodes that share elements which one reads and the other writes: no kernel has an order for them.
/// Ranges are elements from the start of the node.
fn check_apart(src: (&TensorNode, u64, u64), dst: (&TensorNode, u64, u64)) -> Result<()> {
    let range = |(node, start, len): (&TensorNode, u64, u64)| {
        let start = start_in_root(node).saturating_add(start);
        (start, start.saturating_add(len))
    };
    let (from, to) = (range(src), range(dst));
    let is_empty = from.0 == from.1 || to.0 == to.1;
    if src.0 == dst.0 || src.0.root() != dst.0.root() || is_empty || from.1 <= to.0 || to.1 <= from.0 {
        return Ok(());
    }
    Err(overlap(src.0, dst.0))
}

fn overlap(src: &TensorNode, dst: &TensorNode) -> Error {
    let message = format!(
        "what a kernel would read of node {src} and write of node {dst} overlaps; use Context::copy_block, which copies \
         as if at once, or go through another node"
    );
    Error::new(ErrorKind::KernelInterface, message)
}

fn start_in_root(node: &TensorNode) -> u64 {
    node.base().map_or(0, |(base, start)| start_in_root(base).saturating_add(start))
}
