//! Routines: linked and runnable.

use std::fmt;
use std::sync::Arc;

use crate::backend::compile::Code;
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::node::{NodeId, TensorNode};

/// A linked kernel. Cheap to clone; it keeps its context.
pub struct Routine<D: Driver> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Driver> {
    context: Context<D>,
    code: Code<D>,
    linked: D::Linked,
    written: Vec<NodeId>,
}

impl<D: Driver> Routine<D> {
    pub(crate) fn new(context: Context<D>, code: Code<D>, linked: D::Linked) -> Self {
        let written =
            code.spec().tensors.iter().filter(|tensor| tensor.access.writes()).map(|tensor| tensor.node.id()).collect();
        let inner = Arc::new(Inner { context, code, linked, written });
        Self { inner }
    }

    /// The context with the nodes that the routine creates. Finalizing it ends the routine.
    pub fn context(&self) -> &Context<D> {
        &self.inner.context
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        self.inner.code.name()
    }

    /// What was linked.
    pub fn code(&self) -> &Code<D> {
        &self.inner.code
    }

    /// The names of the integers that [`Routine::run_with`] wants, in order.
    pub fn bindings(&self) -> &[String] {
        &self.inner.code.spec().statics
    }

    /// The nodes that the routine looks at.
    pub fn inputs(&self) -> Vec<TensorNode> {
        self.nodes_with(|access| access.reads())
    }

    /// The nodes that the routine may change.
    pub fn outputs(&self) -> Vec<TensorNode> {
        self.nodes_with(|access| access.writes())
    }

    fn nodes_with(&self, wanted: impl Fn(crate::wgsl::spec::Access) -> bool) -> Vec<TensorNode> {
        let mut nodes: Vec<TensorNode> = Vec::new();
        for tensor in self.inner.code.spec().tensors.iter().filter(|tensor| wanted(tensor.access)) {
            if !nodes.contains(&tensor.node) {
                nodes.push(tensor.node.clone());
            }
        }
        nodes
    }

    /// How the tensors are bound, and why.
    pub fn explain(&self) -> String {
        D::explain(&self.inner.linked)
    }

    /// Records one run of a routine without statics. It returns at once.
    ///
    /// # Errors
    /// `KernelInterface` if there are statics to give; `Disposed`, `DeviceLost`. What goes wrong later is the event's.
    pub fn run(&self) -> Result<Event<D>> {
        self.run_values(&[])
    }

    /// Records one run with a value for each static, by name, in any order. It returns at once.
    ///
    /// # Errors
    /// `KernelInterface` for a static that is missing, unknown or given twice; else as [`Routine::run`].
    pub fn run_with(&self, statics: &[(&str, i32)]) -> Result<Event<D>> {
        let names = self.bindings();
        let mut values = vec![None; names.len()];
        for (name, value) in statics {
            let slot = names.iter().position(|known| known == name).and_then(|index| values.get_mut(index));
            match slot {
                Some(slot @ None) => *slot = Some(*value),
                Some(Some(_)) => return Err(self.static_error(&format!("static \"{name}\" is given twice"))),
                None => return Err(self.static_error(&format!("there is no static \"{name}\""))),
            }
        }
        let missing = values.iter().position(Option::is_none).and_then(|index| names.get(index));
        if let Some(name) = missing {
            return Err(self.static_error(&format!("static \"{name}\" is missing")));
        }
        let values: Vec<i32> = values.into_iter().flatten().collect();
        self.run_values(&values)
    }

    /// Records one run with the values of the statics, in the order of [`Routine::bindings`].
    ///
    /// # Errors
    /// `KernelInterface` for a wrong number of values; else as [`Routine::run`].
    pub fn run_values(&self, statics: &[i32]) -> Result<Event<D>> {
        let Inner { context, linked, written, .. } = &*self.inner;
        if statics.len() != self.bindings().len() {
            return Err(self.static_error(&format!("{} values were given", statics.len())));
        }
        let named = |error: Error| error.context(format_args!("run \"{}\"", self.name()));
        context.check_live().map_err(named)?;
        let event = D::run(context.device().runner(), linked, statics).map(Event::new).map_err(named)?;
        context.device().wrote(written, &event);
        Ok(event)
    }

    fn static_error(&self, what: &str) -> Error {
        let names = self.bindings();
        let wants =
            if names.is_empty() { "it has no statics".to_owned() } else { format!("it wants {}", names.join(", ")) };
        Error::new(ErrorKind::KernelInterface, format!("run \"{}\": {what}; {wants}", self.name()))
    }
}

impl<D: Driver> Clone for Routine<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: Driver> fmt::Debug for Routine<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Routine({:?}, {:?})", self.name(), self.inner.linked)
    }
}
