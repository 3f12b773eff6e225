//! What a nest computes, as steps: one operation after another on values of 32 bits, with loops around them. The host
//! driver runs them, and kernels are their print in WGSL, so that both mean the same.

pub(crate) mod block;
mod expr;
pub(crate) mod ops;
pub(crate) mod position;
pub(crate) mod reduce;

use crate::loops::ir::{BufferIndex, Loops, Nest, Store};
use crate::notation::ast::Accumulate;
use crate::notation::program::{IndexId, LoopIndex, Ty, Value};
use crate::steps::block::{Block, Reg, ZERO};
use crate::steps::ops::Op;
use crate::steps::position::Outside;

/// A nest on the way to steps. Whoever makes them says first what counts the free indices.
#[derive(Debug)]
pub(crate) struct Lowering<'a> {
    pub loops: &'a Loops,
    pub nest: &'a Nest,
    pub block: Block,
    /// The buffers by the number of their tensor, the target first, the others as they are read.
    pub tensors: Vec<BufferIndex>,
    /// What counts the values of an index from 0; 0 where nothing does.
    pub counters: Vec<Reg>,
}

impl<'a> Lowering<'a> {
    pub fn new(loops: &'a Loops, nest: &'a Nest) -> Self {
        let counters = vec![ZERO; nest.indices.len()];
        Self { loops, nest, block: Block::new(), tensors: vec![nest.target], counters }
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

    /// Ends them; the outermost one moves, with the variables, if `moves`.
    pub fn close(&mut self, indices: &[IndexId], variables: &[Reg], moves: bool) {
        for (at, index) in indices.iter().enumerate().rev() {
            let counter = std::mem::take(&mut self.counters[*index]);
            let (variables, moves) = if at == 0 { (variables, moves) } else { (&[][..], false) };
            self.block.close(Op::Open, count(&self.nest.indices[*index]), counter, variables, moves);
        }
    }

    /// One point: computes its value and stores it.
    pub fn point(&mut self) {
        let nest = self.nest;
        let (offset, inside) = self.place(nest.target, &nest.positions, Outside::Dropped);
        let (op, value) = match nest.store {
            Store::Set => (Op::Store, self.expr(&nest.value)),
            Store::Fresh(op, start) => {
                let start = self.constant(start);
                (Op::Store, self.accumulated(op, start))
            }
            Store::Onto(op) => {
                let start = self.block.value(Op::Load, 0, &[offset]);
                (Op::Store, self.accumulated(op, start))
            }
            Store::Atomic(op) => {
                let value = self.expr(&nest.value);
                let op = match op {
                    Accumulate::Add => Op::AtomicAdd,
                    Accumulate::Mul => Op::AtomicMul,
                    Accumulate::Max => Op::AtomicMax,
                    Accumulate::Min => Op::AtomicMin,
                };
                (op, value)
            }
        };
        let inside = inside.unwrap_or_else(|| self.block.value(Op::Truth, 1, &[]));
        self.block.effect(op, 0, &[offset, value, inside]);
    }

    fn accumulated(&mut self, op: Accumulate, start: Reg) -> Reg {
        self.accumulate(op, start, &self.nest.reduced, &self.nest.value, false)
    }
}

/// How many values an index has.
fn count(index: &LoopIndex) -> u32 {
    (index.hi - index.lo).max(0) as u32
}
