//! Compiling: context-free. Kernels with the same text for the same kinds of tensors share one pipeline.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::backend::join::Joined;
use crate::backend::nodes::{CodeNodes, LinkPlan};
#[cfg(feature = "notation")]
use crate::backend::tune::Tuning;
#[cfg(feature = "notation")]
use crate::backend::virtuals::Virtuals;
use crate::context::Context;
use crate::device::{Device, DeviceId};
use crate::driver::Driver;
use crate::driver::maybe_send::{MaybeSend, MaybeSync};
#[cfg(feature = "notation")]
use crate::driver::optimize_ctx::Virtual;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{TensorNode, joined};
#[cfg(feature = "notation")]
use crate::notation::spec::ProgramSpec;
#[cfg(feature = "notation")]
use crate::schedule::{self, Candidate, explain::tensors};
use crate::wgsl::check::check;
use crate::wgsl::spec::KernelSpec;

/// Compiled kernels that run one after the other, free of any context. Cheap to clone.
pub struct Code<D: Driver> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Driver> {
    parts: Parts,
    kernels: Vec<Arc<D::Kernel>>,
    device_id: DeviceId,
    nodes: CodeNodes,
}

/// What a code is made of.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) name: String,
    /// The names of the integers that each run gives, in order: those of every kernel.
    pub(crate) statics: Vec<String>,
    /// The kernels, which run one after the other.
    pub(crate) specs: Vec<Arc<KernelSpec>>,
    /// Nodes that linking may create although they are read first.
    pub(crate) created: Vec<TensorNode>,
    /// The nodes by their names.
    pub(crate) names: Vec<(String, TensorNode)>,
    /// What the statics must satisfy.
    pub(crate) admits: Option<Arc<dyn Admits>>,
    /// Virtual nodes that are read or left.
    #[cfg(feature = "notation")]
    pub(crate) virtuals: Virtuals,
    /// Whether its schedules are to be measured first.
    #[cfg(feature = "notation")]
    pub(crate) tuning: Tuning,
}

/// What the values of statics must satisfy.
pub(crate) trait Admits: MaybeSend + MaybeSync {
    /// Refuses values with which an access would leave its tensor.
    fn check(&self, values: &[i32]) -> Result<()>;
}

/// A raw kernel or a program: what a device compiles.
#[derive(Clone, Debug)]
pub enum Source {
    /// A raw kernel.
    Kernel(KernelSpec),
    /// A program in index notation.
    #[cfg(feature = "notation")]
    Program(ProgramSpec),
}

impl From<KernelSpec> for Source {
    fn from(spec: KernelSpec) -> Self {
        Source::Kernel(spec)
    }
}

#[cfg(feature = "notation")]
impl From<ProgramSpec> for Source {
    fn from(spec: ProgramSpec) -> Self {
        Source::Program(spec)
    }
}

impl<D: Driver> Device<D> {
    /// Compiles a program in index notation, or a raw kernel.
    ///
    /// # Errors
    /// `NotationSyntax` for a program that is not well formed, and `UnknownNode`, `DuplicateNode`, `ShapeMismatch`,
    /// `DTypeMismatch` or `NotationMeaning` for one that has no meaning, each with line, column and excerpt. For a raw kernel
    /// `KernelSyntax` with line, column and excerpt of the author's text; `KernelInterface` for declarations that do
    /// not fit the text; `PipelineRejected`; `Unsupported` on a driver that cannot execute WGSL. `LimitExceeded`,
    /// `DeviceLost`.
    pub async fn compile(&self, source: impl Into<Source>) -> Result<Code<D>> {
        self.compile_in(&D::OptimizeCtx::default(), source).await
    }

    /// Compiles a program that may read the virtual nodes that are known: those of the context that it is to be linked into
    /// ([`Context::optimize_ctx`]), or of a code that is to be linked before it ([`Code::optimize_ctx`]).
    ///
    /// # Errors
    /// As [`Device::compile`].
    pub async fn compile_in(&self, known: &D::OptimizeCtx, source: impl Into<Source>) -> Result<Code<D>> {
        let codes = self.compile_all(vec![self.parts(source.into(), known)]).await?;
        codes.into_iter().next().ok_or_else(|| Error::bug("a source was compiled to nothing"))
    }

