//! Linking: code plus context gives a routine. Nodes that the code only writes, and that the context does not have,
//! are the delta: they are created in slabs of the routine's context, filled with zeros.

use crate::backend::compile::Code;
use crate::backend::join::join_all;
use crate::backend::merge::{MERGE_LOC, check_merge_node};
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::BufferLoc;
use crate::wgsl::spec::KernelTensor;

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
        let (place, lineage) = Place::behind(self, code, None);
        let child = self.extend_by(self.child().lineage(lineage), &plan.delta, true).map_err(named)?;
        let mut places = plan.places.iter();
        let created = |_: &KernelTensor| {
            let (segment, offset) = (*places.next()?)?;
            child.own_pool(segment).map(|pool_id| BufferLoc { pool_id, offset })
        };
        let linked = child.link_kernels(code, created).await.map_err(named)?;
        Ok(Routine::new(child, Work::Kernels { code: code.clone(), linked }, place))
    }

    /// Links the kernels of a code whose nodes are all in this context, but for those whose location `known` gives. It is
    /// asked for each tensor in order.
    pub(crate) async fn link_kernels(
        &self,
        code: &Code<D>,
        mut known: impl FnMut(&KernelTensor) -> Option<BufferLoc>,
    ) -> Result<Vec<D::Linked>> {
        self.check_live()?;
        let mut linking = Vec::with_capacity(code.kernel_count());
        for (spec, kernel) in code.kernels() {
            let locate = |tensor: &KernelTensor| match known(tensor) {
                _ if tensor.merged => Ok(MERGE_LOC),
                Some(loc) => Ok(loc),
                None => self.require(&tensor.node),
            };
            let locs = spec.tensors.iter().map(locate).collect::<Result<Vec<_>>>()?;
            linking.push(D::link(self.device().runner(), kernel, locs));
        }
        join_all(linking).await.into_iter().collect()
    }

    /// Refuses a code of another device.
    pub(crate) fn check_device(&self, code: &Code<D>) -> Result<()> {
        if code.device_id() == self.device().device_id() {
            return Ok(());
        }
        let message = format!("it was compiled for another device than {}; compile it there", self.device().name());
        Err(Error::new(ErrorKind::KernelInterface, message))
    }
}

/// Refuses a code that merges another node than the one that the context's merge buffer will hold.
pub(crate) fn check_merge_input<D: Driver>(context: &Context<D>, code: &Code<D>) -> Result<()> {
    code.merge_input().map_or(Ok(()), |node| check_merge_node(context, node))
}
