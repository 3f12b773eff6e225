//! Measuring schedules natively. `www/lib/tuned.ts` does the same in a page.
//!
//! Candidates run on nodes of their own, so no data is touched. They take turns, so that whatever else slows the machine slows
//! all of them, and a middle time counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::compile::{Parts, compile_error};
use crate::backend::nest::rescheduled;
use crate::backend::tune::{alone, scratch};
use crate::context::Context;
use crate::device::Device;
use crate::device::tuned::Entry;
use crate::driver::Driver;
use crate::error::{ErrorKind, Result};
use crate::notation::spec::{ProgramSpec, Tune};
use crate::schedule::{SPLITTINGS, VERSION};
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

/// What a program asks for, and what came of it.
#[derive(Clone, Default)]
pub(crate) struct Tuning {
    /// Schedules of a kernel that are measured, at most.
    most: usize,
    /// Bounds the measuring.
    budget_ms: u32,
    /// The program with its long reductions split otherwise.
    ways: Vec<Parts>,
    /// What was measured, and what could not be or is not kept, and why: a line each.
    notes: String,
}

impl Tuning {
    pub(in crate::backend) fn notes(&self) -> &str {
        &self.notes
    }
}

impl<D: Driver> Device<D> {
    /// The kernels of a program, with all that tuning chooses from.
    pub(in crate::backend) fn tunable(
        &self,
        spec: &ProgramSpec,
        make: &dyn Fn(usize) -> Result<Parts>,
    ) -> Result<Parts> {
        let mut parts = make(spec.splitting)?;
        let (most, budget_ms) = match spec.tune {
            Tune::Quick => (4, 1000),
            Tune::Full => (usize::MAX, 20_000),
            Tune::Off => return Ok(parts),
        };
        // The host driver does what a schedule says in its own way.
        if D::name(self.dev()) == "host" {
            return Ok(parts);
        }
        let mut ways: Vec<Parts> = Vec::new();
        for splitting in 1..SPLITTINGS {
            let way = make(spec.splitting + splitting)?;
            if !is_same(&way, &parts) && !ways.iter().any(|known| is_same(&way, known)) {
                ways.push(way);
            }
        }
        let budget_ms = spec.tune_budget_ms.unwrap_or(budget_ms);
        parts.tuning = Tuning { most, budget_ms, ways, notes: String::new() };
        Ok(parts)
    }

    /// Measures what is not known, where that is asked for, one program after the other.
    pub(in crate::backend) async fn tune_all(&self, mut all: Vec<Result<Parts>>) -> Result<Vec<Result<Parts>>> {
        for parts in all.iter_mut().map_while(|parts| parts.as_mut().ok()) {
            if parts.tuning.most > 0 {
                let tuned = self.tune(parts).await;
                tuned.map_err(|error| compile_error(error, &parts.name))?;
            }
        }
        Ok(all)
    }

