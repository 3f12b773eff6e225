//! Strided copy: a block of one node to a block of another, as a kernel.

use std::fmt::Write;

use crate::error::{Error, ErrorKind, Result};
use crate::kernels::wide::{load, store};
use crate::kernels::{check_apart, elementwise, overlap};
use crate::node::TensorNode;
use crate::slab::block::Block;
use crate::wgsl::spec::{Access, KernelSpec};

/// A kernel that copies a block of `src` to a block of `dst`, whose other elements keep theirs; linking creates `dst`,
/// zero-filled, where the context does not have it.
///
/// Elements go through the generated accessors: a NaN of `f16` or `bf16` stays a NaN, but not which one, and a `bool`
/// becomes 0 or 1. `Context::copy_block` copies bytes.
///
/// # Errors
/// `ShapeMismatch` for blocks of other shapes than their nodes', or of different extents; `DTypeMismatch` for nodes of
/// different dtypes; `LimitExceeded` for nodes of more elements than a kernel can count; `KernelInterface` for blocks that
/// overlap, which no kernel can copy as if at once.
pub fn strided_copy(src: &TensorNode, src_block: &Block, dst: &TensorNode, dst_block: &Block) -> Result<KernelSpec> {
    let dtype = src.dtype();
    if dst.dtype() != dtype {
        let message = format!(
            "a copy of a block of node {src} ({dtype}) to node {dst} ({}); use a cast, or make the dtypes the same",
            dst.dtype()
        );
        return Err(Error::new(ErrorKind::DTypeMismatch, message));
    }
    src_block.check_node(src)?;
    dst_block.check_node(dst)?;
    src_block.check_extents(dst_block)?;
    if let Some(node) = [src, dst].into_iter().find(|node| node.element_len() > u64::from(u32::MAX)) {
        let message = format!(
            "node {node} has {} elements, more than the 4294967295 that a kernel can count; split it",
            node.element_len()
        );
        return Err(Error::new(ErrorKind::LimitExceeded, message));
    }
    let (from, to) = (src_block.first(), dst_block.first());
    let moved = src_block.to_block(dst_block, 1);
    if src == dst && src_block.meets(dst_block) {
        return Err(overlap(src, dst));
    }
    check_apart((src, from, moved.src_reach()), (dst, to, moved.dst_reach()))?;

    let len = moved.len_bytes();
    let mut body = format!("if (i >= {len}u) {{ return; }} var rest = i; var a = {from}u; var b = {to}u;");
    let run = (moved.run_bytes, 1, 1);
    let axes = moved.axes.iter().rev().map(|axis| (axis.extent, axis.src, axis.dst));
    for (extent, src, dst) in std::iter::once(run).chain(axes).filter(|axis| axis.0 > 1) {
        let _ =
            write!(body, "\n  {{ let k = rest % {extent}u; rest /= {extent}u; a += k * {src}u; b += k * {dst}u; }}");
    }
    body.push_str("\n  store_y(b, load_x(a));");
    let spec = elementwise(format!("copy a block of {dtype}"), "", &body, len);
    Ok(spec.tensor("x", src, Access::Read).tensor("y", dst, Access::Write).twin(move |args| {
        let (x, mut y) = (args.bytes("x")?, args.bytes("y")?);
        let size = dtype.size_bytes() as usize;
        let element = |index: u64| index as usize * size..(index as usize + 1) * size;
        moved.each_run(&mut |src, dst| {
            for k in 0..moved.run_bytes {
                let value = load(dtype, &x[element(from + src + k)]);
                store(dtype, value, &mut y[element(to + dst + k)]);
            }
            Ok(())
        })?;
        args.set_bytes("y", &y)
    }))
}
