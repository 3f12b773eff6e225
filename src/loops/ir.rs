//! Loops: how a program is computed, one nest after another.
//!
//! The points of a nest are independent: whatever one writes no other reads or writes, but for atomic accumulation. A point
//! reads the values from before the nest; it stores when all its stages are computed. Where a point is a row, stages store
//! what they compute of each element at once, and later ones may read that. Expressions are those of the program, with buffers
//! in place of nodes.

use crate::dtype::DType;
use crate::loops::rewrite::{any_part, each_part};
use crate::notation::ast::Accumulate;
use crate::notation::program::{Expr, ExprKind, IndexId, Load, LoopIndex, NodeIndex, Position};

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
    /// How; `None` where values are stored alone.
    pub op: Option<Accumulate>,
    /// What it starts from.
    pub start: Expr,
    /// Over which indices, the last one the fastest.
    pub over: Vec<IndexId>,
    /// Whether each value is stored, as soon as it is computed and before any later stage, and not what they come to.
    pub is_each: bool,
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

impl Stage {
    /// Whether each value that is accumulated is stored.
    pub fn is_each(&self) -> bool {
        self.fold.as_ref().is_some_and(|fold| fold.is_each)
    }

    /// Where each value that is accumulated is stored, or else what they come to.
    pub fn store_of(&self, is_each: bool) -> Option<&Store> {
        self.store.as_ref().filter(|_| self.is_each() == is_each)
    }

    /// Calls `visit` for every expression: the start, the value, the positions of the store.
    pub fn each_expr<'s>(&'s self, visit: &mut dyn FnMut(&'s Expr)) {
        if let Some(fold) = &self.fold {
            visit(&fold.start);
        }
        visit(&self.value);
        if let Some(store) = &self.store {
            each_computed(&store.positions, visit);
        }
    }

    /// Calls `change` for every part of every expression, the inner ones first.
    pub fn each_part(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        each_part(&mut self.value, change);
        if let Some(fold) = &mut self.fold {
            each_part(&mut fold.start, change);
        }
        if let Some(store) = &mut self.store {
            for position in &mut store.positions {
                if let Position::Computed(expr) = position {
                    each_part(expr, change);
                }
            }
        }
    }
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

    /// Whether anything is stored atomically.
    pub fn is_atomic(&self) -> bool {
        self.stores().any(|store| store.atomic.is_some())
    }

    /// Whether any stage accumulates.
    pub fn has_fold(&self) -> bool {
        self.stages.iter().any(|stage| stage.fold.is_some())
    }

    /// Whether any part of an expression matches.
    pub fn any_part(&self, matches: &mut dyn FnMut(&Expr) -> bool) -> bool {
        let mut found = false;
        for stage in &self.stages {
            stage.each_expr(&mut |expr| found = found || any_part(expr, matches));
        }
        found
    }

    /// Whether any load matches.
    pub fn loads(&self, matches: &mut dyn FnMut(&Load) -> bool) -> bool {
        self.any_part(&mut |part| matches!(&part.kind, ExprKind::Load(load) if matches(load)))
    }

    /// Whether a buffer is read.
    pub fn reads(&self, buffer: BufferIndex) -> bool {
        self.loads(&mut |load| load.node == buffer)
    }
}

/// Calls `visit` for every position that is computed.
pub fn each_computed<'p>(positions: &'p [Position], visit: &mut dyn FnMut(&'p Expr)) {
    for position in positions {
        if let Position::Computed(expr) = position {
            visit(expr);
        }
    }
}

/// Whether any load in an expression, also in positions and pads, matches.
pub fn any_load(expr: &Expr, matches: &mut dyn FnMut(&Load) -> bool) -> bool {
    any_part(expr, &mut |part| matches!(&part.kind, ExprKind::Load(load) if matches(load)))
}
