//! Statements: a target, how it is written, and ranges.

use std::ops::Range;

use super::{E, Index, NOWHERE, Positions, name, parts};
use crate::notation::ast::{Accumulate, AssignOp, Expr, IndexRange, Name, Statement};

/// The left side of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    name: Name,
    positions: Vec<Expr>,
}

/// `node[positions]` on the left; `()` for rank 0.
pub fn at(node: &str, positions: impl Positions) -> Target {
    Target { name: name(node), positions: parts(positions.into_positions()).0 }
}

macro_rules! assignments {
    ($($method:ident $text:literal $op:expr,)*) => {$(
        #[doc = concat!("`target ", $text, " value`")]
        #[must_use]
        pub fn $method(self, value: impl Into<E>) -> Statement {
            self.assign($op, value.into())
        }
    )*};
}

// `+=` adds to what is there, which is no `Add`: a statement comes out, not a target.
#[allow(clippy::should_implement_trait)]
impl Target {
    assignments! {
        set "=" AssignOp::Set,
        add "+=" AssignOp::Onto(Accumulate::Add),
        mul "*=" AssignOp::Onto(Accumulate::Mul),
        max "max=" AssignOp::Onto(Accumulate::Max),
        min "min=" AssignOp::Onto(Accumulate::Min),
        add_fresh "+=!" AssignOp::Fresh(Accumulate::Add),
        mul_fresh "*=!" AssignOp::Fresh(Accumulate::Mul),
        max_fresh "max=!" AssignOp::Fresh(Accumulate::Max),
        min_fresh "min=!" AssignOp::Fresh(Accumulate::Min),
    }

    fn assign(self, op: AssignOp, value: E) -> Statement {
        Statement {
            target: self.name,
            positions: self.positions,
            op,
            op_span: NOWHERE,
            value: value.into_expr(),
            ranges: Vec::new(),
            span: NOWHERE,
        }
    }
}

impl Statement {
    /// The statement with `index in range` at the end of its `where`.
    #[must_use]
    pub fn where_range(mut self, index: Index<'_>, range: Range<i64>) -> Self {
        self.ranges.push(IndexRange { index: name(index.0), lo: range.start, hi: range.end, span: NOWHERE });
        self
    }
}
