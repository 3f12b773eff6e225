//! Linking many at once, with one shared delta.

use crate::backend::compile::Code;
use crate::backend::link::{check_merge_input, named};
use crate::backend::nodes::KernelSlots;
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::context::allocate::Local;
use crate::driver::Driver;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::node::{MemoryMode, NodeId, TensorNode};
use crate::sorted_map::SortedMap;

impl<D: Driver> Context<D> {
    /// Links many codes, one behind the other in one line of contexts. The nodes that they create are allocated together,
    /// each once, in a context that is the parent of the first routine's; a code may read what one before it creates.
    ///
    /// A refusal leaves nothing behind.
    ///
    /// # Errors
    /// The first error in the order of the codes, as [`Context::link`] gives it.
    pub async fn link_batch(&self, codes: &[&Code<D>]) -> Result<Vec<Routine<D>>> {
        let locals = lifetimes(codes);
        let kept = self.missing(codes)?;
        let delta = self.plan(&kept, &locals).map_err(in_batch)?;
        // Dropping it, on any error below or when this future is dropped, frees what it minted.
        let shared = self.extend_by(self.child(), &delta, true).map_err(in_batch)?;
        let mut slots = Vec::new();
        for code in codes {
            slots.push(KernelSlots::of(code.specs(), &delta, shared.ctx_buffers()).map_err(named(code))?);
        }
        let mut codes_and_slots = Vec::new();
        for (code, slots) in codes.iter().zip(&slots) {
            codes_and_slots.push((*code, &slots[..]));
        }
        let linked = shared.link_kernels(&codes_and_slots).await?;
        // Local nodes share bytes, so those who use them run in the order of the batch.
        let scratch = (!locals.is_empty()).then(|| TensorNode::new("scratch", DType::U8, []));
        shared.line_up(codes, linked, scratch)
    }

    /// The nodes that a batch of codes creates, and contexts keep.
    fn missing<'a>(&self, codes: &[&'a Code<D>]) -> Result<Vec<&'a TensorNode>> {
        self.check_live().map_err(in_batch)?;
        let mut kept: Vec<&TensorNode> = Vec::new();
        let mut seen: SortedMap<NodeId, u64> = SortedMap::new();
        for code in codes {
            self.check_device(code).and_then(|()| check_merge_input(self, code)).map_err(named(code))?;
            let has = |node: &TensorNode| {
                let is_local = node.mode() == MemoryMode::Local;
                seen.contains_key(&node.id()) || !is_local && self.ctx_buffers().contains(node)
            };
            let missing = code.nodes().missing(has).map_err(named(code))?;
            for node in missing.iter().filter_map(|&position| code.nodes().at(position)) {
                seen.insert(node.node().id(), 0);
                if !node.is_local() {
                    kept.push(node.node());
                }
            }
        }
        Ok(kept)
    }

    /// The routines of linked codes, one behind the other.
    fn line_up(
        self,
        codes: &[&Code<D>],
        linked: Vec<D::Linked>,
        scratch: Option<TensorNode>,
    ) -> Result<Vec<Routine<D>>> {
        let mut all_linked = linked.into_iter();
        let mut line = self;
        let mut routines = Vec::new();
        for code in codes {
            let scratch = scratch.as_ref().filter(|_| code.nodes().locals().next().is_some());
            let (place, child) = Place::behind(&line, code, scratch).map_err(named(code))?;
            line = child.build();
            let mut linked = Vec::new();
            for kernel in all_linked.by_ref().take(code.kernel_count()) {
                linked.push(kernel);
            }
            routines.push(Routine::new(line.clone(), Work::Kernels { code: (*code).clone(), linked }, place));
        }
        Ok(routines)
    }
}

fn in_batch(error: Error) -> Error {
    error.context("link batch")
}

/// The local nodes of the codes, with the first and the last kernel of the batch that uses each.
fn lifetimes<'a, D: Driver>(codes: &[&'a Code<D>]) -> Vec<Local<'a>> {
    let mut locals: Vec<Local<'a>> = Vec::new();
    let mut index_of: SortedMap<NodeId, u64> = SortedMap::new();
    let mut before = 0;
    for code in codes {
        for (node, first, last) in code.nodes().locals() {
            match index_of.get(&node.id()) {
                Some(&index) => locals[index as usize].2 = before + last,
                None => {
                    index_of.insert(node.id(), locals.len() as u64);
                    locals.push((node, before + first, before + last));
                }
            }
        }
        before += code.kernel_count();
    }
    locals
}
