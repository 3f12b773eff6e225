//! Positions as sums of indices and statics, in integers without wrapping.

use super::fault::{Checked, Fault};
use super::literal;
use super::scope::{Meaning, Scope};
use crate::error::ErrorKind;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::notation::program::{Affine, IndexId, Term, Ty};

impl<'a> Scope<'_, 'a> {
    /// An expression as an affine one, where it is that.
    pub(super) fn affine(&mut self, expr: &'a Expr) -> Checked<Option<Affine>> {
        let result = match &expr.kind {
            ExprKind::Int(value) => Some(constant(i64::from(*value))),
            ExprKind::Name(name) => match self.meaning(name, expr.span)? {
                Meaning::Index(index) => Some(term(Term::Index(index))),
                Meaning::Node(_) => return Ok(None),
            },
            ExprKind::Static(name) => Some(term(Term::Static(self.symbols.static_index(name)))),
            ExprKind::Unary(UnaryOp::Neg, a) => {
                let Some(a) = self.affine(a)? else { return Ok(None) };
                scaled(&a, -1)
            }
            ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let (Some(a), Some(b)) = (self.affine(a)?, self.affine(b)?) else { return Ok(None) };
                match op {
                    BinaryOp::Add => sum(&a, &b),
                    BinaryOp::Sub => scaled(&b, -1).and_then(|b| sum(&a, &b)),
                    _ if a.terms.is_empty() => scaled(&b, a.constant),
                    _ if b.terms.is_empty() => scaled(&a, b.constant),
                    _ => return Ok(None),
                }
            }
            _ if literal::is_literal(expr) => Some(constant(literal::fold(expr, Ty::I32)?)),
            _ => return Ok(None),
        };
        let overflow = || {
            let message = "the position does not fit 64 bits; use smaller factors";
            Fault::new(ErrorKind::LimitExceeded, expr.span, message)
        };
        result.map(Some).ok_or_else(overflow)
    }

    /// An affine expression in words.
    pub(super) fn show(&self, affine: &Affine) -> String {
        let mut text = String::new();
        let parts = affine.terms.iter().map(|&(term, factor)| (Some(term), factor));
        for (term, factor) in parts.chain([(None, affine.constant)]) {
            if term.is_none() && factor == 0 && !text.is_empty() {
                continue;
            }
            text.push_str(match (text.is_empty(), factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            });
            let size = factor.unsigned_abs();
            if term.is_none() || size != 1 {
                text.push_str(&size.to_string());
            }
            if term.is_some() && size != 1 {
                text.push_str(" * ");
            }
            match term {
                Some(Term::Index(index)) => text.push_str(self.indices[index].name),
                Some(Term::Static(number)) => {
                    text.push('@');
                    text.push_str(&self.symbols.program.statics[number]);
                }
                None => {}
            }
        }
        text
    }
}

fn constant(constant: i64) -> Affine {
    Affine { constant, terms: Vec::new() }
}

fn term(term: Term) -> Affine {
    Affine { constant: 0, terms: vec![(term, 1)] }
}

fn scaled(a: &Affine, by: i64) -> Option<Affine> {
    let mut result = constant(a.constant.checked_mul(by)?);
    if by != 0 {
        for &(term, factor) in &a.terms {
            result.terms.push((term, factor.checked_mul(by)?));
        }
    }
    Some(result)
}

/// Indices first, by number: equal expressions are written alike.
fn key(term: Term) -> (bool, usize) {
    match term {
        Term::Index(index) => (false, index),
        Term::Static(number) => (true, number),
    }
}

fn sum(a: &Affine, b: &Affine) -> Option<Affine> {
    let mut result = a.clone();
    result.constant = a.constant.checked_add(b.constant)?;
    for &(term, factor) in &b.terms {
        match result.terms.binary_search_by_key(&key(term), |&(known, _)| key(known)) {
            Ok(at) => {
                result.terms[at].1 = result.terms[at].1.checked_add(factor)?;
                if result.terms[at].1 == 0 {
                    result.terms.remove(at);
                }
            }
            Err(at) => result.terms.insert(at, (term, factor)),
        }
    }
    Some(result)
}

/// The index that stands alone in a position, if one does.
pub(super) fn alone(affine: &Affine) -> Option<IndexId> {
    match (affine.constant, &affine.terms[..]) {
        (0, &[(Term::Index(index), 1)]) => Some(index),
        _ => None,
    }
}
