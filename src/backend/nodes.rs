//! The nodes of a code: worked out when it is compiled, so that linking does nothing for each of them that can be done
//! once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::context::CtxBuffers;
use crate::context::allocate::Delta;
use crate::context::lineage::Touched;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{MemoryMode, NodeId, TensorNode};
use crate::slab::plan::PlanLimits;
use crate::sorted_map::SortedMap;
use crate::wgsl::spec::{Access, KernelSpec, KernelTensor};

/// What a routine reads and writes, each node once; not the merge buffer's.
#[derive(Clone, Debug)]
pub(crate) struct InOut {
    pub(crate) inputs: Arc<[TensorNode]>,
    pub(crate) outputs: Arc<[TensorNode]>,
    pub(crate) reads: Arc<Touched>,
    pub(crate) writes: Arc<Touched>,
}

impl InOut {
    pub(crate) fn new(inputs: Vec<TensorNode>, outputs: Vec<TensorNode>) -> Self {
        // Each link has its own local nodes: those of different links are not the same memory.
        let kept = |node: &&TensorNode| node.mode() != MemoryMode::Local;
        let reads = Arc::new(Touched::new(inputs.iter().filter(kept)));
        let writes = Arc::new(Touched::new(outputs.iter().filter(kept)));
        Self { inputs: inputs.into(), outputs: outputs.into(), reads, writes }
    }

    /// The outputs that outlive the link.
    pub(crate) fn kept_outputs(&self) -> impl Iterator<Item = &TensorNode> {
        self.outputs.iter().filter(|node| node.mode() != MemoryMode::Local)
    }
}

/// The nodes of a code.
#[derive(Debug)]
pub(crate) struct CodeNodes {
    pub(crate) in_out: InOut,
    /// The tensors that are the first to name their node, in order; not the merge buffer's.
    firsts: Vec<u32>,
    /// How the code was linked last: mostly the next link is the same.
    last_link: Mutex<Option<Arc<LinkPlan>>>,
}

/// What a link creates, planned.
#[derive(Debug)]
pub(crate) struct LinkPlan {
    /// The tensors whose nodes are created.
    missing: Vec<u32>,
    pub(crate) delta: Delta,
    /// For each tensor, where it will be in the slabs of the delta.
    pub(crate) places: Vec<Option<(u32, u64)>>,
}

/// The nodes of the tensors that match, each once, and which tensors name them first.
fn distinct(spec: &KernelSpec, wanted: impl Fn(&KernelTensor) -> bool) -> (Vec<TensorNode>, Vec<u32>) {
    let mut seen: SortedMap<NodeId, ()> = SortedMap::new();
    let (mut nodes, mut firsts) = (Vec::new(), Vec::new());
    for (index, tensor) in spec.tensors.iter().enumerate() {
        if !tensor.merged && wanted(tensor) && seen.insert(tensor.node.id(), ()).is_none() {
            nodes.push(tensor.node.clone());
            firsts.push(index as u32);
        }
    }
    (nodes, firsts)
}

impl CodeNodes {
    pub(crate) fn new(spec: &KernelSpec) -> Self {
        let (inputs, _) = distinct(spec, |tensor| tensor.access.reads());
        let (outputs, _) = distinct(spec, |tensor| tensor.access.writes());
        let (_, firsts) = distinct(spec, |_| true);
        Self { in_out: InOut::new(inputs, outputs), firsts, last_link: Mutex::default() }
    }

