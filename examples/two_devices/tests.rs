//! Run by `cargo test`: two devices become what one becomes, on both drivers, and both drivers the same.

use wgslab::{Device, Driver, gpu, host};

use crate::native::data::Digits;
use crate::native::program::Program;
use crate::native::train::{Difference, Job, Outcome};
use crate::native::training::Training;

const EPOCHS: u32 = 2;

fn with_job<T>(run: impl FnOnce(&Job<'_>) -> T) -> T {
    let (network, training) = (Program::load().unwrap(), Training::load().unwrap());
    let digits = Digits::read(&network.data).unwrap();
    run(&Job { network: &network, training: &training, digits: &digits, epochs: EPOCHS })
}

fn on_gpu() -> Device<gpu::Gpu> {
    let options = gpu::OpenOptions { limits: gpu::LimitsChoice::Default, ..gpu::OpenOptions::default() };
    pollster::block_on(gpu::open(options)).expect("a GPU adapter (a software one will do)")
}

fn on_host() -> Device<host::Host> {
    host::open(host::OpenOptions::default()).unwrap()
}

fn compare<D: Driver>(devices: [&Device<D>; 2]) -> Outcome {
    with_job(|job| pollster::block_on(job.compare(devices, |_, _, _| ())).unwrap())
}

fn check(outcome: &Outcome) {
    assert!(outcome.agrees, "{outcome}");
    assert_eq!(outcome.between_devices.absolute, 0.0, "{outcome}");
    assert!(outcome.to_joined.relative > 0.0, "another order of sums rounds otherwise: {outcome}");
    assert_eq!(outcome.test_accuracy.devices[0], outcome.test_accuracy.devices[1]);
    assert!(outcome.test_accuracy.devices[0] > 0.8, "{outcome}");
    for entry in &outcome.losses {
        let mean = mean(&entry.loss.devices);
        assert!((mean - entry.loss.joined).abs() < 1e-4, "the loss of a batch is the mean of its halves: {entry:?}");
    }
    assert_eq!(outcome.losses.len(), EPOCHS as usize);
}

fn mean(losses: &[f32]) -> f32 {
    losses.iter().sum::<f32>() / losses.len() as f32
}

#[test]
fn two_gpu_devices_become_what_one_becomes() {
    check(&compare([&on_gpu(), &on_gpu()]));
}

#[test]
fn two_host_devices_become_what_one_becomes() {
    check(&compare([&on_host(), &on_host()]));
}

#[test]
fn both_drivers_train_the_same_network() {
    let weights = with_job(|job| {
        pollster::block_on(async {
            let pair = job.pair([&on_gpu(), &on_gpu()]).await.unwrap();
            let on_host = job.pair([&on_host(), &on_host()]).await.unwrap();
            job.train(&pair, |_, _| ()).await.unwrap();
            job.train(&on_host, |_, _| ()).await.unwrap();
            [pair[0].weights().await.unwrap(), on_host[0].weights().await.unwrap()]
        })
    });
    let difference = Difference::of(&weights[0], &weights[1]).unwrap();
    assert!(difference.relative < 1e-4, "{difference:?}");
    assert!(difference.relative > 0.0, "two drivers round exp and log otherwise: {difference:?}");
}

#[test]
fn devices_that_both_take_the_first_half_become_another_network() {
    let weights = with_job(|job| {
        pollster::block_on(async {
            let (one, other) = (on_host(), on_host());
            let pair = job.pair([&one, &other]).await.unwrap();
            let wrong = job.pair([&one, &other]).await.unwrap();
            job.train(&pair, |_, _| ()).await.unwrap();
            wrong.iter().for_each(|trainer| trainer.start().unwrap());
            for step in 0..job.steps() {
                wrong.iter().for_each(|trainer| trainer.queue_gradients(2 * step).unwrap());
                wrong.iter().for_each(|trainer| trainer.queue_update().unwrap());
            }
            [pair[0].weights().await.unwrap(), wrong[0].weights().await.unwrap()]
        })
    });
    let difference = Difference::of(&weights[0], &weights[1]).unwrap();
    assert!(difference.relative > 1e-2, "{difference:?}");
}

#[test]
fn a_difference_is_that_of_the_weight_that_differs_most() {
    let difference = Difference::of(&[1.0, 2.0, -4.0], &[1.0, 2.5, -4.0]).unwrap();
    assert_eq!((difference.absolute, difference.relative), (0.5, 0.125));
    assert!(Difference::of(&[f32::NAN, 1.0], &[0.0, 1.0]).unwrap().relative.is_nan());
    assert!(Difference::of(&[1.0], &[1.0, 2.0]).is_err());
}
