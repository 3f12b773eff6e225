//! Stepped parts of nodes: element by element.

use std::ops::Range;

use wgslab::Span;

use super::{Oracle, Refusal, refuse};

impl Oracle {
    /// The bytes from the first element of a span to the last, relative to the node, and each element relative to those.
    pub(super) fn span(&self, node: usize, span: Span) -> Result<(Range<u64>, Vec<Range<usize>>), Refusal> {
        let facts = &self.nodes[node];
        let indices: Vec<u64> =
            (0..u64::from(span.extent)).map(|k| u64::from(span.start) + k * u64::from(span.step)).collect();
        let after = indices.last().map_or(u64::from(span.start), |last| last + 1);
        if span.step == 0 || after > facts.len {
            return refuse("shape-mismatch", &facts.name);
        }
        let size = facts.element;
        let first = indices.first().copied().unwrap_or(0);
        let range = first * size..indices.last().map_or(0, |last| (last + 1) * size);
        let place = |index: u64| ((index - first) * size) as usize..((index - first + 1) * size) as usize;
        Ok((range, indices.into_iter().map(place).collect()))
    }

    pub(super) fn write_block(&mut self, of: usize, node: usize, span: Span, bytes: &[u8]) -> Result<String, Refusal> {
        let (range, elements) = self.span(node, span)?;
        let (device, place) = self.writable(of, node)?;
        let size = self.nodes[node].element as usize;
        if bytes.len() != elements.len() * size {
            return refuse("shape-mismatch", &self.nodes[node].name);
        }
        let place = place.at(range.start);
        let mut all = self.memories[device].read(place, range.end - range.start)?;
        for (element, bytes) in elements.into_iter().zip(bytes.chunks(size)) {
            all[element].copy_from_slice(bytes);
        }
        self.memories[device].write(place, &all)?;
        Ok(String::new())
    }

    pub(super) fn read_block(&self, of: usize, node: usize, span: Span) -> Result<String, Refusal> {
        let (range, elements) = self.span(node, span)?;
        let (device, place) = self.place(of, node)?;
        let all = self.memories[device].read(place.at(range.start), range.end - range.start)?;
        Ok(format!("{:?}", elements.into_iter().flat_map(|element| all[element].to_vec()).collect::<Vec<_>>()))
    }

    pub(super) fn copy_block(&mut self, of: usize, from: (usize, Span), to: (usize, Span)) -> Result<String, Refusal> {
        let ((source, elements), (target, places)) = (self.span(from.0, from.1)?, self.span(to.0, to.1)?);
        let (device, from_place) = self.place(of, from.0)?;
        let (_, to_place) = self.writable(of, to.0)?;
        if self.nodes[from.0].dtype != self.nodes[to.0].dtype {
            return refuse("dtype-mismatch", &self.nodes[to.0].name);
        }
        if elements.len() != places.len() {
            return refuse("shape-mismatch", "give blocks of the same extents");
        }
        let all = self.memories[device].read(from_place.at(source.start), source.end - source.start)?;
        let mut after = self.memories[device].read(to_place.at(target.start), target.end - target.start)?;
        for (element, place) in elements.into_iter().zip(places) {
            after[place].copy_from_slice(&all[element]);
        }
        self.memories[device].write(to_place.at(target.start), &after)?;
        Ok(String::new())
    }
}
