//! What a nest computes, as steps: one operation after another on values of 32 bits, with loops around them. The host
//! driver runs them, and kernels are their print in WGSL, so that both mean the same.

pub(crate) mod block;
mod expr;
mod online;
pub(crate) mod ops;
pub(crate) mod position;
pub(crate) mod reduce;
mod tile;

use crate::loops::ir::{BufferIndex, Fold, Loops, Nest, Stage, Store};
use crate::notation::ast::Accumulate;
use crate::notation::program::{IndexId, LoopIndex, Ty, Value};
use crate::steps::block::{Block, Reg, ZERO};
use crate::steps::ops::Op;
use crate::steps::position::Outside;
use crate::steps::tile::Point;

/// A nest on the way to steps. Whoever makes them says first what counts the free indices.
#[derive(Debug)]
pub(crate) struct Lowering<'a> {
    pub loops: &'a Loops,
    pub nest: &'a Nest,
    pub block: Block,
    /// The buffers by the number of their tensor, the targets first, the others as they are read.
    pub tensors: Vec<BufferIndex>,
    /// What counts the values of an index from 0; 0 where nothing does.
    pub counters: Vec<Reg>,
    /// The points that are computed together.
    points: Vec<Point>,
    /// The point whose values are asked for.
    at: usize,
    /// Turns of a reduction that are done in a row, at most.
    pub turns: u32,
    /// What counts by fours, if floats in a row are to be loaded and stored four at a time.
    pub fours: Option<Vec<Reg>>,
    /// The stage that is the maximum below which the next one sums exponentials, if one turn is to do for both.
    pub online: Option<usize>,
    /// The values of the stages so far, for each of the points.
    pub stages: Vec<Reg>,
}

impl<'a> Lowering<'a> {
    pub fn new(loops: &'a Loops, nest: &'a Nest) -> Self {
        let counters = vec![ZERO; nest.indices.len()];
        let mut tensors = Vec::new();
        for store in nest.stores() {
            if !tensors.contains(&store.target) {
                tensors.push(store.target);
            }
        }
        Self {
            loops,
            nest,
            block: Block::new(),
            tensors,
            counters,
            points: vec![Point::default()],
            at: 0,
            turns: 1,
            fours: None,
            online: None,
            stages: Vec::new(),
        }
    }

    /// The number of a buffer's tensor.
    fn tensor(&mut self, buffer: BufferIndex) -> u32 {
        let known = self.tensors.iter().position(|known| *known == buffer);
        let at = known.unwrap_or_else(|| {
            self.tensors.push(buffer);
            self.tensors.len() - 1
        });
        at as u32
    }

    pub fn one(&mut self, op: Op, a: Reg) -> Reg {
        self.block.value(op, 0, &[a])
    }

    pub fn two(&mut self, op: Op, a: Reg, b: Reg) -> Reg {
        self.block.value(op, 0, &[a, b])
    }

    pub fn three(&mut self, op: Op, a: Reg, b: Reg, c: Reg) -> Reg {
        self.block.value(op, 0, &[a, b, c])
    }

    /// A u32.
    pub fn word(&mut self, bits: u32) -> Reg {
        self.block.value(Op::Word, bits, &[])
    }

    pub fn constant(&mut self, value: Value) -> Reg {
        let op = match value {
            Value::F32(_) => Op::Float,
            Value::I32(_) => Op::Int,
            Value::U32(_) => Op::Word,
            Value::Bool(_) => Op::Truth,
        };
        self.block.value(op, value.bits(), &[])
    }

    /// A small number of a type.
    fn number(&mut self, ty: Ty, number: i8) -> Reg {
        self.constant(match ty {
            Ty::F32 => Value::F32(f32::from(number)),
            Ty::I32 => Value::I32(i32::from(number)),
            Ty::U32 => Value::U32(number as u32),
            Ty::Bool => Value::Bool(number != 0),
        })
    }

    /// Opens a loop for each index.
    pub fn open(&mut self, indices: &[IndexId]) {
        for index in indices {
            self.block.open();
            self.counters[*index] = self.block.apart(Op::Counter, *index as u32, &[]);
        }
    }

