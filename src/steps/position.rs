//! Where an access goes: positions on axes become one offset in elements, modulo 2^32.
//!
//! Every element of a tensor that a kernel can have is counted by a u32, so an offset that is in range is right whatever
//! wrapped on the way. What may be out of range, behind `pad`, is judged axis by axis, so that no wrapping lets it in.

use crate::loops::ir::BufferIndex;
use crate::notation::program::{Affine, IndexId, Load, Position, Term, Ty, Value, product};
use crate::steps::Lowering;
use crate::steps::block::{Reg, Step, ZERO};
use crate::steps::ops::Op;

/// A constant, and u32 values with their factors.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub constant: u32,
    pub terms: Vec<(Reg, u32)>,
}

impl Sum {
    fn add(&mut self, term: Reg, factor: u32) {
        match self.terms.iter_mut().find(|(known, _)| *known == term) {
            Some((_, known)) => *known = known.wrapping_add(factor),
            None => self.terms.push((term, factor)),
        }
    }
}

/// What happens out of range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outside {
    /// Computed positions are clamped to the axis.
    Clamped,
    /// Every position is looked at.
    Padded,
    /// Computed positions are looked at.
    Dropped,
}

impl Lowering<'_> {
    /// The value of an index, as an i32.
    pub(super) fn index_value(&mut self, index: IndexId) -> Reg {
        let mut sum = Sum { constant: self.nest.indices[index].lo as u32, terms: Vec::new() };
        self.add(&mut sum, self.counters[index], 1);
        let word = self.total(&sum);
        self.one(Op::AsI, word)
    }

    /// A load as the type that the buffer is read as.
    pub(super) fn load(&mut self, load: &Load) -> Reg {
        let pad = load.pad.as_ref().map(|pad| self.expr(pad));
        let outside = if pad.is_some() { Outside::Padded } else { Outside::Clamped };
        let (offset, inside) = self.place(load.node, &load.positions, outside);
        let tensor = self.tensor(load.node);
        let value = match self.quad_of(load.node, offset) {
            Some((quad, part)) => {
                let quad = self.block.value(Op::LoadQuad, tensor, &[quad]);
                self.block.value(Op::Part, part, &[quad])
            }
            None => self.block.value(Op::Load, tensor, &[offset]),
        };
        match inside.zip(pad) {
            Some((inside, pad)) => self.three(Op::Select, inside, value, pad),
            None => value,
        }
    }

    /// The offset of an element, and whether it is there where that is not certain.
    pub(crate) fn place(
        &mut self,
        buffer: BufferIndex,
        positions: &[Position],
        outside: Outside,
    ) -> (Reg, Option<Reg>) {
        let shape = &self.loops.buffers[buffer].shape;
        let mut offset = Sum::default();
        let mut inside: Option<Reg> = None;
        let mut stride = 1u32;
        for (position, &extent) in positions.iter().zip(shape).rev() {
            let is_inside = match position {
                Position::Affine(affine) => {
                    self.affine(&mut offset, affine, stride);
                    if outside == Outside::Padded { self.affine_inside(affine, extent) } else { None }
                }
                Position::Computed(expr) => {
                    let value = self.expr(expr);
                    let (word, is_inside) = self.computed(value, expr.ty, extent, outside);
                    self.add(&mut offset, word, stride);
                    is_inside
                }
            };
            inside = self.both(inside, is_inside);
            stride = stride.wrapping_mul(extent);
        }
        (self.total(&offset), inside)
    }

    /// A computed position, as the value that its type has.
    fn computed(&mut self, value: Reg, ty: Ty, extent: u32, outside: Outside) -> (Reg, Option<Reg>) {
        let word = |this: &mut Self, value| if ty == Ty::U32 { value } else { this.one(Op::AsU, value) };
        let zero = self.constant(Value::I32(0));
        if outside == Outside::Clamped {
            let value = if ty == Ty::U32 { value } else { self.two(Op::MaxI, value, zero) };
            let (value, last) = (word(self, value), self.word(extent.saturating_sub(1)));
            return (self.two(Op::MinU, value, last), None);
        }
        let (word, extent_word) = (word(self, value), self.word(extent));
        let mut inside = self.two(Op::LtU, word, extent_word);
        if ty != Ty::U32 && extent > 1 << 31 {
            let positive = self.two(Op::LeI, zero, value);
            inside = self.two(Op::Both, positive, inside);
        }
        (word, Some(inside))
    }

    /// Adds a value, or what it is the sum of.
    pub(super) fn add(&self, sum: &mut Sum, value: Reg, factor: u32) {
        let Step { op, number, args: [a, b, ..] } = *self.block.step(value);
        let other = self.block.step(b);
        match op {
            Op::Word => sum.constant = sum.constant.wrapping_add(number.wrapping_mul(factor)),
            Op::Add => {
                self.add(sum, a, factor);
                self.add(sum, b, factor);
            }
            Op::Mul if other.op == Op::Word => self.add(sum, a, factor.wrapping_mul(other.number)),
            _ => sum.add(value, factor),
        }
    }

    /// The terms from the outermost loop inward, so that each part is computed as far out as it can be.
    pub(super) fn total(&mut self, sum: &Sum) -> Reg {
        let mut total = None;
        for depth in 0..=self.block.depth() {
            for (term, factor) in &sum.terms {
                if *factor == 0 || *term == ZERO || self.block.depth_of(*term) != depth {
                    continue;
                }
                let mut part = *term;
                if *factor != 1 {
                    let factor = self.word(*factor);
                    part = self.two(Op::Mul, part, factor);
                }
                total = match total {
                    Some(total) => Some(self.two(Op::Add, total, part)),
                    None if sum.constant == 0 => Some(part),
                    None => {
                        let constant = self.word(sum.constant);
                        Some(self.two(Op::Add, part, constant))
                    }
                };
            }
        }
        total.unwrap_or_else(|| self.word(sum.constant))
    }

    fn affine(&mut self, offset: &mut Sum, affine: &Affine, stride: u32) {
        offset.constant = offset.constant.wrapping_add((affine.constant as u32).wrapping_mul(stride));
        for (term, factor) in &affine.terms {
            let factor = (*factor as u32).wrapping_mul(stride);
            match term {
                // Counted from 0: the first value goes into the constant.
                Term::Index(index) => {
                    let lo = self.nest.indices[*index].lo as u32;
                    offset.constant = offset.constant.wrapping_add(lo.wrapping_mul(factor));
                    self.add(offset, self.counters[*index], factor);
                }
                Term::Static(index) => {
                    let value = self.block.value(Op::Static, *index as u32, &[]);
                    let word = self.one(Op::AsU, value);
                    self.add(offset, word, factor);
                }
            }
        }
    }

    /// Whether an affine position is on the axis; `None` where it always is.
    fn affine_inside(&mut self, affine: &Affine, extent: u32) -> Option<Reg> {
        let (least, most) = self.range(affine);
        if least >= 0 && most < i64::from(extent) {
            return None;
        }
        let length = self.word(extent);
        let wraps = most >= 1 << 32 || least < i64::from(extent) - (1 << 32);
        if wraps {
            let (low, high) = self.wide(affine);
            let small = self.two(Op::LtU, low, length);
            let fits = self.two(Op::Eq, high, ZERO);
            return Some(self.two(Op::Both, small, fits));
        }
        // Modulo 2^32, what lies outside stays outside.
        let mut offset = Sum::default();
        self.affine(&mut offset, affine, 1);
        let word = self.total(&offset);
        Some(self.two(Op::LtU, word, length))
    }

    /// The two words of an affine expression in 64 bits, for factors that 32 do not hold.
    fn wide(&mut self, affine: &Affine) -> (Reg, Reg) {
        let (mut low, mut high) = (self.word(affine.constant as u32), self.word((affine.constant >> 32) as u32));
        for (term, factor) in &affine.terms {
            let value = match term {
                Term::Index(index) => self.index_value(*index),
                Term::Static(index) => self.block.value(Op::Static, *index as u32, &[]),
            };
            let word = self.one(Op::AsU, value);
            let (factor, factor_high) = (self.word(*factor as u32), self.word((*factor >> 32) as u32));
            let product = self.two(Op::Mul, word, factor);
            low = self.two(Op::Add, low, product);
            let one = self.word(1);
            let carries = self.two(Op::LtU, low, product);
            let carry = self.three(Op::Select, carries, one, ZERO);
            let zero = self.constant(Value::I32(0));
            let is_negative = self.two(Op::LtI, value, zero);
            // What a negative value has in its upper word, times the factor.
            let sign = self.three(Op::Select, is_negative, factor, ZERO);
            let upper = self.two(Op::MulHigh, word, factor);
            let upper_product = self.two(Op::Mul, word, factor_high);
            for part in [upper, upper_product, carry] {
                high = self.two(Op::Add, high, part);
            }
            high = self.two(Op::Sub, high, sign);
        }
        (low, high)
    }

    /// The least and the greatest value of an affine expression; saturates.
    fn range(&self, affine: &Affine) -> (i64, i64) {
        let mut range = (affine.constant, affine.constant);
        for (term, factor) in &affine.terms {
            let (lo, last) = match term {
                Term::Index(index) => {
                    let index = &self.nest.indices[*index];
                    (index.lo, index.hi - 1)
                }
                Term::Static(_) => (i64::from(i32::MIN), i64::from(i32::MAX)),
            };
            let (one, other) = (saturated(lo, *factor), saturated(last, *factor));
            range = (range.0.saturating_add(one.min(other)), range.1.saturating_add(one.max(other)));
        }
        range
    }
}

/// The product; saturates.
fn saturated(a: i64, b: i64) -> i64 {
    product(a, b).unwrap_or(if (a < 0) == (b < 0) { i64::MAX } else { i64::MIN })
}