    /// Compiles many programs and kernels concurrently, each distinct text once. The codes come in the order given.
    ///
    /// # Errors
    /// The first error in the order of the kernels, as [`Device::compile`] gives it.
    pub async fn compile_batch<S: Into<Source>>(&self, specs: Vec<S>) -> Result<Vec<Code<D>>> {
        self.compile_batch_in(&D::OptimizeCtx::default(), specs).await
    }

    /// Compiles many programs that may read the virtual nodes that are known: see [`Device::compile_in`]. What one of them
    /// leaves, the others do not know.
    ///
    /// # Errors
    /// As [`Device::compile_batch`].
    pub async fn compile_batch_in<S: Into<Source>>(
        &self,
        known: &D::OptimizeCtx,
        specs: Vec<S>,
    ) -> Result<Vec<Code<D>>> {
        let mut all = Vec::new();
        for spec in specs {
            all.push(self.parts(spec.into(), known));
        }
        self.compile_all(all).await
    }

    /// What a source is made of.
    fn parts(&self, source: Source, known: &D::OptimizeCtx) -> Result<Parts> {
        let _ = known;
        match source {
            Source::Kernel(spec) => {
                check(&spec, self.limits()).map_err(|error| compile_error(error, &spec.name))?;
                let mut names = Vec::new();
                for tensor in &spec.tensors {
                    names.push((tensor.name.clone(), tensor.node.clone()));
                }
                Ok(Parts {
                    name: spec.name.clone(),
                    statics: spec.statics.clone(),
                    created: Vec::new(),
                    names,
                    admits: None,
                    #[cfg(feature = "notation")]
                    virtuals: Virtuals::default(),
                    #[cfg(feature = "notation")]
                    tuning: Tuning::default(),
                    specs: vec![Arc::new(spec)],
                })
            }
            #[cfg(feature = "notation")]
            Source::Program(spec) => {
                self.program_parts(&spec, known.as_ref()).map_err(|error| compile_error(error, &spec.name))
            }
        }
    }

    /// Compiles the kernels of all parts concurrently, those that are to be tuned in the schedules that are fastest.
    async fn compile_all(&self, all: Vec<Result<Parts>>) -> Result<Vec<Code<D>>> {
        #[cfg(feature = "notation")]
        let all = self.tune_all(all).await?;
        self.compile_made(all).await
    }

    /// Compiles the kernels of all parts concurrently, as they are.
    pub(crate) async fn compile_made(&self, all: Vec<Result<Parts>>) -> Result<Vec<Code<D>>> {
        let mut compiling = Joined::new();
        // Nobody gets the codes behind one that is refused.
        for parts in all.iter().map_while(|parts| parts.as_ref().ok()) {
            for spec in &parts.specs {
                compiling.add(D::compile(self.runner(), self.dev(), spec.clone()));
            }
        }
        // Those with one text wait for the first of them, and share what it makes.
        let mut compiled = compiling.outputs().await.into_iter();
        let mut codes = Vec::new();
        for parts in all {
            let parts = parts?;
            let mut kernels = Vec::new();
            for kernel in compiled.by_ref().take(parts.specs.len()) {
                kernels.push(Arc::new(kernel.map_err(|error| compile_error(error, &parts.name))?));
            }
            #[cfg_attr(not(feature = "notation"), allow(unused_mut))]
            let mut nodes = CodeNodes::new(&parts.specs, &parts.created);
            #[cfg(feature = "notation")]
            nodes.look_at(parts.virtuals.reads());
            codes.push(Code { inner: Arc::new(Inner { parts, kernels, device_id: self.device_id(), nodes }) });
        }
        Ok(codes)
    }
}

pub(super) fn compile_error(error: Error, name: &str) -> Error {
    error.context(format_args!("compile \"{name}\""))
}

impl<D: Driver> Code<D> {
    /// The name that it was compiled under.
    pub fn name(&self) -> &str {
        &self.inner.parts.name
    }

    /// The kernels, in the order in which they run.
    pub fn specs(&self) -> impl Iterator<Item = &KernelSpec> {
        self.inner.parts.specs.iter().map(|spec| &**spec)
    }

