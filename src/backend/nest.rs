//! The kernel of a nest, in the schedule that was chosen for it.

use std::sync::Arc;

use crate::backend::compile::Code;
use crate::device::Device;
use crate::driver::Driver;
use crate::driver::limits::{AdapterInfo, DeviceLimits};
use crate::error::{Error, ErrorKind, Result};
use crate::loops::ir::{BufferIndex, Loops};
use crate::node::TensorNode;
use crate::notation::spec::{Forced, ProgramSpec};
use crate::schedule::{Target, candidates};
use crate::wgsl::emit::emit;
use crate::wgsl::spec::{KernelSpec, KernelTensor, NestOf};

/// What schedules of a program's nests are chosen for, but for where its tensors start.
pub(super) fn target(limits: &DeviceLimits, adapter: &AdapterInfo, spec: &ProgramSpec) -> Target {
    let is_like_gpu = spec.schedule == Some(Forced::LikeGpu);
    Target {
        is_cpu: adapter.device_type == "cpu" && !is_like_gpu,
        has_rows: adapter.backend != "host",
        leaves_loops: adapter.name.starts_with("llvmpipe"),
        is_aligned: false,
        most_lanes: limits.invocations_per_workgroup,
        most_bytes: limits.workgroup_storage_bytes,
        has_subgroups: limits.has_subgroups,
        forced: if is_like_gpu { None } else { spec.schedule },
        binding: spec.binding,
    }
}

/// The kernel of a nest that has points, in the first of its schedules. `node_of` gives the node of a buffer, and whether it
/// is read from the merge buffer.
pub(super) fn kernel(
    base: KernelSpec,
    (loops, nest): (&Arc<Loops>, usize),
    target: &Target,
    most_workgroups: u32,
    node_of: &dyn Fn(BufferIndex) -> (TensorNode, bool),
) -> KernelSpec {
    let candidates = Arc::new(candidates(&loops.nests[nest], target));
    let of = NestOf {
        loops: loops.clone(),
        nest,
        buffers: Vec::new(),
        by_fours: false,
        candidates,
        chosen: 0,
        most_workgroups,
    };
    scheduled(base, of, node_of)
}

/// A kernel in another of its schedules; without one, a kernel stays as it is.
pub(super) fn rescheduled(mut spec: KernelSpec, chosen: usize) -> KernelSpec {
    let Some(mut of) = spec.nest.take_if(|of| chosen < of.candidates.len()) else { return spec };
    of.chosen = chosen;
    let (buffers, tensors) = (std::mem::take(&mut of.buffers), std::mem::take(&mut spec.tensors));
    let node_of = |buffer| {
        let tensor = &tensors[buffers.iter().position(|known| *known == buffer).unwrap_or(0)];
        (tensor.node.clone(), tensor.merged)
    };
    scheduled(spec, of, &node_of)
}

impl<D: Driver> Device<D> {
    /// Compiles a program's code again with other schedules: for each kernel, the number of one in [`Code::candidates`].
    ///
    /// # Errors
    /// `KernelInterface` for a number that there is not; else as [`Device::compile`].
    pub async fn reschedule(&self, code: &Code<D>, chosen: &[usize]) -> Result<Code<D>> {
        let counts: Vec<usize> = code.candidates().map(|(_, candidates)| candidates.len()).collect();
        if counts.len() != chosen.len() || counts.iter().zip(chosen).any(|(count, at)| at >= count) {
            let message = format!("code \"{}\" has {counts:?} schedules, not {chosen:?}", code.name());
            return Err(Error::new(ErrorKind::KernelInterface, message));
        }
        let mut parts = code.parts().clone();
        for (spec, at) in parts.specs.iter_mut().zip(chosen) {
            *spec = Arc::new(rescheduled((**spec).clone(), *at));
        }
        let codes = self.compile_made(vec![Ok(parts)]).await?;
        codes.into_iter().next().ok_or_else(|| Error::bug("a code was compiled to nothing"))
    }
}

/// The kernel of a nest in the schedule that is chosen.
fn scheduled(
    mut kernel: KernelSpec,
    mut of: NestOf,
    node_of: &dyn Fn(BufferIndex) -> (TensorNode, bool),
) -> KernelSpec {
    let emitted = emit(&of.loops, &of.loops.nests[of.nest], of.schedule(), of.most_workgroups);
    of.buffers = Vec::new();
    kernel.tensors = Vec::new();
    for (at, (buffer, access)) in emitted.tensors.into_iter().enumerate() {
        let (node, merged) = node_of(buffer);
        kernel.tensors.push(KernelTensor { name: format!("t{at}"), node, access, merged });
        of.buffers.push(buffer);
    }
    of.by_fours = emitted.by_fours;
    (kernel.text, kernel.grid, kernel.nest) = (emitted.text, emitted.grid, Some(of));
    kernel
}
