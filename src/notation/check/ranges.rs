//! The ranges of indices that `where` does not state: the extent of the places where an index stands alone, else the most
//! that keeps every access in bounds.

use super::affine::alone;
use super::fault::{Checked, Fault};
use super::scope::{Access, Index, Place, Range, Scope};
use crate::error::ErrorKind;
use crate::notation::ast::Span;
use crate::notation::program::{Affine, IndexId, NodeIndex, Term};

/// What a position is bounded by: the node, the axis, where it stands.
#[derive(Clone, Copy)]
struct Bound<'s> {
    extent: u32,
    node: NodeIndex,
    axis: usize,
    place: &'s Place,
    affine: &'s Affine,
}

/// Why an index is not bounded by a position.
enum Open {
    /// Nothing to be said.
    None,
    /// Beside an index that is unknown itself.
    Beside(Span, IndexId),
    /// Beside a static.
    Static(Span),
    /// No range from 0 that holds a point is in bounds.
    Outside(Span, NodeIndex, usize),
}

/// The least and the greatest value of an affine expression without its statics, as exact integers; `None` where an index
/// has an empty range or, beside `without`, no range yet.
pub(super) fn reach(affine: &Affine, indices: &[Index<'_>], without: Option<IndexId>) -> Option<(i128, i128)> {
    let mut least = i128::from(affine.constant);
    let mut most = least;
    for &(term, factor) in &affine.terms {
        let Term::Index(index) = term else { continue };
        if Some(index) == without {
            continue;
        }
        let (lo, hi) = indices[index].range?;
        if lo >= hi {
            return None;
        }
        // Ranges fit 34 bits and factors 64, so that 128 hold every sum that a text can spell.
        let ends = (i128::from(factor) * i128::from(lo), i128::from(factor) * i128::from(hi - 1));
        least += ends.0.min(ends.1);
        most += ends.0.max(ends.1);
    }
    Some((least, most))
}

impl Scope<'_, '_> {
    fn bounds(&self, is_padded: bool) -> impl Iterator<Item = Bound<'_>> {
        let accesses = self.accesses.iter().filter(move |access| access.is_padded == is_padded);
        accesses.flat_map(|access: &Access| {
            let node = self.symbols.at(access.node);
            access.places.iter().zip(&node.shape).enumerate().filter_map(|(axis, (place, &extent))| {
                let affine = place.affine.as_ref()?;
                Some(Bound { extent, node: access.node, axis, place, affine })
            })
        })
    }

    fn axis(&self, node: NodeIndex, axis: usize) -> String {
        let shape = &self.symbols.at(node).shape;
        format!("axis {axis} of \"{}\" {shape:?}", self.symbols.at(node).name)
    }

    /// The common extent of the places where each index stands alone.
    fn lone(&self, is_padded: bool) -> Checked<Vec<Option<Range>>> {
        let mut found: Vec<Option<Bound<'_>>> = Vec::new();
        found.resize(self.indices.len(), None);
        for bound in self.bounds(is_padded) {
            let Some(index) = alone(bound.affine) else { continue };
            if self.indices[index].range.is_some() {
                continue;
            }
            match found[index] {
                None => found[index] = Some(bound),
                Some(first) if first.extent != bound.extent => {
                    let name = self.indices[index].name;
                    let message = format!(
                        "{name} runs over {} and over {}, which have {} and {} elements; give the nodes one extent, or say \
                         which part is meant: where {name} in 0:{}",
                        self.axis(first.node, first.axis),
                        self.axis(bound.node, bound.axis),
                        first.extent,
                        bound.extent,
                        first.extent.min(bound.extent),
                    );
                    let first_place = format!("{name} stands on {} here", self.axis(first.node, first.axis));
                    let fault = Fault::new(ErrorKind::ShapeMismatch, bound.place.span, message);
                    return Err(fault.and(first.place.span, first_place));
                }
                Some(_) => {}
            }
        }
        Ok(found.into_iter().map(|bound| bound.map(|bound| (0, i64::from(bound.extent)))).collect())
    }

    fn take(&mut self, found: Vec<Option<Range>>) {
        for (index, range) in self.indices.iter_mut().zip(found) {
            index.range = index.range.or(range);
        }
    }

    /// Gives every index its range.
    pub(super) fn find_ranges(&mut self) -> Checked<()> {
        self.are_values()?;
        let lone = self.lone(false)?;
        self.take(lone);
        // What stands alone inside pad counts where nothing else bounds the index.
        let mut padded = self.lone(true)?;
        for (index, range) in padded.iter_mut().enumerate() {
            let stands = |bound: Bound<'_>| bound.affine.terms.iter().any(|&(term, _)| term == Term::Index(index));
            if range.is_some() && self.bounds(false).any(stands) {
                *range = None;
            }
        }
        self.take(padded);
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
            let values = i64::from(i32::MIN)..=i64::from(i32::MAX) + 1;
            if !values.contains(&lo) || !values.contains(&hi) {
                let name = index.name;
                let message = format!(
                    "{name} runs over {lo}:{hi}, and indices are of type i32 (-2147483648 to 2147483647); split the index \
                     in two"
                );
                return Err(Fault::new(ErrorKind::LimitExceeded, index.at, message));
            }
        }
        Ok(())
    }

    /// The largest n >= 1 such that 0:n keeps every access in bounds whose other indices are known.
    fn solve(&self, index: IndexId) -> Checked<i64> {
        let mut most: Option<i128> = None;
        let mut open = Open::None;
        for bound in self.bounds(false) {
            let Some(&(_, factor)) = bound.affine.terms.iter().find(|&&(term, _)| term == Term::Index(index)) else {
                continue;
            };
            let span = bound.place.span;
            let mut is_open = false;
            for &(term, _) in &bound.affine.terms {
                let reason = match term {
                    Term::Static(_) => Open::Static(span),
                    Term::Index(other) if other != index && self.indices[other].range.is_none() => {
                        Open::Beside(span, other)
                    }
                    Term::Index(_) => continue,
                };
                is_open = true;
                if let Open::None = open {
                    open = reason;
                }
            }
            if is_open {
                continue;
            }
            // An access under an empty range bounds nothing.
            let Some((least, greatest)) = reach(bound.affine, &self.indices, Some(index)) else { continue };
            let last = i128::from(bound.extent) - 1;
            let factor = i128::from(factor);
            let room = if factor > 0 { last - greatest } else { least };
            if least < 0 || greatest > last || room < 0 {
                return Err(self.no_range(index, &Open::Outside(span, bound.node, bound.axis)));
            }
            let n = room / factor.abs() + 1;
            most = Some(most.map_or(n, |most| most.min(n)));
        }
        // An extent fits 32 bits, so this does too.
        most.and_then(|most| i64::try_from(most).ok()).ok_or_else(|| self.no_range(index, &open))
    }

    fn no_range(&self, index: IndexId, open: &Open) -> Fault {
        let name = self.indices[index].name;
        let (span, why) = match *open {
            Open::None => {
                let stands = |bound: Bound<'_>| bound.affine.terms.iter().any(|&(term, _)| term == Term::Index(index));
                let why = match self.bounds(true).any(stands) {
                    true => format!("{name} stands in positions inside pad, which bound nothing"),
                    false => format!("nothing bounds {name}"),
                };
                (self.indices[index].at, why)
            }
            Open::Beside(span, other) => {
                (span, format!("{name} stands beside {}, and the range of neither is known", self.indices[other].name))
            }
            Open::Static(span) => (span, format!("{name} stands beside a static, which has no value yet")),
            Open::Outside(span, node, axis) => {
                (span, format!("no range of {name} from 0 stays within {}", self.axis(node, axis)))
            }
        };
        Fault::new(ErrorKind::ShapeMismatch, span, format!("{why}; state its range: where {name} in 0:n"))
    }
}
