//! Where an access goes: positions on axes become one offset in elements, modulo 2^32.
//!
//! Every element of a tensor that a kernel can have is counted by a u32, so an offset that is in range is right whatever
//! wrapped on the way. What may be out of range, behind `pad`, is judged axis by axis, so that no wrapping lets it in.

use crate::notation::program::{Affine, Expr, Load, Position, Term, Ty};
use crate::wgsl::emit::Emitter;
use crate::wgsl::emit::block::Operand;

/// An offset that grows, axis by axis.
#[derive(Default)]
struct Offset {
    constant: u32,
    /// Names of u32 values with their factors, in the order of appearance.
    terms: Vec<(Operand, u32)>,
}

impl Offset {
    fn add(&mut self, term: Operand, factor: u32) {
        match self.terms.iter_mut().find(|(known, _)| known.text == term.text) {
            Some((_, known)) => *known = known.wrapping_add(factor),
            None => self.terms.push((term, factor)),
        }
    }
}

impl Emitter<'_> {
    /// A load as the type that the buffer is read as.
    pub(super) fn load(&mut self, load: &Load) -> Operand {
        let padded = load.pad.as_ref().map(|pad| self.expr(pad));
        let (offset, inside) = self.place(load.node, &load.positions, padded.is_some(), true);
        let tensor = self.tensor(load.node, false);
        let value = self.block.value(offset.depth, format!("load_t{tensor}({})", offset.text));
        match (padded, inside) {
            (Some(pad), Some(inside)) => {
                let depth = value.depth.max(pad.depth).max(inside.depth);
                self.block.value(depth, format!("select({}, {}, {})", pad.text, value.text, inside.text))
            }
            _ => value,
        }
    }

    /// The offset of an element, and whether it is there where that is not certain: with `checked`, all positions are
    /// looked at; without it, computed ones are, unless they are `clamped`.
    pub(super) fn place(
        &mut self,
        buffer: usize,
        positions: &[Position],
        checked: bool,
        clamped: bool,
    ) -> (Operand, Option<Operand>) {
        let shape = &self.loops.buffers[buffer].shape;
        let mut offset = Offset::default();
        let mut inside: Option<Operand> = None;
        let mut stride = 1u32;
        for (position, &extent) in positions.iter().zip(shape).rev() {
            let condition = match position {
                Position::Affine(affine) => {
                    self.affine(&mut offset, affine, stride);
                    if checked { self.affine_inside(affine, extent) } else { None }
                }
                Position::Computed(expr) if clamped && !checked => {
                    let value = self.clamped(expr, extent);
                    offset.add(value, stride);
                    None
                }
                Position::Computed(expr) => {
                    let value = self.expr(expr);
                    let word = self.as_u32(value.clone(), expr.ty);
                    let word = self.runtime(word);
                    let is_inside = self.value_inside(&value, &word, expr.ty, extent);
                    offset.add(word, stride);
                    Some(is_inside)
                }
            };
            inside = match (inside, condition) {
                (Some(one), Some(other)) => Some(self.infix("&&", one, other)),
                (one, other) => one.or(other),
            };
            stride = stride.wrapping_mul(extent);
        }
        (self.sum(offset), inside)
    }

    fn sum(&mut self, offset: Offset) -> Operand {
        let mut text = String::new();
        let mut depth = 0;
        for (term, factor) in offset.terms.iter().filter(|(_, factor)| *factor != 0) {
            depth = depth.max(term.depth);
            let product = if *factor == 1 { term.text.clone() } else { format!("{} * {factor}u", term.text) };
            if !text.is_empty() {
                text.push_str(" + ");
            }
            text.push_str(&product);
        }
        if text.is_empty() {
            return Operand::literal(format!("{}u", offset.constant));
        }
        if offset.constant != 0 {
            text.push_str(&format!(" + {}u", offset.constant));
        }
        // A name of its own is not worth one.
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Operand { text, depth, is_literal: false };
        }
        self.block.value(depth, text)
    }

    fn affine(&mut self, offset: &mut Offset, affine: &Affine, stride: u32) {
        offset.constant = offset.constant.wrapping_add((affine.constant as u32).wrapping_mul(stride));
        for (term, factor) in &affine.terms {
            let factor = (*factor as u32).wrapping_mul(stride);
            match term {
                // Counted from 0: the first value goes into the constant.
                Term::Index(index) => {
                    let (counter, lo) = self.counter(*index);
                    offset.constant = offset.constant.wrapping_add((lo as u32).wrapping_mul(factor));
                    if !counter.is_literal {
                        offset.add(counter, factor);
                    }
                }
                Term::Static(index) => {
                    let value = self.static_value(*index);
                    let word = self.as_u32(value, Ty::I32);
                    offset.add(word, factor);
                }
            }
        }
    }

    /// Whether an affine position is on the axis; `None` where it always is.
    fn affine_inside(&mut self, affine: &Affine, extent: u32) -> Option<Operand> {
        let (least, most) = self.range(affine);
        if least >= 0 && most < i64::from(extent) {
            return None;
        }
        let wraps = most >= 1 << 32 || least < i64::from(extent) - (1 << 32);
        if wraps {
            return Some(self.wide_inside(affine, extent));
        }
        // Modulo 2^32, what lies outside stays outside.
        let mut offset = Offset::default();
        self.affine(&mut offset, affine, 1);
        let word = self.sum(offset);
        let word = self.runtime(word);
        Some(self.infix("<", word, Operand::literal(format!("{extent}u"))))
    }

    /// The same in 64 bits, for factors that 32 do not hold.
    fn wide_inside(&mut self, affine: &Affine, extent: u32) -> Operand {
        let words = |value: i64| format!("vec2<u32>({}u, {}u)", value as u32, (value >> 32) as u32);
        let mut sum = Operand::literal(words(affine.constant));
        for (term, factor) in &affine.terms {
            let value = match term {
                Term::Index(index) => self.index_value(*index),
                Term::Static(index) => self.static_value(*index),
            };
            let depth = sum.depth.max(value.depth);
            let text = format!("lab_mad_64({}, {}, {})", sum.text, words(*factor), value.text);
            sum = self.block.value(depth, text);
        }
        let sum = self.runtime(sum);
        self.block.value(sum.depth, format!("{0}.y == 0u && {0}.x < {extent}u", sum.text))
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
            let (one, other) = (lo.saturating_mul(*factor), last.saturating_mul(*factor));
            range = (range.0.saturating_add(one.min(other)), range.1.saturating_add(one.max(other)));
        }
        range
    }

    /// A computed position, clamped to the axis as the value that its type has.
    fn clamped(&mut self, expr: &Expr, extent: u32) -> Operand {
        let value = self.expr(expr);
        let last = extent.saturating_sub(1);
        let value = self.runtime(value);
        if expr.ty == Ty::U32 {
            return self.block.value(value.depth, format!("min({}, {last}u)", value.text));
        }
        self.block.value(value.depth, format!("min(bitcast<u32>(max({}, 0i)), {last}u)", value.text))
    }

    fn value_inside(&mut self, value: &Operand, word: &Operand, ty: Ty, extent: u32) -> Operand {
        let word = self.runtime_copy(word);
        let small = self.infix("<", word, Operand::literal(format!("{extent}u")));
        if ty == Ty::U32 || extent <= 1 << 31 {
            return small;
        }
        let value = self.runtime_copy(value);
        let positive = self.infix(">=", value, Operand::literal("0i".to_owned()));
        self.infix("&&", positive, small)
    }
}
