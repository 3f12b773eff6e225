//! What each kernel does, in plain Rust: the host driver runs it, and the tests compare the kernels with it. The names are
//! those of the kernels' texts; where a text says `dim_x_0`, it says `shapes.dim("x", 0)`.

use std::collections::BTreeMap;

use wgslab::TwinArgs;

use crate::native::Result;

/// A twin, over tensors of those shapes.
pub type Twin = fn(&mut TwinArgs<'_>, &Shapes) -> wgslab::Result<()>;

/// The shapes of a kernel's tensors, by their names in the kernel.
#[derive(Debug, Default)]
pub struct Shapes {
    all: BTreeMap<String, Vec<usize>>,
}

impl Shapes {
    pub fn insert(&mut self, tensor: &str, shape: &[u32]) {
        self.all.insert(tensor.to_owned(), shape.iter().map(|&extent| extent as usize).collect());
    }

    fn dim(&self, tensor: &str, axis: usize) -> usize {
        self.all[tensor][axis]
    }
}

/// The twin of the kernel of that name.
pub fn twin(kernel: &str) -> Result<Twin> {
    Ok(match kernel {
        "init" => init,
        "gather" | "test_gather" => gather,
        "hidden" | "test_hidden" => hidden,
        "output" => output,
        "hidden_grad" => hidden_grad,
        "gradient1" | "gradient2" => gradient,
        "merge" => merge,
        "momentum" => momentum,
        "predict" => predict,
        kernel => return Err(format!("program.json: kernel \"{kernel}\" has no host twin").into()),
    })
}

fn init(args: &mut TwinArgs<'_>, shapes: &Shapes) -> wgslab::Result<()> {
    fn hash(seed: u32) -> u32 {
        let x = (seed ^ (seed >> 16)).wrapping_mul(0x7feb_352d);
        let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
        x ^ (x >> 16)
    }
    let seed = hash(args.static_value("seed")? as u32);
    let uniform_at = |i: usize| (hash(seed.wrapping_add(i as u32)) >> 8) as f32 / 8_388_608.0 - 1.0;
    let mut start = 0;
    for w in ["w1", "w2"] {
        let scale = (6.0 / shapes.dim(w, 0) as f32).sqrt();
        let len = shapes.dim(w, 0) * shapes.dim(w, 1);
        args.store(w, &(start..start + len).map(|i| uniform_at(i) * scale).collect::<Vec<f32>>())?;
        start += len;
    }
    Ok(())
}

fn gather(args: &mut TwinArgs<'_>, shapes: &Shapes) -> wgslab::Result<()> {
    let (rows, columns) = (shapes.dim("x", 0), shapes.dim("x", 1));
    let (pixels, labels, order) = (args.load::<u8>("pixels")?, args.load::<u8>("labels")?, args.load::<u32>("order")?);
    let first = args.static_value("step")? as usize * rows;
    let examples: Vec<usize> = (first..first + rows).map(|at| order[at % order.len()] as usize).collect();
    let images = examples.iter().flat_map(|example| &pixels[example * columns..][..columns]);
    args.store("x", &images.map(|&pixel| f32::from(pixel) / 16.0).collect::<Vec<_>>())?;
    args.store("y", &examples.iter().map(|&example| u32::from(labels[example])).collect::<Vec<_>>())
}

/// `x w + b`, row behind row.
fn affine(x: &[f32], w: &[f32], b: &[f32]) -> Vec<f32> {
    let units = b.len();
    let unit_of = |row: &[f32], unit: usize| {
        row.iter().enumerate().fold(b[unit], |sum, (k, value)| sum + value * w[k * units + unit])
    };
    let rows = x.chunks_exact(w.len() / units);
    rows.flat_map(|row| (0..units).map(move |unit| unit_of(row, unit))).collect()
}

fn hidden(args: &mut TwinArgs<'_>, _: &Shapes) -> wgslab::Result<()> {
    let h = affine(&args.load::<f32>("x")?, &args.load::<f32>("w")?, &args.load::<f32>("b")?);
    args.store("h", &h.into_iter().map(|value| value.max(0.0)).collect::<Vec<_>>())
}

/// The largest of some outputs, what each is below it as a power of e, and the sum of those.
fn softmax(logits: &[f32]) -> (f32, Vec<f32>, f32) {
    let largest = logits.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let total = powers.iter().sum();
    (largest, powers, total)
}

fn output(args: &mut TwinArgs<'_>, shapes: &Shapes) -> wgslab::Result<()> {
    let rows = shapes.dim("h", 0) as f32;
    let logits = affine(&args.load::<f32>("h")?, &args.load::<f32>("w")?, &args.load::<f32>("b")?);
    let (mut g, mut loss) = (Vec::with_capacity(logits.len()), 0.0);
    for (logits, label) in logits.chunks_exact(shapes.dim("w", 1)).zip(args.load::<u32>("y")?) {
        let (largest, powers, total) = softmax(logits);
        let target = |k: usize| if k == label as usize { 1.0 } else { 0.0 };
        g.extend(powers.iter().enumerate().map(|(k, power)| (power / total - target(k)) / rows));
        loss += largest + total.ln() - logits[label as usize];
    }
    args.store("g", &g)?;
    let mut losses = args.load::<f32>("losses")?;
    let at = args.static_value("step")? as usize % losses.len();
    losses[at] = loss / rows;
    args.store("losses", &losses)
}

fn hidden_grad(args: &mut TwinArgs<'_>, shapes: &Shapes) -> wgslab::Result<()> {
    let (units, classes) = (shapes.dim("w", 0), shapes.dim("w", 1));
    let (d, w, h) = (args.load::<f32>("d")?, args.load::<f32>("w")?, args.load::<f32>("h")?);
    let gradient_at = |i: usize| {
        let (row, unit) = (i / units, i % units);
        (0..classes).map(|k| d[row * classes + k] * w[unit * classes + k]).sum::<f32>()
    };
    let g: Vec<f32> = (0..h.len()).map(|i| if h[i] > 0.0 { gradient_at(i) } else { 0.0 }).collect();
    args.store("g", &g)
}

fn gradient(args: &mut TwinArgs<'_>, shapes: &Shapes) -> wgslab::Result<()> {
    let (inputs, units) = (shapes.dim("gw", 0), shapes.dim("gw", 1));
    let (x, d) = (args.load::<f32>("x")?, args.load::<f32>("d")?);
    let (mut gw, mut gb) = (vec![0.0f32; inputs * units], vec![0.0f32; units]);
    for (x, d) in x.chunks_exact(inputs).zip(d.chunks_exact(units)) {
        gw.iter_mut().enumerate().for_each(|(i, sum)| *sum += x[i / units] * d[i % units]);
        gb.iter_mut().zip(d).for_each(|(sum, d)| *sum += d);
    }
    args.store("gw", &gw)?;
    args.store("gb", &gb)
}

fn merge(args: &mut TwinArgs<'_>, _: &Shapes) -> wgslab::Result<()> {
    let (own, theirs) = (args.load::<f32>("own")?, args.load::<f32>("theirs")?);
    args.store("total", &own.iter().zip(theirs).map(|(own, theirs)| 0.5 * (own + theirs)).collect::<Vec<_>>())
}

fn momentum(args: &mut TwinArgs<'_>, _: &Shapes) -> wgslab::Result<()> {
    let (mut w, mut m) = (args.load::<f32>("w")?, args.load::<f32>("m")?);
    let settings = args.load::<f32>("settings")?;
    for ((w, m), gradient) in w.iter_mut().zip(&mut m).zip(args.load::<f32>("gradient")?) {
        *m = settings[1] * *m + gradient;
        *w -= settings[0] * *m;
    }
    args.store("m", &m)?;
    args.store("w", &w)
}

fn predict(args: &mut TwinArgs<'_>, shapes: &Shapes) -> wgslab::Result<()> {
    let logits = affine(&args.load::<f32>("h")?, &args.load::<f32>("w")?, &args.load::<f32>("b")?);
    let (mut predictions, mut confidence) = (Vec::new(), Vec::new());
    for logits in logits.chunks_exact(shapes.dim("w", 1)) {
        let (largest, _, total) = softmax(logits);
        predictions.push(logits.iter().position(|&logit| logit == largest).unwrap_or_default() as u32);
        confidence.push(1.0 / total);
    }
    args.store("predictions", &predictions)?;
    args.store("confidence", &confidence)
}
