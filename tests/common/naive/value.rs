//! Values with what is known of them: a float with how far it may be off, anything else with whether it is known.

use half::{bf16, f16};
use wgslab::DType;
use wgslab::notation::ast::BinaryOp;
use wgslab::notation::program::Ty;

/// The bits of a value, and how far another driver's may be off: 0 where it must be the same, infinite where nothing can
/// be said (what comes after NaN and infinities, or hangs on a rounding).
#[derive(Clone, Copy, Debug)]
pub struct Val {
    pub ty: Ty,
    pub bits: u32,
    pub err: f64,
    /// Of a sum of floats the absolute values of its terms together, and the largest power of two that all are multiples of.
    pub sum: (f64, f64),
}

/// What is no sum.
pub const ALONE: (f64, f64) = (0.0, f64::INFINITY);

const ULP: f64 = 1.0 / 8_388_608.0;
const FLUSHED: f64 = f32::MIN_POSITIVE as f64;

impl Val {
    pub fn f32(value: f32) -> Self {
        Self { ty: Ty::F32, bits: value.to_bits(), err: 0.0, sum: ALONE }
    }

    pub fn i32(value: i32) -> Self {
        Self { ty: Ty::I32, bits: value as u32, err: 0.0, sum: ALONE }
    }

    pub fn u32(value: u32) -> Self {
        Self { ty: Ty::U32, bits: value, err: 0.0, sum: ALONE }
    }

    pub fn bool(value: bool) -> Self {
        Self { ty: Ty::Bool, bits: u32::from(value), err: 0.0, sum: ALONE }
    }

    pub fn unknown(ty: Ty) -> Self {
        Self { ty, bits: 0, err: f64::INFINITY, sum: ALONE }
    }

    pub fn is_known(self) -> bool {
        self.err < f64::INFINITY
    }

    /// As another value, unknown if this one is.
    pub fn or_unknown(self, known: bool) -> Self {
        if known { self } else { Self { err: f64::INFINITY, ..self } }
    }

    pub fn as_f32(self) -> f32 {
        f32::from_bits(self.bits)
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.as_f32())
    }

    /// An integer as the number that it is.
    pub fn whole(self) -> i64 {
        if self.ty == Ty::I32 { i64::from(self.bits as i32) } else { i64::from(self.bits) }
    }

    pub fn truth(self) -> bool {
        self.bits != 0
    }

    /// As [`Val::sum`], of what may be a sum of one.
    pub fn terms(self) -> (f64, f64) {
        if self.sum == ALONE { (self.as_f64().abs(), quantum(self.as_f32())) } else { self.sum }
    }

    pub fn lo(self) -> f64 {
        self.as_f64() - self.err
    }

    pub fn hi(self) -> f64 {
        self.as_f64() + self.err
    }

    /// A float that can be computed with: finite, and off by less than it could be useful with.
    pub fn is_plain(self) -> bool {
        self.is_known() && self.as_f32().is_finite() && self.err < 1e30
    }

    /// What a computation of plain values rounds to; `ulps` more where it is not exact.
    pub fn rounded(exact: f64, spread: f64, ulps: f64) -> Self {
        let value = exact as f32;
        let mut result = Self::f32(value);
        if !value.is_finite() || exact.abs() > 1e38 || !spread.is_finite() {
            return Self { err: f64::INFINITY, ..result };
        }
        result.err = spread;
        if f64::from(value) != exact || ulps >= 2.0 {
            result.err += ulps * value.abs() as f64 * ULP + FLUSHED;
        } else if value != 0.0 && value.abs() < f32::MIN_POSITIVE {
            result.err += FLUSHED;
        }
        result
    }
}

/// The closest value that a dtype holds, and what it is read as.
pub fn stored(dtype: DType, value: Val) -> Val {
    match dtype {
        DType::F16 => narrowed(value, |v| f16::from_f32(v).to_f32()),
        DType::BF16 => narrowed(value, |v| bf16::from_f32(v).to_f32()),
        DType::I8 => Val { bits: i32::from(value.bits as u8 as i8) as u32, ..value },
        DType::U8 => Val { bits: value.bits & 0xff, ..value },
        _ => value,
    }
}

fn narrowed(value: Val, round: fn(f32) -> f32) -> Val {
    let narrow = round(value.as_f32());
    let result = Val { bits: narrow.to_bits(), ..value };
    if value.err == 0.0 || !value.is_known() {
        return result;
    }
    let (lo, hi) = (round(value.lo() as f32), round(value.hi() as f32));
    if !(lo.is_finite() && hi.is_finite()) {
        return Val { err: f64::INFINITY, ..result };
    }
    Val { err: f64::from(hi - narrow).max(f64::from(narrow - lo)), ..result }
}

