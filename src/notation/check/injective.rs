//! Whether two points of the loops can write one element: `=` must not let them.

use super::fault::{Checked, MEANING};
use super::scope::{Belongs, Scope};
use crate::notation::program::{IndexId, Position, Term};

/// An index of a position, the size of its factor, and its last value counted from the first.
type Digit = (IndexId, u64, u64);

impl Scope<'_, '_> {
    /// Checks that the positions of `=` differ between any two points of the loops.
    pub(super) fn is_injective(&self, positions: &[Position]) -> Checked<()> {
        // The last value, counted from the first, of each index that the element has yet to tell.
        let mut open: Vec<Option<u64>> = Vec::with_capacity(self.indices.len());
        for index in &self.indices {
            let (lo, hi) = index.range.unwrap_or_default();
            let is_outer = index.belongs != Belongs::Reduction;
            if is_outer && lo >= hi {
                return Ok(());
            }
            // Ranges fit 34 bits.
            let last = hi.wrapping_sub(lo).wrapping_sub(1) as u64;
            open.push((is_outer && last > 0).then_some(last));
        }
        // An index that is known from the positions alone drops out of the others.
        let mut is_told = true;
        while is_told {
            is_told = false;
            for position in positions {
                let Position::Affine(affine) = position else { continue };
                let mut digits: Vec<Digit> = Vec::new();
                for &(term, factor) in &affine.terms {
                    if let Term::Index(index) = term
                        && let Some(last) = open[index]
                    {
                        let size = factor.unsigned_abs();
                        let mut place = digits.len();
                        while place > 0 && digits[place - 1].1 >= size {
                            place -= 1;
                        }
                        digits.insert(place, (index, size, last));
                    }
                }
                for index in told(&digits) {
                    open[index] = None;
                    is_told = true;
                }
            }
        }
        let mut names = String::new();
        for (index, last) in self.indices.iter().zip(&open) {
            if last.is_some() {
                names.push_str(if names.is_empty() { "" } else { ", " });
                names.push_str(index.name);
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let target = &self.statement.target;
        Err(self.fail(
            MEANING,
            target.span.start,
            format_args!(
                "two values of ({names}) may write one element of \"{}\" with =; use indices that stand alone, factors \
                 that keep them apart (4 * i + u where u in 0:4), or accumulate (+=)",
                target.text
            ),
        ))
    }
}

/// Which of the digits, whose factors grow, their sum tells.
fn told(digits: &[Digit]) -> Vec<IndexId> {
    let mut told = Vec::new();
    if let &[(a, factor_a, last_a), (b, factor_b, last_b)] = digits {
        // Two terms meet where one index steps by the other's factor, and the other back: both steps must be in range.
        let divisor = gcd(factor_a, factor_b);
        if factor_b / divisor > last_a || factor_a / divisor > last_b {
            told.extend([a, b]);
        }
        return told;
    }
    // A factor larger than all that the smaller ones reach tells its index.
    let mut reach = 0u64;
    for &(index, factor, last) in digits {
        if factor <= reach {
            told.clear();
        } else {
            told.push(index);
        }
        reach = reach.saturating_add(factor.saturating_mul(last));
    }
    told
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
