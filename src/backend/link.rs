//! Linking: code plus context gives a routine. Nodes that the code only writes, and that the context does not have,
//! are the delta: they are created in slabs of the routine's context, filled with zeros.

use crate::backend::compile::Code;
use crate::backend::merge::{MERGE_LOC, check_merge_node};
use crate::backend::routine::{Place, Routine, Work};
use crate::context::{Context, CtxBuffers};
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
use crate::wgsl::spec::{Access, KernelSpec, KernelTensor};

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
        let mut delta = Vec::new();
        add_delta(self, code, &mut delta).map_err(named)?;
        // Dropping the child, on any error below or when this future is dropped, frees what it minted.
        let (place, lineage) = Place::behind(self, code);
        let child = self.extend_as(self.child().lineage(lineage), &delta, true).map_err(named)?;
        let linked = child.link_kernel(code).await.map_err(named)?;
        Ok(Routine::new(child, Work::Kernel { code: code.clone(), linked }, place))
    }

    /// Links a kernel whose nodes are all in this context.
    pub(crate) async fn link_kernel(&self, code: &Code<D>) -> Result<D::Linked> {
        let tensors = &code.spec().tensors;
        let locate = |tensor: &KernelTensor| if tensor.merged { Ok(MERGE_LOC) } else { self.require(&tensor.node) };
        let locs = tensors.iter().map(locate).collect::<Result<Vec<_>>>()?;
        D::link(self.device().runner(), code.kernel(), locs).await
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

/// Adds the nodes that linking a code must create to those that are to be created already, in the order of the
/// declarations.
pub(crate) fn add_delta<'a, D: Driver>(
    context: &Context<D>,
    code: &'a Code<D>,
    delta: &mut Vec<&'a TensorNode>,
) -> Result<()> {
    if let Some(node) = code.spec().merge_input() {
        check_merge_node(context, node)?;
    }
    add_missing(context.ctx_buffers(), code.spec(), delta)
}

fn add_missing<'a>(buffers: &CtxBuffers, spec: &'a KernelSpec, delta: &mut Vec<&'a TensorNode>) -> Result<()> {
    for tensor in spec.tensors.iter().filter(|tensor| !tensor.merged) {
        if buffers.contains_key(&tensor.node.id()) || delta.contains(&&tensor.node) {
            continue;
        }
        if tensor.access != Access::Write {
            let message = format!(
                "node {} is not in the context, but tensor \"{}\" is declared {}; upload it, or link first the routine \
                 that creates it",
                tensor.node, tensor.name, tensor.access
            );
            return Err(Error::new(ErrorKind::UnknownNode, message));
        }
        delta.push(&tensor.node);
    }
    Ok(())
}
