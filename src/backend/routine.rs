//! Routines: linked and runnable.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::across::record_across;
use crate::backend::compile::Code;
use crate::backend::nodes::InOut;
#[cfg(feature = "notation")]
use crate::backend::virtuals::LinkedVirtuals;
use crate::context::lineage::{Lineage, Mark, OwnMark, RoutineId, Touched};
use crate::context::{Context, ContextBuilder};
use crate::driver::Driver;
use crate::driver::event::DriverEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::node::{TensorNode, joined};
use crate::slab::loc::BufferLoc;

/// A linked kernel. Cheap to clone; it keeps its context.
pub struct Routine<D: Driver> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Driver> {
    context: Context<D>,
    work: Work<D>,
    in_out: InOut,
    /// The node that the merge buffer must hold.
    merge_input: Option<TensorNode>,
    #[cfg(feature = "notation")]
    virtuals: LinkedVirtuals,
    mark: OwnMark,
    deps: Vec<Arc<Mark>>,
    /// Whether every dependency was seen to have run; it stays so.
    free: AtomicBool,
}

/// What a routine does.
pub(crate) enum Work<D: Driver> {
    /// Runs kernels, one after the other.
    Kernels { code: Code<D>, linked: Vec<D::Linked> },
    /// Copies a node from a context of this or another device; `merged` is the node if it goes into the merge buffer. The source is kept alive.
    Copy { source: Context<D>, from: BufferLoc, to: BufferLoc, len_bytes: u64, merged: Option<TensorNode> },
}

/// A routine's place in its line of contexts, known before it is linked.
#[derive(Debug)]
pub(crate) struct Place {
    mark: OwnMark,
    deps: Vec<Arc<Mark>>,
    in_out: InOut,
    #[cfg(feature = "notation")]
    virtuals: LinkedVirtuals,
}

impl Place {
    /// The place behind `context` of a kernel, and the child that is behind that. `scratch` stands for memory that it shares
    /// with others.
    pub(crate) fn behind<D: Driver>(
        context: &Context<D>,
        code: &Code<D>,
        scratch: Option<&TensorNode>,
    ) -> Result<(Self, ContextBuilder<D>)> {
        let mut in_out = code.nodes().in_out.clone();
        if let Some(scratch) = scratch {
            in_out.writes = Arc::new(Touched::new(in_out.kept_outputs().chain([scratch])));
        }
        #[cfg_attr(not(feature = "notation"), allow(unused_mut))]
        let (mut place, lineage) = Self::between(context.lineage(), code.name(), in_out);
        #[cfg_attr(not(feature = "notation"), allow(unused_mut))]
        let mut child = context.child().lineage(lineage);
        #[cfg(feature = "notation")]
        {
            place.virtuals = LinkedVirtuals::behind(context, code.virtuals(), code.name())?;
            child = child.optimize_ctx(place.virtuals.optimize_ctx(context));
        }
        Ok((place, child))
    }

    /// The same place, behind those too that write a node in another line of contexts.
    pub(crate) fn behind_writers(mut self, line: &Lineage, node: &TensorNode) -> Self {
        for writer in line.deps(&Touched::new([node]), &Touched::default()) {
            if !self.deps.iter().any(|known| Arc::ptr_eq(known, &writer)) {
                self.deps.push(writer);
            }
        }
        self
    }

    /// The place behind a lineage of something that reads and writes those nodes, and the lineage behind that.
    pub(crate) fn between(before: &Lineage, name: &str, in_out: InOut) -> (Self, Lineage) {
        let deps = before.deps(&in_out.reads, &in_out.writes);
        let mark = OwnMark::new(name, in_out.reads.clone(), in_out.writes.clone());
        let lineage = before.after(&mark);
        let place = Self {
            mark,
            deps,
            in_out,
            #[cfg(feature = "notation")]
            virtuals: LinkedVirtuals::default(),
        };
        (place, lineage)
    }
}

