//! Steps that link and run.

use wgslab::{Access, Code, Context, DType, Driver, Error, Landing, Routine, Sequence, TensorNode};

use super::World;
use super::kernels::kernel;

/// A routine of a sequence, with its statics.
type Step<'a, D> = (&'a Routine<D>, &'a [(&'a str, i32)]);

/// What a step gives that would link a kernel which cannot be.
const NO_KERNEL: &str = "no kernel";

impl<D: Driver> World<'_, D> {
    /// The kernel over two nodes of a context; `None` for types that it does not know, and for nodes that overlap, which
    /// would be a race whatever the device layer does.
    async fn code(
        &self,
        context: &Context<D>,
        (from, to): (&TensorNode, &TensorNode),
        in_place: bool,
    ) -> Result<Option<Code<D>>, Error> {
        if from.dtype() != to.dtype() || from.dtype() == DType::F16 || overlap(context, from, to) {
            return Ok(None);
        }
        let access = if in_place || from == to { Access::ReadWrite } else { Access::Write };
        context.device().compile(kernel(from, to, access, false)).await.map(Some)
    }

    pub(super) async fn link(
        &mut self,
        context: usize,
        from: &TensorNode,
        to: &TensorNode,
        in_place: bool,
    ) -> Result<String, Error> {
        let context = self.context(context).clone();
        let Some(code) = self.code(&context, (from, to), in_place).await? else { return Ok(NO_KERNEL.to_owned()) };
        self.push_routine(context.link(&code).await?)
    }

    pub(super) async fn link_batch(
        &mut self,
        context: usize,
        kernels: &[(usize, usize, bool)],
        nodes: &[TensorNode],
    ) -> Result<String, Error> {
        let context = self.context(context).clone();
        let mut codes = Vec::new();
        for &(from, to, in_place) in kernels {
            codes.extend(self.code(&context, (&nodes[from], &nodes[to]), in_place).await?);
        }
        let mut all = Vec::new();
        for routine in context.link_batch(&codes.iter().collect::<Vec<_>>()).await? {
            all.push(self.push_routine(routine)?);
        }
        Ok(all.join(" | "))
    }

    pub(super) async fn forecast(
        &self,
        context: usize,
        from: &TensorNode,
        to: &TensorNode,
        in_place: bool,
    ) -> Result<String, Error> {
        let context = self.context(context);
        let Some(code) = self.code(context, (from, to), in_place).await? else { return Ok(NO_KERNEL.to_owned()) };
        // What is on its way from another device is in use until it has arrived.
        for device in &self.devices.both {
            device.await_idle().await?;
        }
        let forecast = context.forecast(&code)?;
        Ok(format!("{:?} {:?} {}", forecast.nodes, forecast.slab_sizes_bytes, forecast.in_use_after_bytes))
    }

    pub(super) async fn merge(&mut self, context: usize, node: &TensorNode) -> Result<String, Error> {
        if node.dtype() == DType::F16 {
            return Ok(NO_KERNEL.to_owned());
        }
        let context = self.context(context).clone();
        let code = context.device().compile(kernel(node, node, Access::ReadWrite, true)).await?;
        self.push_routine(context.link(&code).await?)
    }

    pub(super) fn transfer(
        &mut self,
        context: usize,
        node: &TensorNode,
        source: usize,
        into: Landing,
    ) -> Result<String, Error> {
        let (to, from) = (self.context(context), self.context(source));
        let Some(routine) = to.device_to_device(node, into, from)? else { return Ok("nothing to move".to_owned()) };
        self.push_routine(routine)
    }

    pub(super) fn run(&self, routine: usize, amount: i32) -> Result<String, Error> {
        let Some(Some(routine)) = self.routines.get(routine) else { return Ok("no routine".to_owned()) };
        let statics: &[i32] = if routine.bindings().is_empty() { &[] } else { &[amount] };
        routine.run_values(statics)?;
        Ok(String::new())
    }

    pub(super) fn sequence(&self, steps: &[(usize, i32)], times: u32) -> Result<String, Error> {
        let given: Vec<_> = steps.iter().map(|&(_, amount)| [("amount", amount)]).collect();
        let mut recorded: Vec<Step<'_, D>> = Vec::new();
        for (&(routine, _), given) in steps.iter().zip(&given) {
            let Some(Some(routine)) = self.routines.get(routine) else { return Ok("no routine".to_owned()) };
            recorded.push((routine, if routine.bindings().is_empty() { &[] } else { given }));
        }
        let sequence = Sequence::record(recorded)?;
        sequence.run_with(times, |replay, _, amount| amount + replay as i32)?;
        Ok(String::new())
    }

    /// The routines that one waits for, by index.
    pub(super) fn waits(&self, routine: &Routine<D>) -> Vec<usize> {
        let position = |id| self.routines.iter().position(|known| known.as_ref().is_some_and(|known| known.id() == id));
        let mut waits: Vec<_> =
            routine.execution_deps().into_iter().map(|(id, _)| position(id).unwrap_or(usize::MAX)).collect();
        assert_eq!(waits.is_empty(), routine.can_run(), "{routine:?} waits for {waits:?}");
        waits.sort_unstable();
        waits
    }
}

/// Whether two nodes of a context share a byte.
fn overlap<D: Driver>(context: &Context<D>, from: &TensorNode, to: &TensorNode) -> bool {
    match (context.loc(from), context.loc(to)) {
        (Some(a), Some(b)) if from != to && a.pool_id == b.pool_id => {
            a.offset < b.offset + to.size_bytes() && b.offset < a.offset + from.size_bytes()
        }
        _ => false,
    }
}
