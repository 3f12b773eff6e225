//! What a schedule costs, and which tiles there are.
//!
//! Each part of an expression is computed once for all points of a tile that agree in the indices that it depends on. What a
//! tile costs is so the sum over all parts of their weight, times the lengths of the tile along those indices.

use crate::loops::ir::{Nest, Stage};
use crate::loops::rewrite::each_child;
use crate::notation::program::{Affine, Expr, ExprKind, IndexId, Load, Position, Term};
use crate::schedule::{MANY_POINTS, MANY_POINTS_ON_CPU, Spread, iterations};

/// The longest length of a tile that is a power of two. A tile is at most twice as long as it is wide, or one wide.
const LONG: u32 = 8;
/// Extents below which they and their halves are lengths of a tile, too, on a CPU.
const SHORT: u64 = 16;
/// What an invocation accumulates, at most: that many registers. Points that accumulate nothing take two. A CPU keeps them in its
/// nearest cache, where twice as many would load a fourth less, but take SwiftShader three times as long to compile.
pub(super) const MOST_SUMS: u64 = 64;
/// Parts of the expressions of all points of a tile, at most: the length of the text.
pub(super) const MOST_PARTS: u64 = 4096;
/// What a tile must cost, of what it costs without one, to be worth the registers that it takes from other invocations.
pub(super) const WORTH: f64 = 0.75;
/// On a CPU there are none to take them from; each of so many points of a tile makes it dearer by its part, for the text.
const WORTH_CPU: f64 = 512.0;
/// Invocations that keep a device busy.
pub(super) const BUSY: f64 = 16384.0;
/// The same where there are a few cores, with a few lanes each.
const BUSY_CPU: f64 = 32.0;
/// How much longer a workgroup takes where its barriers are waited for.
const BARRIERS: f64 = 1.125;
/// How much less four accesses in a row weigh as one, on a CPU: the lanes of a vector are gathered and spread all the same.
const FOURS: f64 = 1.6;
/// What a load weighs, in simple operations.
const LOAD: f64 = 8.0;
/// The same on a CPU: SwiftShader gathers four lanes in the time of some twenty operations on all four.
const LOAD_CPU: f64 = 20.0;
/// What a function weighs.
const CALL: f64 = 8.0;

/// A part of an expression.
struct Part {
    weight: f64,
    /// The free indices that it depends on, as bits of their places.
    on: u32,
    /// Those whose neighbours are neighbours in memory, if it is an access.
    along: u32,
}

/// The parts of all expressions of a nest.
pub(super) struct Parts<'a> {
    nest: &'a Nest,
    is_cpu: bool,
    /// Whether what lies four in a row is one access.
    by_fours: bool,
    all: Vec<Part>,
    /// What an invocation accumulates for a point.
    sums: u64,
}

impl<'a> Parts<'a> {
    pub(super) fn new(nest: &'a Nest, is_cpu: bool, by_fours: bool) -> Self {
        let mut parts = Parts { is_cpu, by_fours, ..Self::none(nest) };
        for stage in &nest.stages {
            parts.add_stage(stage, &stage.value);
        }
        parts
    }

    /// None of its parts yet.
    pub(super) fn none(nest: &'a Nest) -> Self {
        Parts { nest, is_cpu: false, by_fours: false, all: Vec::new(), sums: 0 }
    }

    /// Adds the parts of a stage that has another value.
    pub(super) fn add_stage(&mut self, stage: &Stage, value: &Expr) {
        let times = stage.fold.as_ref().map_or(1.0, |fold| iterations(&self.nest.indices, &fold.over) as f64);
        self.add(value, times);
        // The accumulation.
        self.all.push(Part { weight: times, on: u32::MAX, along: 0 });
        if let Some(store) = &stage.store {
            self.access(&store.positions, if stage.is_each() { times } else { 1.0 }, u32::MAX);
        }
        self.sums += u64::from(stage.fold.as_ref().is_some_and(|fold| fold.op.is_some()));
    }

    fn of_affine(&self, affine: &Affine) -> u32 {
        let places = affine.terms.iter().map(|(term, _)| match term {
            Term::Index(index) => self.place(*index),
            Term::Static(_) => 0,
        });
        places.fold(0, |all, place| all | place)
    }

    fn place(&self, index: IndexId) -> u32 {
        self.nest.free.iter().position(|free| *free == index).map_or(0, bit)
    }

    /// Adds an access, of an element of that place, and what else it depends on; what it depends on.
    fn access(&mut self, positions: &[Position], times: f64, mut on: u32) -> u32 {
        let mut along = 0;
        for (axis, position) in positions.iter().enumerate() {
            let Position::Affine(affine) = position else { continue };
            on |= self.of_affine(affine);
            for (term, factor) in &affine.terms {
                if let Term::Index(index) = term
                    && *factor == 1
                    && axis + 1 == positions.len()
                    && self.by_fours
                    && iterations(&self.nest.indices, &[*index]).is_multiple_of(4)
                {
                    // Reduced indices go by fours whatever the tile.
                    along |= if self.place(*index) == 0 { u32::MAX } else { self.place(*index) };
                }
            }
        }
        let load = if self.is_cpu { LOAD_CPU } else { LOAD };
        self.all.push(Part { weight: load * times, on, along });
        on
    }

