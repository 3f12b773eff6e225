//! The functions of the language in f64, with how far an f32 driver may be off.

use wgslab::notation::ast::{BinaryOp, Function, UnaryOp};
use wgslab::notation::program::Ty;

use super::value::{ALONE, Val, binary, extremum};

pub fn unary(op: UnaryOp, a: Val) -> Val {
    match (op, a.ty) {
        (UnaryOp::Not, _) => Val { bits: 1 - a.bits.min(1), ..a },
        (UnaryOp::BitNot, _) => Val { bits: !a.bits, ..a },
        (UnaryOp::Neg, Ty::F32) => Val { bits: a.bits ^ 0x8000_0000, ..a },
        (UnaryOp::Neg, _) => Val { bits: a.bits.wrapping_neg(), ..a },
    }
}

/// A smooth function: what the error of its argument makes of it is sampled.
fn smooth(a: Val, ulps: f64, absolute: f64, of: fn(f64) -> f64) -> Val {
    if !a.is_plain() {
        return Val::unknown(Ty::F32);
    }
    let value = of(a.as_f64());
    let moved = (of(a.lo()) - value).abs().max((of(a.hi()) - value).abs());
    if moved.is_nan() || moved > 0.3 * (1.0 + value.abs()) {
        return Val::unknown(Ty::F32);
    }
    Val::rounded(value, 2.0 * moved + absolute, ulps)
}

/// A periodic function: of an argument that is off by a part of the period, nothing is known.
fn periodic(a: Val, ulps: f64, of: fn(f64) -> f64) -> Val {
    smooth(a, ulps, 1e-6, of).or_unknown(a.err < 0.05)
}

/// A step function: exact, unless the error of the argument reaches over a step.
fn steps(a: Val, of: fn(f64) -> f64) -> Val {
    if !a.is_plain() {
        return Val::unknown(Ty::F32);
    }
    let value = of(a.as_f64());
    let moved = (of(a.lo()) - value).abs().max((of(a.hi()) - value).abs());
    Val::rounded(value, moved, 0.0)
}

pub fn power(a: Val, b: Val) -> Val {
    if !(a.is_plain() && b.is_plain()) {
        return Val::unknown(Ty::F32);
    }
    let (x, y) = (a.as_f64(), b.as_f64());
    let value = x.powf(y);
    let whole = b.err == 0.0 && y == y.trunc();
    if !whole && (a.lo() <= 0.0 || b.err > 0.5) || x == 0.0 && (y < 0.0 || a.err > 0.0) || !value.is_finite() {
        return Val::unknown(Ty::F32);
    }
    let mut moved = 0f64;
    for x in [a.lo(), x, a.hi()] {
        for y in [b.lo(), y, b.hi()] {
            let other = x.powf(y);
            moved = moved.max(if other.is_finite() { (other - value).abs() } else { f64::INFINITY });
        }
    }
    if moved.is_nan() || moved > 0.3 * (1.0 + value.abs()) {
        return Val::unknown(Ty::F32);
    }
    Val::rounded(value, 2.0 * moved, 32.0)
}

/// By the series near 0, by the continued fraction far out.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 6.0 {
        return x.signum();
    }
    if a < 3.0 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return x.signum() * sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let mut fraction = 0.0;
    for k in (1..=60).rev() {
        fraction = f64::from(k) / 2.0 / (a + fraction);
    }
    x.signum() * (1.0 - (-a * a).exp() / ((a + fraction) * std::f64::consts::PI.sqrt()))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

fn threefry(k0: u32, k1: u32, c0: u32, c1: u32) -> u32 {
    let keys = [k0, k1, 0x1BD1_1BDA ^ k0 ^ k1];
    let mut x = [c0.wrapping_add(keys[0]), c1.wrapping_add(keys[1])];
    for block in 0..5usize {
        let rotations = if block % 2 == 0 { [13, 15, 26, 6] } else { [17, 29, 16, 24] };
        for rotation in rotations {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(block + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(block + 2) % 3]).wrapping_add(block as u32 + 1);
    }
    x[0]
}

fn uniform(seed: u32, counter: u32, stream: u32) -> f64 {
    f64::from(threefry(seed, 0, counter, stream) >> 8) / 16_777_216.0
}

fn whole(a: Val, of: impl Fn(i64) -> i64) -> Val {
    Val { bits: of(a.whole()) as u32, ..a }
}

