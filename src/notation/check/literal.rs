//! Expressions of integer literals only: they have no type of their own, take the one of what they meet, and must fit it.
//! They are computed here, exactly; only bits and shifts depend on the type.

use super::fault::{Checked, Failed};
use super::scope::{Scope, parts, visit_parts};
use crate::dtype::DType;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, Function, UnaryOp};
use crate::notation::program::{Ty, Value, product};

/// Of what an expression of literals consists: the first part, the others, the whole; i32 stands for numbers.
fn signature(expr: &Expr) -> Option<(Ty, Ty, Ty)> {
    let (number, truth) = (Ty::I32, Ty::Bool);
    match &expr.kind {
        ExprKind::Int(_) => Some((number, number, number)),
        ExprKind::Bool(_) | ExprKind::Unary(UnaryOp::Not, _) => Some((truth, truth, truth)),
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, ..) => Some((truth, truth, truth)),
        ExprKind::Binary(op, ..) if is_comparison(*op) => Some((number, number, truth)),
        ExprKind::Unary(..) | ExprKind::Binary(..) => Some((number, number, number)),
        ExprKind::Conditional(..) => Some((truth, number, number)),
        ExprKind::Call(function, arguments) if arguments.len() == function.arity() => {
            let is_choice = *function == Function::Select;
            let first = if is_choice { truth } else { number };
            (is_choice || is_on_integers(*function)).then_some((first, number, number))
        }
        _ => None,
    }
}

/// What an expression of literals only is: a truth value, or a number, for which i32 stands; of another, nothing.
pub(super) fn class(expr: &Expr) -> Option<Ty> {
    let (mut wanted, others, whole) = signature(expr)?;
    let mut fits = true;
    visit_parts(expr, &mut |part, _| {
        fits = fits && class(part) == Some(wanted);
        wanted = others;
    });
    fits.then_some(whole)
}

/// Whether an operator takes and gives numbers.
pub(super) const fn is_arithmetic(op: BinaryOp) -> bool {
    !is_comparison(op) && !matches!(op, BinaryOp::And | BinaryOp::Or)
}

/// Whether an operator compares.
const fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Lt | Le | Gt | Ge | Eq | Ne)
}

/// Whether a function of integers gives an integer.
pub(super) const fn is_on_integers(function: Function) -> bool {
    use Function::{Abs, Clamp, Max, Min, Pow, Relu, Sign};
    matches!(function, Abs | Sign | Min | Max | Clamp | Relu | Pow)
}

/// The least and the greatest value of a dtype; of floats, of what an exact 64-bit computation can give.
const fn limits(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I32 => (i32::MIN as i64, i32::MAX as i64),
        DType::I8 => (-128, 127),
        DType::U32 => (0, u32::MAX as i64),
        DType::U8 => (0, 255),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Whether a literal fits a type.
pub(super) fn fits(value: i64, ty: Ty) -> bool {
    let (least, most) = limits(ty.dtype());
    least <= value && value <= most
}

fn power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (0, 1..) | (_, i64::MIN..=-1) => Some(0),
        _ => {
            let mut power = 1;
            // Any other base overflows within 64 steps.
            for _ in 0..exponent {
                power = product(power, base)?;
            }
            Some(power)
        }
    }
}

fn from_bits(bits: u32, ty: Ty) -> i64 {
    if ty == Ty::U32 { i64::from(bits) } else { i64::from(bits.cast_signed()) }
}

/// How many operands of an operator are bits.
fn bit_operands(expr: &Expr) -> usize {
    match &expr.kind {
        ExprKind::Unary(UnaryOp::BitNot, _) | ExprKind::Binary(BinaryOp::Shl | BinaryOp::Shr, ..) => 1,
        ExprKind::Binary(BinaryOp::BitAnd | BinaryOp::BitXor | BinaryOp::BitOr, ..) => 2,
        _ => 0,
    }
}

impl Scope<'_, '_> {
    fn too_large(&self, at: u32) -> Failed {
        self.mismatch(
            at,
            format_args!("the value of these literals does not fit 64 bits; use smaller ones, or floats (2.0 ** 100)"),
        )
    }

