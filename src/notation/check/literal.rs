//! Expressions of integer literals only: they have no type of their own, take the one of what they meet, and must fit it.
//! They are computed here, exactly; only bits and shifts depend on the type.

use super::fault::{Checked, Fault};
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, Function, Span, UnaryOp};
use crate::notation::program::{Expr as Typed, ExprKind as TypedKind, Ty, Value};

/// Whether an expression consists of integer literals only.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) => true,
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::BitNot, a) => is_literal(a),
        ExprKind::Binary(op, a, b) => is_arithmetic(*op) && is_literal(a) && is_literal(b),
        ExprKind::Conditional(condition, a, b) => is_truth(condition) && is_literal(a) && is_literal(b),
        ExprKind::Call(Function::Select, arguments) => match &arguments[..] {
            [condition, a, b] => is_truth(condition) && is_literal(a) && is_literal(b),
            _ => false,
        },
        ExprKind::Call(function, arguments) => {
            is_on_integers(*function) && arguments.len() == function.arity() && arguments.iter().all(is_literal)
        }
        _ => false,
    }
}

/// Whether an expression is a truth value of literals only.
pub(super) fn is_truth(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_) => true,
        ExprKind::Unary(UnaryOp::Not, a) => is_truth(a),
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, a, b) => is_truth(a) && is_truth(b),
        ExprKind::Binary(op, a, b) => is_comparison(*op) && is_literal(a) && is_literal(b),
        _ => false,
    }
}

/// Whether an operator takes and gives numbers.
pub(super) const fn is_arithmetic(op: BinaryOp) -> bool {
    !is_comparison(op) && !matches!(op, BinaryOp::And | BinaryOp::Or)
}

/// Whether an operator compares.
pub(super) const fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Lt | Le | Gt | Ge | Eq | Ne)
}

/// Whether a function of integers gives an integer.
pub(super) const fn is_on_integers(function: Function) -> bool {
    use Function::{Abs, Clamp, Max, Min, Pow, Relu, Sign};
    matches!(function, Abs | Sign | Min | Max | Clamp | Relu | Pow)
}

/// The least and the greatest value of a type; of f32, of what an exact 64-bit computation can give.
const fn limits(ty: Ty) -> (i64, i64) {
    match ty {
        Ty::I32 => (i32::MIN as i64, i32::MAX as i64),
        Ty::U32 => (0, u32::MAX as i64),
        Ty::F32 | Ty::Bool => (i64::MIN, i64::MAX),
    }
}

/// Whether a literal fits a type.
pub(super) fn fits(value: i64, ty: Ty) -> bool {
    let (least, most) = limits(ty);
    (least..=most).contains(&value)
}

fn too_large(span: Span) -> Fault {
    let message = "the value of these literals does not fit 64 bits; use smaller ones, or floats (2.0 ** 100)";
    Fault::new(ErrorKind::DTypeMismatch, span, message)
}

fn fitting(value: i64, ty: Ty, span: Span) -> Checked<i64> {
    if fits(value, ty) {
        return Ok(value);
    }
    let (least, most) = limits(ty);
    let (name, remedy) = match ty {
        Ty::U32 if value < 0 => ("u32", format!("write u32({value}) to wrap it, or make the other side i32")),
        Ty::U32 => ("u32", "use a smaller one, or a float".to_owned()),
        _ if fits(value, Ty::U32) => ("i32", format!("write u32({value}), i32({value}) to wrap it, or {value}.0")),
        _ => ("i32", "use a smaller one, or a float".to_owned()),
    };
    let message = format!("{value} does not fit {name}, the type that is wanted here ({least} to {most}); {remedy}");
    Err(Fault::new(ErrorKind::DTypeMismatch, span, message))
}

/// The value of an expression of literals. The type matters to bits and shifts only; the result may not fit it.
pub(super) fn fold(expr: &Expr, ty: Ty) -> Checked<i64> {
    let span = expr.span;
    match &expr.kind {
        ExprKind::Int(value) => Ok(i64::from(*value)),
        ExprKind::Unary(UnaryOp::Neg, a) => fold(a, ty)?.checked_neg().ok_or_else(|| too_large(span)),
        ExprKind::Unary(_, a) => Ok(from_bits(!bits(fold(a, ty)?, ty, a.span)?, ty)),
        ExprKind::Binary(op, a, b) => binary(*op, (fold(a, ty)?, a.span), (fold(b, ty)?, b.span), ty, span),
        ExprKind::Conditional(condition, a, b) => fold(if truth(condition)? { a } else { b }, ty),
        ExprKind::Call(Function::Select, arguments) => match &arguments[..] {
            [condition, a, b] => fold(if truth(condition)? { a } else { b }, ty),
            _ => Err(too_large(span)),
        },
        ExprKind::Call(function, arguments) => {
            let mut values = [0; 3];
            for (value, argument) in values.iter_mut().zip(arguments) {
                *value = fold(argument, ty)?;
            }
            let [a, b, c] = values;
            match function {
                Function::Abs => a.checked_abs().ok_or_else(|| too_large(span)),
                Function::Sign => Ok(a.signum()),
                Function::Min => Ok(a.min(b)),
                Function::Max => Ok(a.max(b)),
                Function::Relu => Ok(a.max(0)),
                Function::Clamp => Ok(a.max(b).min(c)),
                _ => power(a, b).ok_or_else(|| too_large(span)),
            }
        }
        _ => Err(too_large(span)),
    }
}

