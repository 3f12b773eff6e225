//! Views: a node that is a part of another. No bytes are copied; the pool lives as long as somebody can see it.

use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;

impl<D: Driver> Context<D> {
    /// A child that has these views too (see [`TensorNode::view`]), each at its place in the node that it is a view of.
    /// The pools behind them are freed when neither their own context nor this child needs them.
    ///
    /// # Errors
    /// `UnknownNode` for a base that is not in the context; `ShapeMismatch` for a node that is no view, or reaches past
    /// its base; `DuplicateNode`, `Disposed`.
    pub fn alias(&self, views: &[&TensorNode]) -> Result<Context<D>> {
        self.check_live()?;
        let mut buffers = self.ctx_buffers().clone();
        let mut held = Vec::with_capacity(views.len());
        for view in views {
            let Some((base, start)) = view.base() else {
                let message = format!("node {view} is no view; make it with TensorNode::view, or upload it");
                return Err(Error::new(ErrorKind::ShapeMismatch, message));
            };
            if let Some((_, loc)) = buffers.get(&view.id()) {
                let message = format!("node {view} is in the context already, at {loc}");
                return Err(Error::new(ErrorKind::DuplicateNode, message));
            }
            let base_loc = match buffers.get(&base.id()) {
                Some((_, loc)) => *loc,
                None => self.require(base)?,
            };
            if start.checked_add(view.element_len()).is_none_or(|end| end > base.element_len()) {
                let message = format!(
                    "view {view} has elements {start} to {} of node {base}, which has {}; shorten the view",
                    start.saturating_add(view.element_len()),
                    base.element_len()
                );
                return Err(Error::new(ErrorKind::ShapeMismatch, message));
            }
            held.push(base_loc.pool_id);
            buffers.insert(view.id(), ((*view).clone(), base_loc.offset_by(start * view.dtype().size_bytes())));
        }
        let mut record = self.device().record();
        held.iter().for_each(|&pool_id| record.hold(pool_id));
        drop(record);
        Ok(self.child().holding(held).ctx_buffers(buffers).build())
    }
}
