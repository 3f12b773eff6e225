//! Whether an access can leave its tensor, and what the statics must satisfy so that it does not.

use super::fault::Checked;
use super::scope::{Access, Belongs, Place, Scope};
use crate::error::ErrorKind;
use crate::notation::program::{Affine, IndexId, StaticBound, Term, product};

impl Scope<'_, '_> {
    fn is_empty(&self, index: IndexId) -> bool {
        self.indices[index].range.is_some_and(|(lo, hi)| lo >= hi)
    }

    fn has_empty(&self, affine: &Affine) -> bool {
        affine.terms.iter().any(|&(term, _)| matches!(term, Term::Index(index) if self.is_empty(index)))
    }

    /// Whether an access is never made. The left side is addressed for every value of the indices in its affine positions,
    /// also where there is nothing to be accumulated.
    fn is_never(&self, place: &Place) -> bool {
        if place.access == Access::Target {
            let is_never = |other: &Place| {
                other.access == Access::Target && other.affine.as_ref().is_some_and(|affine| self.has_empty(affine))
            };
            return self.places.iter().any(is_never);
        }
        for (number, index) in self.indices.iter().enumerate() {
            if index.belongs != Belongs::Reduction && self.is_empty(number) {
                return true;
            }
        }
        let mut under = place.under;
        while let Some(index) = under {
            if self.is_empty(index) {
                return true;
            }
            under = self.indices[index].outer;
        }
        false
    }

    /// Checks every access, and adds what the statics must satisfy to the program.
    pub(super) fn check_bounds(&mut self) -> Checked<()> {
        for number in 0..self.places.len() {
            let place = &self.places[number];
            if self.is_never(place) {
                continue;
            }
            let bound = match &place.affine {
                Some(affine) => self.stays(place, affine)?,
                None => {
                    self.has_elements(place)?;
                    None
                }
            };
            if let Some(bound) = bound {
                let bounds = &mut self.symbols.program.static_bounds;
                // Spans are all equal.
                if !bounds.contains(&bound) {
                    bounds.push(bound);
                }
            }
        }
        for &(index, at) in &self.arguments {
            if self.is_empty(index) {
                let name = self.indices[index].name;
                let message = format_args!(
                    "{name} runs over nothing, and one of its values is to be given; give it a range that has one"
                );
                return Err(self.fail(ErrorKind::ShapeMismatch, at, message));
            }
        }
        Ok(())
    }

    fn has_elements(&self, place: &Place) -> Checked<()> {
        if place.access != Access::Read || place.extent > 0 {
            return Ok(());
        }
        let message = format_args!("{} has no element to gather; give it one, or use pad", self.axis(place));
        Err(self.fail(ErrorKind::ShapeMismatch, place.span.start, message))
    }

    fn stays(&self, place: &Place, affine: &Affine) -> Checked<Option<StaticBound>> {
        let &Place { span, node, axis, extent, access, .. } = place;
        let Some((least, most)) = self.reach(place, affine, None)? else { return Ok(None) };
        let is_padded = access == Access::Padded;
        let mut terms = Vec::new();
        let mut room = Some(1i64 << 32);
        for &(term, factor) in &affine.terms {
            match term {
                // Whatever a run gives for the statics: 64 bits hold the position then, as the drivers compute it.
                Term::Static(_) if is_padded => {
                    room = room.and_then(|room| room.checked_add(product(factor.checked_abs()?, 1 << 31)?));
                }
                Term::Static(number) => terms.push((number, factor)),
                Term::Index(_) => {}
            }
        }
        if room.is_none() {
            return Err(self.too_far(span.start));
        }
        // Padded positions are computed as i32.
        let (first, last) =
            if is_padded { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (0, i64::from(extent) - 1) };
        if terms.is_empty() {
            if least >= first && most <= last {
                return Ok(None);
            }
        } else if let (Some(least), Some(most)) = (least.checked_neg(), last.checked_sub(most))
            && least <= most
        {
            return Ok(Some(StaticBound { terms, least, most, node, axis, span }));
        }
        let apart = if terms.is_empty() { "" } else { ", without its statics" };
        let (kind, within, remedy) = if is_padded {
            (ErrorKind::LimitExceeded, "i32, the type of positions inside pad".to_owned(), "")
        } else {
            (ErrorKind::ShapeMismatch, self.axis(place), ", or use pad on the right")
        };
        let position = self.show(affine);
        Err(self.fail(
            kind,
            span.start,
            format_args!(
                "the position {position} runs over {least} to {most}{apart}, and must stay in {within}; state a smaller \
                 range with where{remedy}"
            ),
        ))
    }
}
