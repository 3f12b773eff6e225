//! Steps for the host: which values are computed for all lanes, and which in the first one alone.
//!
//! Lanes are neighbouring points, or neighbouring turns of a reduction. A value that grows evenly from lane to lane (most
//! offsets do, and what is alike in all) is known by its first lane.

use crate::notation::program::IndexId;
use crate::steps::block::{Reg, Step, Steps, ZERO};
use crate::steps::ops::Op;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    /// The operation, in the first lane alone.
    First,
    /// The operation, in each lane. The register is behind those of the operands.
    Each,
    /// An even value in each lane.
    Spread,
    /// Loads from an even offset on, from an offset per lane.
    Load,
    Gather,
    Move,
    /// Stores the second operand from an even offset on, or at an offset per lane, where the third is not 0.
    Store,
    Scatter,
    /// A loop, that many times over the counter that is the first operand. The second is the instruction of its other end.
    Open,
    Close,
    /// The first lane in all others, or the number.
    Fill,
    Neutral,
    /// All lanes into the first.
    Fold,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub what: What,
    pub op: Op,
    pub number: u32,
    pub to: Reg,
    pub args: [Reg; 4],
}

/// Instructions: what is done once, then what is done for each point.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    /// How many are done once.
    pub once: usize,
    /// The first lanes at the start: those of constants.
    pub firsts: Vec<u32>,
    /// How much a value grows from lane to lane; [`UNEVEN`] where not evenly.
    pub strides: Vec<u32>,
}

/// The stride of what does not grow evenly. What would grow evenly by that much is taken for uneven, too.
pub(super) const UNEVEN: u32 = 1 << 31;

struct Coder<'a> {
    steps: &'a Steps,
    /// The register that has the bits of another.
    same: Vec<Reg>,
    /// Whether a value is needed in each lane.
    is_needed: Vec<bool>,
    code: Code,
}

/// The instructions for steps whose lanes run along an index.
pub(super) fn code(steps: &Steps, along: Option<IndexId>) -> Code {
    let count = steps.steps.len();
    let mut coder = Coder { steps, same: Vec::new(), is_needed: vec![false; count], code: Code::default() };
    for (reg, step) in steps.steps.iter().enumerate() {
        let stride = coder.stride(step, along);
        coder.code.strides.push(stride);
        coder.code.firsts.push(if step.op.is_constant() { step.number } else { 0 });
        let is_copy = matches!(step.op, Op::AsF | Op::AsI | Op::AsU);
        let is_each = step.op >= Op::AddF || step.op < Op::Open && !step.op.is_constant();
        let is_done_in_each = stride == UNEVEN && is_each;
        let of = step.args[0] as usize;
        coder.same.push(if is_done_in_each && is_copy { coder.same[of] } else { reg as Reg });
        if is_done_in_each {
            for arg in step.args {
                coder.is_needed[arg as usize] = true;
            }
        }
    }
    for (position, reg) in steps.order.iter().enumerate() {
        coder.write(position, *reg);
    }
    coder.code
}