    /// Ends them; the innermost one did so many turns in a row. The outermost one moves, with the variables, if `moves`.
    pub fn close(&mut self, indices: &[IndexId], turns: u32, variables: &[Reg], moves: bool) {
        for (at, index) in indices.iter().enumerate().rev() {
            let counter = std::mem::take(&mut self.counters[*index]);
            let (variables, moves) = if at == 0 { (variables, moves) } else { (&[][..], false) };
            let turns = if at + 1 == indices.len() { turns } else { 1 };
            self.block.close(Op::Open, count(&self.nest.indices[*index]) / turns, counter, variables, moves);
        }
    }

    /// The points of the tile: computes their stages, then stores.
    pub fn point(&mut self) {
        let nest = self.nest;
        let mut places = Vec::new();
        for (number, stage) in nest.stages.iter().enumerate() {
            let mut values = self.before(stage, &mut places);
            if let Some(greatest) = number.checked_sub(1).filter(|before| self.online == Some(*before)) {
                let first = self.stages.len() - values.len();
                let mut maxima = self.stages.split_off(first);
                self.accumulate_below(&mut maxima, &mut values, &nest.stages[greatest]);
                self.stages.extend(maxima);
            } else if let Some(Fold { op, over, .. }) = &stage.fold
                && self.online != Some(number)
            {
                let sums = if op.is_some() { &mut values[..] } else { &mut [] };
                let each = stage.store_of(true);
                self.accumulate(*op, sums, over, &stage.value, each, false);
            }
            self.stages.extend(values);
        }
        self.stores(&places);
    }

    /// A stage at each of the points before it accumulates, and where what it comes to is stored.
    pub fn before(&mut self, stage: &Stage, places: &mut Vec<Place>) -> Vec<Reg> {
        let mut values = Vec::new();
        for at in 0..self.points.len() {
            self.go_to(at);
            if let Some(store) = stage.store_of(false) {
                places.push(self.place_of(store));
            }
            values.push(self.expr(stage.fold.as_ref().map_or(&stage.value, |fold| &fold.start)));
        }
        values
    }

    /// Where a store goes at the point.
    pub fn place_of(&mut self, store: &Store) -> Place {
        let (offset, inside) = self.place(store.target, &store.positions, Outside::Dropped);
        (offset, self.both(inside, self.points[self.at].inside))
    }

    /// Stores what the stages computed.
    pub fn stores(&mut self, places: &[Place]) {
        let nest = self.nest;
        let all: Vec<Reg> = std::mem::take(&mut self.stages);
        let count = self.points.len();
        let mut places = places.chunks(count);
        for (values, stage) in all.chunks(count).zip(&nest.stages) {
            if let Some(store) = stage.store_of(false) {
                self.store(store, places.next().unwrap_or_default(), values);
            }
        }
    }

    /// Stores values, those at a point or in a row.
    pub fn store(&mut self, store: &Store, places: &[Place], values: &[Reg]) {
        let op = match store.atomic {
            None => Op::Store,
            Some(Accumulate::Add) => Op::AtomicAdd,
            Some(Accumulate::Mul) => Op::AtomicMul,
            Some(Accumulate::Max) => Op::AtomicMax,
            Some(Accumulate::Min) => Op::AtomicMin,
        };
        let tensor = self.tensor(store.target);
        let mut at = 0;
        while at < places.len() {
            let (offset, inside) = places[at];
            let (mut op, mut value, mut length) = (op, values[at], 1);
            if op == Op::Store && at + 4 <= places.len() && self.are_four(store.target, &places[at..at + 4]) {
                (op, length) = (Op::StoreQuad, 4);
                value = self.block.value(Op::Quad, 0, &values[at..at + 4]);
            }
            let inside = inside.unwrap_or_else(|| self.block.value(Op::Truth, 1, &[]));
            self.block.effect(op, tensor, &[offset, value, inside]);
            at += length;
        }
    }
}

/// The offset of an element, and whether it is there where that is not certain.
pub(crate) type Place = (Reg, Option<Reg>);

/// How many values an index has.
fn count(index: &LoopIndex) -> u32 {
    (index.hi - index.lo).max(0) as u32
}
