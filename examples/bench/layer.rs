//! The rows of the layer beneath programs, in turn with wgpu alone doing the same: recording, uploads, readbacks, linking.

use std::time::{Duration, Instant};

use wgslab::{Access, Context, DType, Device, KernelSpec, Result, TensorNode, gpu};

use crate::native::measure::{Row, in_turn, row};
use crate::native::raw::Raw;

const RUNS: u32 = 1000;
const LEN: u32 = 1024;
const TURNS: usize = 21;
const SIZES: [(&str, u64); 3] = [("4 KiB", 4 << 10), ("1 MiB", 1 << 20), ("16 MiB", 16 << 20)];
const NODES: u32 = 1000;
/// Links, or contexts, in a row in one sample.
const CYCLES: u32 = 10;

const SCALE: &str = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  store_x(id.x, load_x(id.x) * f32(static_factor()));
}";

fn floats(label: &str, bytes: u64) -> TensorNode {
    TensorNode::new(label, DType::F32, [(bytes / 4) as u32])
}

/// Until the calls returned, and until the device was done.
type Sample = (Duration, Duration);

/// Recording runs: the time of the calls alone, and until the device has done them.
pub async fn record(device: &Device<gpu::Gpu>, raw: &Raw) -> Result<Vec<Row>> {
    let x = floats("x", u64::from(LEN) * 4);
    let context = Context::root(device).init_zeros(&[&x])?;
    let spec = KernelSpec::new("scale", SCALE).tensor("x", &x, Access::ReadWrite).statics(["factor"]);
    let code = device.compile(spec.grid([LEN / 64, 1, 1])).await?;
    let routine = context.link(&code).await?;
    let mut submissions = 0;
    let ours = || {
        let before = device.stats().submissions;
        let start = Instant::now();
        for _ in 0..RUNS {
            routine.run_values(&[1])?;
        }
        let recorded = start.elapsed();
        device.sync()?;
        submissions = device.stats().submissions - before;
        Ok((recorded, start.elapsed()))
    };
    let theirs = raw.recorder(LEN, RUNS);
    let (mine, theirs) = in_turn(TURNS, ours, || Ok(theirs()))?;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(RUNS);
    let note = format!("{submissions} submissions for {RUNS} runs");
    let recorded = row(&format!("record a run, of {RUNS}"), "µs", &mine, &theirs, |sample: &Sample| micros(sample.0));
    let done =
        row(&format!("record and do a run, of {RUNS}"), "µs", &mine, &theirs, |sample: &Sample| micros(sample.1));
    Ok(vec![recorded.with_note(&note), done])
}

fn millis(sample: &Duration) -> f64 {
    sample.as_secs_f64() * 1e3
}

/// Writing into a node that is there, until the device has taken it.
pub fn upload(device: &Device<gpu::Gpu>, raw: &Raw) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, bytes) in SIZES {
        let data = vec![1.0f32; (bytes / 4) as usize];
        let x = floats("x", bytes);
        let context = Context::root(device).init_zeros(&[&x])?;
        let ours = || {
            let start = Instant::now();
            context.from_host(&x, &data)?;
            device.sync()?;
            Ok(start.elapsed())
        };
        let theirs = raw.uploader(&data);
        let (mine, theirs) = in_turn(TURNS, ours, || Ok(theirs()))?;
        rows.push(row(&format!("upload {name}"), "ms", &mine, &theirs, millis));
    }
    Ok(rows)
}

/// Reading a node into a fresh vector.
pub fn readback(device: &Device<gpu::Gpu>, raw: &Raw) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, bytes) in SIZES {
        let x = floats("x", bytes);
        let context = Context::root(device).init_zeros(&[&x])?;
        let ours = || {
            let start = Instant::now();
            let read: Vec<f32> = pollster::block_on(context.to_host(&x))?;
            assert_eq!(read.len() as u64 * 4, bytes);
            Ok(start.elapsed())
        };
        let theirs = raw.reader(bytes);
        let (mine, theirs) = in_turn(TURNS, ours, || Ok(theirs()))?;
        rows.push(row(&format!("readback {name}"), "ms", &mine, &theirs, millis));
    }
    Ok(rows)
}

/// A kernel with 1,000 new nodes linked and finalized, and a context of 1,000 nodes made and finalized, beside 1,000
/// buffers created and destroyed.
pub async fn link(device: &Device<gpu::Gpu>, raw: &Raw) -> Result<Vec<Row>> {
    let nodes: Vec<_> = (0..NODES).map(|index| floats(&format!("n{index}"), 4096)).collect();
    let root = Context::root(device);
    let text = "@compute @workgroup_size(1) fn main() { store_n0(0u, 1.0); }";
    let spec = nodes.iter().fold(KernelSpec::new("many", text), |spec, node| {
        let name = node.label();
        spec.tensor(name, node, Access::Write)
    });
    let code = device.compile(spec).await?;
    let linked = || {
        let start = Instant::now();
        for _ in 0..CYCLES {
            pollster::block_on(root.link(&code))?.context().finalize();
        }
        Ok(start.elapsed() / CYCLES)
    };
    let nodes: Vec<_> = nodes.iter().collect();
    let made = || {
        let start = Instant::now();
        for _ in 0..CYCLES {
            root.init_zeros(&nodes)?.finalize();
        }
        Ok(start.elapsed() / CYCLES)
    };
    let theirs = || Ok(raw.create_and_destroy(CYCLES, NODES, 4096));
    let mut rows = Vec::new();
    let (mine, other) = in_turn(TURNS, linked, theirs)?;
    rows.push(row(&format!("link and finalize a kernel with {NODES} new nodes"), "ms", &mine, &other, millis));
    let (mine, other) = in_turn(TURNS, made, theirs)?;
    rows.push(row(&format!("make and finalize a context of {NODES} nodes"), "ms", &mine, &other, millis));
    device.sync()?;
    Ok(rows)
}

/// wgpu against itself: what a ratio is by chance.
pub fn control(raw: &Raw) -> Result<Vec<Row>> {
    let (one, other) = (raw.reader(1 << 20), raw.reader(1 << 20));
    let (one, other) = in_turn(TURNS, || Ok(one()), || Ok(other()))?;
    Ok(vec![row("control: raw against raw, readback 1 MiB", "ms", &one, &other, millis)])
}
