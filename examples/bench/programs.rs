//! The group `programs`: each row as a program in index notation and by hand on wgpu, in turn.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use wgslab::{Context, DType, Device, ProgramSpec, Result, TensorNode, Tune, gpu};

use crate::native::kernels::{Buffers, Peaks, Step};
use crate::native::measure::{Spread, ratio_of, spread};
use crate::native::raw::Raw;
use crate::native::rows::{RowSpec, rows};

/// What is timed together, so that the calls and the wait at the end are small beside it; one run where a run takes longer.
const BATCH: Duration = Duration::from_millis(60);
const LARGEST_BATCH: f64 = 200.0;
const LEAST_ROUNDS: f64 = 3.0;
const MOST_ROUNDS: f64 = 21.0;
/// A run, and a round, in seconds, that is not repeated for the sake of a spread.
const LONG: f64 = 1.0;
const LONG_ROUND: f64 = 60.0;
/// How often each hand-written way runs to choose one.
const TRIALS: usize = 3;
/// So many times slower than the fastest is not tried again.
const HOPELESS: u32 = 3;

/// What the group came to. The browser's look the same.
#[derive(Debug, Serialize)]
pub struct Results {
    peaks: Peaks,
    rows: Vec<RowResult>,
    control: RowResult,
}

#[derive(Debug, Serialize)]
struct RowResult {
    name: String,
    unit: &'static str,
    parts: BTreeMap<&'static str, Part>,
    rounds: usize,
    share: Share,
}

#[derive(Debug, Default, Serialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// Which part of the adapter's peak a side reaches.
#[derive(Debug, Default, Serialize)]
struct Share {
    of: &'static str,
    #[serde(flatten)]
    reached: BTreeMap<&'static str, f64>,
}

