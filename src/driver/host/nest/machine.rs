//! Runs instructions, lane by lane.

use crate::driver::host::nest::code::{Code, Instruction, What};
use crate::driver::host::nest::math::{apply, call};
use crate::driver::host::nest::{Stored, memory};
use crate::driver::host::threads::LOOPS_FOR_ALL;
use crate::dtype::DType;
use crate::notation::ast::Function;
use crate::steps::block::Reg;
use crate::steps::ops::Op;

/// Points that are computed together.
pub(super) const LANES: usize = 128;

/// A value in each lane.
type Lanes = [u32; LANES];

/// Values on the way.
pub(super) struct Machine<'a> {
    code: &'a Code,
    /// The bytes of each tensor, and its dtype.
    tensors: Vec<(&'a [u8], DType)>,
    statics: &'a [i32],
    lanes: Vec<Lanes>,
    /// The first lanes of even values.
    pub firsts: Vec<u32>,
    /// Lanes in use.
    pub count: usize,
    /// The elements to be stored.
    pub stored: Vec<Stored>,
}

impl<'a> Machine<'a> {
    /// Has done what is done once.
    pub fn new(code: &'a Code, tensors: Vec<(&'a [u8], DType)>, statics: &'a [i32]) -> Self {
        let firsts = code.firsts.clone();
        let lanes = vec![[0; LANES]; firsts.len()];
        let mut machine = Self { code, tensors, statics, lanes, firsts, count: LANES, stored: Vec::new() };
        machine.run(0, code.once);
        machine
    }

    /// The points that the counters say.
    pub fn point(&mut self) {
        self.run(self.code.once, self.code.instructions.len());
    }

    fn run(&mut self, mut at: usize, end: usize) {
        let code = self.code;
        while at < end {
            at = self.step(at, &code.instructions[at]);
        }
    }

    fn stride(&self, reg: Reg) -> u32 {
        self.code.strides[reg as usize]
    }

    /// Does an instruction, and says which is next.
    fn step(&mut self, at: usize, instruction: &Instruction) -> usize {
        let &Instruction { what, op, number, to, args } = instruction;
        let [a, b, c, _] = args.map(|arg| arg as usize);
        let count = self.count.min(LANES);
        let first = self.firsts[a];
        let stride = self.stride(args[0]);
        match what {
            What::Open | What::Close => return self.turn(at, instruction),
            What::First => {
                let [x, y, z, w] = args.map(|arg| self.firsts[arg as usize]);
                self.firsts[to as usize] = match op {
                    Op::Static => self.statics[number as usize] as u32,
                    Op::Load => {
                        let (bytes, dtype) = self.tensors[number as usize];
                        memory::read(dtype, bytes, x)
                    }
                    Op::Call => Function::ALL.get(number as usize).map_or(0, |function| call(*function, x, y, z, w)),
                    _ => one(op, x, y, z),
                };
            }
            What::Store | What::Scatter => {
                for lane in 0..count {
                    let offset = first.wrapping_add(stride.wrapping_mul(lane as u32));
                    let offset = if what == What::Store { offset } else { self.lanes[a][lane] };
                    if self.lanes[c][lane] != 0 {
                        self.stored.push((number, offset, self.lanes[b][lane]));
                    }
                }
            }
            // The lanes that are not in use keep what they have accumulated.
            What::Move => {
                let value = self.lanes[a];
                self.lanes[to as usize][..count].copy_from_slice(&value[..count]);
            }
            _ => {
                let (before, out) = self.lanes.split_at_mut(to as usize);
                let Some(out) = out.first_mut() else { return at };
                match what {
                    What::Spread if stride == 0 => *out = [first; LANES],
                    What::Spread => even(first, stride, out),
                    What::Fill => *out = [out[0]; LANES],
                    What::Neutral => out[1..].fill(number),
                    What::Fold => fold(op, out),
                    What::Each => each(op, number, &mut out[..count], args.map(|arg| &before[arg as usize][..count])),
                    _ => {
                        let (bytes, dtype) = self.tensors[number as usize];
                        let is_run = what == What::Load && stride == 1;
                        if is_run && memory::read_words(dtype, bytes, first, &mut out[..count]) {
                            return at + 1;
                        }
                        let mut offsets = [0; LANES];
                        if what == What::Load {
                            even(first, stride, &mut offsets);
                        }
                        let offsets = if what == What::Load { &offsets } else { &before[a] };
                        for (out, offset) in out[..count].iter_mut().zip(offsets) {
                            *out = memory::read(dtype, bytes, *offset);
                        }
                    }
                }
            }
        }
        at + 1
    }

    /// The ends of loops.
    fn turn(&mut self, at: usize, instruction: &Instruction) -> usize {
        let [counter, other, ..] = instruction.args;
        let is_along = self.stride(counter) == 1;
        let turns = if is_along { LANES as u32 } else { 1 };
        let first = &mut self.firsts[counter as usize];
        let is_open = instruction.what == What::Open;
        *first = if is_open { 0 } else { first.saturating_add(turns) };
        let left = instruction.number.saturating_sub(*first);
        if is_along {
            self.count = if left == 0 { 1 } else { LANES.min(left as usize) };
        }
        // The body is behind the one end, what follows behind the other.
        if is_open == (left == 0) { other as usize + 1 } else { at + 1 }
    }
}

/// An even value in each lane.
fn even(first: u32, stride: u32, out: &mut Lanes) {
    let mut value = first;
    for out in out {
        *out = value;
        value = value.wrapping_add(stride);
    }
}

/// All lanes into the first.
fn fold(op: Op, lanes: &mut Lanes) {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes[..2 * half].split_at_mut(half);
        let mut now = [0; LANES / 2];
        now[..half].copy_from_slice(low);
        each(op, 0, low, [&now[..half], high, high, high]);
        half /= 2;
    }
}

/// One value.
#[inline(never)]
pub(super) fn one(op: Op, a: u32, b: u32, c: u32) -> u32 {
    apply(op, a, b, c)
}

/// Values lane by lane: what is most of the work by loops of its own.
fn each(op: Op, number: u32, out: &mut [u32], [a, b, c, d]: [&[u32]; 4]) {
    let lanes = out.iter_mut().zip(a).zip(b);
    macro_rules! loops {
        ($($op:ident)*; $($native:ident)*) => {
            match op {
                Op::Call => {
                    let Some(function) = Function::ALL.get(number as usize) else { return };
                    for ((((out, a), b), c), d) in lanes.zip(c).zip(d) {
                        *out = call(*function, *a, *b, *c, *d);
                    }
                }
                Op::Select => lanes.zip(c).for_each(|(((out, a), b), c)| *out = apply(Op::Select, *a, *b, *c)),
                $(Op::$op => lanes.for_each(|((out, a), b)| *out = apply(Op::$op, *a, *b, 0)),)*
                $(Op::$native if LOOPS_FOR_ALL => lanes.for_each(|((out, a), b)| *out = apply(Op::$native, *a, *b, 0)),)*
                _ => lanes.for_each(|((out, a), b)| *out = one(op, *a, *b, 0)),
            }
        };
    }
    loops!(
        AddF SubF MulF MaxF LtF Add And Both Either Not IsNan;
        DivF MinF LeF EqF NegF
        Sub Mul Xor Or Eq Shl ShrI ShrU MinI MinU MaxI MaxU LtI LtU LeI LeU DivI DivU RemI RemU
        FToI FToU IToF UToF F16 BF16
    )
}
