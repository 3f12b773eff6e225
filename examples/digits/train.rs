//! The trainer: uploads the digits once, links the programs, and runs the steps. The host only reads the losses every few
//! steps.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use wgslab::{AdapterInfo, Context, Device, Driver, MemoryReport};

use crate::native::Result;
use crate::native::data::Digits;
use crate::native::program::{Batches, Nodes, Program, link};

/// The result, under the names that the page's result has.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub driver: &'static str,
    pub adapter: AdapterInfo,
    /// The share of the test rows that were read right.
    pub test_accuracy: f64,
    /// The losses that were reported, by step.
    pub losses: Vec<Loss>,
    pub steps_per_second: f64,
    /// Where each node is: pool and offset in bytes.
    pub buffer_locs: BTreeMap<String, (u32, u64)>,
    pub peak_bytes: u64,
    /// How often each digit, a row, was read as which, a column.
    #[serde(skip)]
    pub confusion: Vec<i32>,
    #[serde(skip)]
    pub report: MemoryReport,
}

/// The loss of one step.
#[derive(Debug, Serialize)]
pub struct Loss {
    pub step: u32,
    pub loss: f32,
}

/// Trains from the first weights and tests. `progress` is called with steps done, steps in all, and the loss.
pub async fn train<D: Driver>(
    device: &Device<D>,
    program: &Program,
    digits: &Digits,
    epochs: u32,
    progress: impl Fn(u32, u32, f32),
) -> Result<Outcome> {
    let steps = epochs * program.steps_per_epoch(digits.train_order.len());
    let batches = Batches { count: steps, rows: program.hyperparameters.batch };
    let nodes = Nodes::new(&program.nodes, batches)?;

    let mut inputs = Vec::new();
    for name in &program.inputs {
        inputs.push((nodes.get(name)?, digits.input(name, &program.hyperparameters, batches)?));
    }
    let inputs: Vec<_> = inputs.iter().map(|(node, bytes)| (*node, bytes.as_ref())).collect();
    let state = nodes.get_all(&program.state)?;
    let mut context = Context::root(device).init_from_host_many(&inputs)?.init_zeros(&state)?;

    let setup = link(&mut context, &program.setup, &nodes).await?;
    let step = link(&mut context, &program.step, &nodes).await?;
    let test = link(&mut context, &program.test, &nodes).await?;

    for routine in &setup {
        routine.run_with(&[("seed", program.hyperparameters.seed)])?;
    }
    let loss_node = nodes.get("losses")?;
    let mut losses = Vec::new();
    let mut on_its_way = None;
    let start = Instant::now();
    for index in 0..steps {
        for routine in &step {
            routine.run_with(&[("batch", index as i32)])?;
        }
        if (index + 1) % program.read_loss_every != 0 && index + 1 != steps {
            continue;
        }
        // The read is recorded now, and awaited when the next steps are recorded too: the device never idles.
        if let Some(earlier) = on_its_way.replace((index, context.to_host(loss_node))) {
            losses.push(arrive(earlier, steps, &progress).await?);
        }
    }
    if let Some(last) = on_its_way {
        losses.push(arrive(last, steps, &progress).await?);
    }
    let seconds = start.elapsed().as_secs_f64();

    for routine in &test {
        routine.run()?;
    }
    let read = context.to_host_many(&nodes.get_all(&program.outputs)?).await?;
    let [accuracy, confusion, ..] = read.as_slice() else {
        return Err("program.json: outputs must begin with accuracy and confusion".into());
    };
    let accuracy: f32 = bytemuck::pod_read_unaligned(accuracy);
    let report = device.report();
    Ok(Outcome {
        driver: D::NAME,
        adapter: device.adapter().clone(),
        test_accuracy: accuracy.into(),
        losses,
        steps_per_second: f64::from(steps) / seconds,
        buffer_locs: context
            .locs()
            .into_iter()
            .map(|(node, loc)| (node.label().to_owned(), (loc.pool_id.0, loc.offset)))
            .collect(),
        peak_bytes: report.peak_bytes,
        confusion: bytemuck::pod_collect_to_vec(confusion),
        report,
    })
}

/// Awaits a read of the losses, and takes that of its step.
async fn arrive(
    (step, read): (u32, impl Future<Output = wgslab::Result<Vec<f32>>>),
    steps: u32,
    progress: &impl Fn(u32, u32, f32),
) -> Result<Loss> {
    let all = read.await?;
    let loss = all[step as usize];
    progress(step + 1, steps, loss);
    Ok(Loss { step, loss })
}
