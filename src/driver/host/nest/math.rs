//! Arithmetic as index notation defines it, on single values, as their 32 bits; a truth value is 0 or 1.

use crate::notation::ast::{BinaryOp, Function, UnaryOp};
use crate::notation::program::Ty;

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn i(bits: u32) -> i32 {
    bits as i32
}

/// An operator before its operand.
pub(super) fn unary(op: UnaryOp, ty: Ty) -> fn(u32) -> u32 {
    match (op, ty) {
        (UnaryOp::Neg, Ty::F32) => |a| (-f(a)).to_bits(),
        (UnaryOp::Neg, _) => u32::wrapping_neg,
        (UnaryOp::Not, _) => |a| u32::from(a == 0),
        (UnaryOp::BitNot, _) => |a| !a,
    }
}

/// An operator between operands of that type; an exponent of integers may be the other integer type.
pub(super) fn binary(op: BinaryOp, ty: Ty, right: Ty) -> fn(u32, u32) -> u32 {
    match (op, ty) {
        (BinaryOp::Add, Ty::F32) => |a, b| (f(a) + f(b)).to_bits(),
        (BinaryOp::Sub, Ty::F32) => |a, b| (f(a) - f(b)).to_bits(),
        (BinaryOp::Mul, Ty::F32) => |a, b| (f(a) * f(b)).to_bits(),
        (BinaryOp::Div, Ty::F32) => |a, b| (f(a) / f(b)).to_bits(),
        (BinaryOp::Rem, Ty::F32) => |a, b| (f(a) % f(b)).to_bits(),
        (BinaryOp::Pow, Ty::F32) => |a, b| power(f(a), f(b)).to_bits(),
        (BinaryOp::Add, _) => u32::wrapping_add,
        (BinaryOp::Sub, _) => u32::wrapping_sub,
        (BinaryOp::Mul, _) => u32::wrapping_mul,
        (BinaryOp::Div, Ty::I32) => |a, b| if b == 0 { a } else { i(a).wrapping_div(i(b)) as u32 },
        (BinaryOp::Rem, Ty::I32) => |a, b| if b == 0 { 0 } else { i(a).wrapping_rem(i(b)) as u32 },
        (BinaryOp::Div, _) => |a, b| a.checked_div(b).unwrap_or(a),
        (BinaryOp::Rem, _) => |a, b| a.checked_rem(b).unwrap_or(0),
        (BinaryOp::Pow, Ty::I32) if right == Ty::I32 => |a, b| signed_power(i(a), i(b)) as u32,
        (BinaryOp::Pow, _) if right == Ty::I32 => |a, b| if i(b) < 0 { u32::from(a == 1) } else { a.wrapping_pow(b) },
        // The low bits of a power do not depend on the sign.
        (BinaryOp::Pow, _) => u32::wrapping_pow,
        (BinaryOp::Shl, _) => u32::wrapping_shl,
        (BinaryOp::Shr, Ty::I32) => |a, b| i(a).wrapping_shr(b) as u32,
        (BinaryOp::Shr, _) => u32::wrapping_shr,
        (BinaryOp::BitAnd, _) => |a, b| a & b,
        (BinaryOp::BitXor, _) => |a, b| a ^ b,
        (BinaryOp::BitOr, _) => |a, b| a | b,
        (BinaryOp::Lt, Ty::F32) => |a, b| u32::from(f(a) < f(b)),
        (BinaryOp::Le, Ty::F32) => |a, b| u32::from(f(a) <= f(b)),
        (BinaryOp::Gt, Ty::F32) => |a, b| u32::from(f(a) > f(b)),
        (BinaryOp::Ge, Ty::F32) => |a, b| u32::from(f(a) >= f(b)),
        (BinaryOp::Eq, Ty::F32) => |a, b| u32::from(f(a) == f(b)),
        (BinaryOp::Ne, Ty::F32) => |a, b| u32::from(f(a) != f(b)),
        (BinaryOp::Lt, Ty::I32) => |a, b| u32::from(i(a) < i(b)),
        (BinaryOp::Le, Ty::I32) => |a, b| u32::from(i(a) <= i(b)),
        (BinaryOp::Gt, Ty::I32) => |a, b| u32::from(i(a) > i(b)),
        (BinaryOp::Ge, Ty::I32) => |a, b| u32::from(i(a) >= i(b)),
        (BinaryOp::Lt, _) => |a, b| u32::from(a < b),
        (BinaryOp::Le, _) => |a, b| u32::from(a <= b),
        (BinaryOp::Gt, _) => |a, b| u32::from(a > b),
        (BinaryOp::Ge, _) => |a, b| u32::from(a >= b),
        (BinaryOp::Eq, _) => |a, b| u32::from(a == b),
        (BinaryOp::Ne, _) => |a, b| u32::from(a != b),
        (BinaryOp::And, _) => |a, b| a & b,
        (BinaryOp::Or, _) => |a, b| a | b,
    }
}

