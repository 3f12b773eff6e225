//! What an expression is before its type is decided, and how it becomes of a type.

use super::fault::{Checked, Fault};
use super::literal;
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{self, Span};
use crate::notation::program::{Expr, ExprKind, Ty, Value};

/// An expression, with its type or without one.
#[derive(Debug)]
pub(super) enum Operand<'a> {
    /// Of a type.
    Typed(Expr, Span),
    /// Integer literals only.
    Literal(&'a ast::Expr),
    /// A choice between literals: each takes the type of what the whole meets.
    Choice(Box<Expr>, Box<Operand<'a>>, Box<Operand<'a>>),
}

pub(super) fn mismatch(span: Span, message: impl Into<String>) -> Fault {
    Fault::new(ErrorKind::DTypeMismatch, span, message)
}

pub(super) fn constant(value: Value) -> Expr {
    Expr { kind: ExprKind::Const(value), ty: value.ty() }
}

/// An integer as a float; anything else as it is.
pub(super) fn float(expr: Expr) -> Expr {
    match expr.ty {
        Ty::I32 | Ty::U32 => Expr { kind: ExprKind::Cast(DType::F32, Box::new(expr)), ty: Ty::F32 },
        _ => expr,
    }
}

pub(super) fn choice(condition: Box<Expr>, a: Expr, b: Expr) -> Expr {
    let ty = a.ty;
    Expr { kind: ExprKind::Conditional(condition, Box::new(a), Box::new(b)), ty }
}

impl Operand<'_> {
    pub(super) fn ty(&self) -> Option<Ty> {
        match self {
            Operand::Typed(expr, _) => Some(expr.ty),
            _ => None,
        }
    }

    pub(super) fn span(&self) -> Span {
        match self {
            Operand::Typed(_, span) => *span,
            Operand::Literal(expr) => expr.span,
            Operand::Choice(_, a, _) => a.span(),
        }
    }

    /// As a value of a type: literals must fit it, and integers become floats.
    pub(super) fn into_ty(self, ty: Ty) -> Checked<Expr> {
        match self {
            Operand::Typed(expr, _) if expr.ty == ty => Ok(expr),
            Operand::Typed(expr, span) => match (expr.ty, ty) {
                (Ty::I32 | Ty::U32, Ty::F32) => Ok(float(expr)),
                (found, _) => {
                    let (found, wanted) = (found.name(), ty.name());
                    Err(mismatch(span, format!("expected {wanted}, found {found}; write {wanted}(..)")))
                }
            },
            Operand::Literal(expr) if ty == Ty::Bool => {
                Err(mismatch(expr.span, "expected bool, found a number; write true or false, or compare"))
            }
            Operand::Literal(expr) => literal::constant(expr, ty),
            Operand::Choice(condition, a, b) => Ok(choice(condition, a.into_ty(ty)?, b.into_ty(ty)?)),
        }
    }

    /// With the type that it has, i32 where nothing decides.
    pub(super) fn settled(self) -> Checked<Expr> {
        let ty = self.ty().unwrap_or(Ty::I32);
        self.into_ty(ty)
    }

    /// As it is stored into an element of a node.
    pub(super) fn stored(self, dtype: DType, node: &str) -> Checked<Expr> {
        let ty = Ty::of(dtype);
        match self {
            Operand::Literal(expr) if ty != Ty::Bool => literal::stored(expr, dtype),
            Operand::Choice(condition, a, b) if ty != Ty::Bool => {
                Ok(choice(condition, a.stored(dtype, node)?, b.stored(dtype, node)?))
            }
            Operand::Typed(expr, _) if expr.ty == ty => Ok(expr),
            Operand::Typed(expr, _) if ty == Ty::F32 && expr.ty != Ty::Bool => Ok(float(expr)),
            other => {
                let found = other.ty().unwrap_or(Ty::I32);
                let remedy = match (found, ty) {
                    (_, Ty::Bool) => "compare (.. != 0), or write bool(..)".to_owned(),
                    _ => format!("write {}(..)", dtype.name()),
                };
                let message = format!("\"{node}\" is {dtype} and the value is {}; {remedy}", found.name());
                Err(mismatch(other.span(), message))
            }
        }
    }

    /// As the condition of a choice, or an operand of `&&`, `||`, `!`.
    pub(super) fn condition(self, of: &str) -> Checked<Expr> {
        match self {
            Operand::Typed(expr, _) if expr.ty == Ty::Bool => Ok(expr),
            other => {
                let found = other.ty().map_or("an integer", Ty::name);
                Err(mismatch(other.span(), format!("{of} must be bool, found {found}; compare (.. != 0)")))
            }
        }
    }
}

/// The type that operands have in common, with `what` for the message: what they are operands of.
pub(super) fn common(operands: &[Operand<'_>], what: &str) -> Checked<Ty> {
    let mut ty = None;
    let has_float = operands.iter().any(|operand| operand.ty() == Some(Ty::F32));
    for operand in operands {
        ty = match (ty, operand.ty()) {
            (None, other) | (other, None) => other,
            (Some(a), Some(b)) if a == b => Some(a),
            (Some(a), Some(b)) if has_float && a != Ty::Bool && b != Ty::Bool => Some(Ty::F32),
            (Some(a), Some(b)) => return Err(clash(a, b, operand.span(), what)),
        };
    }
    if ty == Some(Ty::Bool)
        && let Some(number) = operands.iter().find(|operand| operand.ty().is_none())
    {
        return Err(clash(Ty::Bool, Ty::I32, number.span(), what));
    }
    Ok(ty.unwrap_or(Ty::I32))
}

fn clash(a: Ty, b: Ty, span: Span, what: &str) -> Fault {
    let remedy = if a == Ty::Bool || b == Ty::Bool {
        "bools are not numbers: convert one side (f32(..), i32(..)), or compare (.. != 0)".to_owned()
    } else {
        format!("convert one side: {}(..)", a.name())
    };
    mismatch(span, format!("{what} of {} and {} is not defined; {remedy}", a.name(), b.name()))
}

/// The operands with one type.
pub(super) fn unified(operands: Vec<Operand<'_>>, ty: Ty) -> Checked<Vec<Expr>> {
    let mut result = Vec::with_capacity(operands.len());
    for operand in operands {
        result.push(operand.into_ty(ty)?);
    }
    Ok(result)
}
