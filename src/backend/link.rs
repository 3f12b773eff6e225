//! Linking: code plus context gives a routine. Nodes that the code only writes, and that the context does not have,
//! are the delta: they are created in slabs of the routine's context, filled with zeros.

use std::sync::Arc;

use crate::backend::compile::Code;
use crate::backend::join::Joined;
use crate::backend::merge::check_merge_node;
use crate::backend::nodes::{KernelSlots, LinkPlan};
use crate::backend::routine::{Place, Routine, Work};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};

impl<D: Driver> Context<D> {
    /// Links a code into this context. The routine's context is a child of it, with the nodes that the code creates.
    ///
    /// A refusal leaves nothing behind.
    ///
    /// # Errors
    /// `UnknownNode` for a node that the code reads and the context does not have; `LimitExceeded` where the nodes, or
    /// their bindings, do not fit the device; `KernelInterface`, `OutOfMemory`, `Disposed`, `DeviceLost`.
    pub async fn link(&self, code: &Code<D>) -> Result<Routine<D>> {
        let (place, child, plan) = self.begin_link(code).map_err(named(code))?;
        let linked = child.link_kernels(&[(code, &plan.kernels)]).await?;
        Ok(Routine::new(child, Work::Kernels { code: code.clone(), linked }, place))
    }

    /// The place of a routine, its context, and where its kernels' tensors are. Dropping the context frees what it minted.
    fn begin_link(&self, code: &Code<D>) -> Result<(Place, Self, Arc<LinkPlan>)> {
        self.check_live()?;
        self.check_device(code)?;
        check_merge_input(self, code)?;
        let plan = code.link_plan(self)?;
        let (place, child) = Place::behind(self, code, None)?;
        let child = self.extend_by(child, &plan.delta, true)?;
        Ok((place, child, plan))
    }

    /// Links the kernels of codes, which come in order, with their nodes where the slots say and the delta in the slabs that
    /// this context minted.
    pub(crate) async fn link_kernels(&self, codes: &[(&Code<D>, &[KernelSlots])]) -> Result<Vec<D::Linked>> {
        let mut linking = Joined::new();
        for (code, slots) in codes {
            for ((_, kernel), slots) in code.kernels().zip(*slots) {
                linking.add(D::link(self.device().runner(), kernel, slots.placed(self).map_err(named(code))?));
            }
        }
        let mut outcomes = linking.outputs().await.into_iter();
        let mut linked = Vec::new();
        for (code, slots) in codes {
            for outcome in outcomes.by_ref().take(slots.len()) {
                linked.push(outcome.map_err(named(code))?);
            }
        }
        Ok(linked)
    }

    /// Refuses a code of another device.
    pub(crate) fn check_device(&self, code: &Code<D>) -> Result<()> {
        if code.device_id() == self.device().device_id() {
            return Ok(());
        }
        let message =
            format_args!("it was compiled for another device than {}; compile it there", self.device().name());
        Err(Error::say(ErrorKind::KernelInterface, message))
    }
}

/// Refuses a code that merges another node than the one that the context's merge buffer will hold.
pub(crate) fn check_merge_input<D: Driver>(context: &Context<D>, code: &Code<D>) -> Result<()> {
    code.merge_input().map_or(Ok(()), |node| check_merge_node(context, node))
}

/// Says of which code's link an error is.
pub(crate) fn named<D: Driver>(code: &Code<D>) -> impl Fn(Error) -> Error + '_ {
    move |error| error.context(format_args!("link \"{}\"", code.name()))
}