impl<'a> Coder<'a> {
    fn step(&self, reg: Reg) -> &'a Step {
        &self.steps.steps[reg as usize]
    }

    fn stride_of(&self, reg: Reg) -> u32 {
        self.code.strides[reg as usize]
    }

    fn is_even(&self, reg: Reg) -> bool {
        self.stride_of(reg) != UNEVEN
    }

    fn stride(&self, step: &Step, along: Option<IndexId>) -> u32 {
        let [a, b, ..] = step.args;
        match step.op {
            Op::Counter => u32::from(along == Some(step.number as IndexId)),
            op if op.is_constant() => 0,
            Op::AsI | Op::AsU => self.stride_of(a),
            Op::Add | Op::Sub | Op::Mul if !self.is_even(a) || !self.is_even(b) => UNEVEN,
            Op::Add => self.stride_of(a).wrapping_add(self.stride_of(b)),
            Op::Sub => self.stride_of(a).wrapping_sub(self.stride_of(b)),
            Op::Mul if self.step(b).op.is_constant() => self.stride_of(a).wrapping_mul(self.step(b).number),
            op if op >= Op::Static && step.args.iter().all(|arg| self.stride_of(*arg) == 0) => 0,
            _ => UNEVEN,
        }
    }

    fn push(&mut self, what: What, step: &Step, to: Reg) {
        let args = step.args.map(|arg| self.same[arg as usize]);
        self.code.instructions.push(Instruction { what, op: step.op, number: step.number, to, args });
    }

    /// An even value in each lane, if it is needed there.
    fn spread(&mut self, reg: Reg) {
        if self.is_needed[reg as usize] && self.is_even(reg) {
            let step = Step { op: Op::Word, number: 0, args: [reg, ZERO, ZERO, ZERO] };
            self.push(What::Spread, &step, reg);
        }
    }

    fn write(&mut self, position: usize, reg: Reg) {
        let mut step = *self.step(reg);
        let [a, b, ..] = step.args;
        let is_even = self.is_even(reg);
        let is_even_at = self.is_even(a);
        let here = self.code.instructions.len() as u32;
        match step.op {
            Op::Head => {
                self.code.once = here as usize;
                for (counter, depth) in self.steps.depths.iter().enumerate() {
                    if self.step(counter as Reg).op == Op::Counter && *depth == 1 {
                        self.spread(counter as Reg);
                    }
                }
            }
            Op::Close if self.step(b).op == Op::Head => {}
            Op::Open => {
                if self.stride_of(a) == 1 {
                    self.enter(position);
                }
                self.push(What::Open, &step, reg);
                self.spread(a);
            }
            Op::Close => {
                let is_open = |open: &Instruction| open.what == What::Open && open.to == b;
                if let Some(start) = self.code.instructions.iter().position(is_open) {
                    self.code.instructions[start].args[1] = here;
                    step.args[1] = start as u32;
                }
                let Step { op, number, args } = step;
                self.code.instructions.push(Instruction { what: What::Close, op, number, to: reg, args });
                if self.stride_of(a) == 1 {
                    let (variable, op) = self.accumulation(position);
                    self.push(What::Fold, &Step { op, ..step }, variable);
                }
            }
            Op::Var => self.push(What::Move, &step, reg),
            Op::Assign => {
                step.args[0] = b;
                self.push(What::Move, &step, a);
            }
            Op::Load => {
                let what = match (is_even, is_even_at) {
                    (true, _) => What::First,
                    (_, true) => What::Load,
                    _ => What::Gather,
                };
                self.push(what, &step, reg);
            }
            Op::AsF | Op::AsI | Op::AsU if !is_even => {}
            op if op.is_constant() => {}
            op if op < Op::Static => self.push(if is_even_at { What::Store } else { What::Scatter }, &step, reg),
            _ => self.push(if is_even { What::First } else { What::Each }, &step, reg),
        }
        self.spread(reg);
    }

    /// The variable that the innermost loop ending at a position accumulates, and how.
    fn accumulation(&self, end: usize) -> (Reg, Op) {
        let assign = self.step(self.steps.order[end - 1]);
        (assign.args[0], self.step(assign.args[1]).op)
    }

    /// In front of the loop whose turns are lanes there is one lane: what it reads from there is the same in all, but for
    /// the variable, which starts in the first.
    fn enter(&mut self, open: usize) {
        let steps = self.steps;
        let mut end = open;
        while self.step(steps.order[end]).op != Op::Close || self.step(steps.order[end]).args[1] != steps.order[open] {
            end += 1;
        }
        let (variable, op) = self.accumulation(end);
        let mut is_filled = vec![false; steps.steps.len()];
        for reg in &steps.order[open + 1..end] {
            for arg in self.step(*reg).args {
                let is_known = self.is_even(arg) || is_filled[arg as usize];
                if is_known || !steps.order[..open].contains(&arg) {
                    continue;
                }
                is_filled[arg as usize] = true;
                let neutral = neutral(op).filter(|_| arg == variable);
                let what = if neutral.is_some() { What::Neutral } else { What::Fill };
                let step = Step { op, number: neutral.unwrap_or(0), args: [ZERO; 4] };
                self.push(what, &step, self.same[arg as usize]);
            }
        }
    }
}

/// What changes nothing in an accumulation. None where what it starts from may be accumulated often: the extreme of a NaN
/// and of nothing is NaN, which no number changes nothing in.
fn neutral(op: Op) -> Option<u32> {
    match op {
        Op::Add | Op::AddF => Some(0),
        Op::Mul => Some(1),
        Op::MulF => Some(1.0f32.to_bits()),
        _ => None,
    }
}
