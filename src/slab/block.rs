//! A block of a tensor: a rectangular part, stepped if need be, like NumPy's `x[a:b:s, …]`. Pure integers.
//!
//! A block is checked against a shape when it is made, so whoever holds one for the right shape never leaves the tensor.

use std::fmt;
use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::node::{List, TensorNode};
use crate::slab::strided::{Axis, Strided};

/// The part of one axis: `start`, `start + step`, … , `extent` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first index.
    pub start: u32,
    /// How many indices; none is a span too.
    pub extent: u32,
    /// From one index to the next, at least 1.
    pub step: u32,
}

impl Span {
    /// Every `step`-th index of a range, from its start on: `a:b:s`.
    pub fn stepped(range: Range<u32>, step: u32) -> Self {
        let len = range.end.saturating_sub(range.start);
        Self { start: range.start, extent: len.div_ceil(step.max(1)), step }
    }

    /// The index behind the last one.
    fn end(self) -> u64 {
        match self.extent.checked_sub(1) {
            Some(steps) => u64::from(self.start) + u64::from(steps) * u64::from(self.step) + 1,
            None => u64::from(self.start),
        }
    }

    fn has(self, index: u64) -> bool {
        let Some(past) = index.checked_sub(u64::from(self.start)) else { return false };
        past % u64::from(self.step) == 0 && past / u64::from(self.step) < u64::from(self.extent)
    }

    fn meets(self, other: Self) -> bool {
        let (few, many) = if self.extent <= other.extent { (self, other) } else { (other, self) };
        // Only from where both are, and remainders repeat after as many indices as the other's step.
        let skipped = many.start.saturating_sub(few.start).div_ceil(few.step);
        let index = |k: u32| u64::from(few.start) + u64::from(k) * u64::from(few.step);
        (skipped..few.extent).take(many.step as usize).any(|k| many.has(index(k)))
    }
}

impl From<Range<u32>> for Span {
    fn from(range: Range<u32>) -> Self {
        Self::stepped(range, 1)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.end())?;
        if self.step == 1 { Ok(()) } else { write!(f, ":{}", self.step) }
    }
}

/// A rectangular part of every tensor of one shape, one span per axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    shape: Vec<u32>,
    spans: Vec<Span>,
}

impl Block {
    /// A part of `node`, and of every node of its shape: one span per axis, the outermost first.
    ///
    /// # Errors
    /// `ShapeMismatch` for a number of spans that is not the number of axes, a step of 0, or a span that leaves its axis.
    pub fn new(node: &TensorNode, spans: &[Span]) -> Result<Self> {
        let shape = node.shape();
        let refuse = |what: String| {
            Err(Error::say(
                ErrorKind::ShapeMismatch,
                format_args!("a block of node {node} of shape {} {what}", List(shape)),
            ))
        };
        if spans.len() != shape.len() {
            return refuse(format!("needs {} spans, one per axis, not {}", shape.len(), spans.len()));
        }
        for (axis, (span, &extent)) in spans.iter().zip(shape).enumerate() {
            if span.step == 0 {
                return refuse(format!("has a step of 0 on axis {axis}; steps are at least 1"));
            }
            if span.end() > u64::from(extent) {
                return refuse(format!(
                    "leaves axis {axis}: {span} ({} indices from {} in steps of {}) ends after {extent}; shorten the span",
                    span.extent, span.start, span.step
                ));
            }
        }
        Ok(Self { shape: shape.to_vec(), spans: spans.to_vec() })
    }

    /// All of `node`.
    pub fn whole(node: &TensorNode) -> Self {
        let spans = node.shape().iter().map(|&extent| Span::from(0..extent)).collect();
        Self { shape: node.shape().to_vec(), spans }
    }

    /// The spans, the outermost first.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The shape of the block itself.
    pub fn extents(&self) -> Vec<u32> {
        self.spans.iter().map(|span| span.extent).collect()
    }

    /// How many elements it has.
    pub fn element_len(&self) -> u64 {
        self.spans.iter().fold(1, |len, span| len.saturating_mul(u64::from(span.extent)))
    }

    /// Refuses a node of another shape than the block was made for.
    pub(crate) fn check_node(&self, node: &TensorNode) -> Result<()> {
        if self.shape == node.shape() {
            return Ok(());
        }
        let message = format_args!(
            "the block {self} was made for the shape {}, but node {node} has the shape {}; make one for it",
            List(&self.shape),
            List(node.shape())
        );
        Err(Error::say(ErrorKind::ShapeMismatch, message))
    }

    /// Refuses a block of other extents.
    pub(crate) fn check_extents(&self, other: &Self) -> Result<()> {
        if self.extents() == other.extents() {
            return Ok(());
        }
        let message = format_args!(
            "the blocks {self} and {other} have the extents {} and {}; give blocks of the same extents",
            List(&self.extents()),
            List(&other.extents())
        );
        Err(Error::say(ErrorKind::ShapeMismatch, message))
    }

