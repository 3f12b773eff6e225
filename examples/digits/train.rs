//! The trainer: uploads the digits once, links the program's kernels, and runs the steps. The host only reads the
//! losses every few steps.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use serde::Serialize;
use wgslab::{AdapterInfo, Context, Device, Driver, KernelSpec, MemoryReport, Routine, TensorNode};

use crate::native::Result;
use crate::native::data::Digits;
use crate::native::program::{Kernel, Program};

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
    #[serde(skip)]
    pub labels: Vec<u32>,
    #[serde(skip)]
    pub predictions: Vec<u32>,
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
    let nodes = nodes(program)?;
    let node = |name: &str| nodes.get(name).ok_or_else(|| format!("program.json: there is no node \"{name}\""));

    let settings = [program.hyperparameters.learning_rate, program.hyperparameters.momentum];
    let mut inputs = Vec::new();
    for name in &program.inputs {
        let bytes: &[u8] = match name.as_str() {
            "pixels" => &digits.pixels,
            "labels" => &digits.labels,
            "train_order" => bytemuck::cast_slice(&digits.train_order),
            "test_order" => bytemuck::cast_slice(&digits.test_order),
            "settings" => bytemuck::cast_slice(&settings),
            name => return Err(format!("program.json: nothing to upload for \"{name}\"").into()),
        };
        inputs.push((node(name)?, bytes));
    }
    let state = program.state.iter().map(|name| node(name)).collect::<std::result::Result<Vec<_>, _>>()?;
    let mut context = Context::root(device).init_from_host_many(&inputs)?.init_zeros(&state)?;

    let setup = link(device, &mut context, &program.setup, &nodes).await?;
    let step = link(device, &mut context, &program.step, &nodes).await?;
    let test = link(device, &mut context, &program.test, &nodes).await?;

    run(&setup, &[("seed", program.hyperparameters.seed)])?;
    let steps = epochs * program.steps_per_epoch(digits.train_order.len());
    let loss_node = node("losses")?;
    let mut losses = Vec::new();
    let mut on_its_way = None;
    let start = Instant::now();
    for index in 0..steps {
        run(&step, &[("step", index as i32)])?;
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

    run(&test, &[("step", 0)])?;
    let outputs = program.outputs.iter().map(|name| node(name)).collect::<std::result::Result<Vec<_>, _>>()?;
    let read = context.to_host_many(&outputs).await?;
    let [labels, predictions, ..] = read.as_slice() else {
        return Err("program.json: outputs must begin with labels and predictions".into());
    };
    let (labels, predictions) = (words(labels), words(predictions));
    let right = labels.iter().zip(&predictions).filter(|(label, prediction)| label == prediction).count();
    let report = device.report();
    Ok(Outcome {
        driver: D::NAME,
        adapter: device.adapter().clone(),
        test_accuracy: right as f64 / labels.len() as f64,
        losses,
        steps_per_second: f64::from(steps) / seconds,
        buffer_locs: context
            .locs()
            .into_iter()
            .map(|(node, loc)| (node.label().to_owned(), (loc.pool_id.0, loc.offset)))
            .collect(),
        peak_bytes: report.peak_bytes,
        labels,
        predictions,
        report,
    })
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// Awaits a read of the losses, which lie round and round in their node, and takes that of its step.
async fn arrive(
    (step, read): (u32, impl Future<Output = wgslab::Result<Vec<f32>>>),
    steps: u32,
    progress: &impl Fn(u32, u32, f32),
) -> Result<Loss> {
    let all = read.await?;
    let loss = all[step as usize % all.len()];
    progress(step + 1, steps, loss);
    Ok(Loss { step, loss })
}

fn nodes(program: &Program) -> Result<HashMap<&str, TensorNode>> {
    program
        .nodes
        .iter()
        .map(|node| Ok((node.name.as_str(), TensorNode::new(&node.name, node.dtype.parse()?, node.shape.clone()))))
        .collect()
}

/// Compiles kernels and links them in order, each into the context of the one before.
async fn link<D: Driver>(
    device: &Device<D>,
    context: &mut Context<D>,
    kernels: &[Kernel],
    nodes: &HashMap<&str, TensorNode>,
) -> Result<Vec<Routine<D>>> {
    let mut routines = Vec::new();
    for kernel in kernels {
        let mut spec = KernelSpec::new(&kernel.name, kernel.text()?);
        for tensor in &kernel.tensors {
            let node = nodes
                .get(tensor.node.as_str())
                .ok_or_else(|| format!("program.json: kernel \"{}\" names no node \"{}\"", kernel.name, tensor.node))?;
            spec = spec.tensor(&tensor.name, node, tensor.access()?);
        }
        let code = device.compile(spec.statics(kernel.statics.iter().cloned()).grid(kernel.grid)).await?;
        let routine = context.link(&code).await?;
        *context = routine.context().clone();
        routines.push(routine);
    }
    Ok(routines)
}

/// Queues each routine once; each takes those of the statics that it declares.
fn run<D: Driver>(routines: &[Routine<D>], statics: &[(&str, i32)]) -> Result<()> {
    for routine in routines {
        let own: Vec<_> = statics.iter().filter(|(name, _)| routine.bindings().iter().any(|own| own == name)).collect();
        routine.run_with(&own.into_iter().copied().collect::<Vec<_>>())?;
    }
    Ok(())
}
