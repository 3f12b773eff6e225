//! Operations as index notation defines them, on single values, as their 32 bits; a truth value is 0 or 1.

use crate::driver::host::nest::functions;
use crate::driver::host::nest::memory::{narrow_bf16, narrow_f16, widen_f16};
use crate::notation::ast::Function;
use crate::steps::ops::Op;

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn i(bits: u32) -> i32 {
    bits as i32
}

/// The value of an operation. Inlined, so that a loop over one that is known is short.
#[inline(always)]
pub(super) fn apply(op: Op, a: u32, b: u32, c: u32) -> u32 {
    match op {
        Op::AddF => (f(a) + f(b)).to_bits(),
        Op::SubF => (f(a) - f(b)).to_bits(),
        Op::MulF => (f(a) * f(b)).to_bits(),
        Op::DivF => (f(a) / f(b)).to_bits(),
        Op::RemF => remainder(f(a), f(b)).to_bits(),
        Op::PowF => power(f(a), f(b)).to_bits(),
        Op::MinF => f(a).min(f(b)).to_bits(),
        Op::MaxF => f(a).max(f(b)).to_bits(),
        Op::LtF => u32::from(f(a) < f(b)),
        Op::LeF => u32::from(f(a) <= f(b)),
        Op::EqF => u32::from(f(a) == f(b)),
        Op::NegF => a ^ 0x8000_0000,
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::MulHigh => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        Op::DivI if b == 0 => a,
        Op::DivI => i(a).wrapping_div(i(b)) as u32,
        Op::DivU => a.checked_div(b).unwrap_or(a),
        Op::RemI if b == 0 => 0,
        Op::RemI => i(a).wrapping_rem(i(b)) as u32,
        Op::RemU => a.checked_rem(b).unwrap_or(0),
        // Of the negative exponents nothing is left, but for 1 and -1.
        Op::PowI | Op::PowUI if i(b) < 0 => match i(a) {
            1 => 1,
            -1 if op == Op::PowI => 1u32.wrapping_sub(2 * (b & 1)),
            _ => 0,
        },
        // The low bits of a power do not depend on the sign.
        Op::PowI | Op::PowU | Op::PowUI => a.wrapping_pow(b),
        Op::MinI => i(a).min(i(b)) as u32,
        Op::MinU => a.min(b),
        Op::MaxI => i(a).max(i(b)) as u32,
        Op::MaxU => a.max(b),
        Op::LtI => u32::from(i(a) < i(b)),
        Op::LtU => u32::from(a < b),
        Op::LeI => u32::from(i(a) <= i(b)),
        Op::LeU => u32::from(a <= b),
        Op::Eq => u32::from(a == b),
        Op::IsNan => u32::from(f(a).is_nan()),
        Op::And | Op::Both => a & b,
        Op::Xor => a ^ b,
        Op::Or | Op::Either => a | b,
        Op::Shl => a.wrapping_shl(b),
        Op::ShrI => i(a).wrapping_shr(b) as u32,
        Op::ShrU => a.wrapping_shr(b),
        Op::Not => a ^ 1,
        Op::Select => {
            if a == 0 {
                c
            } else {
                b
            }
        }
        Op::FToI => f(a) as i32 as u32,
        Op::FToU => f(a) as u32,
        Op::IToF => (i(a) as f32).to_bits(),
        Op::UToF => (a as f32).to_bits(),
        Op::F16 => widen_f16(narrow_f16(a)),
        Op::BF16 => u32::from(narrow_bf16(a)) << 16,
        // The same bits.
        _ => a,
    }
}

/// `base ** exponent` of floats. Squares are exact products.
fn power(base: f32, exponent: f32) -> f32 {
    if exponent == 2.0 { base * base } else { functions::pow(base, exponent) }
}

/// What a truncated division leaves, exactly: by integers, since the library's is large.
fn remainder(x: f32, y: f32) -> f32 {
    const INFINITY: u32 = 0x7f80_0000;
    let (a, b) = (x.to_bits() & 0x7fff_ffff, y.to_bits() & 0x7fff_ffff);
    if a >= INFINITY || b > INFINITY || b == 0 {
        return f32::NAN;
    }
    if a < b {
        return x;
    }
    // Each is an integer of 24 bits times a power of two.
    let parts = |bits: u32| {
        let exponent = (bits >> 23).max(1);
        (u64::from(bits - ((exponent - 1) << 23)), exponent)
    };
    let ((whole, high), (divisor, low)) = (parts(a), parts(b));
    let mut rest = whole % divisor;
    let mut left = high - low;
    while left > 0 {
        let step = left.min(40);
        rest = (rest << step) % divisor;
        left -= step;
    }
    let scale = f64::from_bits(u64::from(low + 1023 - 150) << 52);
    ((rest as f64 * scale) as f32).copysign(x)
}