    /// Whether the two have an element in common, as blocks of one tensor.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.spans.iter().zip(&other.spans).all(|(one, other)| one.meets(*other))
    }

    /// The first element, as an index into the flat tensor; 0 of an empty block, whose starts may lie behind all.
    pub(crate) fn first(&self) -> u64 {
        if self.element_len() == 0 {
            return 0;
        }
        let strides = dense_strides(&self.shape);
        let starts = self.spans.iter().zip(strides);
        starts.fold(0, |first, (span, stride)| first.saturating_add(u64::from(span.start).saturating_mul(stride)))
    }

    /// The move of this block's elements to another's places. The extents must be equal.
    pub(crate) fn to_block(&self, dst: &Self, element_bytes: u64) -> Strided {
        strided(&self.extents(), &self.strides(), &dst.strides(), element_bytes)
    }

    /// The move of the block's elements into a row.
    pub(crate) fn gather(&self, element_bytes: u64) -> Strided {
        let extents = self.extents();
        strided(&extents, &self.strides(), &dense_strides(&extents), element_bytes)
    }

    /// The move of a row of elements into the block.
    pub(crate) fn scatter(&self, element_bytes: u64) -> Strided {
        let extents = self.extents();
        strided(&extents, &dense_strides(&extents), &self.strides(), element_bytes)
    }

    /// Elements from one index of an axis to the next.
    fn strides(&self) -> Vec<u64> {
        let steps = self.spans.iter().map(|span| u64::from(span.step));
        steps.zip(dense_strides(&self.shape)).map(|(step, stride)| step.saturating_mul(stride)).collect()
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (axis, span) in self.spans.iter().enumerate() {
            write!(f, "{}{span}", if axis == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

/// Elements from one index of an axis to the next, row-major.
fn dense_strides(extents: &[u32]) -> Vec<u64> {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = u64::from(extents[axis]).saturating_mul(strides[axis]);
    }
    strides
}

fn strided(extents: &[u32], src: &[u64], dst: &[u64], element_bytes: u64) -> Strided {
    let bytes = |stride: u64| stride.saturating_mul(element_bytes);
    let axis = |((&extent, &src), &dst)| Axis { extent: u64::from(extent), src: bytes(src), dst: bytes(dst) };
    Strided::new(element_bytes, &extents.iter().zip(src).zip(dst).map(axis).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn node(shape: &[u32]) -> TensorNode {
        TensorNode::new("x", DType::F32, shape)
    }

    #[test]
    fn spans_count_as_slices_do() {
        assert_eq!(Span::stepped(1..8, 3), Span { start: 1, extent: 3, step: 3 });
        assert_eq!(Span::stepped(1..7, 3), Span { start: 1, extent: 2, step: 3 });
        assert_eq!(Span::from(5..5), Span { start: 5, extent: 0, step: 1 });
        assert_eq!(Span::stepped(0..10, 4).to_string(), "0:9:4");
        let backwards = Span::from(Range { start: 5, end: 3 });
        assert_eq!(backwards.extent, 0, "as an empty slice");
    }

    #[test]
    fn a_block_inside_its_shape_is_taken_to_the_last_index() {
        let x = node(&[4, 6]);
        let block = Block::new(&x, &[Span::from(3..4), Span { start: 1, extent: 2, step: 4 }]).unwrap();
        assert_eq!((block.extents(), block.element_len(), block.first()), (vec![1, 2], 2, 19));
        assert!(Block::new(&x, &[Span::from(4..4), Span::from(6..6)]).is_ok(), "empty at the end");
        assert_eq!(Block::new(&node(&[]), &[]).unwrap().element_len(), 1);
        assert_eq!(Block::whole(&node(&[3, 0])).element_len(), 0);
    }

    #[test]
    fn a_block_that_does_not_fit_is_refused_with_axis_and_numbers() {
        let x = node(&[4, 6]);
        let say = |spans: &[Span]| {
            let error = Block::new(&x, spans).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShapeMismatch);
            error.to_string()
        };
        assert!(say(&[Span::from(0..4)]).contains("of shape [4, 6] needs 2 spans, one per axis, not 1"));
        let step = Span { start: 0, extent: 1, step: 0 };
        assert!(say(&[step, Span::from(0..6)]).contains("has a step of 0 on axis 0"));
        let long = Span { start: 2, extent: 2, step: 4 };
        let wanted = "leaves axis 1: 2:7:4 (2 indices from 2 in steps of 4) ends after 6; shorten the span";
        assert!(say(&[Span::from(0..4), long]).contains(wanted));
        assert!(say(&[Span::from(5..5), Span::from(0..6)]).contains("leaves axis 0"));
        let most = Span { start: u32::MAX, extent: u32::MAX, step: u32::MAX };
        assert!(say(&[most, most]).contains("leaves axis 0"));
    }

    #[test]
    fn blocks_meet_where_they_share_an_element() {
        let x = node(&[8, 8]);
        let block = |a: Span, b: Span| Block::new(&x, &[a, b]).unwrap();
        let even = block(Span::from(0..8), Span::stepped(0..8, 2));
        let odd = block(Span::from(0..8), Span::stepped(1..8, 2));
        let thirds = block(Span::from(2..3), Span::stepped(1..8, 3));
        assert!(!even.meets(&odd) && even.meets(&even));
        assert!(even.meets(&thirds) && odd.meets(&thirds));
        assert!(!thirds.meets(&block(Span::from(3..8), Span::from(0..8))));
        assert!(!even.meets(&block(Span::from(0..0), Span::from(0..8))), "nothing meets nothing");
    }

    #[test]
    fn whole_rows_are_one_run_and_columns_are_not() {
        let x = node(&[4, 6, 5]);
        let rows = Block::new(&x, &[Span::from(1..3), Span::from(0..6), Span::from(0..5)]).unwrap().gather(4);
        assert_eq!((rows.run_bytes, rows.axes.len()), (240, 0));
        let columns = Block::new(&x, &[Span::from(0..4), Span::from(0..6), Span::from(2..4)]).unwrap().gather(4);
        assert_eq!(columns.run_bytes, 8);
        assert_eq!(columns.axes, [Axis { extent: 24, src: 20, dst: 8 }]);
    }
}