/// The truth of a comparison of literals.
pub(super) fn truth(expr: &Expr) -> Checked<bool> {
    match &expr.kind {
        ExprKind::Bool(value) => Ok(*value),
        ExprKind::Unary(_, a) => Ok(!truth(a)?),
        ExprKind::Binary(BinaryOp::And, a, b) => Ok(truth(a)? & truth(b)?),
        ExprKind::Binary(BinaryOp::Or, a, b) => Ok(truth(a)? | truth(b)?),
        ExprKind::Binary(op, a, b) => {
            let order = fold(a, Ty::I32)?.cmp(&fold(b, Ty::I32)?);
            Ok(match op {
                BinaryOp::Lt => order.is_lt(),
                BinaryOp::Le => order.is_le(),
                BinaryOp::Gt => order.is_gt(),
                BinaryOp::Ge => order.is_ge(),
                BinaryOp::Eq => order.is_eq(),
                _ => order.is_ne(),
            })
        }
        _ => Ok(false),
    }
}

fn binary(op: BinaryOp, (a, left): (i64, Span), (b, right): (i64, Span), ty: Ty, span: Span) -> Checked<i64> {
    let exact = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div if b == 0 => Some(a),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem if b == 0 => Some(0),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::Pow => power(a, b),
        BinaryOp::Shl => Some(from_bits(bits(a, ty, left)? << (b & 31), ty)),
        BinaryOp::Shr if ty == Ty::U32 => Some(from_bits(bits(a, ty, left)? >> (b & 31), ty)),
        BinaryOp::Shr => Some(i64::from(bits(a, ty, left)?.cast_signed() >> (b & 31))),
        BinaryOp::BitAnd => Some(from_bits(bits(a, ty, left)? & bits(b, ty, right)?, ty)),
        BinaryOp::BitXor => Some(from_bits(bits(a, ty, left)? ^ bits(b, ty, right)?, ty)),
        _ => Some(from_bits(bits(a, ty, left)? | bits(b, ty, right)?, ty)),
    };
    exact.ok_or_else(|| too_large(span))
}

fn power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (0, 1..) | (_, i64::MIN..=-1) => Some(0),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}

/// The bits of a literal that meets bits: of i32 where it meets a float.
fn bits(value: i64, ty: Ty, span: Span) -> Checked<u32> {
    let ty = if ty == Ty::U32 { Ty::U32 } else { Ty::I32 };
    Ok(fitting(value, ty, span)? as u32)
}

fn from_bits(bits: u32, ty: Ty) -> i64 {
    if ty == Ty::U32 { i64::from(bits) } else { i64::from(bits.cast_signed()) }
}

/// An expression of literals as a constant of a type: f32, i32 or u32.
pub(super) fn constant(expr: &Expr, ty: Ty) -> Checked<Typed> {
    let value = fitting(fold(expr, ty)?, ty, expr.span)?;
    let value = match ty {
        Ty::F32 => Value::F32(value as f32),
        Ty::U32 => Value::U32(value as u32),
        _ => Value::I32(value as i32),
    };
    Ok(Typed { kind: TypedKind::Const(value), ty: value.ty() })
}

/// An expression of literals as it is stored into an element: a narrow integer holds what fits it only.
pub(super) fn stored(expr: &Expr, dtype: DType) -> Checked<Typed> {
    let ty = Ty::of(dtype);
    let narrow = match dtype {
        DType::I8 => Some((-128, 127)),
        DType::U8 => Some((0, 255)),
        _ => None,
    };
    if let Some((least, most)) = narrow {
        let value = fold(expr, ty)?;
        if !(least..=most).contains(&value) {
            let message =
                format!("{value} does not fit {dtype} ({least} to {most}); write {dtype}({value}) to wrap it");
            return Err(Fault::new(ErrorKind::DTypeMismatch, expr.span, message));
        }
    }
    constant(expr, ty)
}