    async fn tune(&self, parts: &mut Parts) -> Result<()> {
        let Tuning { most, budget_ms, ways, .. } = std::mem::take(&mut parts.tuning);
        let mut ways = [vec![parts.clone()], ways].concat();
        let known =
            |kernel: &KernelSpec| self.known_tuned(self.tuned_key(kernel)).filter(|entry| entry.fits(kernel, most));
        let is_known = |kernel: &Arc<KernelSpec>| kernel.candidates().len() < 2 || known(kernel).is_some();
        let mut notes = String::new();
        if !ways.iter().all(|way| way.specs.iter().all(is_known)) {
            // Two that measure at once would measure each other.
            let _turn = self.tuning_turn().await;
            let end = Instant::now() + Duration::from_millis(budget_ms.into());
            // Somebody may have measured it meanwhile, also in another process.
            self.load_tuned_again();
            let mut unkept = None;
            for (way, Parts { specs, .. }) in ways.iter().enumerate() {
                for (at, kernel) in specs.iter().enumerate().filter(|(_, kernel)| !is_known(kernel)) {
                    let why = if Instant::now() >= end {
                        format!("the {budget_ms} ms for measuring were over")
                    } else {
                        let count = kernel.candidates().len().min(most);
                        match self.measure(kernel, count, if most == usize::MAX { 7 } else { 3 }, end).await {
                            Err(error) if error.kind() == ErrorKind::DeviceLost => return Err(error),
                            Err(error) => error.to_string(),
                            Ok(entry) => {
                                self.learn_tuned(self.tuned_key(kernel), entry);
                                // At once: whoever waits may give up.
                                unkept = self.save_tuned().err();
                                continue;
                            }
                        }
                    };
                    // The estimates have to do.
                    if way == 0 {
                        notes.push_str(&format!("\nkernel {} was not measured: {why}", at + 1));
                    }
                }
            }
            if let Some(why) = unkept {
                notes.push_str(&format!("\nwhat was measured is not kept: {why}"));
            }
        }
        // The fastest of those of which all is known.
        let total_ns =
            |way: &Parts| way.specs.iter().map(|kernel| Some(known(kernel)?.measured_ns[0])).sum::<Option<u64>>();
        let as_estimated_ns = total_ns(parts);
        let mut best = (0, as_estimated_ns.unwrap_or(0) as f64 * WORTH);
        for (at, way) in ways.iter().enumerate() {
            if let Some(ns) = total_ns(way).filter(|ns| (*ns as f64) < best.1) {
                best = (at, ns as f64);
            }
        }
        *parts = ways.swap_remove(best.0);
        for (at, kernel) in parts.specs.iter_mut().enumerate() {
            let Some(Entry { count, measured_ns: [own, first], schedule }) = known(kernel) else { continue };
            let number = kernel.candidates().iter().position(|candidate| candidate.schedule.to_string() == schedule);
            *kernel = Arc::new(rescheduled((**kernel).clone(), number.unwrap_or(0)));
            notes.push_str(&format!("\nkernel {} was tuned: {own} ns; number 1 of {count} took {first} ns", at + 1));
        }
        if best.0 > 0 {
            let first = as_estimated_ns.unwrap_or(0);
            notes.push_str(&format!("\nlong reductions are split as was measured: {} ns, not {first} ns", best.1));
        }
        parts.tuning.notes = notes;
        Ok(())
    }

    /// What a measurement of a kernel, which is in its first schedule, depends on, as a number (FNV-1a): the adapter, the driver,
    /// what schedules mean, and the text, which has all extents.
    fn tuned_key(&self, kernel: &KernelSpec) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes.iter().chain(&[0]) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        };
        let adapter = self.adapter();
        for text in [&adapter.name, &adapter.backend, &adapter.driver, &adapter.device_type, &kernel.text] {
            add(text.as_bytes());
        }
        add(&VERSION.to_le_bytes());
        for tensor in &kernel.tensors {
            add(tensor.node.dtype().name().as_bytes());
            add(bytemuck::cast_slice(tensor.node.shape()));
        }
        hash
    }

    /// Measures the first schedules of a kernel.
    async fn measure(&self, kernel: &Arc<KernelSpec>, count: usize, rounds: usize, end: Instant) -> Result<Entry> {
        let nodes = scratch(kernel);
        let trials = (0..count).map(|at| Ok(alone(&rescheduled((**kernel).clone(), at), nodes.clone())));
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

impl Entry {
    /// Whether enough schedules of the kernel were measured, and the fastest is one that there is.
    fn fits(&self, kernel: &KernelSpec, most: usize) -> bool {
        let candidates = kernel.candidates();
        self.count >= candidates.len().min(most) as u64
            && candidates.iter().any(|candidate| candidate.schedule.to_string() == self.schedule)
    }
}

/// Whether two programs have the same kernels.
fn is_same(one: &Parts, other: &Parts) -> bool {
    one.specs.iter().map(|kernel| &kernel.text).eq(other.specs.iter().map(|kernel| &kernel.text))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY)
}
