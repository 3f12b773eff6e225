//! Tuning: the schedules of a kernel, measured on the device with the shapes that it has.
//!
//! What was measured is kept by a key of all that it depends on. Natively compiling measures what is not known. In a page the
//! npm package does, by the same rules, and keeps it, too: it can end measuring at any moment, and its code is smaller. It asks
//! what there is to choose from, compiles kernels alone to measure them, and says what it chose.

#[cfg(not(target_arch = "wasm32"))]
mod measure;

#[cfg(target_arch = "wasm32")]
use std::fmt::Write;
use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use measure::Tuning;

use crate::backend::compile::Parts;
use crate::backend::virtuals::Virtuals;
#[cfg(target_arch = "wasm32")]
use crate::device::Device;
#[cfg(target_arch = "wasm32")]
use crate::driver::{Driver, OptimizeCtx};
#[cfg(target_arch = "wasm32")]
use crate::error::Result;
#[cfg(target_arch = "wasm32")]
use crate::node::List;
use crate::node::TensorNode;
#[cfg(target_arch = "wasm32")]
use crate::notation::spec::ProgramSpec;
#[cfg(target_arch = "wasm32")]
use crate::schedule::VERSION;
use crate::wgsl::spec::{KernelSpec, KernelTensor};

/// A page tunes.
#[cfg(target_arch = "wasm32")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {}

#[cfg(target_arch = "wasm32")]
impl Tuning {
    /// What a page says itself.
    pub(super) fn notes(&self) -> &'static str {
        ""
    }
}

#[cfg(target_arch = "wasm32")]
impl<D: Driver> Device<D> {
    /// The kernels that a page asks for: of a program, or one of them alone.
    pub(super) fn tunable(&self, spec: &ProgramSpec, make: &dyn Fn(usize) -> Result<Parts>) -> Result<Parts> {
        let parts = make(spec.splitting)?;
        let Some(kernel) = spec.trial.and_then(|trial| parts.specs.get(trial)) else { return Ok(parts) };
        let mut record = self.record();
        let nodes = &mut record.tuned;
        // All schedules share the nodes of the first.
        if spec.chosen.iter().all(|at| *at == 0) || nodes.len() != kernel.tensors.len() {
            *nodes = scratch(kernel);
        }
        Ok(alone(kernel, nodes.clone()))
    }

    /// What is to be chosen for a program, kernel by kernel: a line for each schedule, and, behind a zero, all that a
    /// measurement depends on beside the adapter.
    pub(crate) fn choices(&self, spec: &ProgramSpec, known: &OptimizeCtx) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for kernel in self.program_parts(spec, known)?.specs {
            let mut text = String::new();
            for candidate in kernel.candidates() {
                let _ = writeln!(text, "{}", candidate.schedule);
            }
            let _ = write!(text, "\0{VERSION}{}", kernel.text);
            for KernelTensor { node, .. } in &kernel.tensors {
                let _ = write!(text, "{}{}", node.dtype(), List(node.shape()));
            }
            all.push(text);
        }
        Ok(all)
    }

    /// A page measures.
    pub(super) async fn tune_all(&self, all: Vec<Result<Parts>>) -> Result<Vec<Result<Parts>>> {
        Ok(all)
    }
}

/// A node for each tensor of a kernel, which no context has.
fn scratch(kernel: &KernelSpec) -> Vec<TensorNode> {
    let mut nodes = Vec::new();
    for KernelTensor { node, .. } in &kernel.tensors {
        nodes.push(TensorNode::new("scratch", node.dtype(), node.shape()));
    }
    nodes
}

/// A kernel on such nodes, which linking creates.
fn alone(kernel: &KernelSpec, nodes: Vec<TensorNode>) -> Parts {
    let mut spec = kernel.clone();
    for (tensor, node) in spec.tensors.iter_mut().zip(&nodes) {
        (tensor.node, tensor.merged) = (node.clone(), false);
    }
    Parts {
        name: spec.name.clone(),
        statics: spec.statics.clone(),
        created: nodes,
        names: Vec::new(),
        admits: None,
        virtuals: Virtuals::default(),
        tuning: Tuning::default(),
        specs: vec![Arc::new(spec)],
    }
}
