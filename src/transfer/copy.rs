//! Copies on the device, between nodes of one context.

use crate::context::Context;
use crate::driver::Driver;
use crate::error::Result;
use crate::event::Event;
use crate::node::TensorNode;
use crate::transfer::check_range;

impl<D: Driver> Context<D> {
    /// Copies `len_bytes` bytes from one node to another, or within one; overlapping ranges are copied as if at once.
    ///
    /// # Errors
    /// `UnknownNode`, `ShapeMismatch`, `Disposed`, `DeviceLost`.
    pub fn copy_bytes(
        &self,
        src: &TensorNode,
        src_start_bytes: u64,
        dst: &TensorNode,
        dst_start_bytes: u64,
        len_bytes: u64,
    ) -> Result<Event<D>> {
        let from = self.require(src)?;
        let to = self.require_writable(dst)?;
        check_range(src, src_start_bytes, len_bytes)?;
        check_range(dst, dst_start_bytes, len_bytes)?;
        let (from, to) = (from.offset_by(src_start_bytes), to.offset_by(dst_start_bytes));
        self.written(dst, D::copy(self.device().runner(), from, to, len_bytes))
    }
}
