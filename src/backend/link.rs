//! Linking: code plus context gives a routine. Nodes that the code only writes, and that the context does not have,
//! are the delta: they are created in slabs of the routine's context, filled with zeros.

use crate::backend::compile::Code;
use crate::backend::routine::{Place, Routine};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
use crate::wgsl::spec::Access;

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
        self.check_live().map_err(named)?;
        if code.device_id() != self.device().device_id() {
            let message = format!("it was compiled for another device than {}; compile it there", self.device().name());
            return Err(named(Error::new(ErrorKind::KernelInterface, message)));
        }
        let delta = self.delta_of(code).map_err(named)?;
        // Dropping the child, on any error below or when this future is dropped, frees what it minted.
        let (place, lineage) = Place::behind(self, code);
        let child = self.extend_as(self.child().lineage(lineage), &delta, true).map_err(named)?;
        let tensors = &code.spec().tensors;
        let locs =
            tensors.iter().map(|tensor| child.require(&tensor.node)).collect::<Result<Vec<_>>>().map_err(named)?;
        let linked = D::link(self.device().runner(), code.kernel(), locs).await.map_err(named)?;
        Ok(Routine::new(child, code.clone(), linked, place))
    }

    /// The nodes that linking must create, each once, in the order of the declarations.
    fn delta_of<'a>(&self, code: &'a Code<D>) -> Result<Vec<&'a TensorNode>> {
        let mut delta: Vec<&TensorNode> = Vec::new();
        for tensor in &code.spec().tensors {
            if self.loc(&tensor.node).is_some() || delta.contains(&&tensor.node) {
                continue;
            }
            if tensor.access != Access::Write {
                let message = format!(
                    "node {} is not in the context, but tensor \"{}\" is declared {}; upload it, or link first the \
                     routine that creates it",
                    tensor.node, tensor.name, tensor.access
                );
                return Err(Error::new(ErrorKind::UnknownNode, message));
            }
            delta.push(&tensor.node);
        }
        Ok(delta)
    }
}
