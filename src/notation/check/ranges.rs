//! The ranges of indices that `where` does not state: the extent of the places where an index stands alone, else the most
//! that keeps every access in bounds.

use std::fmt::Arguments;

use super::fault::{Checked, Failed};
use super::scope::{Access, Place, Scope};
use crate::error::ErrorKind;
use crate::node::List;
use crate::notation::program::{Affine, IndexId, Term, product};

/// The factor of an index in a position.
fn factor_of(place: &Place, index: IndexId) -> Option<i64> {
    let affine = place.affine.as_ref()?;
    affine.terms.iter().find(|&&(term, _)| term == Term::Index(index)).map(|&(_, factor)| factor)
}

impl Scope<'_, '_> {
    /// The least and the greatest value of an affine position without its statics; `None` where an index has an empty range
    /// or, beside `without`, no range yet.
    pub(super) fn reach(
        &self,
        place: &Place,
        affine: &Affine,
        without: Option<IndexId>,
    ) -> Checked<Option<(i64, i64)>> {
        let mut ends = Some((affine.constant, affine.constant));
        for &(term, factor) in &affine.terms {
            let Term::Index(index) = term else { continue };
            if Some(index) == without {
                continue;
            }
            let Some((lo, hi)) = self.indices[index].range else { return Ok(None) };
            if lo >= hi {
                return Ok(None);
            }
            ends = ends.and_then(|(least, most)| {
                let (first, last) = (product(factor, lo)?, product(factor, hi - 1)?);
                Some((least.checked_add(first.min(last))?, most.checked_add(first.max(last))?))
            });
        }
        if ends.is_some() { Ok(ends) } else { Err(self.too_far(place.span.start)) }
    }

    /// Whether an index stands in a position inside `pad`, or in one outside.
    fn stands(&self, index: IndexId, is_padded: bool) -> bool {
        self.places
            .iter()
            .any(|place| (place.access == Access::Padded) == is_padded && factor_of(place, index).is_some())
    }

    pub(super) fn axis(&self, place: &Place) -> String {
        let node = self.symbols.at(place.node);
        format!("axis {} of \"{}\" {}", place.axis, node.name, List(&node.shape))
    }

    /// Gives each index without a range the common extent of the places where it stands alone. What stands so inside `pad`
    /// counts where nothing else bounds the index.
    fn take_lone(&mut self, is_padded: bool) -> Checked<()> {
        let mut first: Vec<Option<usize>> = vec![None; self.indices.len()];
        for (number, place) in self.places.iter().enumerate() {
            if (place.access == Access::Padded) != is_padded {
                continue;
            }
            let Some(index) = place.affine.as_ref().and_then(Affine::alone) else { continue };
            let index_of = &self.indices[index];
            if index_of.range.is_some() {
                continue;
            }
            let Some(known) = first[index] else {
                first[index] = Some(number);
                continue;
            };
            let known = &self.places[known];
            if known.extent != place.extent {
                let (name, one, other) = (index_of.name, self.axis(known), self.axis(place));
                let failed = self.fail(
                    ErrorKind::ShapeMismatch,
                    place.span.start,
                    format_args!(
                        "{name} runs over {one} and over {other}; give them one extent, or state the part: where {name} \
                         in 0:{}",
                        known.extent.min(place.extent)
                    ),
                );
                self.symbols.faults.and(known.span.start, format_args!("{name} stands on {one} here"));
                return Err(failed);
            }
        }
        for (index, first) in first.into_iter().enumerate() {
            if let Some(place) = first
                && !(is_padded && self.stands(index, false))
            {
                self.indices[index].range = Some((0, i64::from(self.places[place].extent)));
            }
        }
        Ok(())
    }

    /// Gives every index its range.
    pub(super) fn find_ranges(&mut self) -> Checked<()> {
        self.are_values()?;
        self.take_lone(false)?;
        self.take_lone(true)?;
        for index in 0..self.indices.len() {
            if self.indices[index].range.is_none() {
                let most = self.solve(index)?;
                self.indices[index].range = Some((0, most));
            }
        }
        self.are_values()
    }

    /// Whether every value of an index fits an i32.
    fn are_values(&self) -> Checked<()> {
        for index in &self.indices {
            let Some((lo, hi)) = index.range else { continue };
            if lo < i64::from(i32::MIN) || hi > i64::from(i32::MAX) + 1 {
                let message = format_args!(
                    "{} runs over {lo}:{hi}, and indices are of type i32 (-2147483648 to 2147483647); split it in two",
                    index.name
                );
                return Err(self.fail(ErrorKind::LimitExceeded, index.at, message));
            }
        }
        Ok(())
    }

    /// The largest n >= 1 such that 0:n keeps every access in bounds whose other indices are known.
    fn solve(&self, index: IndexId) -> Checked<i64> {
        let mut most: Option<i64> = None;
        // What stands beside the index, without a value yet, where no position bounds it.
        let mut beside: Option<(u32, Term)> = None;
        for place in &self.places {
            let (Some(affine), Some(factor)) = (&place.affine, factor_of(place, index)) else { continue };
            if place.access == Access::Padded {
                continue;
            }
            let at = place.span.start;
            let mut is_open = false;
            for &(term, _) in &affine.terms {
                let is_known = match term {
                    Term::Static(_) => false,
                    Term::Index(other) => other == index || self.indices[other].range.is_some(),
                };
                if !is_known {
                    is_open = true;
                    beside = beside.or(Some((at, term)));
                }
            }
            if is_open {
                continue;
            }
            // An access under an empty range bounds nothing.
            let Some((least, greatest)) = self.reach(place, affine, Some(index))? else { continue };
            let last = i64::from(place.extent) - 1;
            if least < 0 || greatest > last {
                return Err(self.no_range(index, at, format_args!("0:1 leaves {}", self.axis(place))));
            }
            let room = if factor > 0 { last - greatest } else { least };
            let n = (room as u64 / factor.unsigned_abs()) as i64 + 1;
            most = Some(most.map_or(n, |most| most.min(n)));
        }
        most.ok_or_else(|| match beside {
            Some((at, term)) => {
                let other = self.show(&Affine { constant: 0, terms: vec![(term, 1)] });
                self.no_range(index, at, format_args!("it stands beside {other}, which is not known"))
            }
            None => self.no_range(index, self.indices[index].at, format_args!("no position outside pad bounds it")),
        })
    }

    fn no_range(&self, index: IndexId, at: u32, why: Arguments<'_>) -> Failed {
        let name = self.indices[index].name;
        let message = format_args!("{name} has no range, since {why}; state one: where {name} in 0:n");
        self.fail(ErrorKind::ShapeMismatch, at, message)
    }
}
