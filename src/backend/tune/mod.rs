//! Tuning: the schedules of a kernel, measured on the device with the shapes that it has.
//!
//! What was measured is kept by a key of all that it depends on. Natively compiling measures what is not known; in a page the
//! npm package does, by the same rules, since it can end that at any moment and its code is smaller.

#[cfg(not(target_arch = "wasm32"))]
mod measure;

#[cfg(target_arch = "wasm32")]
use std::fmt::Write;
use std::sync::Arc;

use crate::backend::compile::{Code, Parts};
use crate::backend::nest::rescheduled;
use crate::backend::virtuals::Virtuals;
use crate::device::Device;
use crate::device::tuned::Entry;
use crate::driver::Driver;
#[cfg(target_arch = "wasm32")]
use crate::error::Result;
use crate::node::TensorNode;
use crate::notation::spec::{ProgramSpec, Tune};
use crate::schedule::{Chosen, VERSION};
use crate::wgsl::spec::{KernelSpec, KernelTensor};

/// What a program asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    tune: Tune,
    /// Bounds the measuring.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "a page measures"))]
    budget_ms: Option<u32>,
    /// What could not be measured or kept, and why, a line each. A page says so itself.
    #[cfg(not(target_arch = "wasm32"))]
    notes: String,
}

impl Tuning {
    pub(super) fn of(spec: &ProgramSpec) -> Self {
        Self {
            tune: spec.tune,
            budget_ms: spec.tune_budget_ms,
            #[cfg(not(target_arch = "wasm32"))]
            notes: String::new(),
        }
    }

    /// What could not be measured, and why, a line each.
    pub(super) fn notes(&self) -> &str {
        #[cfg(not(target_arch = "wasm32"))]
        return &self.notes;
        #[cfg(target_arch = "wasm32")]
        ""
    }

    /// How many schedules of a kernel are measured.
    fn count(&self, kernel: &KernelSpec) -> usize {
        let most = match self.tune {
            Tune::Off => 0,
            Tune::Quick => 4,
            Tune::Full => usize::MAX,
        };
        kernel.nest.as_ref().map_or(0, |of| of.candidates.len().min(most))
    }
}

impl<D: Driver> Device<D> {
    /// Takes the schedules that were measured fastest, where they were.
    pub(super) fn take_tuned(&self, kernels: &mut [Arc<KernelSpec>], tuning: &Tuning) {
        for kernel in kernels {
            let count = tuning.count(kernel);
            let known = if count < 2 { None } else { self.known_tuned(self.tuned_key(kernel)) };
            let Some(Entry { count: known_count, measured_ns, schedule }) = known else { continue };
            let is_it = |at: &usize| kernel.candidates()[*at].schedule.to_string() == schedule;
            if let Some(at) = (0..kernel.candidates().len()).find(is_it)
                && known_count >= count as u64
            {
                *kernel = Arc::new(rescheduled((**kernel).clone(), Chosen { at, measured_ns: Some(measured_ns) }));
            }
        }
    }

    /// The kernel that a page wants to measure alone.
    pub(super) fn asked_trial(&self, kernels: &[Arc<KernelSpec>], spec: &ProgramSpec) -> Option<Parts> {
        let (kernel, at) = spec.trial?;
        let kernel = kernels.get(kernel as usize)?;
        let mut record = self.record();
        let nodes = &mut record.tuned.scratch;
        // All schedules share the nodes of the first.
        if at == 0 || nodes.len() != kernel.tensors.len() {
            *nodes = scratch(kernel);
        }
        Some(trial(kernel, at as usize, nodes.clone()))
    }

    /// A page measures.
    #[cfg(target_arch = "wasm32")]
    pub(super) async fn tune_all(&self, all: Vec<Result<Parts>>) -> Result<Vec<Result<Parts>>> {
        Ok(all)
    }

    /// What is to be measured of a kernel that is in its first schedule: its key, and how many schedules.
    fn untuned(&self, kernel: &KernelSpec, tuning: &Tuning) -> Option<(u64, usize)> {
        let count = tuning.count(kernel);
        let is_known = kernel.nest.as_ref().is_none_or(|of| of.chosen.measured_ns.is_some());
        // The host driver does what a schedule says in its own way.
        (count > 1 && !is_known && D::name(self.dev()) != "host").then(|| (self.tuned_key(kernel), count))
    }

    /// What a measurement of a kernel depends on, as a number (FNV-1a): the adapter, the driver, what schedules mean, and the
    /// text in the first schedule, which has all extents.
    fn tuned_key(&self, kernel: &KernelSpec) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes.iter().chain(&[0]) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        };
        let adapter = self.adapter();
        for text in [&adapter.name, &adapter.backend, &adapter.driver, &adapter.device_type, &kernel.text] {
            add(text.as_bytes());
        }
        add(&VERSION.to_le_bytes());
        for tensor in &kernel.tensors {
            add(tensor.node.dtype().name().as_bytes());
            add(bytemuck::cast_slice(tensor.node.shape()));
        }
        hash
    }
}

impl<D: Driver> Code<D> {
    /// What is to be measured, kernel by kernel: nothing, or the key, and a line for each schedule.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn all_untuned(&self, device: &Device<D>) -> Vec<String> {
        let mut lines = Vec::new();
        for spec in self.specs() {
            let mut text = String::new();
            if let Some((key, count)) = device.untuned(spec, &self.parts().tuning) {
                text = key.to_string();
                for candidate in &spec.candidates()[..count] {
                    let _ = write!(text, "\n{}", candidate.schedule);
                }
            }
            lines.push(text);
        }
        lines
    }
}

/// A node for each tensor of a kernel, which no context has.
pub(super) fn scratch(kernel: &KernelSpec) -> Vec<TensorNode> {
    let mut nodes = Vec::new();
    for KernelTensor { node, .. } in &kernel.tensors {
        nodes.push(TensorNode::new("scratch", node.dtype(), node.shape()));
    }
    nodes
}

/// A kernel in one of its schedules, on such nodes: linking creates them.
pub(super) fn trial(kernel: &KernelSpec, at: usize, nodes: Vec<TensorNode>) -> Parts {
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
        specs: vec![Arc::new(rescheduled(spec, Chosen { at, measured_ns: None }))],
    }
}
