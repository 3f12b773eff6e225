//! Positions as sums of indices and statics, in integers without wrapping.

use super::fault::{Checked, Failed};
use super::literal;
use super::scope::{Meaning, Scope};
use crate::error::ErrorKind;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::notation::program::{Affine, IndexId, Term, Ty};

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
                    BinaryOp::Add => add(sum, &other),
                    BinaryOp::Sub => scale(&mut other, -1) && add(sum, &other),
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

/// The product, where it fits.
pub(super) fn product(a: i64, b: i64) -> Option<i64> {
    let product = a.wrapping_mul(b);
    // A wrapped product does not lead back, but for the least number, whose negative is itself.
    (a == 0 || (product.wrapping_div(a) == b && !(a == -1 && b == i64::MIN))).then_some(product)
}

/// Multiplies; false where the result does not fit.
fn scale(sum: &mut Affine, by: i64) -> bool {
    if by == 0 {
        *sum = Affine::default();
    }
    let mut fits = true;
    let factors = sum.terms.iter_mut().map(|(_, factor)| factor);
    for number in factors.chain([&mut sum.constant]) {
        match product(*number, by) {
            Some(product) => *number = product,
            None => fits = false,
        }
    }
    fits
}

/// Indices first, by number: equal expressions are written alike.
fn key(term: Term) -> u64 {
    match term {
        Term::Index(index) => index as u64,
        Term::Static(number) => (1 << 32) + number as u64,
    }
}

/// Adds; false where the result does not fit.
fn add(sum: &mut Affine, other: &Affine) -> bool {
    let Some(constant) = sum.constant.checked_add(other.constant) else { return false };
    sum.constant = constant;
    for &(term, factor) in &other.terms {
        let mut at = 0;
        while at < sum.terms.len() && key(sum.terms[at].0) < key(term) {
            at += 1;
        }
        match sum.terms.get_mut(at) {
            Some((known, old)) if *known == term => {
                let Some(both) = old.checked_add(factor) else { return false };
                *old = both;
                if both == 0 {
                    sum.terms.remove(at);
                }
            }
            _ => sum.terms.insert(at, (term, factor)),
        }
    }
    true
}

/// The index that stands alone in a position, if one does.
pub(super) fn alone(affine: &Affine) -> Option<IndexId> {
    match (affine.constant, &affine.terms[..]) {
        (0, &[(Term::Index(index), 1)]) => Some(index),
        _ => None,
    }
}
