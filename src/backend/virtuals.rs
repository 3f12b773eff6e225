//! Virtual nodes of codes and routines.

use std::sync::Arc;

use crate::context::Context;
use crate::device::Device;
use crate::driver::Driver;
use crate::driver::optimize_ctx::{OptimizeCtx, Virtual};
use crate::error::{Error, ErrorKind, Result};
use crate::loops::virtuals::Computation;
use crate::node::TensorNode;
use crate::slab::loc::BufferLoc;

/// A node, and how it is computed.
type Computed = (TensorNode, Arc<Computation>);

/// The virtual nodes of a code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Virtuals {
    /// What was known when it was compiled.
    pub(crate) known: OptimizeCtx,
    /// What it reads, and computes anew.
    pub(crate) uses: Vec<Computed>,
    /// What it writes, and leaves to those after it.
    pub(crate) leaves: Vec<Computed>,
}

impl Virtuals {
    /// The nodes that what it leaves is made of.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &TensorNode> {
        self.leaves.iter().flat_map(|(_, how)| how.reads())
    }
}

/// The virtual nodes of a routine.
#[derive(Debug, Default)]
pub(crate) struct LinkedVirtuals {
    uses: Vec<Virtual>,
    leaves: Vec<Virtual>,
}

fn locs<D: Driver>(context: &Context<D>, how: &Computation) -> Vec<Option<BufferLoc>> {
    let mut locs = Vec::new();
    for node in how.reads() {
        locs.push(context.loc(node));
    }
    locs
}

impl LinkedVirtuals {
    /// Those of a code that is linked behind a context.
    ///
    /// # Errors
    /// `UnknownNode` where nothing that was linked before leaves a node as the code was compiled to compute it.
    pub(crate) fn behind<D: Driver>(context: &Context<D>, code: &Virtuals, name: &str) -> Result<Self> {
        let known = context.optimize_ctx().as_ref();
        let mut uses = Vec::new();
        for (node, how) in &code.uses {
            let left = known.get(node).filter(|left| Arc::ptr_eq(&left.computation, how));
            let left = left.filter(|left| left.is_at(context.device().device_id().0, &locs(context, how))).ok_or_else(|| {
                let message = format_args!(
                    "node {node} is virtual, and no routine of this line of contexts leaves it as it was compiled in; link \
                     that one first, and compile with the context's optimize_ctx"
                );
                Error::say(ErrorKind::UnknownNode, message)
            })?;
            uses.push(left.clone());
        }
        let mut leaves = Vec::new();
        for (node, how) in &code.leaves {
            leaves.push(Virtual::new(node.clone(), how.clone(), name));
        }
        Ok(Self { uses, leaves })
    }

    /// What is known behind the routine.
    pub(crate) fn optimize_ctx<D: Driver>(&self, before: &Context<D>) -> D::OptimizeCtx {
        before.optimize_ctx().as_ref().with(&self.leaves).into()
    }

    /// Says where what they are made of is in the routine's context.
    pub(crate) fn linked<D: Driver>(&self, context: &Context<D>) {
        let device_id = context.device().device_id().0;
        self.leaves.iter().for_each(|left| left.set_place(device_id, locs(context, &left.computation)));
    }

    /// Refuses to compute a node from other values than it was made of.
    ///
    /// # Errors
    /// `NotRun`.
    pub(crate) fn check<D: Driver>(&self, device: &Device<D>) -> Result<()> {
        for left in &self.uses {
            let Some(ran) = left.ran() else {
                return Err(must_run(left, "computes it has not run", left.routine()));
            };
            let is_new = |node: &&TensorNode| device.last_write(node).is_some_and(|seq| seq > ran);
            if let Some(node) = left.computation.reads().iter().find(is_new) {
                let what = format!("computes it from {node} ran before that was written");
                return Err(must_run(left, &what, left.routine()));
            }
        }
        Ok(())
    }

    /// Notes that the routine ran, and how much was recorded then.
    pub(crate) fn set_run(&self, seq: u64) {
        self.leaves.iter().for_each(|left| left.set_run(seq));
    }
}

fn must_run(left: &Virtual, what: &str, routine: &str) -> Error {
    let node = &left.node;
    let message =
        format_args!("node {node} is virtual, and what {what}; run \"{routine}\" now, or make the node on_device");
    Error::say(ErrorKind::NotRun, message)
}
