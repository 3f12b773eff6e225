//! The nodes of a code: worked out when it is compiled, so that linking does nothing for each of them that can be done
//! once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::merge::MERGE_LOC;
use crate::context::allocate::{Delta, Local};
use crate::context::lineage::Touched;
use crate::context::{Context, CtxBuffers, locate};
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{MemoryMode, NodeId, TensorNode};
use crate::slab::loc::PoolId;
use crate::slab::plan::PlanLimits;
use crate::sorted_map::SortedMap;
use crate::wgsl::slots::{SlotTable, Slots};
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

/// A node of a code.
#[derive(Debug)]
pub(crate) struct CodeNode {
    /// The tensor that names it first.
    tensor: KernelTensor,
    /// How a tensor that writes it is declared.
    written_as: Option<Access>,
    is_read: bool,
    /// Whether linking may create it wherever it is read first.
    is_created: bool,
    /// The first and the last kernel that use it.
    first: usize,
    last: usize,
}

impl CodeNode {
    pub(crate) fn node(&self) -> &TensorNode {
        &self.tensor.node
    }

    pub(crate) fn is_local(&self) -> bool {
        self.node().mode() == MemoryMode::Local
    }
}

/// The nodes of a code.
#[derive(Debug)]
pub(crate) struct CodeNodes {
    pub(crate) in_out: InOut,
    /// Each node once, in the order in which the tensors name them; not the merge buffer's.
    distinct: Vec<CodeNode>,
    /// How the code was linked last: mostly the next link is the same.
    last_link: Mutex<Option<Arc<LinkPlan>>>,
}

/// What a link creates, planned.
#[derive(Debug)]
pub(crate) struct LinkPlan {
    /// What the context had.
    buffers: CtxBuffers,
    /// The positions of the nodes that are created.
    missing: Arc<[u32]>,
    pub(crate) delta: Delta,
    /// For each kernel, where its tensors will be.
    pub(crate) kernels: Vec<KernelSlots>,
}

/// Where the tensors of a kernel will be when the delta of its link is placed.
#[derive(Debug)]
pub(crate) struct KernelSlots {
    table: Arc<SlotTable>,
    pools: Vec<SlotPool>,
}

/// A pool of a slot table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SlotPool {
    /// The slab of the delta with that number.
    Own(u32),
    /// One that the context has.
    Known(PoolId),
}

impl KernelSlots {
    /// Where the tensors of kernels will be: in the merge buffer, in the slabs of the delta, or where a context has them.
    pub(crate) fn of<'a>(
        specs: impl Iterator<Item = &'a KernelSpec>,
        delta: &Delta,
        buffers: &CtxBuffers,
    ) -> Result<Vec<Self>> {
        let mut place = |tensor: &KernelTensor| {
            if tensor.merged {
                return Ok((SlotPool::Known(MERGE_LOC.pool_id), MERGE_LOC.offset));
            }
            match delta.place_of(&tensor.node) {
                Some((segment, offset)) => Ok((SlotPool::Own(segment), offset)),
                None => locate(buffers, &tensor.node).map(|loc| (SlotPool::Known(loc.pool_id), loc.offset)),
            }
        };
        let mut kernels = Vec::new();
        for spec in specs {
            let (table, pools) = SlotTable::new(spec, &mut place)?;
            kernels.push(Self { table: Arc::new(table), pools });
        }
        Ok(kernels)
    }

    /// The slots, where the delta is placed in slabs of its own by that context.
    pub(crate) fn placed<D: Driver>(&self, context: &Context<D>) -> Result<Slots> {
        let mut pools = Vec::new();
        for pool in &self.pools {
            pools.push(match *pool {
                SlotPool::Known(pool_id) => pool_id,
                SlotPool::Own(segment) => context.own_pool(segment)?,
            });
        }
        Ok(Slots { table: self.table.clone(), pools })
    }
}

impl CodeNodes {
    /// The nodes of kernels that run one after the other. `created` are nodes that linking creates although they are read
    /// first and, unless they are local, where no kernel has them: a program may have no point to run that touches them.
    pub(crate) fn new(kernels: &[Arc<KernelSpec>], created: &[TensorNode]) -> Self {
        let mut position_of: SortedMap<NodeId, u64> = SortedMap::new();
        let mut distinct: Vec<CodeNode> = Vec::new();
        for (index, kernel) in kernels.iter().enumerate() {
            for tensor in kernel.tensors.iter().filter(|tensor| !tensor.merged) {
                let position = position_of.get(&tensor.node.id()).copied().unwrap_or_else(|| {
                    let position = distinct.len() as u64;
                    position_of.insert(tensor.node.id(), position);
                    distinct.push(CodeNode {
                        tensor: KernelTensor { name: kernel.word_of(tensor).to_owned(), ..tensor.clone() },
                        written_as: None,
                        is_read: false,
                        is_created: created.contains(&tensor.node),
                        first: index,
                        last: index,
                    });
                    position
                });
                let Some(node) = distinct.get_mut(position as usize) else { continue };
                node.is_read |= tensor.access.reads();
                node.last = index;
                if tensor.access.writes() && node.written_as.is_none() {
                    node.written_as = Some(tensor.access);
                }
            }
        }
        for node in created {
            if node.mode() != MemoryMode::Local && !position_of.contains_key(&node.id()) {
                let (name, access) = (node.label().to_owned(), Access::Write);
                distinct.push(CodeNode {
                    tensor: KernelTensor { name, node: node.clone(), access, merged: false },
                    written_as: None,
                    is_read: false,
                    is_created: true,
                    first: 0,
                    last: 0,
                });
            }
        }
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for node in &distinct {
            if node.is_read {
                inputs.push(node.node().clone());
            }
            if node.written_as.is_some() {
                outputs.push(node.node().clone());
            }
        }
        let in_out = InOut::new(inputs, outputs);
        Self { in_out, distinct, last_link: Mutex::default() }
    }

