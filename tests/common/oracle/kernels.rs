//! What the kernels are, and what they do to the bytes: element by element.

use half::f16;
use wgslab::{DType, MemoryMode};

use super::super::model::Kernel;
use super::{Node, Oracle, Refusal, refuse};

/// A number, exactly.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i64),
    Half(f32),
}

impl Node {
    pub(super) fn is_local(&self) -> bool {
        self.mode == MemoryMode::Local
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.mode == MemoryMode::Virtual
    }

    fn number(&self, bytes: &[u8]) -> Number {
        let word = bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        match self.dtype {
            DType::F16 => Number::Half(f16::from_bits(word as u16).to_f32()),
            DType::I32 => Number::Integer(i64::from(word as i32)),
            _ => Number::Integer(i64::from(word)),
        }
    }

    /// Floats become integers towards zero, no further than there are; integers become others by their low bits, and floats
    /// by way of 32 bits.
    fn cast(&self, number: Number) -> Vec<u8> {
        match (self.dtype, number) {
            (DType::F16, Number::Integer(value)) => f16::from_f32(value as f32).to_le_bytes().to_vec(),
            (DType::F16, Number::Half(value)) => f16::from_f32(value).to_le_bytes().to_vec(),
            (DType::U8, Number::Integer(value)) => vec![value as u8],
            (DType::U8, Number::Half(value)) => vec![value as u8],
            (_, Number::Integer(value)) => (value as i32).to_le_bytes().to_vec(),
            (_, Number::Half(value)) => (value as i32).to_le_bytes().to_vec(),
        }
    }

    /// An amount, as near as the type has it.
    fn filled(&self, amount: i32) -> Vec<u8> {
        match self.dtype {
            DType::F16 => f16::from_f32(amount as f32).to_le_bytes().to_vec(),
            DType::U8 => vec![amount.clamp(0, 255) as u8],
            _ => amount.to_le_bytes().to_vec(),
        }
    }
}

impl Oracle {
    /// Whether there is such a kernel in a context: not for types that it does not know, nor for nodes that share a byte
    /// there. Refused are nodes that fit each other nowhere.
    pub(super) fn has_kernel(&self, line: usize, kernel: &Kernel) -> Result<bool, Refusal> {
        let Some(from) = kernel.from() else { return Ok(true) };
        let to = kernel.to();
        let (a, b) = (&self.nodes[from], &self.nodes[to]);
        let both_f16 = a.dtype == DType::F16 && b.dtype == DType::F16;
        match kernel {
            _ if both_f16 => return Ok(false),
            Kernel::Cast { .. } => {
                if a.len != b.len {
                    return refuse("shape-mismatch", &a.name);
                }
                self.check_apart((from, 0..a.len), (to, 0..b.len))?;
            }
            Kernel::Strided { from_span, to_span, .. } => {
                let ((range, elements), (target, places)) = (self.span(from, *from_span)?, self.span(to, *to_span)?);
                if a.dtype != b.dtype {
                    return refuse("dtype-mismatch", &b.name);
                }
                if elements.len() != places.len() {
                    return refuse("shape-mismatch", "give blocks of the same extents");
                }
                let index = |start: u64, element: &std::ops::Range<usize>| start + element.start as u64;
                let meets =
                    elements.iter().any(|e| places.iter().any(|p| index(range.start, e) == index(target.start, p)));
                if from == to && meets {
                    return refuse("kernel-interface", &a.name);
                }
                let in_elements = |range: std::ops::Range<u64>, size| range.start / size..range.end / size;
                self.check_apart((from, in_elements(range, a.element)), (to, in_elements(target, b.element)))?;
            }
            _ if a.dtype != b.dtype => return Ok(false),
            _ => {}
        }
        let places = &self.lines[line].places;
        let overlap = match (places.get(&from), places.get(&to)) {
            (Some(p), Some(q)) if from != to && p.pool == q.pool => {
                p.offset < q.offset + b.size() && q.offset < p.offset + a.size()
            }
            _ => false,
        };
        Ok(!overlap)
    }

    /// Refuses ranges of elements of two nodes which are views that share some.
    fn check_apart(
        &self,
        (from, a): (usize, std::ops::Range<u64>),
        (to, b): (usize, std::ops::Range<u64>),
    ) -> Result<(), Refusal> {
        let is_related = from != to && self.root(from) == self.root(to) && !a.is_empty() && !b.is_empty();
        let (a_start, b_start) = (self.start(from), self.start(to));
        if is_related && a_start + a.start < b_start + b.end && b_start + b.start < a_start + a.end {
            return refuse("kernel-interface", &self.nodes[from].name);
        }
        Ok(())
    }

    /// The first element of a node in the node whose bytes it shows.
    fn start(&self, node: usize) -> u64 {
        self.nodes[node].base.map_or(0, |(base, start)| self.start(base) + start)
    }

    /// Whether a kernel would use what is in a local node that no kernel before it wrote; one that reads it first is
    /// refused instead.
    pub(super) fn uses_unwritten(&self, kernel: &Kernel, written: &[usize]) -> bool {
        let to = kernel.to();
        let is_refused = kernel.from() == Some(to);
        self.nodes[to].is_local() && !written.contains(&to) && !kernel.overwrites() && !is_refused
    }

    /// What a kernel makes of the bytes of `to`, given those of `from`.
    pub(super) fn compute(&self, kernel: &Kernel, from: &[u8], to: &mut [u8], amount: i32) -> Result<(), Refusal> {
        let node = &self.nodes[kernel.to()];
        let size = node.element as usize;
        match kernel {
            Kernel::Add { .. } => add(to, from, size, !kernel.overwrites(), amount),
            Kernel::Fill { .. } => {
                let value = node.filled(amount);
                to.chunks_mut(size).for_each(|element| element.copy_from_slice(&value));
            }
            Kernel::Cast { from: source, .. } => {
                let source = &self.nodes[*source];
                for (element, read) in to.chunks_mut(size).zip(from.chunks(source.element as usize)) {
                    element.copy_from_slice(&node.cast(source.number(read)));
                }
            }
            Kernel::Strided { from: source, from_span, to: target, to_span } => {
                let (read, elements) = self.span(*source, *from_span)?;
                let (written, places) = self.span(*target, *to_span)?;
                let before = from.to_vec();
                for (element, place) in elements.into_iter().zip(places) {
                    let (start, end) = (read.start as usize + element.start, read.start as usize + element.end);
                    let at = written.start as usize + place.start;
                    to[at..at + size].copy_from_slice(&before[start..end]);
                }
            }
        }
        Ok(())
    }
}

/// `to = from + amount` by elements, with what was in `to` added where it is read; `from` is zero past its end.
pub(super) fn add(to: &mut [u8], from: &[u8], element: usize, adds: bool, amount: i32) {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |number, &byte| number << 8 | u32::from(byte));
    for (index, to) in to.chunks_mut(element).enumerate() {
        let read = from.get(index * element..(index + 1) * element).map_or(0, number);
        let old = if adds { number(to) } else { 0 };
        let sum = old.wrapping_add(read).wrapping_add(amount as u32);
        to.copy_from_slice(&sum.to_le_bytes()[..element]);
    }
}