impl<D: Driver> Routine<D> {
    /// A routine in the context that was made for it.
    pub(crate) fn new(context: Context<D>, work: Work<D>, place: Place) -> Self {
        #[cfg(feature = "notation")]
        place.virtuals.linked(&context);
        let Place {
            mark,
            deps,
            in_out,
            #[cfg(feature = "notation")]
            virtuals,
        } = place;
        let merge_input = match &work {
            Work::Kernels { code, .. } => code.merge_input().cloned(),
            Work::Copy { .. } => None,
        };
        let free = AtomicBool::new(deps.is_empty());
        let inner = Inner {
            context,
            work,
            in_out,
            merge_input,
            #[cfg(feature = "notation")]
            virtuals,
            mark,
            deps,
            free,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The identity.
    pub fn id(&self) -> RoutineId {
        self.inner.mark.id
    }

    /// The routines that must run before this one may, and have not yet: those linked before it, in its line of
    /// contexts, that write what it reads, or touch what it writes.
    pub fn execution_deps(&self) -> Vec<(RoutineId, String)> {
        let mut pending = Vec::new();
        for mark in &self.inner.deps {
            if mark.is_pending() {
                pending.push((mark.id, mark.name.clone()));
            }
        }
        pending
    }

    /// Whether everything that must run before has run.
    pub fn can_run(&self) -> bool {
        let Inner { deps, free, .. } = &*self.inner;
        if free.load(Ordering::Acquire) {
            return true;
        }
        let can_run = !deps.iter().any(|mark| mark.is_pending());
        free.store(can_run, Ordering::Release);
        can_run
    }

    fn check_deps(&self) -> Result<()> {
        if self.can_run() { Ok(()) } else { Err(must_wait(&self.execution_deps())) }
    }

    /// The context with the nodes that the routine creates. Finalizing it ends the routine.
    pub fn context(&self) -> &Context<D> {
        &self.inner.context
    }

    /// The kernel's name; a copy is called for its node.
    pub fn name(&self) -> &str {
        &self.inner.mark.name
    }

    /// The code that was linked; `None` for a copy.
    pub fn code(&self) -> Option<&Code<D>> {
        match &self.inner.work {
            Work::Kernels { code, .. } => Some(code),
            Work::Copy { .. } => None,
        }
    }

    /// The node that the merge buffer must hold when the routine runs.
    pub fn merge_buffer_input(&self) -> Option<&TensorNode> {
        self.inner.merge_input.as_ref()
    }

    /// The names of the integers that [`Routine::run_with`] wants, in order.
    pub fn bindings(&self) -> &[String] {
        self.code().map_or(&[], Code::statics)
    }

    /// The nodes that the routine looks at, the merge buffer's aside.
    pub fn inputs(&self) -> &[TensorNode] {
        &self.inner.in_out.inputs
    }

    /// The nodes that the routine may change.
    pub fn outputs(&self) -> &[TensorNode] {
        &self.inner.in_out.outputs
    }

    /// How the tensors are bound, and why.
    pub fn explain(&self) -> String {
        match &self.inner.work {
            Work::Kernels { linked, .. } => joined(linked.iter().map(D::explain), "\n"),
            Work::Copy { from, to, len_bytes, .. } => format!("copy of {len_bytes} bytes from {from} to {to}"),
        }
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
        self.run_values(&self.static_values(statics)?)
    }

    /// The values of the statics in the order of [`Routine::bindings`].
    pub(crate) fn static_values(&self, statics: &[(&str, i32)]) -> Result<Vec<i32>> {
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
        Ok(values.into_iter().flatten().collect())
    }

    /// Records one run with the values of the statics, in the order of [`Routine::bindings`].
    ///
    /// # Errors
    /// `KernelInterface` for a wrong number of values; `NotRun` for a routine that must run first; else as
    /// [`Routine::run`].
    pub fn run_values(&self, statics: &[i32]) -> Result<Event<D>> {
        if statics.len() != self.bindings().len() {
            return Err(self.static_error(&format!("{} values were given", statics.len())));
        }
        self.record(statics).map_err(|error| error.context(format_args!("run \"{}\"", self.name())))
    }

    fn record(&self, statics: &[i32]) -> Result<Event<D>> {
        let Inner { context, work, mark, merge_input, .. } = &*self.inner;
        context.check_live()?;
        self.check_deps()?;
        self.code().map_or(Ok(()), |code| code.check_statics(statics))?;
        let device = context.device();
        if let Some(node) = merge_input {
            device.check_merge_buffer(node)?;
        }
        #[cfg(feature = "notation")]
        self.inner.virtuals.check(device)?;
        let event = match work {
            Work::Kernels { linked, .. } if linked.is_empty() => D::all_work(device.runner()),
            Work::Kernels { linked, .. } => D::run(device.runner(), linked.iter(), statics)?,
            Work::Copy { source, from, to, len_bytes, merged } => {
                source.check_live()?;
                let event = if source.device() == device {
                    D::copy(device.runner(), *from, *to, *len_bytes)?
                } else {
                    record_across(device, *to, source.device(), *from, *len_bytes)?
                };
                if let Some(node) = merged {
                    device.set_merge_buffer(node, event.seq());
                }
                event
            }
        };
        mark.set_run();
        #[cfg(feature = "notation")]
        self.inner.virtuals.set_run(event.seq());
        let event = Event::new(event);
        device.wrote(mark.writes().ids(), &event);
        Ok(event)
    }

    fn static_error(&self, what: &str) -> Error {
        static_error(self.name(), self.bindings(), what)
    }
}

fn static_error(name: &str, wanted: &[String], what: &str) -> Error {
    let wants =
        if wanted.is_empty() { "it has no statics".to_owned() } else { format!("it wants {}", joined(wanted, ", ")) };
    Error::say(ErrorKind::KernelInterface, format_args!("run \"{name}\": {what}; {wants}"))
}

fn must_wait(deps: &[(RoutineId, String)]) -> Error {
    let missing = deps.iter().map(|(id, name)| format!("{id}\"{name}\""));
    let message = format_args!(
        "{} must run first: it was linked before and touches the same nodes; run it, or drop it",
        joined(missing, " and ")
    );
    Error::say(ErrorKind::NotRun, message)
}

impl<D: Driver> Clone for Routine<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: Driver> fmt::Debug for Routine<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Routine({:?}, {})", self.name(), self.explain())
    }
}
