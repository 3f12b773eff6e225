//! Whether two points of the loops can write one element: `=` must not let them.

use super::fault::{Checked, Fault, MEANING};
use super::scope::{Belongs, Scope};
use crate::notation::program::{IndexId, Position, Term};

impl Scope<'_, '_> {
    /// Checks that the positions of `=` differ between any two points of the loops.
    pub(super) fn is_injective(&self, positions: &[Position]) -> Checked<()> {
        let size = |index: IndexId| self.indices[index].range.map_or(0, |(lo, hi)| hi.saturating_sub(lo).max(0));
        let outer = |index: &IndexId| self.indices[*index].belongs != Belongs::Reduction;
        let all = || (0..self.indices.len()).filter(outer);
        if all().any(|index| size(index) == 0) {
            return Ok(());
        }
        // What the element tells: an index that is known from the positions alone drops out of the others.
        let mut open: Vec<IndexId> = all().filter(|&index| size(index) > 1).collect();
        loop {
            let before = open.len();
            for position in positions {
                let Position::Affine(affine) = position else { continue };
                let mut terms: Vec<(IndexId, i128, i128)> = Vec::new();
                for &(term, factor) in &affine.terms {
                    if let Term::Index(index) = term
                        && open.contains(&index)
                    {
                        terms.push((index, i128::from(factor).abs(), i128::from(size(index)) - 1));
                    }
                }
                for index in told(terms) {
                    open.retain(|&other| other != index);
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            if open.len() == before {
                break;
            }
        }
        let name = &self.statement.target.text;
        let names: Vec<&str> = open.iter().map(|&index| self.indices[index].name).collect();
        let message = format!(
            "two values of ({}) may write one element of \"{name}\"; with = each element is written once: use indices that \
             stand alone, factors that keep them apart (4 * i + u where u in 0:4), or an accumulating operator",
            names.join(", ")
        );
        Err(Fault::new(MEANING, self.statement.target.span, message))
    }
}

/// Which of the terms (index, factor, the last value counted from the first) their sum tells.
fn told(given: Vec<(IndexId, i128, i128)>) -> Vec<IndexId> {
    if let &[(a, factor_a, last_a), (b, factor_b, last_b)] = &given[..] {
        // Two terms meet where one index steps by the other's factor, and the other back: both steps must be in range.
        let divisor = gcd(factor_a, factor_b);
        return if factor_b / divisor > last_a || factor_a / divisor > last_b { vec![a, b] } else { Vec::new() };
    }
    // A factor larger than all that the smaller ones reach tells its index.
    let mut terms: Vec<(IndexId, i128, i128)> = Vec::new();
    for term in given {
        terms.insert(terms.partition_point(|less| less.1 < term.1), term);
    }
    let mut reach: i128 = terms.iter().map(|&(_, factor, last)| factor * last).sum();
    let mut told = Vec::new();
    while let Some((index, factor, last)) = terms.pop() {
        reach -= factor * last;
        if factor <= reach {
            break;
        }
        told.push(index);
    }
    told
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
