//! A device's part of the training: the data, its own weights, and the routines of its steps.

use wgslab::{Context, Device, Driver, Landing, Routine, Sequence};

use crate::native::Result;
use crate::native::data::Digits;
use crate::native::program::{Nodes, Program, link};
use crate::native::training::{Shared, Training};

/// A network on a device, from its first weights on.
#[derive(Debug)]
pub struct Replica<D: Driver> {
    nodes: Nodes,
    /// The end of the line of contexts, which has everything.
    context: Context<D>,
    /// From a batch to the gradients.
    step: Sequence<D>,
    seed: i32,
    setup: Vec<Routine<D>>,
}

/// A replica that can change its weights.
#[derive(Debug)]
pub struct Trainer<D: Driver> {
    replica: Replica<D>,
    /// From the gradients, and those of the other device if there is one, to the next weights.
    update: Sequence<D>,
    test: Sequence<D>,
}

impl<D: Driver> Replica<D> {
    /// Uploads the digits and links what computes the gradients.
    pub async fn new(
        device: &Device<D>,
        (network, training): (&Program, &Training),
        digits: &Digits,
        shared: &Shared,
    ) -> Result<Self> {
        let Shared { batches, nodes, views } = shared;
        let mut inputs = Vec::new();
        for name in &network.inputs {
            inputs.push((nodes.get(name)?, digits.input(name, &network.hyperparameters, *batches)?));
        }
        let inputs: Vec<_> = inputs.iter().map(|(node, bytes)| (*node, bytes.as_ref())).collect();
        let state = nodes.get_all(&training.state)?;
        // The weights are one node, and each layer's a view of it; so are the gradients, which travel in one piece.
        let loaded = Context::root(device).init_from_host_many(&inputs)?.init_zeros(&state)?;
        let mut context = loaded.alias(&views.iter().collect::<Vec<_>>())?;
        let setup = link(&mut context, &network.setup, nodes).await?;
        let step = sequence(&link(&mut context, &training.step, nodes).await?)?;
        Ok(Self { nodes: nodes.clone(), context, step, seed: network.hyperparameters.seed, setup })
    }

    /// Links what changes the weights: by the mean of both gradients where there is another device, else by the own.
    pub async fn join(self, other: Option<&Context<D>>, network: &Program, training: &Training) -> Result<Trainer<D>> {
        let Self { mut nodes, mut context, .. } = self;
        let (exchange, mut update) = (&training.exchange, Vec::new());
        let gradients = nodes.get(&exchange.node)?.clone();
        match other {
            Some(other) => {
                let copy = context.device_to_device(&gradients, Landing::MergeBuffer, other)?;
                let copy = copy.ok_or("nothing to copy between the devices")?;
                // The context of the copy carries the node that the merge buffer holds: who merges it is linked there.
                context = copy.context().clone();
                update.push(copy);
                let merging = nodes.clone().merging(&exchange.merged_as, gradients);
                update.extend(link(&mut context, &training.merge, &merging).await?);
            }
            // What it has is all there is.
            None => nodes.insert(&exchange.merged_into, gradients),
        }
        update.extend(link(&mut context, &training.update, &nodes).await?);
        let test = sequence(&link(&mut context, &network.test, &nodes).await?)?;
        let replica = Self { nodes, context, ..self };
        Ok(Trainer { replica, update: sequence(&update)?, test })
    }

    /// The context that has the gradients.
    pub fn context(&self) -> &Context<D> {
        &self.context
    }
}

impl<D: Driver> Trainer<D> {
    /// Gives the weights their first values.
    pub fn start(&self) -> Result<()> {
        for routine in &self.replica.setup {
            routine.run_with(&[("seed", self.replica.seed)])?;
        }
        Ok(())
    }

    /// Queues a step up to the gradients, on the batch of that number.
    pub fn queue_gradients(&self, batch: u32) -> Result<()> {
        self.replica.step.run_with(1, |_, _, _| batch as i32)?;
        Ok(())
    }

    /// Queues the change of the weights. Where there is another device, its gradients are taken as they are now.
    pub fn queue_update(&self) -> Result<()> {
        self.update.run(1)?;
        Ok(())
    }

    /// Queues a read of the losses.
    pub fn read_losses(&self) -> Result<impl Future<Output = wgslab::Result<Vec<f32>>> + use<D>> {
        Ok(self.replica.context.to_host(self.replica.nodes.get("losses")?))
    }

    /// The weights, all layers'.
    pub async fn weights(&self) -> Result<Vec<f32>> {
        Ok(self.replica.context.to_host(self.replica.nodes.get("weights")?).await?)
    }

    /// The share of the test rows that are read right.
    pub async fn test(&self, outputs: &[String]) -> Result<f64> {
        self.test.run(1)?;
        let read = self.replica.context.to_host_many(&self.replica.nodes.get_all(outputs)?).await?;
        let accuracy = read.first().ok_or("program.json: outputs must begin with accuracy")?;
        Ok(bytemuck::pod_read_unaligned::<f32>(accuracy).into())
    }
}

/// The routines as one call; the number of the batch is the only static that they have.
fn sequence<D: Driver>(routines: &[Routine<D>]) -> Result<Sequence<D>> {
    const BATCH: &[(&str, i32)] = &[("batch", 0)];
    let steps = routines.iter().map(|routine| (routine, if routine.bindings().is_empty() { &[] } else { BATCH }));
    Ok(Sequence::record(steps)?)
}
