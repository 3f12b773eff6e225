//! Host twins: a Rust function beside a raw kernel that does the same on the host driver, as fallback and as oracle.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::host_array::Element;
use crate::node::TensorNode;
use crate::wgsl::spec::KernelSpec;

/// The memory that a twin works on: the tensors of a kernel, by their position in its spec.
pub trait TwinMemory {
    /// The bytes of a tensor.
    fn read(&self, tensor: usize) -> Result<Vec<u8>>;
    /// Sets the bytes of a tensor.
    fn write(&mut self, tensor: usize, bytes: &[u8]) -> Result<()>;
}

/// What a twin is called with: the tensors by name, and the statics.
pub struct TwinArgs<'a> {
    spec: &'a KernelSpec,
    statics: &'a [i32],
    memory: &'a mut dyn TwinMemory,
}

impl<'a> TwinArgs<'a> {
    pub(crate) fn new(spec: &'a KernelSpec, statics: &'a [i32], memory: &'a mut dyn TwinMemory) -> Self {
        Self { spec, statics, memory }
    }

    fn index(&self, name: &str) -> Result<usize> {
        let found = self.spec.tensors.iter().position(|tensor| tensor.name == name);
        found.ok_or_else(|| self.error(format!("there is no tensor \"{name}\"")))
    }

    fn tensor<T: Element>(&self, name: &str) -> Result<(usize, &TensorNode)> {
        let index = self.index(name)?;
        let node = &self.spec.tensors[index].node;
        if T::fits(node.dtype()) {
            return Ok((index, node));
        }
        Err(self.error(format!("tensor \"{name}\" is {}, not {}", node.dtype(), T::DTYPE)))
    }

    /// The elements of a tensor, as they were before this run wrote anything to it.
    ///
    /// # Errors
    /// `KernelInterface` for a tensor that is not there, or has another dtype.
    pub fn load<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        let (index, _) = self.tensor::<T>(name)?;
        Ok(bytemuck::pod_collect_to_vec(&self.memory.read(index)?))
    }

    /// Sets the elements of a tensor, all of them.
    ///
    /// # Errors
    /// `KernelInterface` for a tensor that is not there, is declared `read`, or has another dtype or length.
    pub fn store<T: Element>(&mut self, name: &str, elements: &[T]) -> Result<()> {
        let (index, node) = self.tensor::<T>(name)?;
        let len = node.element_len();
        if !self.spec.tensors[index].access.writes() {
            return Err(self.error(format!("tensor \"{name}\" is declared read")));
        }
        if len != elements.len() as u64 {
            return Err(self.error(format!("tensor \"{name}\" has {len} elements, not {}", elements.len())));
        }
        self.memory.write(index, bytemuck::cast_slice(elements))
    }

    /// The bytes of a tensor, whatever its dtype, as [`TwinArgs::load`] gives its elements.
    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        self.memory.read(self.index(name)?)
    }

    /// Sets the bytes of a tensor, all of them, as they came from [`TwinArgs::bytes`].
    pub(crate) fn set_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let index = self.index(name)?;
        self.memory.write(index, bytes)
    }

    /// The value of a static.
    ///
    /// # Errors
    /// `KernelInterface` for one that is not declared.
    pub fn static_value(&self, name: &str) -> Result<i32> {
        let found = self.spec.statics.iter().position(|known| known == name);
        found
            .and_then(|index| self.statics.get(index).copied())
            .ok_or_else(|| self.error(format!("there is no static \"{name}\"")))
    }

    fn error(&self, what: String) -> Error {
        Error::say(ErrorKind::KernelInterface, format_args!("the host twin of \"{}\": {what}", self.spec.name))
    }
}

impl fmt::Debug for TwinArgs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TwinArgs({:?}, {:?})", self.spec.name, self.statics)
    }
}

type TwinFunction = dyn Fn(&mut TwinArgs<'_>) -> Result<()> + Send + Sync;

/// A Rust function that does what a kernel does.
#[derive(Clone)]
pub struct HostTwin {
    function: Arc<TwinFunction>,
}

impl HostTwin {
    pub(crate) fn new(function: impl Fn(&mut TwinArgs<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { function: Arc::new(function) }
    }

    pub(crate) fn call(&self, args: &mut TwinArgs<'_>) -> Result<()> {
        (self.function)(args)
    }
}

impl fmt::Debug for HostTwin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostTwin")
    }
}
