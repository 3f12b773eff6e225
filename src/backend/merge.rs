//! Copies from one context to another, and the merge buffer: the single-tenant landing place, pool 0, of a node that is to
//! be merged into another context's.

use crate::backend::nodes::InOut;
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::device::merge::merge_mismatch;
use crate::driver::Driver;
use crate::error::Result;
use crate::node::TensorNode;
use crate::slab::loc::{BufferLoc, PoolId};

/// Where the merge buffer is.
pub(crate) const MERGE_LOC: BufferLoc = BufferLoc { pool_id: PoolId::MERGE, offset: 0 };

/// Where a node goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// To the place of the node in the destination.
    Node,
    /// Into the merge buffer of the destination's device.
    MergeBuffer,
}

impl<D: Driver> Context<D> {
    /// A routine that copies `node` from the context `src` to this one, or into the merge buffer of the device; `None`
    /// where there is nothing to move. Into the merge buffer, the routine's context carries the node, and a code that
    /// merges it (see [`crate::KernelSpec::merge_tensor`]) links there.
    ///
    /// From another device the bytes come through the host: a run takes them as they are there at that point, returns at
    /// once, and what is recorded here later waits for them. Both devices keep the node aside meanwhile; a node of hundreds
    /// of MiB is better moved with [`Context::copy_from`]. If the other device fails, everything here from the run on does.
    ///
    /// # Errors
    /// `UnknownNode` where a context does not have the node; `OutOfMemory`, `Disposed`, `DeviceLost`.
    pub fn device_to_device(&self, node: &TensorNode, into: Landing, src: &Context<D>) -> Result<Option<Routine<D>>> {
        self.copying(node, into, src).map_err(|error| error.context(format_args!("copy {node}")))
    }

    fn copying(&self, node: &TensorNode, into: Landing, src: &Context<D>) -> Result<Option<Routine<D>>> {
        self.check_live()?;
        let from = src.require(node)?;
        let len_bytes = node.size_bytes();
        let (to, merged, outputs) = match into {
            Landing::Node => {
                if self.require(node)? == from && self.device() == src.device() {
                    return Ok(None);
                }
                (self.require_writable(node)?, None, vec![node.clone()])
            }
            Landing::MergeBuffer => {
                self.device().reserve_merge_buffer(len_bytes)?;
                (MERGE_LOC, Some(node.clone()), Vec::new())
            }
        };
        let name = format!("copy {}", node.label());
        // What it reads is another line's, unless both contexts have the node at one place.
        let is_shared = self.loc(node) == Some(from) && self.device() == src.device();
        let inputs = if is_shared { vec![node.clone()] } else { Vec::new() };
        let (place, lineage) = Place::between(self.lineage(), &name, InOut::new(inputs, outputs));
        let place = place.behind_writers(src.lineage(), node);
        let mut builder = self.child().lineage(lineage);
        if merged.is_some() {
            builder = builder.merge_buffer_node(merged.clone());
        }
        let work = Work::Copy { source: src.clone(), from, to, len_bytes, merged };
        Ok(Some(Routine::new(builder.build(), work, place)))
    }

    /// A child that has `node` too, with the bytes that it has in the context `src` of the same device.
    ///
    /// # Errors
    /// `DuplicateNode` where this context has it; else as [`Context::device_to_device`].
    pub fn init_from_device(&self, node: &TensorNode, src: &Context<D>) -> Result<Context<D>> {
        src.require(node)?;
        let child = self.extend(&[node], false)?;
        if let Some(copy) = child.device_to_device(node, Landing::Node, src)? {
            copy.run()?;
        }
        Ok(child)
    }
}

/// Refuses a code that merges another node than the one that the context's merge buffer will hold.
pub(crate) fn check_merge_node<D: Driver>(context: &Context<D>, node: &TensorNode) -> Result<()> {
    match context.merge_buffer_node() {
        Some(held) if held == node => Ok(()),
        held => Err(merge_mismatch(context.device().name(), node, held)),
    }
}
