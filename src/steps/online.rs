//! A maximum and the sum of the exponentials below it, in one turn over what both are of: what was summed so far is scaled
//! where something greater comes (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax").
//!
//! Where the maximum is infinite, so is none of the exponentials a number, in whatever order they are summed.

use crate::loops::ir::{Fold, Stage};
use crate::notation::ast::Function;
use crate::notation::program::Value;
use crate::steps::block::Reg;
use crate::steps::ops::Op;
use crate::steps::{Lowering, count};

impl Lowering<'_> {
    /// `exp(value - greatest)`, and 1 where they are equal, which infinities may be.
    pub(crate) fn below(&mut self, value: Reg, greatest: Reg) -> Reg {
        let difference = self.two(Op::SubF, value, greatest);
        let exponential = self.block.value(Op::Call, Function::Exp as u32, &[difference]);
        let (is_same, one) = (self.two(Op::EqF, value, greatest), self.constant(Value::F32(1.0)));
        self.three(Op::Select, is_same, one, exponential)
    }

    /// The greatest of the values and of what was greatest before, and the sum below it.
    pub(crate) fn go_on(&mut self, (greatest, sum): (Reg, Reg), values: &[Reg]) -> (Reg, Reg) {
        let mut next = greatest;
        for value in values {
            next = self.two(Op::MaxF, next, *value);
        }
        let scale = self.below(greatest, next);
        let mut sum = self.two(Op::MulF, sum, scale);
        for value in values {
            let own = self.below(*value, next);
            sum = self.two(Op::AddF, sum, own);
        }
        (next, sum)
    }

    /// The sum below what is greatest of all, in addition to what it starts from.
    pub(crate) fn come_to(&mut self, start: Reg, (greatest, sum): (Reg, Reg)) -> Reg {
        let is_infinite = self.block.value(Op::Call, Function::IsInf as u32, &[greatest]);
        let nan = self.constant(Value::F32(f32::NAN));
        let sum = self.three(Op::Select, is_infinite, nan, sum);
        self.two(Op::AddF, start, sum)
    }

    /// Maxima, as a stage has them, and the sums below them, at each point of the tile.
    pub(super) fn accumulate_below(&mut self, maxima: &mut [Reg], sums: &mut [Reg], of: &Stage) {
        let Some(Fold { over, .. }) = &of.fold else { return };
        let Some((last, _)) = over.split_last() else { return };
        let mut turns = self.turns;
        while !count(&self.nest.indices[*last]).is_multiple_of(turns) {
            turns -= 1;
        }
        let zero = self.constant(Value::F32(0.0));
        let mut variables = Vec::new();
        for start in &*maxima {
            variables.push(self.block.apart(Op::Var, 0, &[*start]));
        }
        for _ in 0..sums.len() {
            variables.push(self.block.apart(Op::Var, 0, &[zero]));
        }
        self.open(over);
        self.set_inside(&variables);
        let counter = self.counters[*last];
        let row = self.row(counter, turns);
        let (greatest, below) = variables.split_at(maxima.len());
        for at in 0..self.points() {
            self.go_to(at);
            let mut values = Vec::new();
            for turn in &row {
                self.counters[*last] = *turn;
                values.push(self.expr(&of.value));
            }
            let (next, sum) = self.go_on((greatest[at], below[at]), &values);
            self.block.effect(Op::Assign, 0, &[greatest[at], next]);
            self.block.effect(Op::Assign, 0, &[below[at], sum]);
        }
        self.counters[*last] = counter;
        self.close(over, turns, &variables, false);
        maxima.copy_from_slice(greatest);
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = self.come_to(*sum, (greatest[at], below[at]));
        }
    }
}