    /// The tensors whose nodes linking must create, where `has` says what is there: those that are only written.
    ///
    /// # Errors
    /// `UnknownNode` for a node that is read, and not there; `KernelInterface` for a constant that is written.
    pub(crate) fn missing(&self, spec: &KernelSpec, has: impl Fn(&TensorNode) -> bool) -> Result<Vec<u32>> {
        if let Some(tensor) = spec.tensors.iter().find(|tensor| tensor.node.mode() == MemoryMode::Virtual) {
            return Err(virtual_tensor(tensor));
        }
        // Before anything is allocated: a constant that was created here would stay with the device, as zeros.
        let is_refused = |tensor: &&KernelTensor| tensor.access.writes() && tensor.node.mode() == MemoryMode::Constant;
        if let Some(tensor) = spec.tensors.iter().find(is_refused) {
            return Err(written_constant(tensor));
        }
        let mut missing = Vec::new();
        for &index in &self.firsts {
            let Some(tensor) = spec.tensors.get(index as usize) else { continue };
            if has(&tensor.node) {
                continue;
            }
            let is_local = tensor.node.mode() == MemoryMode::Local;
            let is_made = tensor.access == Access::Write || is_local && tensor.access != Access::Read;
            if !is_made {
                return Err(not_there(tensor));
            }
            if is_local && tensor.node.base().is_some() {
                return Err(local_view(tensor));
            }
            missing.push(index);
        }
        Ok(missing)
    }

    /// The plan of a link into a context with those nodes: the last one, if it was for the same nodes.
    pub(crate) fn link_plan(
        &self,
        spec: &KernelSpec,
        buffers: &CtxBuffers,
        limits: PlanLimits,
    ) -> Result<Arc<LinkPlan>> {
        let missing = self.missing(spec, |node| buffers.contains(node))?;
        let mut last_link = self.last_link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = last_link.as_ref().filter(|plan| plan.missing == missing) {
            return Ok(plan.clone());
        }
        let (locals, kept): (Vec<_>, Vec<_>) =
            nodes_of(spec, &missing).partition(|node| node.mode() == MemoryMode::Local);
        // They are all needed at once.
        let locals: Vec<_> = locals.into_iter().map(|node| (node, 0, 0)).collect();
        let delta = Delta::plan(&kept, &locals, limits)?;
        let place = |tensor: &KernelTensor| if tensor.merged { None } else { delta.place_of(&tensor.node) };
        let places = spec.tensors.iter().map(place).collect();
        let plan = Arc::new(LinkPlan { missing, delta, places });
        *last_link = Some(plan.clone());
        Ok(plan)
    }
}

impl LinkPlan {
    /// The nodes that are created, in the order of the declarations.
    pub(crate) fn created<'a>(&'a self, spec: &'a KernelSpec) -> impl Iterator<Item = &'a TensorNode> {
        nodes_of(spec, &self.missing)
    }
}

/// The nodes of those tensors.
pub(crate) fn nodes_of<'a>(spec: &'a KernelSpec, tensors: &'a [u32]) -> impl Iterator<Item = &'a TensorNode> {
    tensors.iter().filter_map(|&index| spec.tensors.get(index as usize)).map(|tensor| &tensor.node)
}

fn written_constant(tensor: &KernelTensor) -> Error {
    let message = format!(
        "the kernel declares {} as {}, but it is a constant; declare it read, or make the node OnDevice",
        tensor.node, tensor.access
    );
    Error::new(ErrorKind::KernelInterface, message)
}

fn virtual_tensor(tensor: &KernelTensor) -> Error {
    let message = format!(
        "tensor \"{}\": node {} is virtual: it has no bytes; make it on_device or local for a raw kernel",
        tensor.name, tensor.node
    );
    Error::new(ErrorKind::KernelInterface, message)
}

fn local_view(tensor: &KernelTensor) -> Error {
    let message = format!(
        "tensor \"{}\": {} is a view of a local node, which no context has; declare the node itself",
        tensor.name, tensor.node
    );
    Error::new(ErrorKind::KernelInterface, message)
}

fn not_there(tensor: &KernelTensor) -> Error {
    let KernelTensor { node, name, access, .. } = tensor;
    let message = if node.mode() == MemoryMode::Local {
        format!(
            "node {node} is local, and nothing before tensor \"{name}\", declared {access}, writes it; link it in one \
             batch with the code that does"
        )
    } else {
        format!(
            "node {node} is not in the context, but tensor \"{name}\" is declared {access}; upload it, or link first the \
             routine that creates it"
        )
    };
    Error::new(ErrorKind::UnknownNode, message)
}
