//! Blocks: rectangular, stepped parts of nodes, moved to and from the host and on the device. Exact bytes: whatever lies
//! between the elements of a block keeps its own.

use std::future::Future;

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::host_array::Element;
use crate::node::TensorNode;
use crate::slab::block::Block;
use crate::transfer::{check_dtype, readback};

impl<D: Driver> Context<D> {
    /// Writes the elements of a block of a node, in row-major order of the block; the others keep theirs. Work recorded
    /// before does not see them.
    ///
    /// A block whose elements lie together, or in a few long runs, is written in place; any other is uploaded densely
    /// into a temporary range and spread on the device.
    ///
    /// # Errors
    /// `UnknownNode`, `DTypeMismatch`, `ShapeMismatch`, `OutOfMemory` for the temporary range, `Disposed`, `DeviceLost`.
    pub fn from_host_block<T: Element>(&self, node: &TensorNode, block: &Block, data: &[T]) -> Result<Event<D>> {
        check_dtype::<T>(node)?;
        self.write_block(node, block, Bytes::Slice(bytemuck::cast_slice(data)))
    }

    /// Reads the elements of a block of a node, in row-major order of the block. The readback is recorded when this is
    /// called.
    ///
    /// # Errors
    /// As [`Context::to_host`], `ShapeMismatch` for a block of another shape, and `OutOfMemory` for the temporary range
    /// in which a block is gathered whose elements do not lie together.
    pub fn to_host_block<T: Element>(
        &self,
        node: &TensorNode,
        block: &Block,
    ) -> impl Future<Output = Result<Vec<T>>> + use<D, T> {
        let staged = check_dtype::<T>(node).and_then(|()| self.stage_block(node, block));
        async move {
            let arrived = staged?.await?;
            readback::elements(&arrived)
        }
    }

    /// Copies a block of one node to a block of another, or of the same; blocks that overlap are copied as if at once.
    /// The blocks have the same extents, but may have steps of their own.
    ///
    /// # Errors
    /// `UnknownNode`, `DTypeMismatch`, `ShapeMismatch`, `OutOfMemory` for the temporary range through which blocks go
    /// that may overlap, `Disposed`, `DeviceLost`.
    pub fn copy_block(
        &self,
        src: &TensorNode,
        src_block: &Block,
        dst: &TensorNode,
        dst_block: &Block,
    ) -> Result<Event<D>> {
        let from = self.require(src)?;
        let to = self.require_writable(dst)?;
        if src.dtype() != dst.dtype() {
            let message = format_args!(
                "a block of node {src} is {}, but node {dst} is {}; run a cast kernel, or make the nodes the same dtype",
                src.dtype(),
                dst.dtype()
            );
            return Err(Error::say(ErrorKind::DTypeMismatch, message));
        }
        src_block.check_node(src)?;
        dst_block.check_node(dst)?;
        src_block.check_extents(dst_block)?;
        let element = src.dtype().size_bytes();
        let (from, to) = (from.offset_by(src_block.first() * element), to.offset_by(dst_block.first() * element));
        let moved = src_block.to_block(dst_block, element);
        self.written(dst, D::copy_strided(self.device().runner(), from, to, &moved))
    }

    /// Writes the bytes of a block.
    pub(crate) fn write_block(&self, node: &TensorNode, block: &Block, bytes: Bytes<'_>) -> Result<Event<D>> {
        let loc = self.require_writable(node)?;
        block.check_node(node)?;
        let element = node.dtype().size_bytes();
        if bytes.len_bytes() != block.element_len() * element {
            let message = format_args!(
                "the block {block} of node {node} has {} elements ({} bytes), but the array has {} ({} bytes)",
                block.element_len(),
                block.element_len() * element,
                bytes.len_bytes() / element,
                bytes.len_bytes()
            );
            return Err(Error::say(ErrorKind::ShapeMismatch, message));
        }
        let loc = loc.offset_by(block.first() * element);
        self.written(node, D::upload_strided(self.device().runner(), loc, &block.scatter(element), bytes))
    }

    /// Starts reading a block, as one part.
    pub(crate) fn stage_block(&self, node: &TensorNode, block: &Block) -> Result<D::Staged> {
        let loc = self.require(node)?;
        block.check_node(node)?;
        let element = node.dtype().size_bytes();
        let loc = loc.offset_by(block.first() * element);
        let staged = D::stage_strided(self.device().runner(), loc, &block.gather(element));
        staged.map_err(|error| error.context(node).context("readback"))
    }
}
