//! The training, on two devices and on one, and what is compared.

use std::time::Instant;

use serde::Serialize;
use wgslab::{AdapterInfo, Device, Driver};

use crate::native::Result;
use crate::native::data::Digits;
use crate::native::program::{Batches, Program};
use crate::native::replica::{Replica, Trainer};
use crate::native::training::Training;

/// Devices that share a batch: a merge buffer takes the gradients of one other.
const DEVICES: u32 = 2;

/// The result, under the names that the page's result has.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub driver: &'static str,
    pub devices: Vec<DeviceInfo>,
    pub epochs: u32,
    pub steps: u32,
    /// The losses that were reported, by step.
    pub losses: Vec<Loss>,
    pub test_accuracy: Sides<f64>,
    /// Of the weights of one device to those of the other.
    pub between_devices: Difference,
    /// Of the weights of either device to those of one device with whole batches, whichever is larger.
    pub to_joined: Difference,
    pub tolerance: Tolerance,
    pub seconds: Seconds,
    /// Whether the differences are within the tolerance.
    pub agrees: bool,
}

#[derive(Debug, Serialize)]
pub struct DeviceInfo {
    pub name: String,
    pub adapter: AdapterInfo,
}

/// A figure of both devices, and of one device with whole batches.
#[derive(Debug, Serialize)]
pub struct Sides<T> {
    pub devices: Vec<T>,
    pub joined: T,
}

/// The loss of one step: of each device's half of the batch, and of the whole batch on one device.
#[derive(Debug, Serialize)]
pub struct Loss {
    pub step: u32,
    #[serde(flatten)]
    pub loss: Sides<f32>,
}

/// How far weights are apart.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Difference {
    /// The largest difference of a weight.
    pub absolute: f64,
    /// That, over the largest weight.
    pub relative: f64,
}

/// The largest relative differences that are right.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tolerance {
    /// None between devices of one adapter: they do the same with the same numbers.
    pub between_devices: f64,
    pub to_joined: f64,
}

#[derive(Debug, Serialize)]
pub struct Seconds {
    pub two_devices: f64,
    pub joined: f64,
}

/// What is trained, on what, for how long.
#[derive(Debug)]
pub struct Job<'a> {
    pub network: &'a Program,
    pub training: &'a Training,
    pub digits: &'a Digits,
    pub epochs: u32,
}

/// The losses of a training, by step, and how long it took.
type Run = (Vec<(u32, Vec<f32>)>, f64);

