//! Steps that link and run.

use wgslab::{
    Access, Code, Context, DType, Driver, Error, KernelSpec, Landing, MemoryMode, Routine, Sequence, TensorNode,
    kernels,
};

use super::World;
use super::kernels::{Kernel, add, uses_unwritten};

/// The values of a routine's statics.
type Statics = Vec<(&'static str, i32)>;

/// What a step gives that would link a kernel which cannot be.
const NO_KERNEL: &str = "no kernel";

impl<D: Driver> World<'_, D> {
    /// The code of a kernel, compiled if it was not yet.
    async fn code(&mut self, context: &Context<D>, kernel: &Kernel, spec: KernelSpec) -> Result<Code<D>, Error> {
        let device = usize::from(*context.device() == self.devices.both[1]);
        let known = self.codes.iter().find(|(of, other, _)| (*of, other) == (device, kernel));
        if let Some((.., code)) = known {
            return Ok(code.clone());
        }
        let code = context.device().compile(spec).await?;
        self.codes.push((device, kernel.clone(), code.clone()));
        Ok(code)
    }

    pub(super) async fn link(
        &mut self,
        context: usize,
        kernel: &Kernel,
        nodes: &[TensorNode],
    ) -> Result<String, Error> {
        let context = self.context(context).clone();
        let spec = kernel.spec(&context, nodes)?;
        let Some(spec) = spec.filter(|_| !uses_unwritten(kernel, nodes, &[])) else { return Ok(NO_KERNEL.to_owned()) };
        let code = self.code(&context, kernel, spec).await?;
        self.push_routine(context.link(&code).await?)
    }

    pub(super) async fn link_batch(
        &mut self,
        context: usize,
        kernels: &[Kernel],
        nodes: &[TensorNode],
    ) -> Result<String, Error> {
        let context = self.context(context).clone();
        let (mut codes, mut linked, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for kernel in kernels {
            let spec = kernel.spec(&context, nodes)?;
            let Some(spec) = spec.filter(|_| !uses_unwritten(kernel, nodes, &written)) else { continue };
            codes.push(self.code(&context, kernel, spec).await?);
            linked.push(kernel);
            written.push(kernel.to());
        }
        let first = self.routines.len();
        let mut all = Vec::new();
        for routine in context.link_batch(&codes.iter().collect::<Vec<_>>()).await? {
            all.push(self.push_routine(routine)?);
        }
        let is_local = |node: usize| nodes[node].mode() == MemoryMode::Local;
        self.makers.extend((0..linked.len()).filter(|&at| is_local(linked[at].to())).map(|at| first + at));
        Ok(all.join(" | "))
    }

    pub(super) async fn forecast(
        &mut self,
        context: usize,
        kernel: &Kernel,
        nodes: &[TensorNode],
    ) -> Result<String, Error> {
        let context = self.context(context).clone();
        let Some(spec) = kernel.spec(&context, nodes)? else { return Ok(NO_KERNEL.to_owned()) };
        let code = self.code(&context, kernel, spec).await?;
        // What is on its way from another device is in use until it has arrived.
        for device in &self.devices.both {
            device.await_idle().await?;
        }
        let forecast = context.forecast(&code)?;
        Ok(format!("{:?} {:?} {}", forecast.nodes, forecast.slab_sizes_bytes, forecast.in_use_after_bytes))
    }

    pub(super) async fn merge(&mut self, context: usize, node: &TensorNode) -> Result<String, Error> {
        if node.dtype() == DType::F16 || node.mode() == MemoryMode::Local {
            return Ok(NO_KERNEL.to_owned());
        }
        let context = self.context(context).clone();
        let code = context.device().compile(add(node, node, Access::ReadWrite, true)).await?;
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
        let statics: Vec<_> = static_of(routine, amount).into_iter().map(|(_, value)| value).collect();
        routine.run_values(&statics)?;
        Ok(String::new())
    }

    pub(super) fn sequence(&self, steps: &[(usize, i32)], times: u32) -> Result<String, Error> {
        let mut given: Vec<(&Routine<D>, Statics)> = Vec::new();
        for &(routine, amount) in steps {
            let Some(Some(routine)) = self.routines.get(routine) else { return Ok("no routine".to_owned()) };
            given.push((routine, static_of(routine, amount).into_iter().collect()));
        }
        let sequence = Sequence::record(given.iter().map(|(routine, statics)| (*routine, &statics[..])))?;
        // What is filled with stays.
        let value = |replay, name: &str, value| if name == "amount" { value + replay as i32 } else { value };
        sequence.run_with(times, value)?;
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

/// The static of a routine, which is a copy or has one: what to add, or the bits to fill with.
fn static_of<D: Driver>(routine: &Routine<D>, amount: i32) -> Option<(&'static str, i32)> {
    match routine.bindings().first()?.as_str() {
        "bits" => Some(("bits", kernels::fill_bits(routine.outputs()[0].dtype(), f64::from(amount)))),
        _ => Some(("amount", amount)),
    }
}