    fn is_fitting(&self, value: i64, dtype: DType, at: u32) -> Checked<()> {
        let (least, most) = limits(dtype);
        if least <= value && value <= most {
            return Ok(());
        }
        let message = format_args!(
            "{value} does not fit {dtype} ({least} to {most}); use a smaller number, a float, or {dtype}(..), which wraps"
        );
        Err(self.mismatch(at, message))
    }

    /// The value of an expression of literals, 0 or 1 of a truth value. The type matters to bits and shifts only; the result
    /// may not fit it.
    pub(super) fn fold(&self, expr: &Expr, ty: Ty) -> Checked<i64> {
        let parts = parts(expr);
        let of_parts = match expr.kind {
            ExprKind::Binary(op, ..) if is_comparison(op) => Ty::I32,
            _ => ty,
        };
        let is_choice = matches!(expr.kind, ExprKind::Conditional(..) | ExprKind::Call(Function::Select, _));
        let mut values = [0; 3];
        for (number, part) in parts.iter().enumerate().take(values.len()) {
            // Of a choice, what is not chosen does not matter; it counts as 0.
            if !is_choice || number == 0 || (number == 1) == (values[0] != 0) {
                values[number] = self.fold(part, of_parts)?;
            }
        }
        // What meets bits must be some: of i32 where it meets a float.
        let bits = if ty == Ty::U32 { DType::U32 } else { DType::I32 };
        for (value, part) in values.iter().zip(&parts).take(bit_operands(expr)) {
            self.is_fitting(*value, bits, part.span.start)?;
        }
        let [a, b, c] = values;
        let (x, y) = (a as u32, b as u32);
        let mut fits = true;
        let mut exact = |value: Option<i64>| {
            fits = value.is_some();
            value.unwrap_or(0)
        };
        let value = match &expr.kind {
            ExprKind::Int(value) => i64::from(*value),
            ExprKind::Bool(value) => i64::from(*value),
            _ if is_choice => b | c,
            ExprKind::Unary(UnaryOp::Neg, _) => exact(a.checked_neg()),
            ExprKind::Unary(UnaryOp::Not, _) => i64::from(a == 0),
            ExprKind::Unary(UnaryOp::BitNot, _) => from_bits(!x, ty),
            ExprKind::Binary(op, ..) => match op {
                BinaryOp::Add => exact(a.checked_add(b)),
                BinaryOp::Sub => exact(a.checked_sub(b)),
                BinaryOp::Mul => exact(product(a, b)),
                BinaryOp::Div if b == 0 => a,
                BinaryOp::Div => exact(a.checked_div(b)),
                BinaryOp::Rem if b == 0 => 0,
                BinaryOp::Rem => exact(a.checked_rem(b)),
                BinaryOp::Pow => exact(power(a, b)),
                BinaryOp::BitAnd | BinaryOp::And => a & b,
                BinaryOp::BitXor => a ^ b,
                BinaryOp::BitOr | BinaryOp::Or => a | b,
                BinaryOp::Shl => from_bits(x << (y & 31), ty),
                BinaryOp::Shr => a >> (y & 31),
                BinaryOp::Lt => i64::from(a < b),
                BinaryOp::Le => i64::from(a <= b),
                BinaryOp::Gt => i64::from(a > b),
                BinaryOp::Ge => i64::from(a >= b),
                BinaryOp::Eq => i64::from(a == b),
                BinaryOp::Ne => i64::from(a != b),
            },
            ExprKind::Call(function, _) => match function {
                Function::Abs => exact(a.checked_abs()),
                Function::Sign => a.signum(),
                Function::Min => a.min(b),
                Function::Max => a.max(b),
                Function::Relu => a.max(0),
                Function::Clamp => a.max(b).min(c),
                _ => exact(power(a, b)),
            },
            _ => exact(None),
        };
        if fits { Ok(value) } else { Err(self.too_large(expr.span.start)) }
    }

    /// The value of an expression of literals as it is stored into an element: of the type that the dtype is read as, and a
    /// narrow integer holds what fits it only.
    pub(super) fn literal(&self, expr: &Expr, dtype: DType) -> Checked<Value> {
        let ty = Ty::of(dtype);
        let value = self.fold(expr, ty)?;
        self.is_fitting(value, dtype, expr.span.start)?;
        Ok(match ty {
            Ty::F32 => Value::F32(value as f32),
            Ty::U32 => Value::U32(value as u32),
            _ => Value::I32(value as i32),
        })
    }
}
