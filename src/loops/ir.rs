//! Loops: how a program is computed, one nest after another.
//!
//! The points of a nest are independent: whatever one writes no other reads or writes, but for atomic accumulation. A point
//! reads the values from before the nest; it stores when all its stages are computed. Expressions are those of the program,
//! with buffers in place of nodes.

use crate::dtype::DType;
use crate::notation::ast::Accumulate;
use crate::notation::program::{Expr, ExprKind, IndexId, Load, LoopIndex, NodeIndex, Position, StaticBound};

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
    /// Why a temporary is where it is, for reports.
    pub note: &'static str,
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

/// A loop nest: at each of its points a few stages, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Nest {
    /// A name for messages and labels: the target and the statement's number.
    pub name: String,
    /// All indices.
    pub indices: Vec<LoopIndex>,
    /// Independent points, the last index the fastest.
    pub free: Vec<IndexId>,
    /// What is computed at a point, in order. [`ExprKind::Stage`] is the value of an earlier one.
    ///
    /// [`ExprKind::Stage`]: crate::notation::program::ExprKind::Stage
    pub stages: Vec<Stage>,
}

/// A value of a point, and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Of what is stored: of the type that the target's dtype is read as.
    pub value: Expr,
    /// How the value is accumulated over indices; `None` where it is taken as it is.
    pub fold: Option<Fold>,
    /// Where it is stored, when all stages of the point are computed; `None` where only later stages want it.
    pub store: Option<Store>,
}

/// An accumulation within a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// How.
    pub op: Accumulate,
    /// What it starts from.
    pub start: Expr,
    /// Over which indices, the last one the fastest.
    pub over: Vec<IndexId>,
}

/// An element of a buffer that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// The buffer.
    pub target: BufferIndex,
    /// Where: one per axis. A computed position that is out of range drops the value; only atomic stores have them.
    pub positions: Vec<Position>,
    /// How the value is accumulated onto what is there, atomically: several points may reach one element. The buffer's
    /// dtype is f32, i32 or u32. `None` where the value is set.
    pub atomic: Option<Accumulate>,
}

impl Nest {
    /// What is stored.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        self.stages.iter().filter_map(|stage| stage.store.as_ref())
    }

    /// Whether a buffer is written.
    pub fn writes(&self, buffer: BufferIndex) -> bool {
        self.stores().any(|store| store.target == buffer)
    }

    /// Every expression: starts, values and positions of stores.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.stages.iter().flat_map(|stage| {
            let positions = stage.store.iter().flat_map(|store| &store.positions);
            let computed = positions.filter_map(|position| match position {
                Position::Affine(_) => None,
                Position::Computed(expr) => Some(expr),
            });
            stage.fold.iter().map(|fold| &fold.start).chain([&stage.value]).chain(computed)
        })
    }

    /// Whether any load matches.
    pub fn loads(&self, mut matches: impl FnMut(&Load) -> bool) -> bool {
        self.exprs().any(|expr| any_load(expr, &mut matches))
    }

    /// Whether a buffer is read.
    pub fn reads(&self, buffer: BufferIndex) -> bool {
        self.loads(|load| load.node == buffer)
    }
}

/// Whether a load in an expression, also in positions and pads, matches.
pub fn any_load(expr: &Expr, matches: &mut impl FnMut(&Load) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Index(_) | ExprKind::Static(_) | ExprKind::Stage(_) => false,
        ExprKind::Load(load) => {
            matches(load)
                || load.positions.iter().any(|position| match position {
                    Position::Affine(_) => false,
                    Position::Computed(expr) => any_load(expr, matches),
                })
                || load.pad.as_ref().is_some_and(|pad| any_load(pad, matches))
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(a) => any_load(a, matches),
        ExprKind::Binary(_, a, b) => any_load(a, matches) || any_load(b, matches),
        ExprKind::Conditional(a, b, c) => any_load(a, matches) || any_load(b, matches) || any_load(c, matches),
        ExprKind::Call(_, arguments) => arguments.iter().any(|argument| any_load(argument, matches)),
        ExprKind::Reduce { body, .. } => any_load(body, matches),
    }
}