impl Job<'_> {
    /// Trains on both devices together, then on the first alone, and compares. `progress` is called with steps done, steps
    /// in all, and the loss.
    pub async fn compare<D: Driver>(
        &self,
        devices: [&Device<D>; 2],
        progress: impl Fn(u32, u32, f32),
    ) -> Result<Outcome> {
        let steps = self.steps();
        let pair = self.pair(devices).await?;
        let (halves, two_devices) = self.train(&pair, |done, loss| progress(done, 2 * steps, loss)).await?;
        let alone = [self.alone(devices[0]).await?];
        let (whole, joined) = self.train(&alone, |done, loss| progress(steps + done, 2 * steps, loss)).await?;

        let [here, there] = [pair[0].weights().await?, pair[1].weights().await?];
        let reference = alone[0].weights().await?;
        let between_devices = Difference::of(&here, &there)?;
        let to_joined = Difference::of(&here, &reference)?.or_larger(Difference::of(&there, &reference)?);
        let is_one_adapter = devices[0].adapter() == devices[1].adapter();
        let to_one = self.training.tolerance;
        let tolerance = Tolerance { between_devices: if is_one_adapter { 0.0 } else { to_one }, to_joined: to_one };
        let outputs = &self.network.outputs;
        Ok(Outcome {
            driver: D::NAME,
            devices: devices
                .map(|device| DeviceInfo { name: device.name().to_owned(), adapter: device.adapter().clone() })
                .into(),
            epochs: self.epochs,
            steps,
            losses: halves
                .into_iter()
                .zip(whole)
                .map(|((step, devices), (_, joined))| Loss { step, loss: Sides { devices, joined: joined[0] } })
                .collect(),
            test_accuracy: Sides {
                devices: vec![pair[0].test(outputs).await?, pair[1].test(outputs).await?],
                joined: alone[0].test(outputs).await?,
            },
            between_devices,
            to_joined,
            tolerance,
            seconds: Seconds { two_devices, joined },
            agrees: tolerance.allows(between_devices, to_joined),
        })
    }

    /// Whole batches, over all epochs.
    pub fn steps(&self) -> u32 {
        self.epochs * self.network.steps_per_epoch(self.digits.train_order.len())
    }

    /// Both devices, each with half of every batch, and with the other's gradients.
    pub async fn pair<D: Driver>(&self, devices: [&Device<D>; 2]) -> Result<[Trainer<D>; 2]> {
        let Self { network, training, digits, .. } = self;
        // One node for both, so that it can go from one to the other.
        let shared = training.share(network, self.batches(DEVICES))?;
        let one = Replica::new(devices[0], (network, training), digits, &shared).await?;
        let other = Replica::new(devices[1], (network, training), digits, &shared).await?;
        let (here, there) = (one.context().clone(), other.context().clone());
        Ok([one.join(Some(&there), network, training).await?, other.join(Some(&here), network, training).await?])
    }

    /// One device with whole batches.
    pub async fn alone<D: Driver>(&self, device: &Device<D>) -> Result<Trainer<D>> {
        let Self { network, training, digits, .. } = self;
        let shared = training.share(network, self.batches(1))?;
        let replica = Replica::new(device, (network, training), digits, &shared).await?;
        replica.join(None, network, training).await
    }

    /// The batches of devices that share each whole one.
    fn batches(&self, devices: u32) -> Batches {
        Batches { count: self.steps() * devices, rows: self.network.hyperparameters.batch / devices }
    }

    /// Trains from the first weights. `progress` is called with steps done and the loss.
    pub async fn train<D: Driver>(&self, trainers: &[Trainer<D>], progress: impl Fn(u32, f32)) -> Result<Run> {
        let (steps, count) = (self.steps(), trainers.len() as u32);
        let start = Instant::now();
        for trainer in trainers {
            trainer.start()?;
        }
        let mut losses = Vec::new();
        let mut on_its_way = None;
        for step in 0..steps {
            // Device d of n reads batch n step + d, of batches that are the nth part of a whole one: the same rows.
            let batches = step * count..;
            for (trainer, batch) in trainers.iter().zip(batches) {
                trainer.queue_gradients(batch)?;
            }
            // The gradients of this step are there until the next: each device takes the other's before.
            for trainer in trainers {
                trainer.queue_update()?;
            }
            if (step + 1) % self.network.read_loss_every != 0 && step + 1 != steps {
                continue;
            }
            // The reads are recorded now, and awaited when the next steps are recorded too: no device idles.
            let reads = trainers.iter().map(Trainer::read_losses).collect::<Result<Vec<_>>>()?;
            if let Some(earlier) = on_its_way.replace((step, reads)) {
                losses.push(arrive(earlier, &progress).await?);
            }
        }
        if let Some(last) = on_its_way {
            losses.push(arrive(last, &progress).await?);
        }
        Ok((losses, start.elapsed().as_secs_f64()))
    }
}

/// Awaits reads of the losses, one of each device, and takes that of its step and part of the batch.
async fn arrive(
    (step, reads): (u32, Vec<impl Future<Output = wgslab::Result<Vec<f32>>>>),
    progress: &impl Fn(u32, f32),
) -> Result<(u32, Vec<f32>)> {
    let mut losses = Vec::new();
    let batches = step as usize * reads.len()..;
    for (read, batch) in reads.into_iter().zip(batches) {
        let all = read.await?;
        losses.push(all[batch]);
    }
    progress(step + 1, losses.iter().sum::<f32>() / losses.len() as f32);
    Ok((step, losses))
}

impl Difference {
    /// Of weights to others.
    pub fn of(weights: &[f32], reference: &[f32]) -> Result<Self> {
        if weights.is_empty() || weights.len() != reference.len() {
            return Err(format!("{} weights do not compare with {}", weights.len(), reference.len()).into());
        }
        let most = |values: &mut dyn Iterator<Item = f64>| {
            // A NaN is the largest of all: it must not pass for a small difference.
            values.fold(0.0, |most: f64, value| if value > most || value.is_nan() { value } else { most })
        };
        let both = weights.iter().zip(reference).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        let absolute = most(&mut both.map(|(a, b)| (a - b).abs()));
        let largest = most(&mut reference.iter().map(|weight| f64::from(weight.abs())));
        Ok(Self { absolute, relative: if absolute == 0.0 { 0.0 } else { absolute / largest } })
    }

    fn or_larger(self, other: Self) -> Self {
        if self.relative >= other.relative || self.relative.is_nan() { self } else { other }
    }
}

impl Tolerance {
    fn allows(self, between_devices: Difference, to_joined: Difference) -> bool {
        between_devices.relative <= self.between_devices && to_joined.relative <= self.to_joined
    }
}