/// A conversion that is written out, or made by the checker.
pub fn cast(dtype: DType, value: Val) -> Val {
    let ty = Ty::of(dtype);
    let known = value.is_known();
    let discrete = |of: &dyn Fn(f64) -> i64| {
        let (lo, hi) = (of(value.lo()), of(value.hi()));
        let bits = of(value.as_f64()) as u32;
        (bits, known && (value.err == 0.0 || lo == hi))
    };
    match (dtype, value.ty) {
        (DType::F32, Ty::F32) => value,
        (DType::F32 | DType::F16 | DType::BF16, from) => {
            let wide = match from {
                Ty::F32 => value,
                Ty::I32 => Val { err: value.err, ..Val::f32(value.bits as i32 as f32) },
                Ty::U32 => Val { err: value.err, ..Val::f32(value.bits as f32) },
                Ty::Bool => Val { err: value.err, ..Val::f32(if value.truth() { 1.0 } else { 0.0 }) },
            };
            stored(dtype, wide)
        }
        (DType::Bool, Ty::F32) => {
            let is_sure = value.err == 0.0 || (known && (value.lo() > 0.0 || value.hi() < 0.0));
            Val::bool(value.as_f32() != 0.0).or_unknown(is_sure)
        }
        (DType::Bool, _) => Val::bool(value.bits != 0).or_unknown(known),
        (_, Ty::F32) => {
            let (lo, hi) = match dtype {
                DType::I32 => (-2_147_483_648.0, 2_147_483_647.0),
                DType::I8 => (-128.0, 127.0),
                DType::U8 => (0.0, 255.0),
                _ => (0.0, 4_294_967_295.0),
            };
            let of = |v: f64| if v.is_nan() { 0 } else { v.trunc().clamp(lo, hi) as i64 };
            let (bits, is_sure) = discrete(&of);
            Val { ty, bits, err: 0.0, sum: ALONE }.or_unknown(is_sure && !value.as_f32().is_nan())
        }
        _ => stored(dtype, Val { ty, ..value }),
    }
}

pub fn bitcast(ty: Ty, value: Val) -> Val {
    if ty == value.ty {
        return value;
    }
    let result = Val { ty, ..value };
    if value.ty == Ty::F32 {
        // A zero may have either sign, a NaN any payload, and what is tiny may be flushed.
        return result.or_unknown(value.err == 0.0 && value.as_f32().is_normal());
    }
    let made = result.as_f32();
    result.or_unknown(value.err == 0.0 && (ty != Ty::F32 || made.is_normal() || result.bits == 0))
}

/// The larger (or smaller) of two, the other one of a NaN.
pub fn extremum(is_max: bool, a: Val, b: Val) -> Val {
    if a.ty != Ty::F32 {
        let first = if is_max { a.whole() >= b.whole() } else { a.whole() <= b.whole() };
        return if first { a } else { b }.or_unknown(a.is_known() && b.is_known());
    }
    if !(a.is_known() && b.is_known()) {
        return Val::unknown(Ty::F32);
    }
    let (x, y) = (a.as_f32(), b.as_f32());
    if x.is_nan() || y.is_nan() {
        return if x.is_nan() { b } else { a };
    }
    let pick = |a: f64, b: f64| if is_max { a.max(b) } else { a.min(b) };
    let value = pick(f64::from(x), f64::from(y));
    let mut result = Val::f32(value as f32);
    if a.err > 0.0 || b.err > 0.0 {
        let (lo, hi) = (pick(a.lo(), b.lo()), pick(a.hi(), b.hi()));
        result.err = if lo == hi { 0.0 } else { (hi - value).max(value - lo) };
        if result.err.is_nan() {
            result.err = f64::INFINITY;
        }
    }
    result
}

fn compared(op: BinaryOp, a: Val, b: Val) -> Val {
    let is = |a: f64, b: f64| match op {
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        BinaryOp::Eq => a == b,
        _ => a != b,
    };
    let number = |v: Val| match v.ty {
        Ty::F32 => v.as_f64(),
        Ty::Bool => f64::from(v.bits),
        _ => v.whole() as f64,
    };
    let (x, y) = (number(a), number(b));
    let apart = a.is_known() && b.is_known() && a.ty == Ty::F32 && (a.hi() < b.lo() || b.hi() < a.lo());
    Val::bool(is(x, y)).or_unknown(a.err == 0.0 && b.err == 0.0 || apart)
}

