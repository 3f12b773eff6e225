//! Steps for the host: which values are computed for all lanes, and which in the first one alone.
//!
//! Lanes are neighbouring points, or neighbouring turns of a reduction. A value that grows evenly from lane to lane (most
//! offsets do, and what is alike in all) is known by its first lane.

use crate::steps::block::{Reg, Step, Steps, ZERO};
use crate::steps::ops::Op;

/// Where an access goes: the values of a slot, or evenly on from the first lane of a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Lanes(usize),
    Even(usize, u32),
}

/// What is done. Lanes are in slots, first lanes in registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// In the first lane alone.
    First {
        op: Op,
        number: u32,
        to: usize,
        args: [usize; 4],
    },
    /// In each lane. The slot is behind those of the operands.
    Each {
        op: Op,
        number: u32,
        to: usize,
        args: [usize; 4],
    },
    /// An even value in each lane.
    Spread {
        from: usize,
        stride: u32,
        to: usize,
    },
    LoadFirst {
        tensor: usize,
        at: usize,
        to: usize,
    },
    Load {
        tensor: usize,
        at: At,
        to: usize,
    },
    Move {
        from: usize,
        to: usize,
    },
    /// Of the lanes where the third is not 0.
    Store {
        tensor: u32,
        at: At,
        value: usize,
        inside: usize,
    },
    /// The loop ends behind the instruction `end`. If its turns are lanes, there are some in each go.
    Open {
        counter: usize,
        count: u32,
        end: usize,
        is_along: bool,
    },
    Close {
        counter: usize,
        count: u32,
        start: usize,
        is_along: bool,
    },
    /// The first lane in each lane, or something else in all others.
    Fill {
        to: usize,
        others: Option<u32>,
    },
    /// All lanes into the first.
    Fold {
        op: Op,
        to: usize,
    },
}

/// Instructions: what is done once, then what is done for each point.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    /// How many are done once.
    pub once: usize,
    pub slots: usize,
    /// The registers; constants are there from the start.
    pub registers: Vec<u32>,
    /// The registers of statics, and which they are.
    pub statics: Vec<(usize, usize)>,
}

struct Coder<'a> {
    steps: &'a Steps,
    /// How an even value grows.
    strides: Vec<Option<u32>>,
    slots: Vec<usize>,
    code: Code,
}

/// The instructions for steps whose lanes run along that counter. `neutral` changes nothing in a reduction along it.
pub(super) fn code(steps: &Steps, along: Option<Reg>, neutral: u32) -> Code {
    let mut coder = Coder { steps, strides: Vec::new(), slots: Vec::new(), code: Code::default() };
    for (reg, step) in steps.steps.iter().enumerate() {
        let stride = coder.stride(step, along == Some(reg as Reg));
        coder.strides.push(stride);
        coder.code.registers.push(if step.op.is_constant() { step.number } else { 0 });
        if step.op == Op::Static {
            coder.code.statics.push((reg, step.number as usize));
        }
    }
    coder.take_slots();
    coder.write(along, neutral);
    coder.code
}

