//! Every function against f64, over dense samples and special values, and the random numbers against their definition.

use std::f64::consts;

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::console_log as println;
use wgslab::notation::ast::Function;
use wgslab::{DType, Device, gpu};

use super::build::{Lab, at, call, u};
use super::values::{floats, spread, ulps};

/// The complementary error function: a series near 0, a continued fraction far out.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 3.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - sum * consts::FRAC_2_SQRT_PI;
    }
    if x > 30.0 {
        return 0.0;
    }
    let fraction = (1..200).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    (-x * x).exp() / (fraction * consts::PI.sqrt())
}

fn erf(x: f64) -> f64 {
    if x.abs() < 1e-3 { consts::FRAC_2_SQRT_PI * (x - x.powi(3) / 3.0) } else { 1.0 - erfc(x) }
}

/// A function, what it is, the largest error in ulp, and the absolute error that is good enough as well.
type Row = (Function, fn(f64) -> f64, f64, f64);

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn product(x: f64, y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { x * y }
}

fn rows() -> Vec<Row> {
    use Function::*;
    vec![
        (Abs, f64::abs, 0.0, 0.0),
        (Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }, 0.0, 0.0),
        (Floor, f64::floor, 0.0, 0.0),
        (Ceil, f64::ceil, 0.0, 0.0),
        (Round, f64::round_ties_even, 0.0, 0.0),
        (Trunc, f64::trunc, 0.0, 0.0),
        (Sqrt, f64::sqrt, 1.0, 0.0),
        (Rsqrt, |x| 1.0 / x.sqrt(), 2.0, 0.0),
        (Exp, f64::exp, 2.0, 0.0),
        (Exp2, f64::exp2, 2.0, 0.0),
        (Log, f64::ln, 2.0, 0.0),
        (Log2, f64::log2, 3.0, 0.0),
        (Sin, f64::sin, 4.0, 2e-7),
        (Cos, f64::cos, 4.0, 2e-7),
        (Tan, f64::tan, 6.0, 2e-7),
        (Asin, f64::asin, 4.0, 0.0),
        (Acos, f64::acos, 4.0, 2e-7),
        (Atan, f64::atan, 4.0, 0.0),
        (Sinh, f64::sinh, 6.0, 0.0),
        (Cosh, f64::cosh, 6.0, 0.0),
        (Tanh, f64::tanh, 4.0, 0.0),
        (Erf, erf, 4.0, 0.0),
        (Sigmoid, sigmoid, 6.0, 0.0),
        (Gelu, |x| product(x, 0.5 * erfc(-x / consts::SQRT_2)), 40.0, 1e-7),
        (GeluTanh, |x| product(x, sigmoid(2.0 * (2.0 / consts::PI).sqrt() * (x + 0.044715 * x * x * x))), 40.0, 1e-7),
        (Silu, |x| product(x, sigmoid(x)), 6.0, 0.0),
        (Softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), 4.0, 0.0),
        (Relu, |x| x.max(0.0), 0.0, 0.0),
    ]
}

