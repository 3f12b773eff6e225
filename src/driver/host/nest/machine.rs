//! Runs instructions, lane by lane.

use crate::driver::host::nest::code::{At, Code, Instruction};
use crate::driver::host::nest::math::{apply, call};
use crate::driver::host::nest::{Stored, memory};
use crate::driver::host::threads::LOOPS_FOR_ALL;
use crate::dtype::DType;
use crate::notation::ast::Function;
use crate::steps::ops::Op;

/// Points that are computed together.
pub(super) const LANES: usize = 128;

/// Values on the way.
pub(super) struct Machine<'a> {
    code: &'a Code,
    /// The bytes of each tensor, and its dtype.
    tensors: Vec<(&'a [u8], DType)>,
    slots: Vec<u32>,
    /// What is known by its first lane.
    pub registers: Vec<u32>,
    /// Lanes in use.
    pub count: usize,
    /// The elements to be stored.
    pub stored: Vec<Stored>,
}

impl<'a> Machine<'a> {
    /// Has done what is done once.
    pub fn new(code: &'a Code, tensors: Vec<(&'a [u8], DType)>, statics: &[i32]) -> Self {
        let slots = vec![0; code.slots * LANES];
        let mut machine =
            Self { code, tensors, slots, registers: code.registers.clone(), count: LANES, stored: Vec::new() };
        for (register, index) in &code.statics {
            machine.registers[*register] = statics[*index] as u32;
        }
        machine.run(0, code.once);
        machine
    }

    /// The points that the registers of the counters say.
    pub fn point(&mut self) {
        self.run(self.code.once, self.code.instructions.len());
    }

    fn run(&mut self, mut at: usize, end: usize) {
        let code = self.code;
        while at < end {
            match code.instructions[at] {
                Instruction::Open { counter, count, end, is_along } => {
                    self.registers[counter] = 0;
                    if count == 0 {
                        at = end;
                    } else if is_along {
                        self.count = LANES.min(count as usize);
                    }
                }
                Instruction::Close { counter, count, start, is_along } => {
                    let turns = if is_along { LANES as u32 } else { 1 };
                    let next = self.registers[counter].saturating_add(turns);
                    self.registers[counter] = next;
                    let is_over = next >= count;
                    if is_along {
                        self.count = if is_over { 1 } else { LANES.min((count - next) as usize) };
                    }
                    if !is_over {
                        at = start;
                    }
                }
                other => self.step(other),
            }
            at += 1;
        }
    }

    fn step(&mut self, instruction: Instruction) {
        let count = self.count;
        match instruction {
            Instruction::First { op, number, to, args } => {
                let args = args.map(|arg| [self.registers[arg]]);
                let mut out = [0];
                each(op, number, &mut out, args.each_ref().map(|arg| &arg[..]));
                self.registers[to] = out[0];
            }
            Instruction::Each { op, number, to, args } => {
                let (before, out) = self.slots.split_at_mut(to * LANES);
                each(op, number, &mut out[..count], args.map(|arg| &before[arg * LANES..][..count]));
            }
            Instruction::Spread { from, stride, to } => {
                let mut value = self.registers[from];
                for out in &mut self.slots[to * LANES..][..LANES] {
                    *out = value;
                    value = value.wrapping_add(stride);
                }
            }
            Instruction::LoadFirst { tensor, at, to } => {
                let (bytes, dtype) = self.tensors[tensor];
                self.registers[to] = memory::read(dtype, bytes, self.registers[at]);
            }
            Instruction::Load { tensor, at, to } => {
                let (bytes, dtype) = self.tensors[tensor];
                let (before, out) = self.slots.split_at_mut(to * LANES);
                let out = &mut out[..count];
                match at {
                    At::Even(register, stride) => {
                        memory::read_all(dtype, bytes, self.registers[register], stride, out);
                    }
                    At::Lanes(slot) => {
                        for (out, offset) in out.iter_mut().zip(&before[slot * LANES..]) {
                            *out = memory::read(dtype, bytes, *offset);
                        }
                    }
                }
            }
            Instruction::Move { from, to } => {
                self.slots.copy_within(from * LANES..from * LANES + count, to * LANES);
            }
            Instruction::Store { tensor, at, value, inside } => self.store(tensor, at, value, inside),
            Instruction::Fill { to, others } => {
                let [first, rest @ ..] = &mut self.slots[to * LANES..][..LANES] else { return };
                rest.fill(others.unwrap_or(*first));
            }
            Instruction::Fold { op, to } => {
                let mut half = LANES / 2;
                while half > 0 {
                    let (low, high) = self.slots[to * LANES..][..2 * half].split_at_mut(half);
                    let mut now = [0; LANES / 2];
                    now[..half].copy_from_slice(low);
                    each(op, 0, low, [&now[..half], high, high, high]);
                    half /= 2;
                }
            }
            Instruction::Open { .. } | Instruction::Close { .. } => {}
        }
    }

    fn store(&mut self, tensor: u32, at: At, value: usize, inside: usize) {
        let count = self.count;
        for lane in 0..count {
            let offset = match at {
                At::Even(register, stride) => self.registers[register].wrapping_add(stride.wrapping_mul(lane as u32)),
                At::Lanes(slot) => self.slots[slot * LANES + lane],
            };
            if self.slots[inside * LANES + lane] != 0 {
                self.stored.push((tensor, offset, self.slots[value * LANES + lane]));
            }
        }
    }
}

/// One value.
#[inline(never)]
pub(super) fn one(op: Op, a: u32, b: u32, c: u32) -> u32 {
    apply(op, a, b, c)
}

/// Values lane by lane: what is most of the work by loops of its own.
fn each(op: Op, number: u32, out: &mut [u32], [a, b, c, d]: [&[u32]; 4]) {
    let lanes = out.iter_mut().zip(a).zip(b).zip(c);
    macro_rules! loops {
        ($($op:ident)*; $($native:ident)*) => {
            match op {
                Op::Call => {
                    let Some(function) = Function::ALL.get(number as usize) else { return };
                    for ((((out, a), b), c), d) in lanes.zip(d) {
                        *out = call(*function, *a, *b, *c, *d);
                    }
                }
                $(Op::$op => lanes.for_each(|(((out, a), b), c)| *out = apply(Op::$op, *a, *b, *c)),)*
                $(Op::$native if LOOPS_FOR_ALL => {
                    lanes.for_each(|(((out, a), b), c)| *out = apply(Op::$native, *a, *b, *c));
                })*
                _ => lanes.for_each(|(((out, a), b), c)| *out = one(op, *a, *b, *c)),
            }
        };
    }
    loops!(
        AddF SubF MulF DivF MinF MaxF LtF Add Sub Mul And Select;
        LeF EqF NegF MinI MinU MaxI MaxU LtI LtU LeI LeU Eq Xor Or Shl ShrI ShrU IsNan Both Either Not
        FToI FToU IToF UToF F16 BF16 DivI DivU RemI RemU
    )
}