/// A function of floats, or of random numbers.
pub(super) fn call(function: Function, x: u32, y: u32, z: u32, w: u32) -> u32 {
    let (a, b) = (f(x), f(y));
    let value = match function {
        Function::IsInf => return u32::from(a.is_infinite()),
        Function::Threefry => return threefry(x, y, z, w),
        Function::Uniform => uniform(x, y, 0),
        Function::Normal => normal(x, y),
        Function::Abs => a.abs(),
        Function::Sign if a > 0.0 => 1.0,
        Function::Sign if a < 0.0 => -1.0,
        Function::Floor => a.floor(),
        Function::Ceil => a.ceil(),
        Function::Round => a.round_ties_even(),
        Function::Trunc => a.trunc(),
        Function::Sqrt => a.sqrt(),
        Function::Rsqrt => 1.0 / a.sqrt(),
        Function::Exp => functions::exp(a),
        Function::Exp2 => functions::exp2(a),
        Function::Log => functions::ln(a),
        Function::Log2 => functions::log2(a),
        Function::Sin => functions::sin(a),
        Function::Cos => functions::cos(a),
        Function::Tan => functions::tan(a),
        Function::Asin => functions::asin(a),
        Function::Acos => functions::acos(a),
        Function::Atan => functions::atan(a),
        Function::Atan2 => functions::atan2(a, b),
        Function::Sinh => functions::sinh(a),
        Function::Cosh => functions::cosh(a),
        Function::Tanh => functions::tanh(a),
        Function::Fma => a.mul_add(b, f(z)),
        Function::Erf => erf(f64::from(a)) as f32,
        Function::Sigmoid => sigmoid(a),
        Function::Gelu => gelu(a),
        Function::GeluTanh => gelu_tanh(a),
        Function::Silu if a < -90.0 => 0.0,
        Function::Silu => a * sigmoid(a),
        Function::Softplus if a.is_nan() => a,
        Function::Softplus => a.max(0.0) + functions::ln_1p(functions::exp(-a.abs())),
        // Steps make others of these; the sign of a zero or of a NaN is itself.
        Function::Sign
        | Function::Pow
        | Function::Min
        | Function::Max
        | Function::Clamp
        | Function::Relu
        | Function::IsNan
        | Function::Select => a,
    };
    value.to_bits()
}

fn sigmoid(a: f32) -> f32 {
    1.0 / (1.0 + functions::exp(-a))
}

fn gelu(a: f32) -> f32 {
    let a = f64::from(a);
    let half = if a < -1.0 {
        0.5 * erfc(-a / std::f64::consts::SQRT_2)
    } else {
        0.5 * (1.0 + erf(a / std::f64::consts::SQRT_2))
    };
    // Far out there is nothing left, where the product would be infinity times zero.
    if half == 0.0 { 0.0 } else { (a * half) as f32 }
}

fn gelu_tanh(a: f32) -> f32 {
    let wide = f64::from(a);
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (wide + 0.044715 * wide * wide * wide);
    let half = 1.0 / (1.0 + functions::exp_wide(-2.0 * inner));
    if half == 0.0 { 0.0 } else { (wide * half) as f32 }
}

