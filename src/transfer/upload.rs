//! Uploads: host → slab. The `init_` forms need the node to be absent and give the extended context.

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::host_array::Element;
use crate::node::{MemoryMode, TensorNode};
use crate::transfer::{check_dtype, check_len, check_range};

impl<D: Driver> Context<D> {
    /// A child that has `node` too, with these elements: as many as the node's shape says, row-major.
    ///
    /// # Errors
    /// `DuplicateNode`, `DTypeMismatch`, `ShapeMismatch`, `LimitExceeded`, `OutOfMemory`, `Disposed`, `DeviceLost`.
    pub fn init_from_host<T: Element>(&self, node: &TensorNode, data: &[T]) -> Result<Context<D>> {
        check_dtype::<T>(node)?;
        self.init_bytes(&[(node, Bytes::Slice(bytemuck::cast_slice(data)))])
    }

    /// A child that has all these nodes too, in one slab where they fit, each with its bytes (little-endian elements,
    /// row-major). A constant is uploaded once to a device: later contexts share it, whatever bytes they give.
    ///
    /// # Errors
    /// As [`Context::init_from_host`]. A refusal changes nothing.
    pub fn init_from_host_many(&self, nodes: &[(&TensorNode, &[u8])]) -> Result<Context<D>> {
        let nodes: Vec<_> = nodes.iter().map(|&(node, bytes)| (node, Bytes::Slice(bytes))).collect();
        self.init_bytes(&nodes)
    }

    /// As [`Context::init_from_host_many`], from whatever the platform holds bytes in.
    pub(crate) fn init_bytes(&self, nodes: &[(&TensorNode, Bytes<'_>)]) -> Result<Context<D>> {
        for (node, bytes) in nodes {
            check_len(node, bytes.len_bytes())?;
        }
        let mut names = Vec::new();
        for (node, _) in nodes {
            names.push(*node);
        }
        let child = self.extend(&names, false)?;
        for (node, bytes) in nodes {
            // A constant that the device has already keeps its bytes.
            if !child.is_shared(node) {
                child.write_bytes(node, 0, *bytes)?;
                child.device().share(node, child.require(node)?);
            }
        }
        Ok(child)
    }

    /// A child that has these nodes too, in one slab where they fit, filled with zeros.
    ///
    /// # Errors
    /// `DuplicateNode`, `LimitExceeded`, `OutOfMemory`, `Disposed`, `DeviceLost`.
    pub fn init_zeros(&self, nodes: &[&TensorNode]) -> Result<Context<D>> {
        self.extend(nodes, true)
    }

    /// Writes the elements of a node that is in the context. Work recorded before does not see them.
    ///
    /// # Errors
    /// `UnknownNode`, `DTypeMismatch`, `ShapeMismatch`, `Disposed`, `DeviceLost`.
    pub fn from_host<T: Element>(&self, node: &TensorNode, data: &[T]) -> Result<Event<D>> {
        check_dtype::<T>(node)?;
        let bytes: &[u8] = bytemuck::cast_slice(data);
        check_len(node, bytes.len() as u64)?;
        self.require_writable(node)?;
        self.write_bytes(node, 0, Bytes::Slice(bytes))
    }

    /// Writes some elements of a node, from the element `start` on; the others keep theirs, to the byte.
    ///
    /// # Errors
    /// As [`Context::from_host`].
    pub fn from_host_at<T: Element>(&self, node: &TensorNode, start: u64, data: &[T]) -> Result<Event<D>> {
        check_dtype::<T>(node)?;
        let start_bytes = start.saturating_mul(node.dtype().size_bytes());
        self.require_writable(node)?;
        self.write_bytes(node, start_bytes, Bytes::Slice(bytemuck::cast_slice(data)))
    }

    /// Zeroes some bytes of a node; the others keep theirs.
    ///
    /// # Errors
    /// `UnknownNode`, `ShapeMismatch`, `Disposed`, `DeviceLost`.
    pub fn zero(&self, node: &TensorNode, start_bytes: u64, len_bytes: u64) -> Result<Event<D>> {
        let loc = self.require_writable(node)?;
        check_range(node, start_bytes, len_bytes)?;
        let event = D::memset_zero(self.device().runner(), loc.offset_by(start_bytes), len_bytes);
        self.written(node, event)
    }

    pub(crate) fn write_bytes(&self, node: &TensorNode, start_bytes: u64, bytes: Bytes<'_>) -> Result<Event<D>> {
        let loc = self.require(node)?;
        check_range(node, start_bytes, bytes.len_bytes())?;
        let event = D::upload(self.device().runner(), loc.offset_by(start_bytes), bytes);
        self.written(node, event)
    }

    /// Whether a node is a constant of the device, which has its bytes.
    pub(crate) fn is_shared(&self, node: &TensorNode) -> bool {
        let shared = self.device().record().constant(node);
        shared.is_some() && shared == self.loc(node)
    }

    /// Where a node is that may be written after it was initialised.
    pub(crate) fn require_writable(&self, node: &TensorNode) -> Result<crate::slab::loc::BufferLoc> {
        let loc = self.require(node)?;
        if node.mode() == MemoryMode::Constant {
            let message = format_args!("node {node} is a constant, initialised once; make it OnDevice to write to it");
            return Err(Error::say(ErrorKind::Unsupported, message));
        }
        Ok(loc)
    }

    /// Notes the writer of a node.
    pub(crate) fn written(&self, node: &TensorNode, event: Result<D::Event>) -> Result<Event<D>> {
        let event = Event::new(event.map_err(|error| error.context(node))?);
        self.device().wrote([&node.root().id()], &event);
        Ok(event)
    }
}
