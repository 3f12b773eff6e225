//! Readbacks: slab → host. A readback is recorded at once, sees everything recorded before and nothing after, and
//! never gives bytes that failed work should have written.

use std::future::Future;

use crate::context::Context;
use crate::driver::{Driver, ReadbackBytes};
use crate::error::Result;
use crate::host_array::Element;
use crate::node::TensorNode;
use crate::transfer::{check_dtype, check_range};

impl<D: Driver> Context<D> {
    /// Reads a node. The readback is recorded when this is called; awaiting gives its elements, row-major.
    ///
    /// Readbacks that are recorded before the first of them is awaited share one transfer.
    ///
    /// # Errors
    /// `UnknownNode`, `DTypeMismatch`, `Disposed`, `DeviceLost`, `MapFailed`, or the failure of the work that should
    /// have written the node.
    pub fn to_host<T: Element>(&self, node: &TensorNode) -> impl Future<Output = Result<Vec<T>>> + use<D, T> {
        self.to_host_at(node, 0, node.element_len())
    }

    /// Reads `len` elements of a node, from the element `start` on.
    ///
    /// # Errors
    /// As [`Context::to_host`], and `ShapeMismatch` for a range that leaves the node.
    pub fn to_host_at<T: Element>(
        &self,
        node: &TensorNode,
        start: u64,
        len: u64,
    ) -> impl Future<Output = Result<Vec<T>>> + use<D, T> {
        let element = node.dtype().size_bytes();
        let range = (node, start.saturating_mul(element), len.saturating_mul(element));
        let staged = check_dtype::<T>(node).and_then(|()| self.stage(&[range]));
        async move {
            let arrived = staged?.await?;
            elements(&arrived)
        }
    }

    /// Reads many nodes in one transfer, as bytes (little-endian elements, row-major), in the order given.
    ///
    /// # Errors
    /// As [`Context::to_host`].
    pub fn to_host_many(&self, nodes: &[&TensorNode]) -> impl Future<Output = Result<Vec<Vec<u8>>>> + use<D> {
        let ranges: Vec<_> = nodes.iter().map(|node| (*node, 0, node.size_bytes())).collect();
        let staged = self.stage(&ranges);
        let count = nodes.len();
        async move {
            let arrived = staged?.await?;
            let mut parts = vec![Vec::new(); count];
            for (part, out) in parts.iter_mut().enumerate() {
                arrived.with_bytes(part, &mut |bytes| {
                    out.extend_from_slice(bytes);
                    Ok(())
                })?;
            }
            Ok(parts)
        }
    }

    /// Starts reading byte ranges of nodes.
    pub(crate) fn stage(&self, ranges: &[(&TensorNode, u64, u64)]) -> Result<D::Staged> {
        let mut resolved = Vec::with_capacity(ranges.len());
        for &(node, start_bytes, len_bytes) in ranges {
            let loc = self.require(node)?;
            check_range(node, start_bytes, len_bytes)?;
            resolved.push((loc.offset_by(start_bytes), len_bytes));
        }
        D::stage(self.device().runner(), &resolved).map_err(|error| error.context("readback"))
    }
}

/// The elements of the only part. Mapped memory is aligned for every element but after an odd start.
pub(super) fn elements<T: Element>(arrived: &impl ReadbackBytes) -> Result<Vec<T>> {
    let mut out = Vec::new();
    arrived.with_bytes(0, &mut |bytes| {
        out = bytemuck::try_cast_slice(bytes).map_or_else(|_| bytemuck::pod_collect_to_vec(bytes), <[T]>::to_vec);
        Ok(())
    })?;
    Ok(out)
}
