//! Many at once: compiling concurrently, and linking with one shared delta.

use crate::backend::compile::Code;
use crate::backend::join::join_all;
use crate::backend::link::check_merge_input;
use crate::backend::nodes::nodes_of;
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::device::Device;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::node::{NodeId, TensorNode};
use crate::sorted_map::SortedMap;
use crate::wgsl::accessors::module_text;
use crate::wgsl::bind_plan::Pattern;
use crate::wgsl::spec::KernelSpec;

impl<D: Driver> Device<D> {
    /// Compiles many kernels concurrently, each distinct text once. The codes come in the order of the kernels.
    ///
    /// # Errors
    /// The first error in the order of the kernels, as [`Device::compile`] gives it.
    pub async fn compile_batch(&self, specs: Vec<KernelSpec>) -> Result<Vec<Code<D>>> {
        let texts: Vec<_> =
            specs.iter().map(|spec| module_text(spec, &Pattern::one_heap(spec.tensors.len()))).collect();
        let is_first = |index: usize| !texts[..index].contains(&texts[index]);
        let firsts = specs.iter().enumerate().filter(|(index, _)| is_first(*index));
        let mut compiled = join_all(firsts.map(|(_, spec)| self.compile(spec.clone())).collect()).await.into_iter();
        let mut codes = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            // A text that was compiled before is in the cache now.
            let compiled_first = if is_first(index) { compiled.next() } else { None };
            codes.push(match compiled_first {
                Some(code) => code?,
                None => self.compile(spec.clone()).await?,
            });
        }
        Ok(codes)
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
        let delta: Vec<_> =
            codes.iter().zip(&created).flat_map(|(code, missing)| nodes_of(code.spec(), missing)).collect();
        // Dropping it, on any error below or when this future is dropped, frees what it minted.
        let shared = self.extend(&delta, true).map_err(|error| error.context("link batch"))?;
        let links = codes.iter().map(|code| shared.link_kernel(code, |_| None)).collect();
        let mut line = shared.clone();
        let mut routines = Vec::with_capacity(codes.len());
        for (code, linked) in codes.iter().zip(join_all(links).await) {
            let linked = linked.map_err(named(code))?;
            let (place, lineage) = Place::behind(&line, code);
            line = line.child().lineage(lineage).build();
            routines.push(Routine::new(line.clone(), Work::Kernel { code: (*code).clone(), linked }, place));
        }
        Ok(routines)
    }
}

fn named<D: Driver>(code: &Code<D>) -> impl Fn(Error) -> Error {
    let name = format!("link \"{}\"", code.name());
    move |error| error.context(&name)
}
