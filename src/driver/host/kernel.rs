//! Kernels on the host driver: the nests of programs, and the twins of raw kernels.

use std::sync::Arc;

#[cfg(feature = "notation")]
use crate::driver::host::nest::NestCode;
use crate::driver::host::pools::Pools;
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::no_such_pool;
use crate::wgsl::slots::Slots;
use crate::wgsl::spec::KernelSpec;
#[cfg(feature = "notation")]
use crate::wgsl::spec::NestOf;
use crate::wgsl::twin::{HostTwin, TwinArgs, TwinMemory};

/// Whether a kernel can have a twin: in the npm package nobody can give one.
pub(super) const HAS_TWINS: bool = !cfg!(feature = "npm");

/// A kernel with what is done in its place.
#[derive(Debug)]
pub struct HostKernel {
    spec: Arc<KernelSpec>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    #[cfg(feature = "notation")]
    Nest(NestCode),
    Twin(HostTwin),
}

/// A kernel linked to locations.
#[derive(Debug)]
pub struct HostLinked {
    kernel: Arc<HostKernel>,
    slots: Slots,
}

pub(super) fn compile(spec: Arc<KernelSpec>) -> Result<HostKernel> {
    #[cfg(feature = "notation")]
    if let Some(NestOf { loops, nest, buffers, .. }) = &spec.nest {
        let nest = loops.nests.get(*nest).ok_or_else(|| Error::bug("a kernel of a nest that is not there"))?;
        let body = Body::Nest(NestCode::compile(loops, nest, buffers)?);
        return Ok(HostKernel { spec, body });
    }
    match spec.twin.clone().filter(|_| HAS_TWINS) {
        Some(twin) => Ok(HostKernel { spec, body: Body::Twin(twin) }),
        None => Err(Error::new(
            ErrorKind::Unsupported,
            "the host driver cannot execute raw WGSL; give the kernel a host twin, or open the gpu driver (a software \
             adapter will do)",
        )),
    }
}

pub(super) fn link(pools: &Pools, kernel: &Arc<HostKernel>, slots: Slots) -> Result<HostLinked> {
    let spec = &kernel.spec;
    for (pool, &pool_id) in slots.pools.iter().enumerate() {
        let size_bytes = pools.size_bytes(pool_id).ok_or_else(|| no_such_pool(pool_id));
        let size_bytes = size_bytes.map_err(|error| error.context(slots.first_node(spec, pool)))?;
        slots.check_fits(spec, pool, size_bytes)?;
    }
    Ok(HostLinked { kernel: kernel.clone(), slots })
}

impl HostLinked {
    pub(super) fn explain(&self) -> String {
        let body = match self.kernel.body {
            #[cfg(feature = "notation")]
            Body::Nest(_) => "loop nest",
            Body::Twin(_) => "host twin",
        };
        format!("{body} over {} tensors", self.slots.len())
    }

    /// Runs the nest of a program in place; false for a kernel with a twin.
    #[cfg(feature = "notation")]
    pub(super) fn run_nest(&self, pools: &mut Pools, statics: &[i32]) -> Result<bool> {
        let Body::Nest(code) = &self.kernel.body else { return Ok(false) };
        let mut memory = Vec::new();
        for at in 0..self.slots.len() {
            memory.push(self.bytes(pools, at)?);
        }
        let values = code.values(&memory, statics);
        for (tensor, place) in code.targets().enumerate() {
            let node = &self.kernel.spec.tensors[place].node;
            code.store(tensor, &values, pools.range_mut(self.slots.loc(place), node.size_bytes())?);
        }
        Ok(true)
    }

    /// Copies of the tensors, for the twin to work on.
    pub(super) fn copies(&self, pools: &Pools) -> Result<Copies> {
        let mut memory = Copies { before: Vec::with_capacity(self.slots.len()), written: Vec::new() };
        for at in 0..self.slots.len() {
            memory.before.push(self.bytes(pools, at)?.to_vec());
        }
        Ok(memory)
    }

    /// The bytes of a tensor.
    fn bytes<'p>(&self, pools: &'p Pools, tensor: usize) -> Result<&'p [u8]> {
        let node = &self.kernel.spec.tensors[tensor].node;
        pools.range(self.slots.loc(tensor), node.size_bytes()).map_err(|error| error.context(node))
    }

    /// Runs the twin on them. No lock is held: the twin may look at its own device.
    pub(super) fn call(&self, memory: &mut Copies, statics: &[i32]) -> Result<()> {
        let HostKernel { spec, body } = &*self.kernel;
        #[cfg_attr(not(feature = "notation"), allow(clippy::infallible_destructuring_match))]
        let twin = match body {
            Body::Twin(twin) => twin,
            #[cfg(feature = "notation")]
            Body::Nest(_) => return Ok(()),
        };
        if spec.grid.contains(&0) {
            return Ok(());
        }
        twin.call(&mut TwinArgs::new(spec, statics, memory))
    }

    /// Keeps what the twin wrote.
    pub(super) fn keep(&self, pools: &mut Pools, memory: Copies) -> Result<()> {
        for (tensor, bytes) in memory.written {
            pools.range_mut(self.slots.loc(tensor), bytes.len() as u64)?.copy_from_slice(&bytes);
        }
        Ok(())
    }
}

/// The tensors as they were, and what is to be written.
pub(super) struct Copies {
    before: Vec<Vec<u8>>,
    written: Vec<(usize, Vec<u8>)>,
}

impl TwinMemory for Copies {
    fn read(&self, tensor: usize) -> Result<Vec<u8>> {
        self.before.get(tensor).cloned().ok_or_else(|| Error::bug(format_args!("a twin read tensor {tensor}")))
    }

    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()> {
        self.written.push((tensor, bytes.to_vec()));
        Ok(())
    }
}
