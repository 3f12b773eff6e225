//! Compiling: context-free. Codes with the same text for the same kinds of tensors share one pipeline.

use std::fmt;
use std::sync::Arc;

use crate::backend::nodes::{CodeNodes, LinkPlan};
use crate::context::Context;
use crate::device::{Device, DeviceId};
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
use crate::wgsl::check::check;
use crate::wgsl::spec::KernelSpec;

/// A compiled kernel, free of any context. Cheap to clone.
pub struct Code<D: Driver> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Driver> {
    spec: Arc<KernelSpec>,
    kernel: Arc<D::Kernel>,
    device_id: DeviceId,
    nodes: CodeNodes,
}

impl<D: Driver> Device<D> {
    /// Compiles a raw kernel.
    ///
    /// # Errors
    /// `KernelSyntax` with line, column and excerpt of the author's text; `KernelInterface` for declarations that do
    /// not fit the text; `LimitExceeded`; `PipelineRejected`; `Unsupported` on a driver that cannot execute WGSL;
    /// `DeviceLost`.
    pub async fn compile(&self, spec: KernelSpec) -> Result<Code<D>> {
        let named = |error: Error| error.context(format_args!("compile \"{}\"", spec.name));
        check(&spec, self.limits()).map_err(named)?;
        let spec = Arc::new(spec.clone());
        let kernel = D::compile(self.runner(), self.dev(), spec.clone()).await.map_err(named)?;
        let kernel = Arc::new(kernel);
        let nodes = CodeNodes::new(&spec);
        let inner = Arc::new(Inner { spec, kernel, device_id: self.device_id(), nodes });
        Ok(Code { inner })
    }
}

impl<D: Driver> Code<D> {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.inner.spec.name
    }

    /// What was compiled.
    pub fn spec(&self) -> &KernelSpec {
        &self.inner.spec
    }

    /// The node behind a tensor's name.
    ///
    /// # Errors
    /// `UnknownNode`, naming the tensors that there are.
    pub fn node(&self, name: &str) -> Result<&TensorNode> {
        let tensors = &self.inner.spec.tensors;
        tensors.iter().find(|tensor| tensor.name == name).map(|tensor| &tensor.node).ok_or_else(|| {
            let names: Vec<_> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            let message = format!("code \"{}\" has no tensor \"{name}\"; it has {}", self.name(), names.join(", "));
            Error::new(ErrorKind::UnknownNode, message)
        })
    }

    pub(crate) fn kernel(&self) -> &Arc<D::Kernel> {
        &self.inner.kernel
    }

    pub(crate) fn device_id(&self) -> DeviceId {
        self.inner.device_id
    }

    pub(crate) fn nodes(&self) -> &CodeNodes {
        &self.inner.nodes
    }

    /// What linking this code into that context creates.
    pub(crate) fn link_plan(&self, context: &Context<D>) -> Result<Arc<LinkPlan>> {
        let device = context.device();
        let planned = self.nodes().link_plan(self.spec(), context.ctx_buffers(), device.limits().plan());
        planned.map_err(
            |error| if error.kind() == ErrorKind::LimitExceeded { error.context(device.name()) } else { error },
        )
    }
}

impl<D: Driver> Clone for Code<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: Driver> fmt::Debug for Code<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({:?}, {:?})", self.name(), self.inner.kernel)
    }
}
