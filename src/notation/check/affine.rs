//! Positions as sums of indices and statics, in integers without wrapping.

use super::fault::{Checked, Failed};
use super::literal;
use super::scope::{Meaning, Scope};
use crate::error::ErrorKind;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::notation::program::{Affine, Term, Ty};

impl<'a> Scope<'_, 'a> {
    /// Makes `sum`, which is empty, the value of an expression; false where the expression is not affine.
    pub(super) fn affine(&mut self, expr: &'a Expr, sum: &mut Affine) -> Checked<bool> {
        let fits = match &expr.kind {
            ExprKind::Int(value) => {
                sum.constant = i64::from(*value);
                true
            }
            ExprKind::Name(name) => match self.meaning(name, expr.span.start)? {
                Meaning::Index(index) => {
                    sum.terms.push((Term::Index(index), 1));
                    true
                }
                Meaning::Node(_) => return Ok(false),
            },
            ExprKind::Static(name) => {
                sum.terms.push((Term::Static(self.symbols.static_index(name)), 1));
                true
            }
            ExprKind::Unary(UnaryOp::Neg, a) => {
                if !self.affine(a, sum)? {
                    return Ok(false);
                }
                scale(sum, -1)
            }
            ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let mut other = Affine::default();
                // Both, for what is wrong in the second is told before a computed position is.
                if !(self.affine(a, sum)? & self.affine(b, &mut other)?) {
                    return Ok(false);
                }
                match op {
                    BinaryOp::Add => sum.add(&other, 1).is_some(),
                    BinaryOp::Sub => sum.add(&other, -1).is_some(),
                    _ if other.terms.is_empty() => scale(sum, other.constant),
                    _ if sum.terms.is_empty() => {
                        std::mem::swap(sum, &mut other);
                        scale(sum, other.constant)
                    }
                    _ => return Ok(false),
                }
            }
            _ if literal::class(expr) == Some(Ty::I32) => {
                sum.constant = self.fold(expr, Ty::I32)?;
                true
            }
            _ => return Ok(false),
        };
        if fits { Ok(true) } else { Err(self.too_far(expr.span.start)) }
    }

    pub(super) fn too_far(&self, at: u32) -> Failed {
        self.fail(ErrorKind::LimitExceeded, at, format_args!("the position does not fit 64 bits; use smaller factors"))
    }

    /// An affine expression in words.
    pub(super) fn show(&self, affine: &Affine) -> String {
        affine.show(&|term| match term {
            Term::Index(index) => self.indices[index].name,
            Term::Static(number) => &self.symbols.program.statics[number],
        })
    }
}

/// Multiplies; false where the result does not fit.
fn scale(sum: &mut Affine, by: i64) -> bool {
    let whole = std::mem::take(sum);
    sum.add(&whole, by).is_some()
}