pub fn binary(op: BinaryOp, a: Val, b: Val) -> Val {
    use BinaryOp::*;
    match op {
        Lt | Le | Gt | Ge | Eq | Ne => return compared(op, a, b),
        And | Or => {
            let decides = |v: Val| v.is_known() && v.truth() == (op == Or);
            if decides(a) || decides(b) {
                return Val::bool(op == Or);
            }
            return Val::bool(op == And).or_unknown(a.is_known() && b.is_known());
        }
        _ => {}
    }
    if a.ty != Ty::F32 {
        let bits = if a.ty == Ty::I32 { signed(op, a.bits as i32, b) as u32 } else { unsigned(op, a.bits, b) };
        return Val { ty: a.ty, bits, err: 0.0, sum: ALONE }.or_unknown(a.is_known() && b.is_known());
    }
    if !(a.is_plain() && b.is_plain()) {
        return Val::unknown(Ty::F32);
    }
    let (x, y, ex, ey) = (a.as_f64(), b.as_f64(), a.err, b.err);
    match op {
        Add | Sub => {
            let (p, q) = (a.terms(), b.terms());
            let sum = (p.0 + q.0, p.1.min(q.1));
            // Of three terms and more a driver may add the last ones first.
            let is_sure = a.sum == ALONE && b.sum == ALONE || sum.0 < sum.1 * 16_777_216.0;
            let apart = if is_sure { 0.0 } else { 4.0 * sum.0 / 16_777_216.0 };
            let value = if op == Add { x + y } else { x - y };
            Val { sum, ..Val::rounded(value, ex + ey + apart, 1.0) }
        }
        Mul => Val::rounded(x * y, x.abs() * ey + y.abs() * ex + ex * ey, 1.0),
        Div => {
            let least = y.abs() - ey;
            if least <= 0.0 || least < 1e-30 || y.abs() > 1e30 {
                return Val::unknown(Ty::F32);
            }
            Val::rounded(x / y, (ex + (x / y).abs() * ey) / least, 4.0)
        }
        Rem => {
            if y.abs() - ey <= 0.0 {
                return Val::unknown(Ty::F32);
            }
            let exact = x % y;
            if ex + ey == 0.0 {
                return Val::rounded(exact, 0.0, 1.0);
            }
            let spread = ex + ey * ((x / y).abs() + 1.0);
            let near = exact.abs() <= 2.0 * spread || y.abs() - exact.abs() <= 2.0 * spread;
            Val::rounded(exact, spread * 2.0, 1.0).or_unknown(!near)
        }
        _ => super::functions::power(a, b),
    }
}

fn signed(op: BinaryOp, a: i32, b: Val) -> i32 {
    use BinaryOp::*;
    let (amount, b_value) = (b.bits & 31, b.bits as i32);
    match op {
        Add => a.wrapping_add(b_value),
        Sub => a.wrapping_sub(b_value),
        Mul => a.wrapping_mul(b_value),
        Div if b_value == 0 => a,
        Div => a.wrapping_div(b_value),
        Rem if b_value == 0 => 0,
        Rem => a.wrapping_rem(b_value),
        Shl => ((a as u32) << amount) as i32,
        Shr => a >> amount,
        BitAnd => a & b_value,
        BitXor => a ^ b_value,
        BitOr => a | b_value,
        _ => whole_power(i64::from(a), b.whole()) as i32,
    }
}

fn unsigned(op: BinaryOp, a: u32, b: Val) -> u32 {
    use BinaryOp::*;
    let (amount, b_value) = (b.bits & 31, b.bits);
    match op {
        Add => a.wrapping_add(b_value),
        Sub => a.wrapping_sub(b_value),
        Mul => a.wrapping_mul(b_value),
        Div => a.checked_div(b_value).unwrap_or(a),
        Rem => a.checked_rem(b_value).unwrap_or(0),
        Shl => a << amount,
        Shr => a >> amount,
        BitAnd => a & b_value,
        BitXor => a ^ b_value,
        BitOr => a | b_value,
        _ => whole_power(i64::from(a), b.whole()),
    }
}

/// Modulo 2^32, by repeated squaring; a negative exponent leaves 0 but for 1 and -1.
fn whole_power(base: i64, exponent: i64) -> u32 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    u32::MAX
                }
            }
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1u64, base as u32 as u64, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result * square % (1 << 32);
        }
        square = square * square % (1 << 32);
        rest /= 2;
    }
    result as u32
}

/// The largest power of two that a float is a multiple of.
pub fn quantum(value: f32) -> f64 {
    if value == 0.0 {
        return f64::INFINITY;
    }
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff).max(1) as i32 - 150;
    let mantissa = if (bits >> 23) & 0xff == 0 { bits & 0x7f_ffff } else { bits & 0x7f_ffff | 0x80_0000 };
    2f64.powi(exponent + mantissa.trailing_zeros() as i32)
}
