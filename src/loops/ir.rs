//! Loops: how a program is computed, one nest after another.
//!
//! A nest writes one buffer. Its points are independent: whatever one writes no other reads or writes, but for atomic
//! accumulation. Expressions are those of the program, with buffers in place of nodes.

use crate::dtype::DType;
use crate::notation::ast::Accumulate;
use crate::notation::program::{Expr, IndexId, LoopIndex, NodeIndex, Position, StaticBound, Value};

/// The name of a buffer: its position in [`Loops::buffers`]. A load's `node` is one.
pub type BufferIndex = usize;

/// What a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferKind {
    /// A node of the program, in the context.
    Node(NodeIndex),
    /// A node of the program or a value in between, in scratch: without contents before the run.
    Temporary,
}

/// A tensor that nests read and write.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// The node's name, or one made from the statement that needs it.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents, row-major.
    pub shape: Vec<u32>,
    /// What it is.
    pub kind: BufferKind,
}

/// A program as loops.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loops {
    /// Every buffer.
    pub buffers: Vec<Buffer>,
    /// The names of the statics.
    pub statics: Vec<String>,
    /// What the statics must satisfy.
    pub static_bounds: Vec<StaticBound>,
    /// In order: each nest sees what those before it wrote.
    pub nests: Vec<Nest>,
}

/// What a nest starts from and how it writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Store {
    /// The value. There are no reduced indices.
    Set,
    /// A starting value, accumulated over the reduced indices.
    Fresh(Accumulate, Value),
    /// What is there, accumulated over the reduced indices.
    Onto(Accumulate),
    /// Each value is accumulated atomically: several points may reach one element. The buffer's dtype is f32, i32 or u32.
    /// There are no reduced indices: all are free.
    Atomic(Accumulate),
}

/// A loop nest that writes one buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Nest {
    /// A name for messages and labels: the target and the statement's number.
    pub name: String,
    /// All indices.
    pub indices: Vec<LoopIndex>,
    /// Independent points, the last index the fastest.
    pub free: Vec<IndexId>,
    /// Accumulated over within a point, the last index the fastest.
    pub reduced: Vec<IndexId>,
    /// The buffer that is written.
    pub target: BufferIndex,
    /// Where: one per axis. A computed position that is out of range drops the point; only atomic stores have them.
    pub positions: Vec<Position>,
    /// How.
    pub store: Store,
    /// Of the type that the target's dtype is read as. It may read the target's buffer at the very position that it writes.
    pub value: Expr,
}