    /// Adds the parts of an expression, each done so many times; what it depends on.
    pub(super) fn add(&mut self, expr: &Expr, times: f64) -> u32 {
        let inside = match &expr.kind {
            ExprKind::Reduce { indices, .. } => times * iterations(&self.nest.indices, indices) as f64,
            _ => times,
        };
        let mut on = 0;
        each_child(expr, &mut |child| on |= self.add(child, inside));
        let weight = match &expr.kind {
            ExprKind::Load(Load { positions, .. }) => return self.access(positions, times, on),
            ExprKind::Index(index) => {
                on |= self.place(*index);
                0.0
            }
            ExprKind::Stage(_) => {
                on = u32::MAX;
                0.0
            }
            ExprKind::Call(..) => CALL,
            _ => 1.0,
        };
        self.all.push(Part { weight: weight * times, on, along: 0 });
        on
    }

    /// Whether a part is an access of what lies four in a row, in a tile.
    fn is_row(&self, part: &Part, tile: &[u32]) -> bool {
        let in_tile = |(place, length): (usize, &u32)| part.along & bit(place) != 0 && length.is_multiple_of(4);
        part.along == u32::MAX || part.along != 0 && tile.iter().enumerate().any(in_tile)
    }

    /// Whether there is an access that goes by fours.
    pub(super) fn has_rows(&self, spread: &Spread) -> bool {
        // What goes through memory goes one by one.
        if matches!(spread, Spread::Staged { .. }) {
            return false;
        }
        let tile = if let Spread::Tiled(tile) = spread { &tile[..] } else { &[] };
        self.all.iter().any(|part| self.is_row(part, tile))
    }

    /// What the points of a tile cost.
    pub(super) fn of_tile(&self, tile: &[u32]) -> f64 {
        let mut sum = 0.0;
        for part in &self.all {
            let mut cost = part.weight;
            for (place, length) in tile.iter().enumerate() {
                if part.on & bit(place) != 0 {
                    cost *= f64::from(*length);
                }
            }
            sum += if self.is_row(part, tile) { cost / FOURS } else { cost };
        }
        sum
    }

    /// Invocations that compute the points; workgroups where those share a point each.
    pub(super) fn invocations(&self, spread: &Spread) -> f64 {
        let tile = match spread {
            Spread::Tiled(tile) | Spread::Staged { tile, .. } => &tile[..],
            _ => &[],
        };
        let mut invocations = 1.0;
        for (at, index) in self.nest.free.iter().enumerate() {
            let length = tile.get(at).copied().unwrap_or(1);
            invocations *= iterations(&self.nest.indices, &[*index]).div_ceil(u64::from(length)) as f64;
        }
        invocations
    }

    /// What a spread costs.
    pub(super) fn estimate(&self, spread: &Spread) -> u64 {
        let invocations = self.invocations(spread);
        let (busy, many) = if self.is_cpu { (BUSY_CPU, MANY_POINTS_ON_CPU) } else { (BUSY, MANY_POINTS) };
        let cost = match spread {
            // Nothing goes faster than with as many invocations as keep the device busy.
            Spread::PerPoint => self.of_tile(&[]) * f64::max(invocations, busy),
            Spread::Staged { tile, .. } => self.of_tile(tile) * f64::max(invocations, busy),
            Spread::Tiled(tile) => {
                let points: u32 = tile.iter().product();
                let worth = if self.is_cpu { WORTH_CPU / (WORTH_CPU + f64::from(points)) } else { WORTH };
                self.of_tile(tile) * f64::max(invocations, busy) / worth
            }
            // Few points keep a device busy, so that it waits for barriers less than for accesses. Many do without.
            Spread::PerWorkgroup => {
                let waiting = if invocations > many as f64 { BARRIERS } else { 1.0 };
                self.of_tile(&[]) * invocations * (busy / many as f64) * waiting
            }
        };
        cost as u64
    }

    /// Registers that a point takes.
    pub(super) fn registers(&self) -> u64 {
        if self.sums == 0 { 2 } else { self.sums }
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> u64 {
        self.all.len() as u64
    }

    /// Lengths of a tile along an index, shorter ones first; those of 0 are none.
    fn lengths(&self, index: IndexId) -> [u32; 6] {
        let extent = iterations(&self.nest.indices, &[index]);
        let mut lengths = [1, 2, 4, LONG, 0, 0];
        // Where powers of two do not fit, loads are done for nothing.
        for parts in 1..3 {
            let part = extent.div_ceil(parts) as u32;
            if self.is_cpu && extent < SHORT && !part.is_power_of_two() {
                lengths[3 + parts as usize] = part;
            }
        }
        lengths.map(|length| if u64::from(length) <= extent { length } else { 0 })
    }

    /// Adds the tiles that an invocation has registers for.
    pub(super) fn tiles(&self, all: &mut Vec<Spread>) {
        let free = &self.nest.free;
        for (at, index) in free.iter().enumerate() {
            for (other, across) in free.iter().enumerate() {
                let widths = if other == at { [1, 0, 0, 0, 0, 0] } else { self.lengths(*across) };
                for long in self.lengths(*index) {
                    for short in widths {
                        let points = u64::from(long * short);
                        let is_small = points * self.registers() <= MOST_SUMS && points * self.count() <= MOST_PARTS;
                        let is_shape =
                            if other == at { (2..=LONG).contains(&long) } else { short > 1 && long <= 2 * short };
                        // A square once.
                        let is_known = long < short || long == short && other < at;
                        if points == 0 || !is_small || !is_shape || is_known {
                            continue;
                        }
                        let mut tile = vec![1; free.len()];
                        tile[other] = short;
                        tile[at] = long;
                        all.push(Spread::Tiled(tile));
                    }
                }
            }
        }
    }
}

/// The bit of the free index at a place.
fn bit(place: usize) -> u32 {
    1 << place.min(31)
}

/// A tile that no extent is likely to be a multiple of.
pub(super) fn forced(nest: &Nest) -> Vec<u32> {
    let mut tile = vec![2; nest.free.len()];
    if let Some(last) = tile.last_mut() {
        *last = 4;
    }
    tile
}