pub fn call(function: Function, arguments: &[Val]) -> Val {
    use Function::*;
    let a = arguments[0];
    let is_int = a.ty != Ty::F32;
    let zero = Val { ty: a.ty, bits: 0, err: 0.0, sum: ALONE };
    match function {
        Abs if is_int => whole(a, i64::abs),
        Abs => Val { bits: a.bits & 0x7fff_ffff, ..a },
        Sign if is_int => whole(a, i64::signum),
        Sign => steps(a, |v| if v == 0.0 { 0.0 } else { v.signum() }),
        Floor => steps(a, f64::floor),
        Ceil => steps(a, f64::ceil),
        Round => steps(a, f64::round_ties_even),
        Trunc => steps(a, f64::trunc),
        Sqrt => smooth(a, 4.0, 0.0, f64::sqrt),
        Rsqrt => smooth(a, 8.0, 0.0, |v| 1.0 / v.sqrt()),
        Exp => smooth(a, 16.0, 0.0, f64::exp),
        Exp2 => smooth(a, 16.0, 0.0, f64::exp2),
        Log => smooth(a, 16.0, 5e-7, f64::ln),
        Log2 => smooth(a, 16.0, 5e-7, f64::log2),
        Sin => periodic(a, 16.0, f64::sin),
        Cos => periodic(a, 16.0, f64::cos),
        Tan => periodic(a, 32.0, f64::tan),
        Asin => smooth(a, 16.0, 1e-6, f64::asin),
        Acos => smooth(a, 16.0, 1e-6, f64::acos),
        Atan => smooth(a, 16.0, 0.0, f64::atan),
        Sinh => smooth(a, 16.0, 0.0, f64::sinh),
        Cosh => smooth(a, 16.0, 0.0, f64::cosh),
        Tanh => smooth(a, 16.0, 0.0, f64::tanh),
        Erf => smooth(a, 16.0, 0.0, erf),
        Sigmoid => smooth(a, 16.0, 0.0, sigmoid),
        Gelu => smooth(a, 16.0, 1e-6, |v| 0.5 * v * (1.0 + erf(v / std::f64::consts::SQRT_2))),
        GeluTanh => smooth(a, 16.0, 1e-6, gelu_tanh),
        Silu => smooth(a, 16.0, 0.0, |v| v * sigmoid(v)),
        Softplus => smooth(a, 16.0, 0.0, |v| v.max(0.0) + (-v.abs()).exp().ln_1p()),
        Atan2 => {
            let x = arguments[1];
            let near_cut = a.as_f64().abs() <= a.err && x.lo() <= 0.0;
            if !(a.is_plain() && x.is_plain()) || near_cut || a.err + x.err > 0.01 * a.as_f64().hypot(x.as_f64()) {
                return Val::unknown(Ty::F32);
            }
            let spread = (a.err + x.err) / a.as_f64().hypot(x.as_f64()).max(1e-30);
            Val::rounded(a.as_f64().atan2(x.as_f64()), 2.0 * spread, 16.0)
        }
        Pow => binary(BinaryOp::Pow, a, arguments[1]),
        Max => extremum(true, a, arguments[1]),
        Min => extremum(false, a, arguments[1]),
        Clamp => extremum(false, extremum(true, a, arguments[1]), arguments[2]),
        Relu => extremum(true, a, zero),
        Fma => {
            let [a, b, c] = [arguments[0], arguments[1], arguments[2]];
            let product = binary(BinaryOp::Mul, a, b);
            if !(product.is_plain() && c.is_plain()) {
                return Val::unknown(Ty::F32);
            }
            let exact = a.as_f64() * b.as_f64() + c.as_f64();
            Val::rounded(exact, product.err + c.err, 1.0)
        }
        IsNan | IsInf => {
            let v = a.as_f32();
            Val::bool(if function == IsNan { v.is_nan() } else { v.is_infinite() }).or_unknown(a.is_known())
        }
        Threefry | Uniform | Normal => {
            let known = arguments.iter().all(|argument| argument.is_known());
            let bits: Vec<u32> = arguments.iter().map(|argument| argument.bits).collect();
            let value = match function {
                Threefry => Val::u32(threefry(bits[0], bits[1], bits[2], bits[3])),
                Uniform => Val::f32(uniform(bits[0], bits[1], 0) as f32),
                _ => {
                    let radius = (-2.0 * (1.0 - uniform(bits[0], bits[1], 0)).ln()).sqrt();
                    let angle = 2.0 * std::f64::consts::PI * uniform(bits[0], bits[1], 1);
                    Val::rounded(radius * angle.cos(), 4e-6 * (1.0 + radius), 16.0)
                }
            };
            value.or_unknown(known)
        }
        Select => unreachable!("the evaluator chooses"),
    }
}
