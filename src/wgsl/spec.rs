//! What the author of a raw kernel declares: the text, the tensors, the statics and the grid.

use std::fmt;
use std::str::FromStr;
#[cfg(feature = "notation")]
use std::sync::Arc;

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "notation")]
use crate::loops::ir::{BufferIndex, Loops};
use crate::node::TensorNode;
#[cfg(feature = "notation")]
use crate::notation::spec::Binding;
#[cfg(feature = "notation")]
use crate::schedule::{Candidate, Schedule};
use crate::wgsl::twin::{HostTwin, TwinArgs};

/// What a kernel does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// `load_x` only.
    Read,
    /// `store_x` only. Linking creates the node, filled with zeros, where the context does not have it.
    Write,
    /// `load_x` and `store_x`.
    ReadWrite,
    /// As `ReadWrite`, and `atomic_add_x`, `atomic_mul_x`, `atomic_max_x`, `atomic_min_x`; for `f32`, `i32` and `u32`.
    Atomic,
}

impl Access {
    /// Whether the kernel may change the tensor.
    pub const fn writes(self) -> bool {
        !matches!(self, Access::Read)
    }

    /// Whether the kernel looks at what is in the tensor.
    pub const fn reads(self) -> bool {
        !matches!(self, Access::Write)
    }

    /// The name in case files and in JavaScript.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::ReadWrite => "read_write",
            Access::Atomic => "atomic",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Access {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Access::Read, Access::Write, Access::ReadWrite, Access::Atomic]
            .into_iter()
            .find(|access| access.name() == text)
            .ok_or_else(|| {
                Error::say(
                    ErrorKind::KernelInterface,
                    format_args!("unknown access \"{text}\"; use one of read, write, read_write, atomic"),
                )
            })
    }
}

/// One tensor of a kernel: the name that the text uses, the node behind it, and what the kernel does with it.
#[derive(Clone, Debug)]
pub struct KernelTensor {
    /// The name in `load_NAME`, `store_NAME`, `len_NAME`.
    pub name: String,
    /// The node; its dtype and shape are compiled in.
    pub node: TensorNode,
    /// What the kernel does with it.
    pub access: Access,
    /// Whether it is read from the device's merge buffer instead of the context.
    pub merged: bool,
}

/// A raw kernel, ready to be compiled.
///
/// The text is a WGSL module with one `@compute` entry point and no bindings of its own. For each tensor `x` it may
/// use `len_x` and `dim_x_0`, `dim_x_1` … (constants, `u32`), `load_x(i: u32)` (zero where `i >= len_x`),
/// `store_x(i: u32, v)` (nothing where `i >= len_x`) and the atomics; for each static `s`, `static_s()` (`i32`).
/// Narrow types are seen as their wide ones: `f16` and `bf16` as `f32`, `i8` as `i32`, `u8` as `u32`.
#[derive(Clone, Debug)]
pub struct KernelSpec {
    /// The name that messages and reports use.
    pub name: String,
    /// The author's WGSL.
    pub text: String,
    /// The tensors, in the order declared.
    pub tensors: Vec<KernelTensor>,
    /// The names of the integers that are given when the routine is run.
    pub statics: Vec<String>,
    /// Workgroups in x, y and z.
    pub grid: [u32; 3],
    /// What the host driver does in its place.
    pub twin: Option<HostTwin>,
    /// The loop nest that the text was made from, which the host driver runs in its place.
    #[cfg(feature = "notation")]
    pub(crate) nest: Option<NestOf>,
}

/// A nest of a program, and the buffers that the tensors of its kernel are.
#[cfg(feature = "notation")]
#[derive(Clone, Debug)]
pub(crate) struct NestOf {
    pub(crate) loops: Arc<Loops>,
    pub(crate) nest: usize,
    /// Per tensor of the kernel.
    pub(crate) buffers: Vec<BufferIndex>,
    /// Whether it takes floats by fours: heaps of floats are vectors then.
    pub(crate) by_fours: bool,
    /// The schedules that there are, at least one.
    pub(crate) candidates: Arc<Vec<Candidate>>,
    /// The number of the one that was chosen.
    pub(crate) chosen: usize,
    /// Workgroups of a grid, per dimension.
    pub(crate) most_workgroups: u32,
}

#[cfg(feature = "notation")]
impl NestOf {
    /// The schedule that was chosen.
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.candidates[self.chosen].schedule
    }
}

impl KernelSpec {
    /// A kernel without tensors, on a grid of one workgroup.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            tensors: Vec::new(),
            statics: Vec::new(),
            grid: [1, 1, 1],
            twin: None,
            #[cfg(feature = "notation")]
            nest: None,
        }
    }

    /// Adds a tensor. One node may stand under several names.
    #[must_use]
    pub fn tensor(mut self, name: impl Into<String>, node: &TensorNode, access: Access) -> Self {
        self.tensors.push(KernelTensor { name: name.into(), node: node.clone(), access, merged: false });
        self
    }

    /// Adds a tensor that is read from the device's merge buffer, which must hold `node`: the copy that puts it there is
    /// `Context::device_to_device`. A kernel has one at most.
    #[must_use]
    pub fn merge_tensor(mut self, name: impl Into<String>, node: &TensorNode) -> Self {
        self.tensors.push(KernelTensor { name: name.into(), node: node.clone(), access: Access::Read, merged: true });
        self
    }

    /// The node that is read from the merge buffer.
    pub fn merge_input(&self) -> Option<&TensorNode> {
        self.tensors.iter().find(|tensor| tensor.merged).map(|tensor| &tensor.node)
    }

    /// Declares integers that are given when the routine is run.
    #[must_use]
    pub fn statics<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.statics.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the number of workgroups in x, y and z. A zero makes every run do nothing.
    #[must_use]
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.grid = grid;
        self
    }

    /// Sets a Rust function that does the same, for the host driver. A grid with a zero never calls it.
    #[must_use]
    pub fn twin(mut self, twin: impl Fn(&mut TwinArgs<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        self.twin = Some(HostTwin::new(twin));
        self
    }

    /// The schedules that there are, if it is a program's.
    #[cfg(feature = "notation")]
    pub(crate) fn candidates(&self) -> &[Candidate] {
        self.nest.as_ref().map_or(&[], |of| &of.candidates)
    }

    /// Whether each tensor is to have a binding of its own, where that is legal.
    #[cfg(feature = "notation")]
    pub(crate) fn wants_direct(&self) -> bool {
        self.nest.as_ref().is_some_and(|of| of.schedule().binding == Binding::Direct)
    }

    /// Raw kernels reach their tensors as they always can.
    #[cfg(not(feature = "notation"))]
    pub(crate) fn wants_direct(&self) -> bool {
        false
    }

    /// What messages and reports call a tensor: a program's author knows the node's label, and none of the kernel's names.
    pub(crate) fn word_of<'a>(&self, tensor: &'a KernelTensor) -> &'a str {
        #[cfg(feature = "notation")]
        if self.nest.is_some() {
            return tensor.node.label();
        }
        &tensor.name
    }

    /// 32-bit words of the parameter block: one offset per tensor, then the statics.
    pub fn param_words(&self) -> usize {
        self.tensors.len() + self.statics.len()
    }
}
