//! Many at once: compiling concurrently, and linking with one shared delta.

use crate::backend::compile::Code;
use crate::backend::join::join_all;
use crate::backend::link::check_merge_input;
use crate::backend::nodes::nodes_of;
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::context::allocate::Local;
use crate::device::Device;
use crate::driver::Driver;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::node::{MemoryMode, NodeId, TensorNode};
use crate::slab::loc::BufferLoc;
use crate::sorted_map::SortedMap;
use crate::wgsl::spec::{KernelSpec, KernelTensor};

impl<D: Driver> Device<D> {
    /// Compiles many kernels concurrently, each distinct text once. The codes come in the order of the kernels.
    ///
    /// # Errors
    /// The first error in the order of the kernels, as [`Device::compile`] gives it.
    pub async fn compile_batch(&self, specs: Vec<KernelSpec>) -> Result<Vec<Code<D>>> {
        // Those with one text wait for the first of them, and share what it makes.
        join_all(specs.into_iter().map(|spec| self.compile(spec)).collect()).await.into_iter().collect()
    }
}

impl<D: Driver> Context<D> {
    /// Links many codes, one behind the other in one line of contexts. The nodes that they create are allocated together,
    /// each once, in a context that is the parent of the first routine's; a code may read what one before it creates.
    ///
    /// A refusal leaves nothing behind.
    ///
    /// # Errors
    /// The first error in the order of the codes, as [`Context::link`] gives it.
    pub async fn link_batch(&self, codes: &[&Code<D>]) -> Result<Vec<Routine<D>>> {
        self.check_live().map_err(|error| error.context("link batch"))?;
        let mut created: Vec<Vec<u32>> = Vec::with_capacity(codes.len());
        let mut seen: SortedMap<NodeId, ()> = SortedMap::new();
        for code in codes {
            self.check_device(code).and_then(|()| check_merge_input(self, code)).map_err(named(code))?;
            let has = |node: &TensorNode| self.ctx_buffers().contains(node) || seen.contains_key(&node.id());
            let missing = code.nodes().missing(code.spec(), has).map_err(named(code))?;
            for node in nodes_of(code.spec(), &missing) {
                seen.insert(node.id(), ());
            }
            created.push(missing);
        }
        let nodes = || codes.iter().zip(&created).flat_map(|(code, missing)| nodes_of(code.spec(), missing));
        let kept: Vec<_> = nodes().filter(|node| node.mode() != MemoryMode::Local).collect();
        let locals = lifetimes(codes);
        let delta = self.plan(&kept, &locals).map_err(|error| error.context("link batch"))?;
        // Dropping it, on any error below or when this future is dropped, frees what it minted.
        let shared = self.extend_by(self.child(), &delta, true).map_err(|error| error.context("link batch"))?;
        let place = |node: &TensorNode| {
            let (segment, offset) = delta.place_of(node)?;
            shared.own_pool(segment).map(|pool_id| BufferLoc { pool_id, offset })
        };
        let links = codes.iter().map(|code| shared.link_kernel(code, |tensor| place(&tensor.node))).collect();
        // Local nodes share bytes, so those who use them run in the order of the batch.
        let scratch = (!locals.is_empty()).then(|| TensorNode::new("scratch", DType::U8, []));
        let mut line = shared.clone();
        let mut routines = Vec::with_capacity(codes.len());
        for (code, linked) in codes.iter().zip(join_all(links).await) {
            let linked = linked.map_err(named(code))?;
            let scratch = scratch.as_ref().filter(|_| code.spec().tensors.iter().any(is_local));
            let (place, lineage) = Place::behind(&line, code, scratch);
            line = line.child().lineage(lineage).build();
            routines.push(Routine::new(line.clone(), Work::Kernel { code: (*code).clone(), linked }, place));
        }
        Ok(routines)
    }
}

fn is_local(tensor: &KernelTensor) -> bool {
    !tensor.merged && tensor.node.mode() == MemoryMode::Local
}

/// The local nodes of the codes, with the first and the last that uses each.
fn lifetimes<'a, D: Driver>(codes: &[&'a Code<D>]) -> Vec<Local<'a>> {
    let mut locals: Vec<Local<'a>> = Vec::new();
    let mut index_of: SortedMap<NodeId, usize> = SortedMap::new();
    for (step, code) in codes.iter().enumerate() {
        for tensor in code.spec().tensors.iter().filter(|tensor| is_local(tensor)) {
            match index_of.get(&tensor.node.id()) {
                Some(&index) => locals[index].2 = step,
                None => {
                    index_of.insert(tensor.node.id(), locals.len());
                    locals.push((&tensor.node, step, step));
                }
            }
        }
    }
    locals
}

fn named<D: Driver>(code: &Code<D>) -> impl Fn(Error) -> Error {
    let name = format!("link \"{}\"", code.name());
    move |error| error.context(&name)
}
