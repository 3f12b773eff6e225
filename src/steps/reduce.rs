//! Accumulation: loops with variables around them.

use crate::loops::ir::Store;
use crate::loops::lower;
use crate::notation::ast::{Accumulate, ReduceOp};
use crate::notation::program::{Expr, IndexId, Ty, Value};
use crate::steps::block::{Reg, ZERO};
use crate::steps::ops::{Op, accumulation};
use crate::steps::{Lowering, count};

impl Lowering<'_> {
    /// A reduction inside an expression: a loop as far out as its operands allow.
    pub(super) fn reduce(&mut self, op: ReduceOp, indices: &[IndexId], body: &Expr) -> Reg {
        let op = match op {
            ReduceOp::Sum => Accumulate::Add,
            ReduceOp::Prod => Accumulate::Mul,
            ReduceOp::Max => Accumulate::Max,
            ReduceOp::Min => Accumulate::Min,
            ReduceOp::ArgMax | ReduceOp::ArgMin => return self.arg(op == ReduceOp::ArgMax, indices, body),
        };
        let start = self.constant(neutral(body.ty, op));
        let mut sum = [start];
        self.accumulate(Some(op), &mut sum, indices, body, None, true);
        sum[0]
    }

    /// Accumulates the values of an expression, in order, onto what is there, and stores each: at this point if the loop
    /// `moves`, or at each one of the tile. Without an operator there are no sums.
    pub(super) fn accumulate(
        &mut self,
        op: Option<Accumulate>,
        sums: &mut [Reg],
        indices: &[IndexId],
        body: &Expr,
        each: Option<&Store>,
        moves: bool,
    ) {
        let op = accumulation(op.unwrap_or(Accumulate::Add), body.ty);
        let is_compared = self.is_compared(op, sums);
        let (mut turns, mut looped, mut counter) = (1, indices, ZERO);
        if let Some((last, outer)) = indices.split_last() {
            turns = if moves { 1 } else { self.turns };
            let count = count(&self.nest.indices[*last]);
            while !count.is_multiple_of(turns) {
                turns -= 1;
            }
            // What is done at once is no loop.
            looped = if turns > 1 && turns == count { outer } else { indices };
            if !looped.is_empty() {
                for sum in &mut *sums {
                    *sum = self.block.apart(Op::Var, 0, &[*sum]);
                }
                self.open(looped);
                self.set_inside(sums);
            }
            counter = self.counters[*last];
        }
        let row = self.row(counter, turns);
        for at in 0..if moves { 1 } else { self.points() } {
            if !moves {
                self.go_to(at);
            }
            let mut next = sums.get(at).copied();
            let (mut places, mut values) = (Vec::new(), Vec::new());
            for turn in &row {
                if let Some(last) = indices.last() {
                    self.counters[*last] = *turn;
                }
                let value = self.expr(body);
                if let Some(store) = each {
                    places.push(self.place_of(store));
                    values.push(value);
                }
                next = next.map(|next| self.combine(op, is_compared, next, value));
            }
            if let Some(store) = each {
                self.store(store, &places, &values);
            }
            let Some(next) = next else { continue };
            if looped.is_empty() {
                sums[at] = next;
            } else {
                self.block.effect(Op::Assign, 0, &[sums[at], next]);
            }
        }
        if let Some(last) = indices.last() {
            self.counters[*last] = counter;
            self.close(looped, if looped.len() == indices.len() { turns } else { 1 }, sums, moves);
        }
    }

    /// Whether a comparison will do: extremes that begin with a number stay numbers. Not where lanes are put together by what
    /// is assigned, on the host, which takes a turn at a time.
    pub(crate) fn is_compared(&self, op: Op, starts: &[Reg]) -> bool {
        let is_number = |start: &Reg| self.known(*start).is_some_and(|start| !start.is_nan());
        self.turns > 1 && matches!(op, Op::MaxF | Op::MinF) && starts.iter().all(is_number)
    }

    /// What is accumulated so far, with a value.
    pub(crate) fn combine(&mut self, op: Op, is_compared: bool, next: Reg, value: Reg) -> Reg {
        if !is_compared {
            return self.two(op, next, value);
        }
        let (low, high) = if op == Op::MaxF { (next, value) } else { (value, next) };
        let takes = self.two(Op::LtF, low, high);
        self.three(Op::Select, takes, value, next)
    }

    /// Says that variables change in the innermost loop.
    pub(crate) fn set_inside(&mut self, variables: &[Reg]) {
        for variable in variables {
            self.block.set_depth(*variable, self.block.depth());
        }
    }

    /// The best value so far and its place; of floats also whether there is none yet, since a NaN never is.
    fn arg(&mut self, is_max: bool, indices: &[IndexId], body: &Expr) -> Reg {
        let op = if is_max { Accumulate::Max } else { Accumulate::Min };
        let is_float = body.ty == Ty::F32;
        let first = indices.first().filter(|_| !is_float).map_or(0, |index| self.nest.indices[*index].lo as i32);
        let worst = if is_float { Value::F32(0.0) } else { neutral(body.ty, op) };
        let starts = [self.constant(worst), self.constant(Value::I32(first)), self.constant(Value::Bool(true))];
        let variables = starts.map(|start| self.block.apart(Op::Var, 0, &[start]));
        let [best, at, is_none] = variables;
        self.open(indices);
        self.set_inside(&variables);
        let value = self.expr(body);
        let index = indices.first().map_or(ZERO, |index| self.index_value(*index));
        let (low, high) = if is_max { (best, value) } else { (value, best) };
        let less = [Op::LtF, Op::LtI, Op::LtU, Op::LtU][body.ty as usize];
        let mut takes = self.two(less, low, high);
        let mut variables = vec![best, at];
        if is_float {
            takes = self.two(Op::Either, is_none, takes);
            let is_nan = self.one(Op::IsNan, value);
            let is_number = self.one(Op::Not, is_nan);
            takes = self.two(Op::Both, takes, is_number);
            let is_none_yet = self.two(Op::Both, is_none, is_nan);
            self.block.effect(Op::Assign, 0, &[is_none, is_none_yet]);
            variables.push(is_none);
        }
        let value = self.three(Op::Select, takes, value, best);
        let index = self.three(Op::Select, takes, index, at);
        self.block.effect(Op::Assign, 0, &[best, value]);
        self.block.effect(Op::Assign, 0, &[at, index]);
        self.close(indices, 1, &variables, true);
        at
    }
}

/// What an accumulation of a type starts from.
pub(crate) fn neutral(ty: Ty, op: Accumulate) -> Value {
    lower::neutral(ty.dtype(), op)
}