/// The largest errors go to the output: `cargo test -- functions --nocapture`.
pub async fn functions_are_as_close_as_documented(device: &Device<gpu::Gpu>) {
    let mut x = floats();
    for (least, most) in
        [(-1.0, 1.0), (-10.0, 10.0), (-100.0, 100.0), (0.9, 1.1), (-1e-3, 1e-3), (-1e5, 1e5), (0.0, 1e30)]
    {
        x.extend(spread(least, most, 4000));
    }
    x.extend(
        (1..20_000u32)
            .map(|k| f32::from_bits(k * 106_937))
            .filter(|value| value.is_finite() && *value >= f32::MIN_POSITIVE),
    );
    let mut lab = Lab::default();
    let node = lab.given(DType::F32, &[x.len() as u32], &x);
    let rows = rows();
    let made: Vec<_> = rows
        .iter()
        .map(|(function, ..)| {
            let value = call(*function, vec![lab.load(node, at(&[0]))]);
            lab.map(DType::F32, x.len(), value)
        })
        .collect();
    let outcome = lab.run(device, &[]).await;
    let mut failures = Vec::new();
    for ((function, of, most, absolute), node) in rows.into_iter().zip(made) {
        let (mut worst, mut farthest, mut place) = (0.0f64, 0.0f64, 0.0f32);
        for (got, x) in outcome.of::<f32>(node).iter().zip(&x) {
            let want = if x.is_nan() && function != Function::Relu { f64::NAN } else { of(f64::from(*x)) };
            let error = ulps(*got, want);
            let distance = if error == 0.0 { 0.0 } else { (f64::from(*got) - want).abs() };
            let is_near = distance <= absolute;
            if error > worst && !is_near {
                (worst, place) = (error, *x);
            }
            if distance > farthest && distance.is_finite() && want.abs() < 2.0 {
                farthest = distance;
            }
        }
        println!(
            "{:10} {worst:8.2} ulp at {place:e}; absolute {farthest:.1e} where the value is below 2",
            function.name()
        );
        if worst > most {
            failures.push(format!("{}: {worst} ulp at {place:e}, over {most}", function.name()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

pub async fn functions_of_two_are_as_close_as_documented(device: &Device<gpu::Gpu>) {
    let specials = floats();
    let (mut a, mut b) = super::values::pairs(&specials);
    for (least, most) in [(-10.0, 10.0), (0.0, 2.0), (-1e6, 1e6)] {
        let values = spread(least, most, 8000);
        a.extend(&values[..4000]);
        b.extend(&values[4000..]);
    }
    // Whole exponents, and bases near 1 with large ones.
    a.extend(spread(-20.0, 20.0, 1000));
    b.extend((0..1000).map(|k| (k % 41 - 20) as f32));
    a.extend(spread(0.999, 1.001, 2000));
    b.extend(spread(-50_000.0, 50_000.0, 2000));
    let mut lab = Lab::default();
    let len = a.len();
    let (x, y) = (lab.given(DType::F32, &[len as u32], &a), lab.given(DType::F32, &[len as u32], &b));
    let arguments = vec![lab.load(x, at(&[0])), lab.load(y, at(&[0]))];
    let atan2 = lab.map(DType::F32, len, call(Function::Atan2, arguments.clone()));
    let pow = lab.map(DType::F32, len, call(Function::Pow, arguments));
    let outcome = lab.run(device, &[]).await;
    let mut failures = Vec::new();
    for (name, node, of, most) in
        [("atan2", atan2, f64::atan2 as fn(f64, f64) -> f64, 5.0), ("pow", pow, f64::powf as fn(f64, f64) -> f64, 4.0)]
    {
        let (mut worst, mut place) = (0.0f64, (0.0f32, 0.0f32));
        for ((got, a), b) in outcome.of::<f32>(node).iter().zip(&a).zip(&b) {
            let error = ulps(*got, of(f64::from(*a), f64::from(*b)));
            if error > worst {
                (worst, place) = (error, (*a, *b));
            }
        }
        println!("{name:10} {worst:8.2} ulp at {place:?}");
        if worst > most {
            failures.push(format!("{name}: {worst} ulp at {place:?}, over {most}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Threefry-2x32 with 20 rounds, as in the paper.
fn threefry(k0: u32, k1: u32, c0: u32, c1: u32) -> [u32; 2] {
    let keys = [k0, k1, 0x1bd1_1bda ^ k0 ^ k1];
    let (mut a, mut b) = (c0.wrapping_add(k0), c1.wrapping_add(k1));
    for round in 0..20usize {
        let rotation = [13, 15, 26, 6, 17, 29, 16, 24][round % 8];
        a = a.wrapping_add(b);
        b = b.rotate_left(rotation) ^ a;
        if round % 4 == 3 {
            let group = round / 4 + 1;
            a = a.wrapping_add(keys[group % 3]);
            b = b.wrapping_add(keys[(group + 1) % 3]).wrapping_add(group as u32);
        }
    }
    [a, b]
}

pub async fn random_numbers_are_those_of_the_definition(device: &Device<gpu::Gpu>) {
    // Known answers of Random123.
    assert_eq!(threefry(0, 0, 0, 0), [0x6b20_0159, 0x99ba_4efe]);
    assert_eq!(threefry(u32::MAX, u32::MAX, u32::MAX, u32::MAX), [0x1cb9_96fc, 0xbb00_2be7]);
    assert_eq!(threefry(0x1319_8a2e, 0x0370_7344, 0x243f_6a88, 0x85a3_08d3), [0xc492_3a9c, 0x483d_f7a0]);
    let mut words: Vec<u32> = (0..500u32).map(|k| k.wrapping_mul(0x9e37_79b9) ^ k).collect();
    words.extend([0, 1, u32::MAX, 0x8000_0000]);
    let len = words.len();
    let mut lab = Lab::default();
    let c = lab.given(DType::U32, &[len as u32], &words);
    let counter = lab.load(c, at(&[0]));
    let raw =
        lab.map(DType::U32, len, call(Function::Threefry, vec![u(7), counter.clone(), u(u32::MAX), counter.clone()]));
    let uniform = lab.map(DType::F32, len, call(Function::Uniform, vec![u(42), counter.clone()]));
    let normal = lab.map(DType::F32, len, call(Function::Normal, vec![counter, u(9)]));
    let constants = lab.map(DType::F32, 1, call(Function::Normal, vec![u(1), u(2)]));
    let outcome = lab.run(device, &[]).await;
    let want: Vec<u32> = words.iter().map(|c| threefry(7, *c, u32::MAX, *c)[0]).collect();
    assert_eq!(outcome.of::<u32>(raw), want);
    let part = |s: u32, c: u32, last: u32| (threefry(s, 0, c, last)[0] >> 8) as f32 * 2.0f32.powi(-24);
    let want: Vec<f32> = words.iter().map(|c| part(42, *c, 0)).collect();
    assert_eq!(outcome.of::<f32>(uniform), want);
    let normal_of = |s: u32, c: u32| {
        let (one, other) = (f64::from(part(s, c, 0)), f64::from(part(s, c, 1)));
        (-2.0 * (1.0 - one).ln()).sqrt() * (consts::TAU * other).cos()
    };
    let mut worst = 0.0f64;
    for (got, s) in outcome.of::<f32>(normal).iter().zip(&words) {
        worst = worst.max((f64::from(*got) - normal_of(*s, 9)).abs());
    }
    worst = worst.max((f64::from(outcome.of::<f32>(constants)[0]) - normal_of(1, 2)).abs());
    println!("normal     absolute {worst:.1e}");
    assert!(worst < 2e-6, "{worst}");
}