    /// Notes that more nodes are looked at, on behalf of routines behind.
    #[cfg(feature = "notation")]
    pub(crate) fn look_at<'a>(&mut self, more: impl Iterator<Item = &'a TensorNode>) {
        let InOut { inputs, outputs, .. } = &self.in_out;
        let mut looked_at = inputs.to_vec();
        for node in more {
            if !looked_at.contains(node) {
                looked_at.push(node.clone());
            }
        }
        if looked_at.len() > inputs.len() {
            self.in_out = InOut::new(looked_at, outputs.to_vec());
        }
    }

    /// The positions of the nodes that linking must create, where `has` says what is there: those that are written before
    /// they are read.
    ///
    /// # Errors
    /// `UnknownNode` for a node that is read, and not there; `KernelInterface` for a constant that is written, or a node
    /// that no kernel can have.
    pub(crate) fn missing(&self, has: impl Fn(&TensorNode) -> bool) -> Result<Vec<u32>> {
        let mut missing = Vec::new();
        for (position, code_node) in self.distinct.iter().enumerate() {
            let CodeNode { tensor, written_as, is_created, .. } = code_node;
            let mode = tensor.node.mode();
            // Before anything is allocated: a constant that was created here would stay with the device, as zeros.
            match (mode, written_as) {
                (MemoryMode::Virtual, _) => return Err(virtual_tensor(tensor)),
                (MemoryMode::Constant, Some(access)) => return Err(written_constant(tensor, *access)),
                _ => {}
            }
            if has(&tensor.node) {
                continue;
            }
            let is_local = mode == MemoryMode::Local;
            let is_made = tensor.access == Access::Write || *is_created || is_local && tensor.access != Access::Read;
            // A constant has the bytes that it came with: nothing of it can be made here.
            if !is_made || mode == MemoryMode::Constant {
                return Err(not_there(tensor));
            }
            if is_local && tensor.node.base().is_some() {
                return Err(local_view(tensor));
            }
            missing.push(position as u32);
        }
        Ok(missing)
    }

    /// The node at a position.
    pub(crate) fn at(&self, position: u32) -> Option<&CodeNode> {
        self.distinct.get(position as usize)
    }

    /// The local nodes, with the first and the last kernel that use each.
    pub(crate) fn locals(&self) -> impl Iterator<Item = Local<'_>> {
        self.distinct.iter().filter(|node| node.is_local()).map(|node| (node.node(), node.first, node.last))
    }

    /// The plan of a link into a context with those nodes: the last one, if it was for the same nodes.
    pub(crate) fn link_plan(
        &self,
        kernels: &[Arc<KernelSpec>],
        buffers: &CtxBuffers,
        limits: PlanLimits,
    ) -> Result<Arc<LinkPlan>> {
        let mut last_link = self.last_link.lock().unwrap_or_else(PoisonError::into_inner);
        // What was found then is found again: how nodes are kept is decided once.
        if let Some(plan) = last_link.as_ref().filter(|plan| plan.buffers.is_same(buffers)) {
            return Ok(plan.clone());
        }
        // Local nodes are those of the link, whatever a context was made with by hand.
        let missing = self.missing(|node| node.mode() != MemoryMode::Local && buffers.contains(node))?;
        let alike = last_link.as_ref().filter(|plan| *plan.missing == *missing);
        let (missing, delta) = match alike {
            Some(plan) => (plan.missing.clone(), plan.delta.clone()),
            None => {
                let (mut kept, mut locals) = (Vec::new(), Vec::new());
                for at in &missing {
                    if let Some(node) = self.at(*at).filter(|node| !node.is_local()) {
                        kept.push(node.node());
                    }
                }
                for local in self.locals() {
                    locals.push(local);
                }
                let delta = Delta::plan(&kept, &locals, limits)?;
                (missing.into(), delta)
            }
        };
        let kernels = KernelSlots::of(kernels.iter().map(|spec| &**spec), &delta, buffers)?;
        let plan = Arc::new(LinkPlan { buffers: buffers.clone(), missing, delta, kernels });
        *last_link = Some(plan.clone());
        Ok(plan)
    }

    /// The nodes that a link creates, in the order of the declarations.
    pub(crate) fn created<'a>(&'a self, plan: &'a LinkPlan) -> impl Iterator<Item = &'a TensorNode> {
        plan.missing.iter().filter_map(|&position| self.at(position)).map(CodeNode::node)
    }
}

fn written_constant(tensor: &KernelTensor, access: Access) -> Error {
    let message = format_args!(
        "the kernel declares {} as {access}, but it is a constant; declare it read, or make the node OnDevice",
        tensor.node
    );
    Error::say(ErrorKind::KernelInterface, message)
}

fn virtual_tensor(tensor: &KernelTensor) -> Error {
    let message = format_args!(
        "tensor \"{}\": node {} is virtual: it has no bytes; make it on_device or local for a raw kernel",
        tensor.name, tensor.node
    );
    Error::say(ErrorKind::KernelInterface, message)
}

fn local_view(tensor: &KernelTensor) -> Error {
    let message = format_args!(
        "tensor \"{}\": {} is a view of a local node, which no context has; declare the node itself",
        tensor.name, tensor.node
    );
    Error::say(ErrorKind::KernelInterface, message)
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
