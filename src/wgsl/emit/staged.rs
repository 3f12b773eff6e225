//! Tiles that have what their workgroup shares in its memory: in turns, all lanes compute it together, and each accumulates from it.
//!
//! Barriers are for all lanes or none, so that no lane leaves before the end: those that are outside compute what the last ones
//! inside do.

use std::fmt::Write;

use crate::loops::ir::{Fold, Stage, any_load};
use crate::loops::rewrite::uses_index;
use crate::notation::ast::Accumulate;
use crate::notation::program::{IndexId, Position, Term, points};
use crate::schedule::staged::{Part, Staged, axes, side, staged};
use crate::steps::block::{Reg, ZERO};
use crate::steps::ops::{Op, accumulation};
use crate::wgsl::emit::Emitter;

const BARRIER: &str = "workgroupBarrier();";
/// Turns that a lane does in a row, where all are there.
const UNROLLED: u32 = 4;

/// An index that a workgroup has a block of.
struct Axis {
    index: IndexId,
    /// How many values it has, and of those a lane: so far apart as there are lanes along it.
    extent: u32,
    points: u32,
    side: u32,
    /// The block's first value, and the lane's among the block's.
    origin: Reg,
    lane: Reg,
    /// Whether a block may be over the end.
    is_over: bool,
}

impl Axis {
    /// Values of a block.
    fn width(&self) -> u32 {
        self.side * self.points
    }
}

/// What is in memory, and whose.
struct Shared {
    staged: Staged,
    axes: Vec<Axis>,
    lane: Reg,
    /// Turns that are there together, the first of them, and of how many.
    turns: u32,
    first: Reg,
    total: u32,
}

