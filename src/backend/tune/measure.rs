//! Measuring schedules natively. `www/lib/tuned.ts` does the same in a page.
//!
//! Candidates run on nodes of their own, so no data is touched. They take turns, so that whatever else slows the machine slows
//! all of them, and a middle time counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::compile::{Parts, compile_error};
use crate::backend::tune::{scratch, trial};
use crate::context::Context;
use crate::device::Device;
use crate::device::tuned::Entry;
use crate::driver::Driver;
use crate::error::{ErrorKind, Result};
use crate::notation::spec::Tune;
use crate::wgsl::spec::KernelSpec;

/// Milliseconds that a measurement takes, at least: clocks have steps, a page's tenths of one.
const SAMPLE_MS: f64 = 2.0;
/// Rounds that do not count.
const WARM_UPS: usize = 2;
/// Runs of a measurement, at most.
const MOST_RUNS: f64 = 256.0;
/// How much slower than the fastest a schedule may first be, to be measured any further.
const HOPELESS: f64 = 3.0;
/// What a schedule must take, of what the first takes, to be taken in its place: less is chance.
const WORTH: f64 = 0.97;

impl<D: Driver> Device<D> {
    /// Measures what is not known, where that is asked for, one program after the other.
    pub(in crate::backend) async fn tune_all(&self, mut all: Vec<Result<Parts>>) -> Result<Vec<Result<Parts>>> {
        for parts in all.iter_mut().map_while(|parts| parts.as_mut().ok()) {
            if parts.tuning.tune != Tune::Off {
                let tuned = self.tune(parts).await;
                tuned.map_err(|error| compile_error(error, &parts.name))?;
            }
        }
        Ok(all)
    }

    async fn tune(&self, parts: &mut Parts) -> Result<()> {
        let Parts { specs, tuning, .. } = parts;
        let (rounds, most_ms) = if tuning.tune == Tune::Full { (7, 20_000) } else { (3, 1000) };
        let budget_ms = tuning.budget_ms.unwrap_or(most_ms);
        if !specs.iter().any(|kernel| self.untuned(kernel, tuning).is_some()) {
            return Ok(());
        }
        // Two that measure at once would measure each other.
        let _turn = self.tuning_turn().await;
        let end = Instant::now() + Duration::from_millis(budget_ms.into());
        // Somebody may have measured it meanwhile, also in another process.
        self.load_tuned_again();
        let mut unkept = None;
        for (at, kernel) in specs.iter_mut().enumerate() {
            if self.untuned(kernel, tuning).is_none() {
                continue;
            }
            self.take_tuned(std::slice::from_mut(kernel), tuning);
            let Some((key, count)) = self.untuned(kernel, tuning) else { continue };
            let why = if Instant::now() >= end {
                format!("the {budget_ms} ms for measuring were over")
            } else {
                match self.measure(kernel, count, rounds, end).await {
                    Err(error) if error.kind() == ErrorKind::DeviceLost => return Err(error),
                    Err(error) => error.to_string(),
                    Ok(entry) => {
                        self.learn_tuned(key, entry);
                        self.take_tuned(std::slice::from_mut(kernel), tuning);
                        // At once: whoever waits may give up.
                        unkept = self.save_tuned().err();
                        continue;
                    }
                }
            };
            // The estimates have to do.
            tuning.notes.push_str(&format!("\nkernel {} was not measured: {why}", at + 1));
        }
        if let Some(why) = unkept {
            tuning.notes.push_str(&format!("\nwhat was measured is not kept: {why}"));
        }
        Ok(())
    }

    /// Measures the first schedules of a kernel.
    async fn measure(&self, kernel: &Arc<KernelSpec>, count: usize, rounds: usize, end: Instant) -> Result<Entry> {
        let nodes = scratch(kernel);
        let trials = (0..count).map(|at| Ok(trial(kernel, at, nodes.clone())));
        let codes = self.compile_made(trials.collect()).await?;
        let routines = Context::root(self).link_batch(&codes.iter().collect::<Vec<_>>()).await?;
        let statics = vec![0; kernel.statics.len()];
        let mut first_ms = vec![f64::INFINITY; count];
        let mut least_ms = f64::INFINITY;
        let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); count];
        // Twice to warm up: the first run zeroes memory, the second tells how many are to be done at once.
        for round in 0..WARM_UPS + rounds {
            let is_warm = round >= WARM_UPS;
            for step in 0..count {
                let at = if is_warm { (step + round) % count } else { step };
                if is_warm && at > 0 && first_ms[at] > HOPELESS * least_ms {
                    continue;
                }
                let runs = (SAMPLE_MS / first_ms[at].max(0.001)).clamp(1.0, MOST_RUNS).ceil();
                let start = Instant::now();
                for _ in 0..runs as u32 {
                    routines[at].run_values(&statics)?;
                }
                self.await_idle().await?;
                let ms = start.elapsed().as_secs_f64() * 1e3 / runs;
                if is_warm {
                    times[at].push(ms);
                } else {
                    first_ms[at] = ms;
                }
            }
            least_ms = first_ms.iter().copied().fold(f64::INFINITY, f64::min);
            if is_warm && Instant::now() > end {
                break;
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        let (mut at, mut least) = (0, medians[0] * WORTH);
        for (other, ms) in medians.iter().enumerate() {
            if *ms < least {
                (at, least) = (other, *ms);
            }
        }
        Ok(Entry {
            count: count as u64,
            measured_ns: [medians[at], medians[0]].map(|ms| (ms * 1e6) as u64),
            schedule: kernel.candidates()[at].schedule.to_string(),
        })
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY)
}