impl RowResult {
    /// Says which part of a peak is reached: of the one that bounds the row.
    fn share_of(&mut self, row: &RowSpec, peaks: Peaks) {
        let (moving, computing) = (row.bytes / peaks.bytes_per_second, row.flops / peaks.flops_per_second);
        let reach = |time: Spread| moving.max(computing) * 1e3 / time.median;
        let reached = self.parts.iter().filter_map(|(name, part)| Some((*name, reach(part.time?)))).collect();
        self.share = Share { of: if moving > computing { "bandwidth" } else { "arithmetic" }, reached };
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peaks { bytes_per_second, flops_per_second } = self.peaks;
        writeln!(f, "peaks: {:.1} GB/s copied, {:.1} GFLOP/s", bytes_per_second / 1e9, flops_per_second / 1e9)?;
        for row in self.rows.iter().chain([&self.control]) {
            write!(f, "{:<52}", row.name)?;
            for (name, Part { time, fault, note, ratio }) in &row.parts {
                let time = time.map(|time| format!("{:.3} ms", time.median));
                let known = [time, ratio.map(|ratio| format!("ratio {ratio:.2}")), note.clone(), fault.clone()];
                write!(f, "  {name} {}", known.into_iter().flatten().collect::<Vec<_>>().join(", "))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A row, ready to run.
struct Side<'a> {
    name: &'static str,
    /// Runs it that often, until the device is done.
    run: Box<dyn Fn(u32) -> Result<()> + 'a>,
    outputs: Vec<Vec<f32>>,
    note: String,
}

/// Measures the rows of those names, or all.
pub async fn programs(
    device: &Device<gpu::Gpu>,
    raw: &Raw,
    names: &[String],
    seconds: f64,
    tune: Tune,
) -> Result<Results> {
    let before = raw.peaks();
    let wanted: Vec<_> = rows().into_iter().filter(|row| names.is_empty() || names.contains(&row.name)).collect();
    let mut results = Vec::new();
    for row in &wanted {
        let sides = vec![by_hand(raw, row, "raw")?, by_program(device, row, tune).await?];
        results.push(measured(row, sides, seconds)?);
    }
    // The first row once more, by hand on both sides: how far from 1 a ratio is by chance.
    let first = wanted.first().expect("a row of that name");
    let mut control = measured(first, vec![by_hand(raw, first, "raw")?, by_hand(raw, first, "wgslab")?], seconds)?;
    control.name = format!("control: raw against raw, {}", first.name);
    let peaks = before.higher(raw.peaks());
    for (row, result) in wanted.iter().chain([first]).zip(results.iter_mut().chain([&mut control])) {
        result.share_of(row, peaks);
    }
    Ok(Results { peaks, rows: results, control })
}

/// The bytes of the given tensors, by name.
fn inputs(row: &RowSpec) -> BTreeMap<&str, Vec<u8>> {
    let filled = (1..).zip(&row.nodes).map(|(seed, (name, node))| Some((name.as_str(), node.bytes(seed)?)));
    filled.flatten().collect()
}

fn by_hand<'a>(raw: &'a Raw, row: &RowSpec, name: &'static str) -> Result<Side<'a>> {
    let inputs = inputs(row);
    let buffers = || -> Buffers {
        let made = row.nodes.iter().map(|(name, node)| {
            let buffer =
                inputs.get(name.as_str()).map_or_else(|| raw.storage(node.len() as u64 * 4), |bytes| raw.filled(bytes));
            (name.clone(), buffer)
        });
        made.collect()
    };
    let steps_of = |way: &str, buffers: &Buffers| -> Vec<Step> {
        row.raw[way].iter().map(|dispatch| raw.step(dispatch, buffers)).collect()
    };
    // Trials may write into the inputs: those of the side are made afterwards.
    let trial = buffers();
    let (mut least, mut fastest) = (Duration::MAX, "");
    for way in row.raw.keys() {
        let steps = steps_of(way, &trial);
        for _ in 0..TRIALS {
            let start = Instant::now();
            raw.run(&steps, 1);
            let time = start.elapsed();
            if time < least {
                (least, fastest) = (time, way);
            } else if time > least * HOPELESS {
                break;
            }
        }
    }
    drop(trial);
    let buffers = buffers();
    let steps = steps_of(fastest, &buffers);
    raw.run(&steps, row.steps);
    let outputs = row.outputs.iter().map(|name| raw.read(&buffers[name])).collect();
    let run = move |count| {
        raw.run(&steps, count);
        Ok(())
    };
    Ok(Side { name, run: Box::new(run), outputs, note: fastest.to_owned() })
}

async fn by_program<'a>(device: &'a Device<gpu::Gpu>, row: &RowSpec, tune: Tune) -> Result<Side<'a>> {
    let inputs = inputs(row);
    let given: Vec<_> = inputs
        .keys()
        .map(|name| {
            let node = &row.nodes[*name];
            let dtype = if node.is_integer() { DType::I32 } else { DType::F32 };
            TensorNode::new(*name, dtype, node.shape.clone())
        })
        .collect();
    let filled: Vec<_> = given.iter().zip(inputs.values()).map(|(node, bytes)| (node, bytes.as_slice())).collect();
    let context = Context::root(device).init_from_host_many(&filled)?;
    let created = row.outputs.iter().filter(|name| !inputs.contains_key(name.as_str()));
    let spec = given.iter().fold(ProgramSpec::new(&row.name, row.program.join("\n")), |spec, node| spec.node(node));
    let code = device.compile(spec.outputs(created).tune(tune)).await?;
    let routine = context.link(&code).await?;
    let before = device.stats();
    for _ in 0..row.steps {
        routine.run()?;
    }
    device.await_idle().await?;
    let counts = device.stats().since(&before);
    let mut outputs = Vec::new();
    for name in &row.outputs {
        outputs.push(routine.context().to_host(code.node(name)?).await?);
    }
    let run = move |count| {
        for _ in 0..count {
            routine.run()?;
        }
        device.sync()
    };
    let said = |count: u64, what: &str, more: &str| format!("{count} {what}{}", if count == 1 { "" } else { more });
    let note = format!(
        "{}{}, {} in {} and {}",
        if tune == Tune::Off { "" } else { "tuned, " },
        said(counts.dispatches / u64::from(row.steps), "kernel", "s"),
        said(row.steps.into(), "run", "s"),
        said(counts.passes, "pass", "es"),
        said(counts.submissions, "submission", "s"),
    );
    Ok(Side { name: "wgslab", run: Box::new(run), outputs, note })
}

/// Times the sides in rounds, each once a round and the other one first each time, once the second computed what the first
/// did.
fn measured(row: &RowSpec, sides: Vec<Side<'_>>, seconds: f64) -> Result<RowResult> {
    let [raw, ours] = <[Side<'_>; 2]>::try_from(sides).unwrap_or_else(|_| unreachable!("two sides"));
    let mut parts = BTreeMap::new();
    let mut sides = vec![&raw];
    if let Some(fault) = row.difference(&ours.outputs, &raw.outputs) {
        parts.insert(ours.name, Part { fault: Some(format!("wrong: {fault}")), ..Part::default() });
    } else {
        sides.push(&ours);
    }
    let timed = |side: &Side<'_>, count: u32| -> Result<f64> {
        let start = Instant::now();
        (side.run)(count)?;
        Ok(start.elapsed().as_secs_f64())
    };
    let mut batches = Vec::new();
    let mut round_seconds = 0.0;
    for side in &sides {
        // The first run meets what the check left. That is little beside a long one.
        let mut time = timed(side, 1)?;
        if time < LONG {
            time = timed(side, 1)?;
        }
        let batch = (BATCH.as_secs_f64() / time).round().clamp(1.0, LARGEST_BATCH);
        batches.push(batch as u32);
        round_seconds += batch * time;
    }
    let least = if round_seconds > LONG_ROUND { 1.0 } else { LEAST_ROUNDS };
    let rounds = (seconds / round_seconds).floor().clamp(least, MOST_ROUNDS) as usize;
    let mut samples = vec![Vec::new(); sides.len()];
    for round in 0..rounds {
        for turn in 0..sides.len() {
            let at = (round + turn) % sides.len();
            samples[at].push(timed(sides[at], batches[at])? * 1e3 / f64::from(batches[at]));
        }
    }
    for (side, times) in sides.iter().zip(&samples) {
        let time = spread(times);
        let ratio = samples.get(1).map(|ours| ratio_of(times, ours));
        parts.insert(side.name, Part { time: Some(time), note: Some(side.note.clone()), ratio, fault: None });
    }
    eprintln!("bench: {} in {rounds} rounds", row.name);
    Ok(RowResult { name: row.name.clone(), unit: "ms", parts, rounds, share: Share::default() })
}