impl Emitter<'_> {
    /// A workgroup for each block of tiles. The module's variables, the grid.
    pub(super) fn staged(&mut self, tile: &[u32], turns: u32) -> (String, [u32; 3]) {
        let nest = self.lowering.nest;
        let (Some(places), Some(staged)) = (axes(tile), staged(nest, tile)) else {
            return (String::new(), self.per_point(tile));
        };
        let side = side(self.lanes as u32);
        let mut lengths = vec![1; tile.len()];
        for place in places {
            lengths[place] = tile[place] * side;
        }
        let mut groups = 1;
        for (index, length) in nest.free.iter().zip(&lengths) {
            groups *= points(&nest.indices, &[*index]).div_ceil(u64::from(*length));
        }
        let grid = self.workgroup(groups);
        let number = self.text("number", 0);
        self.digits(number, &nest.free, &lengths, false);
        let lane = self.text("lane", 0);
        let mut axes = Vec::new();
        for (op, place) in [Op::Quotient, Op::Digit].into_iter().zip(places) {
            let index = nest.free[place];
            let (length, extent) = (lengths[place], points(&nest.indices, &[index]) as u32);
            let (counter, word) = (self.lowering.counters[index], self.lowering.word(length));
            let lane = self.lowering.block.value(op, side, &[lane]);
            let origin = if counter == ZERO { ZERO } else { self.lowering.two(Op::Mul, counter, word) };
            self.lowering.counters[index] = self.plus(origin, lane);
            let before = self.lowering.points();
            // Of the last block.
            let below = (extent - 1) / length * length + side;
            self.lowering.apart(index, (side, below), tile[place], 1);
            axes.push(Axis {
                index,
                extent,
                points: (self.lowering.points() / before.max(1)) as u32,
                side,
                origin,
                lane,
                is_over: !extent.is_multiple_of(length),
            });
        }
        self.lowering.turns = self.turns;
        let mut shared = Shared { staged, axes, lane, turns, first: ZERO, total: 0 };
        let (mut globals, mut places) = (String::new(), Vec::new());
        for (at, stage) in nest.stages.iter().enumerate() {
            let mut values = self.lowering.before(stage, &mut places);
            if let Some(fold) = &stage.fold
                && at == shared.staged.stage
            {
                globals = self.through_memory(&mut values, (stage, fold), &mut shared);
            }
            self.lowering.stages.extend(values);
        }
        self.lowering.stores(&places);
        (globals, grid)
    }

    /// Accumulates onto the sums of the points. The memory's variables.
    fn through_memory(&mut self, sums: &mut [Reg], (stage, fold): (&Stage, &Fold), shared: &mut Shared) -> String {
        let turns = shared.turns;
        let total = points(&self.lowering.nest.indices, &fold.over) as u32;
        let op = accumulation(fold.op.unwrap_or(Accumulate::Add), stage.value.ty);
        let is_compared = self.lowering.is_compared(op, sums);
        for sum in &mut *sums {
            *sum = self.lowering.block.apart(Op::Var, 0, &[*sum]);
        }
        self.lowering.block.open();
        (shared.first, shared.total) = (self.text("first", 0), total);
        let (mut globals, mut strides) = (String::new(), Vec::new());
        for (number, part) in shared.staged.parts.iter().enumerate() {
            let stride = self.compute(part, number as u64, &fold.over, shared);
            let (ty, length) = (part.value.ty.name(), stride * turns);
            let _ = write!(globals, "var<workgroup> lab_staged{number}: array<{ty}, {length}>;\n\n");
            strides.push(stride);
        }
        self.line(BARRIER, 0);
        let (mut limit, mut row) = (self.lowering.word(turns), 1);
        if !total.is_multiple_of(turns) {
            let total = self.lowering.word(total);
            let left = self.lowering.two(Op::Sub, total, shared.first);
            limit = self.lowering.two(Op::MinU, left, limit);
        } else if turns.is_multiple_of(UNROLLED) {
            row = UNROLLED;
        }
        self.lowering.block.open();
        self.lowering.set_inside(sums);
        let turn = self.text("turn", 0);
        let mut next = sums.to_vec();
        let body = &shared.staged.body;
        for at in 0..row {
            let turn = self.lowering.sum(turn, at);
            if fold.over.iter().any(|index| uses_index(body, *index)) {
                let number = self.plus(shared.first, turn);
                self.decode(number, &fold.over, &[]);
            }
            let before = self.lowering.stages.len();
            for (number, stride) in strides.iter().enumerate() {
                self.read(number, *stride, turn, shared);
            }
            for (point, next) in next.iter_mut().enumerate() {
                self.lowering.go_to(point);
                let value = self.lowering.expr(body);
                *next = self.lowering.combine(op, is_compared, *next, value);
            }
            self.lowering.stages.truncate(before);
        }
        for (sum, next) in sums.iter().zip(next) {
            self.lowering.block.effect(Op::Assign, 0, &[*sum, next]);
        }
        self.close_by("for (var turn = 0u; turn < $0; turn += #u)", row.into(), limit, &[]);
        self.line(BARRIER, 0);
        let step = self.lowering.word(turns);
        self.close_by("for (var first = 0u; first < #u; first += $0)", total.into(), step, sums);
        globals
    }

    /// Computes a part with all lanes, without a branch where each has as many elements of it. How far turns are apart in memory.
    fn compute(&mut self, part: &Part, number: u64, over: &[IndexId], shared: &Shared) -> u32 {
        let &Shared { lane, turns, first, total, .. } = shared;
        let axis = part.axis.map(|axis| &shared.axes[axis]);
        let (width, lanes, is_row) = (axis.map_or(1, Axis::width), self.lanes as u32, is_row(part, over));
        // Lanes that go along the turns do not meet in a bank.
        let stride = if is_row && width > 1 { width + 1 } else { width };
        let count = width * turns;
        for begin in (0..count).step_by(lanes as usize) {
            let left = count - begin;
            let mut element = self.lowering.sum(lane, begin);
            if left < lanes {
                element = self.at_most(element, count - 1);
            }
            let (mut turn, mut place) = (element, ZERO);
            if let Some(axis) = axis {
                let length = if is_row { turns } else { width };
                let digit = self.lowering.block.value(Op::Digit, length, &[element]);
                let rest = self.lowering.block.value(Op::Quotient, length, &[element]);
                (turn, place) = if is_row { (digit, rest) } else { (rest, digit) };
                let mut counter = self.plus(axis.origin, place);
                if axis.is_over {
                    counter = self.at_most(counter, axis.extent - 1);
                }
                self.lowering.counters[axis.index] = counter;
            }
            let mut at = self.plus(first, turn);
            if !total.is_multiple_of(turns) {
                at = self.at_most(at, total - 1);
            }
            self.decode(at, over, &[]);
            let value = self.lowering.expr(&part.value);
            let stride = self.lowering.word(stride);
            let row = self.lowering.two(Op::Mul, turn, stride);
            let place = self.plus(place, row);
            let text = self.add("lab_staged#[$0]", number);
            let own = self.lowering.block.apart(Op::Text, text, &[place]);
            if left < lanes {
                self.lowering.block.open();
            }
            self.lowering.block.effect(Op::Assign, 0, &[own, value]);
            if left < lanes {
                self.close("if (lane < #u)", left.into(), &[]);
            }
        }
        stride
    }

    /// A part at each of the points, at a turn of those in memory.
    fn read(&mut self, number: usize, stride: u32, turn: Reg, shared: &Shared) {
        let Shared { staged, axes, .. } = shared;
        let axis = staged.parts[number].axis;
        let stride = self.lowering.word(stride);
        let mut row = self.lowering.two(Op::Mul, turn, stride);
        if let Some(axis) = axis {
            row = self.plus(axes[axis].lane, row);
        }
        for point in 0..self.lowering.points() as u32 {
            let at = match axis {
                Some(0) => point / axes[1].points * axes[0].side,
                Some(_) => point % axes[1].points * axes[1].side,
                None => 0,
            };
            let place = self.lowering.sum(row, at);
            let value = self.lowering.block.value(Op::Staged, number as u32, &[place]);
            self.lowering.stages.push(value);
        }
    }

    /// The sum of two words, of which the first may be 0.
    fn plus(&mut self, one: Reg, other: Reg) -> Reg {
        if one == ZERO { other } else { self.lowering.two(Op::Add, one, other) }
    }

    fn at_most(&mut self, value: Reg, most: u32) -> Reg {
        let most = self.lowering.word(most);
        self.lowering.two(Op::MinU, value, most)
    }
}

/// Whether neighbours in memory are those of neighbouring turns.
fn is_row(part: &Part, over: &[IndexId]) -> bool {
    let Some(last) = over.last() else { return false };
    any_load(&part.value, &mut |load| match load.positions.last() {
        Some(Position::Affine(affine)) => affine.terms.contains(&(Term::Index(*last), 1)),
        _ => false,
    })
}