impl Coder<'_> {
    fn step(&self, reg: Reg) -> &Step {
        &self.steps.steps[reg as usize]
    }

    fn stride(&self, step: &Step, is_along: bool) -> Option<u32> {
        let [a, b, ..] = step.args;
        let of = |reg: Reg| self.strides[reg as usize];
        let factor = |reg: Reg| self.step(reg).op.is_constant().then(|| self.step(reg).number);
        match step.op {
            Op::Counter => Some(u32::from(is_along)),
            Op::Add => Some(of(a)?.wrapping_add(of(b)?)),
            Op::Sub => Some(of(a)?.wrapping_sub(of(b)?)),
            Op::Mul if factor(b).is_some() => Some(of(a)?.wrapping_mul(factor(b)?)),
            Op::AsI | Op::AsU => of(a),
            op if op.is_constant() => Some(0),
            op if op >= Op::Static => step.args.iter().all(|arg| of(*arg) == Some(0)).then_some(0),
            _ => None,
        }
    }

    fn is_even(&self, reg: Reg) -> bool {
        self.strides[reg as usize].is_some()
    }

    /// Slots for what is needed in each lane, in the order of the registers.
    fn take_slots(&mut self) {
        let mut is_needed = vec![false; self.steps.steps.len()];
        is_needed[ZERO as usize] = true;
        for (reg, step) in self.steps.steps.iter().enumerate() {
            let is_even = self.is_even(reg as Reg);
            let args = match step.op {
                Op::Var => &step.args[..1],
                Op::Assign | Op::Store | Op::AtomicAdd | Op::AtomicMul | Op::AtomicMax | Op::AtomicMin => {
                    &step.args[1..]
                }
                op if op >= Op::AddF && !is_even => &step.args[..],
                _ => &[],
            };
            for arg in args {
                is_needed[*arg as usize] = true;
            }
            is_needed[reg] |= !is_even && (step.op == Op::Var || step.op >= Op::Static);
        }
        for (reg, is_needed) in is_needed.into_iter().enumerate() {
            let step = &self.steps.steps[reg];
            self.slots.push(match step.op {
                _ if !is_needed => usize::MAX,
                // The same bits.
                Op::AsF | Op::AsI | Op::AsU if !self.is_even(reg as Reg) => self.slots[step.args[0] as usize],
                _ => {
                    self.code.slots += 1;
                    self.code.slots - 1
                }
            });
        }
    }

    fn slot(&self, reg: Reg) -> usize {
        self.slots[reg as usize]
    }

    fn at(&self, reg: Reg) -> At {
        match self.strides[reg as usize] {
            Some(stride) => At::Even(reg as usize, stride),
            None => At::Lanes(self.slot(reg)),
        }
    }

    /// An even value in each lane, if it is needed there.
    fn spread(&mut self, reg: Reg) {
        if let Some(stride) = self.strides[reg as usize]
            && self.slot(reg) != usize::MAX
        {
            self.code.instructions.push(Instruction::Spread { from: reg as usize, stride, to: self.slot(reg) });
        }
    }

    fn write(&mut self, along: Option<Reg>, neutral: u32) {
        let steps = self.steps;
        // Loops that are open: where each starts.
        let mut starts: Vec<usize> = Vec::new();
        for (position, &reg) in steps.order.iter().enumerate() {
            let step = self.step(reg).to_owned();
            let Step { op, number, args } = step;
            let [a, b, c, _] = args;
            let is_along = along == Some(a);
            let next = match op {
                Op::Head => {
                    self.code.once = self.code.instructions.len();
                    for (counter, step) in steps.steps.iter().enumerate() {
                        if step.op == Op::Counter && steps.depths[counter] == 1 {
                            self.spread(counter as Reg);
                        }
                    }
                    continue;
                }
                Op::Close if self.step(b).op == Op::Head => continue,
                Op::Open => {
                    if is_along {
                        self.enter(position, neutral);
                    }
                    starts.push(self.code.instructions.len());
                    let open = Instruction::Open { counter: a as usize, count: number, end: 0, is_along };
                    self.code.instructions.push(open);
                    self.spread(a);
                    continue;
                }
                Op::Close => {
                    let close_at = self.code.instructions.len();
                    let start = starts.pop().unwrap_or_default();
                    if let Some(Instruction::Open { end, .. }) = self.code.instructions.get_mut(start) {
                        *end = close_at;
                    }
                    let close = Instruction::Close { counter: a as usize, count: number, start, is_along };
                    self.code.instructions.push(close);
                    if is_along && let Some((variable, op)) = self.accumulation(position) {
                        self.code.instructions.push(Instruction::Fold { op, to: self.slot(variable) });
                    }
                    continue;
                }
                Op::Var => Instruction::Move { from: self.slot(a), to: self.slot(reg) },
                Op::Assign => Instruction::Move { from: self.slot(b), to: self.slot(a) },
                Op::Store | Op::AtomicAdd | Op::AtomicMul | Op::AtomicMax | Op::AtomicMin => {
                    Instruction::Store { tensor: number, at: self.at(a), value: self.slot(b), inside: self.slot(c) }
                }
                Op::Load if self.is_even(reg) => {
                    Instruction::LoadFirst { tensor: number as usize, at: a as usize, to: reg as usize }
                }
                Op::Load => Instruction::Load { tensor: number as usize, at: self.at(a), to: self.slot(reg) },
                _ if self.is_even(reg) => {
                    if !op.is_constant() && op != Op::Static {
                        let args = args.map(|arg| arg as usize);
                        self.code.instructions.push(Instruction::First { op, number, to: reg as usize, args });
                    }
                    self.spread(reg);
                    continue;
                }
                Op::AsF | Op::AsI | Op::AsU => continue,
                _ => Instruction::Each { op, number, to: self.slot(reg), args: args.map(|arg| self.slot(arg)) },
            };
            self.code.instructions.push(next);
            if matches!(next, Instruction::LoadFirst { .. }) {
                self.spread(reg);
            }
        }
    }

    /// The variable that the innermost loop ending at a position accumulates, and how.
    fn accumulation(&self, end: usize) -> Option<(Reg, Op)> {
        let assign = self.step(*self.steps.order.get(end.checked_sub(1)?)?);
        (assign.op == Op::Assign).then(|| (assign.args[0], self.step(assign.args[1]).op))
    }

    /// In front of the loop whose turns are lanes there is one lane: what it reads from there is the same in all, but for
    /// the variable, which starts in the first.
    fn enter(&mut self, open: usize, neutral: u32) {
        let order = &self.steps.order;
        let is_end = |reg: &&Reg| {
            let step = self.step(**reg);
            step.op == Op::Close && step.args[1] == order[open]
        };
        let length = order[open..].iter().take_while(|reg| !is_end(reg)).count();
        let variable = self.accumulation(open + length).map(|(variable, _)| variable);
        let mut outside: Vec<Reg> = Vec::new();
        for reg in &order[open + 1..open + length] {
            for arg in self.step(*reg).args {
                let is_lanes = !self.is_even(arg) && self.slot(arg) != usize::MAX;
                if is_lanes && order[..open].contains(&arg) && !outside.contains(&arg) {
                    outside.push(arg);
                }
            }
        }
        for reg in outside {
            let others = if Some(reg) == variable { Some(neutral) } else { None };
            self.code.instructions.push(Instruction::Fill { to: self.slot(reg), others });
        }
    }
}
