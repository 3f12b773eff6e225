//! Whether an access can leave its tensor, and what the statics must satisfy so that it does not.

use super::fault::{Checked, Fault};
use super::ranges::reach;
use super::scope::{Access, Belongs, Place, Scope};
use crate::error::ErrorKind;
use crate::notation::program::{Affine, IndexId, StaticBound, Term};

impl Scope<'_, '_> {
    fn is_empty(&self, index: IndexId) -> bool {
        self.indices[index].range.is_some_and(|(lo, hi)| lo >= hi)
    }

    /// Whether an access is never made. The left side is addressed for every value of the indices in its affine positions,
    /// also where there is nothing to be accumulated.
    fn is_never(&self, access: &Access) -> bool {
        if access.is_target {
            let affine = access.places.iter().filter_map(|place| place.affine.as_ref());
            return affine.flat_map(|affine| &affine.terms).any(|&(term, _)| match term {
                Term::Index(index) => self.is_empty(index),
                Term::Static(_) => false,
            });
        }
        let outer = |index: &IndexId| self.indices[*index].belongs != Belongs::Reduction;
        (0..self.indices.len()).filter(outer).any(|index| self.is_empty(index))
            || access.under.iter().any(|&index| self.is_empty(index))
    }

    /// Checks every access; gives what the statics must satisfy.
    pub(super) fn check_bounds(&self) -> Checked<Vec<StaticBound>> {
        let mut bounds = Vec::new();
        for access in &self.accesses {
            if self.is_never(access) {
                continue;
            }
            for (axis, place) in access.places.iter().enumerate() {
                match &place.affine {
                    Some(affine) if access.is_padded => self.fits(access, affine, place)?,
                    Some(affine) => bounds.extend(self.stays(access, axis, affine, place)?),
                    None if access.is_padded || access.is_target => {}
                    None => self.has_elements(access, axis, place)?,
                }
            }
        }
        for &(index, span) in &self.arguments {
            if self.is_empty(index) {
                let name = self.indices[index].name;
                let message = format!(
                    "{name} runs over nothing, so that no value of it can be given; give it a range with a value"
                );
                return Err(Fault::new(ErrorKind::ShapeMismatch, span, message));
            }
        }
        Ok(bounds)
    }

    fn has_elements(&self, access: &Access, axis: usize, place: &Place) -> Checked<()> {
        let node = self.symbols.at(access.node);
        if node.shape[axis] > 0 {
            return Ok(());
        }
        let name = &node.name;
        let message =
            format!("axis {axis} of \"{name}\" has no element to gather; give it one, or use pad({name}[..], 0)");
        Err(Fault::new(ErrorKind::ShapeMismatch, place.span, message))
    }

    /// Padded positions are computed as i32.
    fn fits(&self, access: &Access, affine: &Affine, place: &Place) -> Checked<()> {
        let Some((least, most)) = reach(affine, &self.indices, None) else { return Ok(()) };
        if least >= i128::from(i32::MIN) && most <= i128::from(i32::MAX) {
            return Ok(());
        }
        let (name, position) = (&self.symbols.at(access.node).name, self.show(affine));
        let message = format!(
            "the position {position} of \"{name}\" runs over {least} to {most}, and positions inside pad are of type i32; \
             use smaller factors or ranges"
        );
        Err(Fault::new(ErrorKind::LimitExceeded, place.span, message))
    }

    fn stays(&self, access: &Access, axis: usize, affine: &Affine, place: &Place) -> Checked<Option<StaticBound>> {
        let Some((least, most)) = reach(affine, &self.indices, None) else { return Ok(None) };
        let node = self.symbols.at(access.node);
        let extent = node.shape[axis];
        let last = i128::from(extent) - 1;
        let statics = affine.terms.iter().filter_map(|&(term, factor)| match term {
            Term::Static(number) => Some((number, factor)),
            Term::Index(_) => None,
        });
        let statics: Vec<_> = statics.collect();
        let (name, position) = (&node.name, self.show(affine));
        if !statics.is_empty() {
            let limits = (i64::try_from(-least), i64::try_from(last - most));
            if let (Ok(least), Ok(most)) = limits
                && least <= most
            {
                let (node, span) = (access.node, place.span);
                return Ok(Some(StaticBound { terms: statics, least, most, node, axis, span }));
            }
            let message = format!(
                "no value of the statics keeps the position {position} within axis {axis} of \"{name}\", which has {extent} \
                 elements; shorten the range of an index"
            );
            return Err(Fault::new(ErrorKind::ShapeMismatch, place.span, message));
        }
        if least >= 0 && most <= last {
            return Ok(None);
        }
        let runs = match affine.terms.is_empty() {
            true => "is outside".to_owned(),
            false => format!("runs over {least} to {most}"),
        };
        let holds = match extent {
            0 => "no element".to_owned(),
            1 => "1 element (0)".to_owned(),
            _ => format!("{extent} elements (0 to {last})"),
        };
        let remedy = match affine.terms.iter().find_map(|&(term, _)| match term {
            Term::Index(index) => Some(index),
            Term::Static(_) => None,
        }) {
            Some(index) if access.is_target => format!("state a range: where {} in ..", self.indices[index].name),
            Some(index) => format!("state a range (where {} in ..), or use pad", self.indices[index].name),
            None => "use a smaller position".to_owned(),
        };
        let message = format!("the position {position} {runs}: axis {axis} of \"{name}\" has {holds}; {remedy}");
        Err(Fault::new(ErrorKind::ShapeMismatch, place.span, message))
    }
}
