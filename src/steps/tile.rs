//! Tiles: points that are computed together, so that what several of them ask for is computed once.
//!
//! The points of a tile lie apart, as far as there are tiles: neighbouring tiles have neighbouring points, and where the
//! tiles do not fit, only the last points of a tile are outside. They compute what the last ones inside do, and store
//! nothing.

use crate::dtype::DType;
use crate::loops::ir::BufferIndex;
use crate::notation::program::IndexId;
use crate::steps::block::{Reg, ZERO};
use crate::steps::ops::Op;
use crate::steps::position::Sum;
use crate::steps::{Lowering, Place, count};

/// A point of a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    /// What counts the tiled indices.
    counters: Vec<(IndexId, Reg)>,
    /// Whether there is such a point, where that is not certain.
    pub inside: Option<Reg>,
}

impl Lowering<'_> {
    /// Takes so many values of a free index together. So far, what counts it counts the tiles.
    pub fn tile(&mut self, index: IndexId, length: u32) {
        // What lies four in a row stays together.
        let mut extent = count(&self.nest.indices[index]);
        let row = if self.fours.is_some() && length.is_multiple_of(4) && extent.is_multiple_of(4) { 4 } else { 1 };
        extent /= row;
        let tiles = extent.div_ceil((length / row).max(1));
        if tiles == extent && row == 1 {
            return;
        }
        self.apart(index, (tiles, tiles), length, row);
    }

    /// Takes so many values of a free index together, or rows of them, as many as there are at that distance from each other.
    /// So far, what counts it is below a bound.
    pub fn apart(&mut self, index: IndexId, (distance, below): (u32, u32), length: u32, row: u32) {
        let (extent, tile) = (count(&self.nest.indices[index]) / row, self.counters[index]);
        let end = extent.min(distance.saturating_mul(length));
        let mut points = Vec::new();
        for point in &std::mem::take(&mut self.points) {
            let mut first = 0;
            while first < end {
                let (mut counter, mut inside) = (self.sum(tile, first), point.inside);
                if first.saturating_add(below) > extent {
                    let (end, last) = (self.word(extent), self.word(extent - 1));
                    let is_there = self.two(Op::LtU, counter, end);
                    inside = self.both(inside, Some(is_there));
                    counter = self.two(Op::MinU, counter, last);
                }
                first = first.saturating_add(distance);
                for counter in self.row(counter, row) {
                    let mut counters = point.counters.clone();
                    counters.push((index, counter));
                    points.push(Point { counters, inside });
                }
            }
        }
        self.points = points;
    }

    /// So many values in a row, of what is counted in rows.
    pub(super) fn row(&mut self, counter: Reg, length: u32) -> Vec<Reg> {
        if length == 1 {
            return vec![counter];
        }
        let mut sum = Sum::default();
        self.add(&mut sum, counter, 1);
        if length == 4
            && let Some(fours) = &mut self.fours
        {
            for (term, factor) in &sum.terms {
                if *factor == 1 {
                    fours.push(*term);
                }
            }
        }
        let word = self.word(length);
        let first = if counter == ZERO { ZERO } else { self.two(Op::Mul, counter, word) };
        let mut row = Vec::new();
        for next in 0..length {
            row.push(self.sum(first, next));
        }
        row
    }

    pub fn sum(&mut self, value: Reg, next: u32) -> Reg {
        let word = self.word(next);
        match (value, next) {
            (_, 0) => value,
            (ZERO, _) => word,
            _ => self.two(Op::Add, value, word),
        }
    }

    /// Where four elements start of which the one at an offset is one, and which, if all four are likely to be asked for.
    pub(super) fn quad_of(&mut self, buffer: BufferIndex, offset: Reg) -> Option<(Reg, u32)> {
        let fours = self.fours.as_ref()?;
        let mut sum = Sum::default();
        self.add(&mut sum, offset, 1);
        let is_row = sum.terms.iter().any(|(term, factor)| *factor == 4 && fours.contains(term));
        if self.loops.buffers[buffer].dtype != DType::F32 || !is_row || !is_aligned(&sum) {
            return None;
        }
        let part = sum.constant % 4;
        sum.constant -= part;
        Some((self.total(&sum), part))
    }

    /// Whether four stores are in a row, from a multiple of 4, and all or none of them are done.
    pub(super) fn are_four(&self, buffer: BufferIndex, places: &[Place]) -> bool {
        let mut first = Sum::default();
        places.iter().enumerate().all(|(next, (offset, inside))| {
            let mut sum = Sum::default();
            self.add(&mut sum, *offset, 1);
            sum.constant = sum.constant.wrapping_sub(next as u32);
            if next == 0 {
                first = sum;
                return self.fours.is_some()
                    && self.loops.buffers[buffer].dtype == DType::F32
                    && first.constant.is_multiple_of(4)
                    && is_aligned(&first);
            }
            sum == first && *inside == places[0].1
        })
    }

    /// How many points are computed together.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// What is asked for from here on is asked for at that point.
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
        for &(index, counter) in &self.points[at].counters {
            self.counters[index] = counter;
        }
    }

    /// The value of an earlier stage at the point.
    pub(super) fn stage(&self, stage: usize) -> Option<Reg> {
        self.stages.get(stage * self.points.len() + self.at).copied()
    }

    /// Whether both are so, where one is not certain.
    pub(super) fn both(&mut self, one: Option<Reg>, other: Option<Reg>) -> Option<Reg> {
        match one.zip(other) {
            Some((one, other)) => Some(self.block.value(Op::Both, 0, &[one, other])),
            None => one.or(other),
        }
    }
}

fn is_aligned(sum: &Sum) -> bool {
    sum.terms.iter().all(|(_, factor)| factor.is_multiple_of(4))
}