/// `base ** exponent` of signed integers.
fn signed_power(base: i32, exponent: i32) -> i32 {
    match (base, exponent) {
        (-1, negative) if negative < 0 => {
            if negative % 2 == 0 {
                1
            } else {
                -1
            }
        }
        (_, negative) if negative < 0 => i32::from(base == 1),
        (_, exponent) => base.wrapping_pow(exponent as u32),
    }
}

/// `base ** exponent` of floats. Squares are exact products.
fn power(base: f32, exponent: f32) -> f32 {
    if exponent == 2.0 { base * base } else { base.powf(exponent) }
}

/// A function by its number of arguments.
#[derive(Clone, Copy)]
pub(super) enum Callee {
    One(fn(u32) -> u32),
    Two(fn(u32, u32) -> u32),
    Three(fn(u32, u32, u32) -> u32),
    Four(fn(u32, u32, u32, u32) -> u32),
}

macro_rules! float {
    ($name:ident => $body:expr) => {
        Callee::One(|a| {
            let $name = f(a);
            let value: f32 = $body;
            value.to_bits()
        })
    };
}

/// A function on arguments of that type. `select` is a conditional.
pub(super) fn function(function: Function, ty: Ty) -> Callee {
    match (function, ty) {
        (Function::Abs, Ty::F32) => float!(a => a.abs()),
        (Function::Abs, Ty::I32) => Callee::One(|a| i(a).wrapping_abs() as u32),
        (Function::Sign, Ty::F32) => float!(a => if a > 0.0 { 1.0 } else if a < 0.0 { -1.0 } else { a }),
        (Function::Sign, Ty::I32) => Callee::One(|a| i(a).signum() as u32),
        (Function::Sign, _) => Callee::One(|a| a.min(1)),
        (Function::Abs | Function::Relu, Ty::U32 | Ty::Bool) => Callee::One(|a| a),
        (Function::Relu, Ty::I32) => Callee::One(|a| i(a).max(0) as u32),
        (Function::Min, Ty::F32) => Callee::Two(|a, b| f(a).min(f(b)).to_bits()),
        (Function::Max, Ty::F32) => Callee::Two(|a, b| f(a).max(f(b)).to_bits()),
        (Function::Min, Ty::I32) => Callee::Two(|a, b| i(a).min(i(b)) as u32),
        (Function::Max, Ty::I32) => Callee::Two(|a, b| i(a).max(i(b)) as u32),
        (Function::Min, _) => Callee::Two(u32::min),
        (Function::Max, _) => Callee::Two(u32::max),
        (Function::Clamp, Ty::F32) => Callee::Three(|x, lo, hi| f(x).max(f(lo)).min(f(hi)).to_bits()),
        (Function::Clamp, Ty::I32) => Callee::Three(|x, lo, hi| i(x).max(i(lo)).min(i(hi)) as u32),
        (Function::Clamp, _) => Callee::Three(|x, lo, hi| x.max(lo).min(hi)),
        (Function::Pow, ty) => Callee::Two(binary(BinaryOp::Pow, ty, ty)),
        (Function::Floor, _) => float!(a => a.floor()),
        (Function::Ceil, _) => float!(a => a.ceil()),
        (Function::Round, _) => float!(a => a.round_ties_even()),
        (Function::Trunc, _) => float!(a => a.trunc()),
        (Function::Sqrt, _) => float!(a => a.sqrt()),
        (Function::Rsqrt, _) => float!(a => 1.0 / a.sqrt()),
        (Function::Exp, _) => float!(a => a.exp()),
        (Function::Exp2, _) => float!(a => a.exp2()),
        (Function::Log, _) => float!(a => a.ln()),
        (Function::Log2, _) => float!(a => a.log2()),
        (Function::Sin, _) => float!(a => a.sin()),
        (Function::Cos, _) => float!(a => a.cos()),
        (Function::Tan, _) => float!(a => a.tan()),
        (Function::Asin, _) => float!(a => a.asin()),
        (Function::Acos, _) => float!(a => a.acos()),
        (Function::Atan, _) => float!(a => a.atan()),
        (Function::Atan2, _) => Callee::Two(|y, x| f(y).atan2(f(x)).to_bits()),
        (Function::Sinh, _) => float!(a => a.sinh()),
        (Function::Cosh, _) => float!(a => a.cosh()),
        (Function::Tanh, _) => float!(a => a.tanh()),
        (Function::Fma, _) => Callee::Three(|a, b, c| f(a).mul_add(f(b), f(c)).to_bits()),
        (Function::Erf, _) => float!(a => erf(f64::from(a)) as f32),
        (Function::Sigmoid, _) => float!(a => sigmoid(a)),
        (Function::Relu, Ty::F32) => float!(a => a.max(0.0)),
        (Function::Gelu, _) => float!(a => gelu(a)),
        (Function::GeluTanh, _) => float!(a => gelu_tanh(a)),
        (Function::Silu, _) => float!(a => if a < -90.0 { 0.0 } else { a * sigmoid(a) }),
        (Function::Softplus, _) => float!(a => if a.is_nan() { a } else { a.max(0.0) + (-a.abs()).exp().ln_1p() }),
        (Function::IsNan, _) => Callee::One(|a| u32::from(f(a).is_nan())),
        (Function::IsInf, _) => Callee::One(|a| u32::from(f(a).is_infinite())),
        (Function::Threefry, _) => Callee::Four(threefry),
        (Function::Uniform, _) => Callee::Two(|s, c| uniform(s, c, 0).to_bits()),
        (Function::Normal, _) => Callee::Two(|s, c| normal(s, c).to_bits()),
        // A conditional, which never comes here.
        (Function::Select, _) => Callee::Three(|c, a, b| if c == 0 { b } else { a }),
    }
}