/// The error function: its series near 0, the continued fraction of the complement farther out.
fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() > 2.5 {
        return x.signum() * (1.0 - erfc(x.abs()));
    }
    let (square, mut term, mut sum) = (x * x, x, x);
    for n in 1..60 {
        term *= -square / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// `1 - erf(x)` for `x > 0`, without cancellation.
fn erfc(x: f64) -> f64 {
    if x < 2.5 {
        return 1.0 - erf(x);
    }
    let mut fraction = 0.0;
    for n in (1..=60).rev() {
        fraction = f64::from(n) / 2.0 / (x + fraction);
    }
    functions::exp_wide(-x * x) / ((x + fraction) * std::f64::consts::PI.sqrt())
}

/// The first word of Threefry-2x32 with 20 rounds (Salmon et al., 2011).
fn threefry(k0: u32, k1: u32, c0: u32, c1: u32) -> u32 {
    const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
    let keys = [k0, k1, k0 ^ k1 ^ 0x1bd1_1bda];
    let (mut a, mut b) = (c0.wrapping_add(k0), c1.wrapping_add(k1));
    for round in 0..20 {
        a = a.wrapping_add(b);
        b = b.rotate_left(ROTATIONS[round % 8]) ^ a;
        if round % 4 == 3 {
            let injection = round / 4 + 1;
            a = a.wrapping_add(keys[injection % 3]);
            b = b.wrapping_add(keys[(injection + 1) % 3]).wrapping_add(injection as u32);
        }
    }
    a
}

/// In 0..1, from a seed, a counter and a stream.
fn uniform(seed: u32, counter: u32, stream: u32) -> f32 {
    (threefry(seed, 0, counter, stream) >> 8) as f32 / 16_777_216.0
}

fn normal(seed: u32, counter: u32) -> f32 {
    let radius = (-2.0 * functions::ln(1.0 - uniform(seed, counter, 0))).sqrt();
    radius * functions::cos(2.0 * std::f32::consts::PI * uniform(seed, counter, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threefry_gives_the_known_answers() {
        // Random123, kat_vectors, threefry2x32 with 20 rounds.
        assert_eq!(threefry(0, 0, 0, 0), 0x6b20_0159);
        assert_eq!(threefry(u32::MAX, u32::MAX, u32::MAX, u32::MAX), 0x1cb9_96fc);
        assert_eq!(threefry(0x1319_8a2e, 0x0370_7344, 0x243f_6a88, 0x85a3_08d3), 0xc492_3a9c);
    }

    #[test]
    fn the_error_function_is_right_near_and_far() {
        for (x, want) in [(0.0, 0.0), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (2.0, 0.9953222650189527)] {
            assert!((erf(x) - want).abs() < 1e-12, "erf({x}) = {}", erf(x));
            assert!((erf(-x) + want).abs() < 1e-12);
        }
        assert!((erfc(3.0) / 2.209049699858544e-5 - 1.0).abs() < 1e-10, "{}", erfc(3.0));
        assert_eq!((erf(f64::INFINITY), erf(f64::NEG_INFINITY)), (1.0, -1.0));
        assert_eq!((gelu(-1e30), gelu(1e30), gelu_tanh(-1e30)), (0.0, 1e30, 0.0));
    }

    #[test]
    fn integers_are_as_defined() {
        let on = |op, a: i32, b: i32| apply(op, a as u32, b as u32, 0) as i32;
        assert_eq!(on(Op::DivI, 7, 0), 7);
        assert_eq!(on(Op::RemI, 7, 0), 0);
        assert_eq!(on(Op::DivI, i32::MIN, -1), i32::MIN);
        assert_eq!(on(Op::RemI, -7, 3), -1);
        assert_eq!(on(Op::ShrI, -8, 33), -4);
        assert_eq!(on(Op::PowI, -1, -3), -1);
        assert_eq!(on(Op::PowI, -1, -4), 1);
        assert_eq!(on(Op::PowI, 2, -1), 0);
        assert_eq!(on(Op::PowI, 3, 4), 81);
        assert_eq!((on(Op::PowUI, -1, -1), on(Op::PowUI, 1, -1)), (0, 1));
        assert_eq!(on(Op::MulHigh, -1, -1), -2);
    }

    #[test]
    fn remainders_are_exact() {
        let specials = [0.0, 1.0, 0.1, 3.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::INFINITY, f32::NAN, 1.5e-40];
        let numbers = (0..400u32).map(|step| f32::from_bits(step.wrapping_mul(2_654_435_761)));
        let all: Vec<f32> = numbers.chain(specials).flat_map(|value| [value, -value]).collect();
        for &a in &all {
            for &b in &all {
                let (got, want) = (remainder(a, b), a % b);
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{a} % {b}: {got}, {want}");
            }
        }
    }

    #[test]
    fn floats_become_integers_by_truncation_and_saturate() {
        let to = |op, value: f32| apply(op, value.to_bits(), 0, 0);
        assert_eq!((to(Op::FToI, -1.9) as i32, to(Op::FToI, 3e9) as i32), (-1, i32::MAX));
        assert_eq!((to(Op::FToU, -1.0), to(Op::FToU, f32::NAN), to(Op::FToU, 300.5)), (0, 0, 300));
    }

    #[test]
    fn the_other_operand_of_a_nan_wins() {
        let max = |a: f32, b: f32| f(apply(Op::MaxF, a.to_bits(), b.to_bits(), 0));
        assert_eq!((max(f32::NAN, 1.0), max(1.0, f32::NAN)), (1.0, 1.0));
    }
}
