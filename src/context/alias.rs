//! Views: a node that is a part of another. No bytes are copied; the pool lives as long as somebody can see it.

use std::sync::Arc;

use crate::context::Context;
use crate::context::ctx_buffers::Layer;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
use crate::slab::layout::{Layout, Resident};

impl<D: Driver> Context<D> {
    /// A child that has these views too (see [`TensorNode::view`]), each at its place in the node that it is a view of.
    /// The pools behind them are freed when neither their own context nor this child needs them.
    ///
    /// # Errors
    /// `UnknownNode` for a base that is not in the context; `ShapeMismatch` for a node that is no view, or reaches past
    /// its base; `DuplicateNode`, `Disposed`.
    pub fn alias(&self, views: &[&TensorNode]) -> Result<Context<D>> {
        self.check_live()?;
        let mut layout = Layout::with_capacity(views.len());
        let mut held = Vec::with_capacity(views.len());
        for &view in views {
            let Some((base, start)) = view.base() else {
                let message = format_args!("node {view} is no view; make it with TensorNode::view, or upload it");
                return Err(Error::say(ErrorKind::ShapeMismatch, message));
            };
            if let Some(loc) = self.loc(view) {
                let message = format_args!("node {view} is in the context already, at {loc}");
                return Err(Error::say(ErrorKind::DuplicateNode, message));
            }
            // A view of a view may come right behind it.
            let (pool_id, offset) = match layout.get(base.id()) {
                Some(Resident { segment, offset, .. }) => (held[*segment as usize], *offset),
                None => self.require(base).map(|loc| (loc.pool_id, loc.offset))?,
            };
            if start.checked_add(view.element_len()).is_none_or(|end| end > base.element_len()) {
                let message = format_args!(
                    "view {view} has elements {start} to {} of node {base}, which has {}; shorten the view",
                    start.saturating_add(view.element_len()),
                    base.element_len()
                );
                return Err(Error::say(ErrorKind::ShapeMismatch, message));
            }
            let offset = offset + start * view.dtype().size_bytes();
            if !layout.insert(Resident { node: view.clone(), segment: held.len() as u32, offset }) {
                return Err(Error::say(
                    ErrorKind::DuplicateNode,
                    format_args!("node {view} is named twice; name it once"),
                ));
            }
            held.push(pool_id);
        }
        let mut buffers = self.ctx_buffers().clone();
        buffers.push(Layer::new(Arc::new(layout), held.clone()));
        let mut record = self.device().record();
        held.iter().for_each(|&pool_id| record.hold(pool_id));
        drop(record);
        Ok(self.child().holding(held).ctx_buffers(buffers).build())
    }
}