fn sigmoid(a: f32) -> f32 {
    1.0 / (1.0 + (-a).exp())
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
    let half = 1.0 / (1.0 + (-2.0 * inner).exp());
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
    (-x * x).exp() / ((x + fraction) * std::f64::consts::PI.sqrt())
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
    let radius = (-2.0 * (1.0 - uniform(seed, counter, 0)).ln()).sqrt();
    radius * (2.0 * std::f32::consts::PI * uniform(seed, counter, 1)).cos()
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
        let on = |op, a: i32, b: i32| binary(op, Ty::I32, Ty::I32)(a as u32, b as u32) as i32;
        assert_eq!(on(BinaryOp::Div, 7, 0), 7);
        assert_eq!(on(BinaryOp::Rem, 7, 0), 0);
        assert_eq!(on(BinaryOp::Div, i32::MIN, -1), i32::MIN);
        assert_eq!(on(BinaryOp::Rem, -7, 3), -1);
        assert_eq!(on(BinaryOp::Shr, -8, 33), -4);
        assert_eq!(on(BinaryOp::Pow, -1, -3), -1);
        assert_eq!(on(BinaryOp::Pow, 2, -1), 0);
        assert_eq!(on(BinaryOp::Pow, 3, 4), 81);
    }

    #[test]
    fn the_other_operand_of_a_nan_wins() {
        let Callee::Two(max) = function(Function::Max, Ty::F32) else { unreachable!() };
        assert_eq!(f(max(f32::NAN.to_bits(), 1f32.to_bits())), 1.0);
        assert_eq!(f(max(1f32.to_bits(), f32::NAN.to_bits())), 1.0);
    }
}
