//! Linking: code plus context gives a routine. Nodes that the code only writes, and that the context does not have,
//! are the delta: they are created in slabs of the routine's context, filled with zeros.

use crate::backend::compile::Code;
use crate::backend::join::join_all;
use crate::backend::merge::check_merge_node;
use crate::backend::nodes::KernelSlots;
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};

impl<D: Driver> Context<D> {
    /// Links a code into this context. The routine's context is a child of it, with the nodes that the code creates.
    ///
    /// A refusal leaves nothing behind.
    ///
    /// # Errors
    /// `UnknownNode` for a node that the code reads and the context does not have; `LimitExceeded` where the nodes, or
    /// their bindings, do not fit the device; `KernelInterface`, `OutOfMemory`, `Disposed`, `DeviceLost`.
    pub async fn link(&self, code: &Code<D>) -> Result<Routine<D>> {
        let named = |error: Error| error.context(format_args!("link \"{}\"", code.name()));
        self.check_live().and_then(|()| self.check_device(code)).map_err(named)?;
        check_merge_input(self, code).map_err(named)?;
        let plan = code.link_plan(self).map_err(named)?;
        // Dropping the child, on any error below or when this future is dropped, frees what it minted.
        let (place, child) = Place::behind(self, code, None).map_err(named)?;
        let child = self.extend_by(child, &plan.delta, true).map_err(named)?;
        let linked = child.link_kernels(code, &plan.kernels).await.map_err(named)?;
        Ok(Routine::new(child, Work::Kernels { code: code.clone(), linked }, place))
    }

    /// Links the kernels of a code whose nodes are where `kernels` says, with the delta in the slabs that this context
    /// minted.
    pub(crate) async fn link_kernels(&self, code: &Code<D>, kernels: &[KernelSlots]) -> Result<Vec<D::Linked>> {
        self.check_live()?;
        let mut linking = Vec::with_capacity(kernels.len());
        for ((_, kernel), slots) in code.kernels().zip(kernels) {
            linking.push(D::link(self.device().runner(), kernel, slots.placed(self)?));
        }
        join_all(linking).await.into_iter().collect()
    }

    /// Refuses a code of another device.
    pub(crate) fn check_device(&self, code: &Code<D>) -> Result<()> {
        if code.device_id() == self.device().device_id() {
            return Ok(());
        }
        let message = format_args!("it was compiled for another device than {}; compile it there", self.device().name());
        Err(Error::say(ErrorKind::KernelInterface, message))
    }
}

/// Refuses a code that merges another node than the one that the context's merge buffer will hold.
pub(crate) fn check_merge_input<D: Driver>(context: &Context<D>, code: &Code<D>) -> Result<()> {
    code.merge_input().map_or(Ok(()), |node| check_merge_node(context, node))
}
