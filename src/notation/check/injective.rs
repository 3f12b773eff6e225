//! Whether two points of the loops can write one element: `=` must not let them.

use super::fault::{Checked, MEANING};
use super::scope::{Belongs, Scope};
use crate::notation::program::{Affine, Position, Term, times};

impl Scope<'_, '_> {
    /// Checks that the positions of `=` differ between any two points of the loops.
    pub(super) fn is_injective(&self) -> Checked<()> {
        // The last value, counted from the first, of each index that the element has yet to tell; 0 of others.
        let mut open: Vec<u64> = Vec::new();
        for index in &self.indices {
            let (lo, hi) = index.range.unwrap_or_default();
            let is_outer = index.belongs != Belongs::Reduction;
            if is_outer && lo >= hi {
                return Ok(());
            }
            // Ranges fit 34 bits.
            let last = hi.wrapping_sub(lo).wrapping_sub(1) as u64;
            open.push(if is_outer { last } else { 0 });
        }
        // An index that is known from the positions alone drops out of the others.
        let mut is_told = true;
        while is_told {
            is_told = false;
            for position in &self.positions {
                if let Position::Affine(affine) = position {
                    is_told |= tell(affine, &mut open);
                }
            }
        }
        let mut names = String::new();
        for (index, last) in self.indices.iter().zip(&open) {
            if *last > 0 {
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

/// Takes the indices that a position tells out of the open ones; whether there are any.
fn tell(affine: &Affine, open: &mut [u64]) -> bool {
    let mut is_told = false;
    // A term whose factor is no larger than all that the smaller ones reach is not told, nor are those.
    let mut untold = 0;
    for &(term, factor) in &affine.terms {
        let (mut others, mut reach) = (0, 0u64);
        let mut is_apart = false;
        let (size, last) = (factor.unsigned_abs(), last_of(term, open));
        if last == 0 {
            continue;
        }
        for &(other, factor) in &affine.terms {
            let (other_size, other_last) = (factor.unsigned_abs(), last_of(other, open));
            if other_last == 0 || other == term {
                continue;
            }
            others += 1;
            if other_size <= size {
                reach = reach.saturating_add(times(other_size, other_last));
            }
            // Two terms meet where one index steps by the other's factor, and the other back: both steps must be in range.
            let divisor = gcd(size, other_size);
            is_apart = other_size / divisor > last || size / divisor > other_last;
        }
        let is_untold = if others == 1 { !is_apart } else { size <= reach };
        if is_untold {
            untold = untold.max(size);
        }
    }
    for &(term, factor) in &affine.terms {
        if let Term::Index(index) = term
            && open[index] > 0
            && factor.unsigned_abs() > untold
        {
            open[index] = 0;
            is_told = true;
        }
    }
    is_told
}

/// The last value of an index that is open, else 0.
fn last_of(term: Term, open: &[u64]) -> u64 {
    match term {
        Term::Index(index) => open[index],
        Term::Static(_) => 0,
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