    /// What became of each tensor, and what each kernel does: a line for each. How the tensors are bound is known of a
    /// routine, [`Routine::explain`].
    ///
    /// [`Routine::explain`]: crate::backend::routine::Routine::explain
    pub fn explain(&self) -> String {
        let count = self.kernel_count();
        let mut text = format!("\"{}\": {count} kernel{}", self.name(), if count == 1 { "" } else { "s" });
        #[cfg(feature = "notation")]
        if let Some(nest) = self.specs().find_map(|spec| spec.nest.as_ref()) {
            text.push_str(&tensors(&nest.loops));
        }
        for spec in self.specs() {
            let [x, y, z] = spec.grid;
            let _ = write!(text, "\nkernel \"{}\": {x} x {y} x {z} workgroups", spec.name);
            #[cfg(feature = "notation")]
            if let Some(of) = &spec.nest
                && let Some(nest) = of.loops.nests.get(of.nest)
            {
                text.push_str("; ");
                text.push_str(&schedule::explain::nest(&of.loops, nest, &of.candidates, of.chosen));
            }
        }
        #[cfg(feature = "notation")]
        text.push_str(self.inner.parts.tuning.notes());
        text
    }

    /// The schedules that there are for each kernel of a program, the ones with the least estimates first, by the kernels'
    /// names; those of raw kernels have none.
    #[cfg(feature = "notation")]
    pub fn candidates(&self) -> impl Iterator<Item = (&str, &[Candidate])> {
        self.specs().map(|spec| (spec.name.as_str(), spec.candidates()))
    }

    /// What it is made of.
    #[cfg(feature = "notation")]
    pub(crate) fn parts(&self) -> &Parts {
        &self.inner.parts
    }

    /// The names of the integers that each run gives, in order.
    pub fn statics(&self) -> &[String] {
        &self.inner.parts.statics
    }

    /// Refuses values of the statics with which an access would leave its tensor.
    pub(crate) fn check_statics(&self, values: &[i32]) -> Result<()> {
        self.inner.parts.admits.as_ref().map_or(Ok(()), |admits| admits.check(values))
    }

    /// The virtual nodes that were known, and those that this code leaves, for codes that are linked behind it.
    #[cfg(not(feature = "notation"))]
    pub fn optimize_ctx(&self) -> D::OptimizeCtx {
        D::OptimizeCtx::default()
    }

    /// The virtual nodes that were known, and those that this code leaves, for codes that are linked behind it.
    #[cfg(feature = "notation")]
    pub fn optimize_ctx(&self) -> D::OptimizeCtx {
        let Virtuals { known, leaves, .. } = self.virtuals();
        let mut left = Vec::new();
        for (node, how) in leaves {
            left.push(Virtual::new(node.clone(), how.clone(), ""));
        }
        known.with(&left).into()
    }

    #[cfg(feature = "notation")]
    pub(crate) fn virtuals(&self) -> &Virtuals {
        &self.inner.parts.virtuals
    }

    /// The node behind a name of the program, or of a tensor of the kernel.
    ///
    /// # Errors
    /// `UnknownNode`, naming the tensors that there are.
    pub fn node(&self, name: &str) -> Result<&TensorNode> {
        let names = &self.inner.parts.names;
        names.iter().find(|(known, _)| known == name).map(|(_, node)| node).ok_or_else(|| {
            let names = joined(names.iter().map(|(name, _)| name), ", ");
            let message = format_args!("code \"{}\" has no tensor \"{name}\"; it has {}", self.name(), names);
            Error::say(ErrorKind::UnknownNode, message)
        })
    }

    /// The nodes that a context has or links create, by their names in the program or of the kernel's tensors.
    pub fn named_nodes(&self) -> impl Iterator<Item = (&str, &TensorNode)> {
        self.inner.parts.names.iter().map(|(name, node)| (name.as_str(), node))
    }

    /// The nodes that it looks at, its own temporaries included, the merge buffer's aside.
    pub fn inputs(&self) -> &[TensorNode] {
        &self.nodes().in_out.inputs
    }

    /// The nodes that it may change, its own temporaries included.
    pub fn outputs(&self) -> &[TensorNode] {
        &self.nodes().in_out.outputs
    }

    /// The node that is read from the merge buffer.
    pub(crate) fn merge_input(&self) -> Option<&TensorNode> {
        self.specs().find_map(KernelSpec::merge_input)
    }

    /// The kernels, in the order in which they run.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = (&KernelSpec, &Arc<D::Kernel>)> {
        self.specs().zip(&self.inner.kernels)
    }

    pub(crate) fn kernel_count(&self) -> usize {
        self.inner.parts.specs.len()
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
        let planned = self.nodes().link_plan(&self.inner.parts.specs, context.ctx_buffers(), device.limits().plan());
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
        write!(f, "Code({:?}, {:?})", self.name(), self.inner.kernels)
    }
}
