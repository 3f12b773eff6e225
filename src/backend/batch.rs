//! Many at once: compiling concurrently, and linking with one shared delta.

use crate::backend::compile::{Code, Source};
use crate::backend::join::join_all;
use crate::backend::link::check_merge_input;
use crate::backend::nodes::{KernelSlots, SlotPool};
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::context::allocate::Local;
use crate::device::Device;
use crate::driver::Driver;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::node::{MemoryMode, NodeId, TensorNode};
use crate::sorted_map::SortedMap;
use crate::wgsl::spec::KernelTensor;

impl<D: Driver> Device<D> {
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
        // Those with one text wait for the first of them, and share what it makes.
        join_all(specs.into_iter().map(|spec| self.compile_in(known, spec)).collect()).await.into_iter().collect()
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
        let mut kept: Vec<&TensorNode> = Vec::new();
        let mut seen: SortedMap<NodeId, ()> = SortedMap::new();
        for code in codes {
            self.check_device(code).and_then(|()| check_merge_input(self, code)).map_err(named(code))?;
            let has = |node: &TensorNode| {
                let is_local = node.mode() == MemoryMode::Local;
                seen.contains_key(&node.id()) || !is_local && self.ctx_buffers().contains(node)
            };
            let missing = code.nodes().missing(has).map_err(named(code))?;
            for node in missing.iter().filter_map(|&position| code.nodes().at(position)) {
                seen.insert(node.node().id(), ());
                if !node.is_local() {
                    kept.push(node.node());
                }
            }
        }
        let locals = lifetimes(codes);
        let delta = self.plan(&kept, &locals).map_err(|error| error.context("link batch"))?;
        // Dropping it, on any error below or when this future is dropped, frees what it minted.
        let shared = self.extend_by(self.child(), &delta, true).map_err(|error| error.context("link batch"))?;
        let place = |tensor: &KernelTensor| match delta.place_of(&tensor.node) {
            Some((segment, offset)) => Ok((SlotPool::Own(segment), offset)),
            None => shared.require(&tensor.node).map(|loc| (SlotPool::Known(loc.pool_id), loc.offset)),
        };
        let slots_of = |code: &&Code<D>| {
            let slots: Result<Vec<_>> = code.specs().map(|spec| KernelSlots::new(spec, place)).collect();
            slots.map_err(named(code))
        };
        let slots = codes.iter().map(slots_of).collect::<Result<Vec<_>>>()?;
        let links = codes.iter().zip(&slots).map(|(code, slots)| shared.link_kernels(code, slots)).collect();
        // Local nodes share bytes, so those who use them run in the order of the batch.
        let scratch = (!locals.is_empty()).then(|| TensorNode::new("scratch", DType::U8, []));
        let mut line = shared.clone();
        let mut routines = Vec::with_capacity(codes.len());
        for (code, linked) in codes.iter().zip(join_all(links).await) {
            let linked = linked.map_err(named(code))?;
            let scratch = scratch.as_ref().filter(|_| code.nodes().locals().next().is_some());
            let (place, child) = Place::behind(&line, code, scratch).map_err(named(code))?;
            line = child.build();
            routines.push(Routine::new(line.clone(), Work::Kernels { code: (*code).clone(), linked }, place));
        }
        Ok(routines)
    }
}

/// The local nodes of the codes, with the first and the last kernel of the batch that uses each.
fn lifetimes<'a, D: Driver>(codes: &[&'a Code<D>]) -> Vec<Local<'a>> {
    let mut locals: Vec<Local<'a>> = Vec::new();
    let mut index_of: SortedMap<NodeId, usize> = SortedMap::new();
    let mut before = 0;
    for code in codes {
        for (node, first, last) in code.nodes().locals() {
            match index_of.get(&node.id()) {
                Some(&index) => locals[index].2 = before + last,
                None => {
                    index_of.insert(node.id(), locals.len());
                    locals.push((node, before + first, before + last));
                }
            }
        }
        before += code.kernel_count();
    }
    locals
}

fn named<D: Driver>(code: &Code<D>) -> impl Fn(Error) -> Error {
    let name = format!("link \"{}\"", code.name());
    move |error| error.context(&name)
}
