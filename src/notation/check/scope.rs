//! The names of one statement: which are indices, in the order of appearance, and what stands where.

use std::fmt::Arguments;

use super::fault::{Checked, Failed, MEANING};
use super::symbols::Symbols;
use crate::error::ErrorKind;
use crate::notation::ast::{Expr, ExprKind, Name, Span, Statement};
use crate::notation::program::{Affine, Expr as Typed, IndexId, NodeIndex, Position};

/// Where an index belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belongs {
    /// It stands on the left.
    Left,
    /// It stands on the right only.
    Right,
    /// A reduction inside the expression binds it.
    Reduction,
}

/// An index of the statement.
#[derive(Debug)]
pub(super) struct Index<'a> {
    pub(super) name: &'a str,
    /// Where it stands first.
    pub(super) at: u32,
    pub(super) belongs: Belongs,
    /// Where a reduction binds it.
    binder: Option<&'a Name>,
    /// The index that is bound around it, nearest.
    pub(super) outer: Option<IndexId>,
    /// From the first value to behind the last.
    pub(super) range: Option<(i64, i64)>,
    /// Whether it is one: it stands in a position or in `where`.
    is_index: bool,
}

/// What an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// It may leave the tensor.
    Padded,
    /// The left side itself.
    Target,
}

/// A position of an access.
#[derive(Debug)]
pub(super) struct Place {
    /// None where it is computed from tensors.
    pub(super) affine: Option<Affine>,
    pub(super) span: Span,
    pub(super) node: NodeIndex,
    pub(super) axis: usize,
    pub(super) extent: u32,
    pub(super) access: Access,
    /// The index that is bound around it, nearest.
    pub(super) under: Option<IndexId>,
}

/// What a name is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// A node.
    Node(NodeIndex),
    /// An index of the statement.
    Index(IndexId),
}

/// A statement as it is read.
pub(super) struct Scope<'c, 'a> {
    pub(super) symbols: &'c mut Symbols<'a>,
    pub(super) statement: &'a Statement,
    pub(super) indices: Vec<Index<'a>>,
    /// The index that is bound around the current place, nearest.
    pub(super) inner: Option<IndexId>,
    pub(super) places: Vec<Place>,
    /// The indices of `argmax` and `argmin`, and where those stand.
    pub(super) arguments: Vec<(IndexId, u32)>,
    /// What has been resolved and is not yet part of an expression.
    pub(super) values: Vec<Typed>,
    /// Those of the left side.
    pub(super) positions: Vec<Position>,
}

/// Calls `visit` for every part of an expression, and whether it is a position of an access.
pub(super) fn visit_parts<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr, bool)) {
    let (a, b, c) = match &expr.kind {
        ExprKind::Access { positions: list, .. } | ExprKind::Call(_, list) => {
            let is_position = matches!(expr.kind, ExprKind::Access { .. });
            for part in list {
                visit(part, is_position);
            }
            return;
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(_, a) | ExprKind::Reduce { body: a, .. } => {
            (a, None, None)
        }
        ExprKind::Binary(_, a, b) | ExprKind::Pad { access: a, value: b } => (a, Some(b), None),
        ExprKind::Conditional(a, b, c) => (a, Some(b), Some(c)),
        _ => return,
    };
    visit(a, false);
    for part in [b, c].into_iter().flatten() {
        visit(part, false);
    }
}

/// The parts of an expression, in the order of the text.
pub(super) fn parts(expr: &Expr) -> Vec<&Expr> {
    let mut parts = Vec::new();
    visit_parts(expr, &mut |part, _| parts.push(part));
    parts
}

/// Finds the names of a statement that may be indices.
struct Finder<'a> {
    statement: &'a Statement,
    indices: Vec<Index<'a>>,
    belongs: Belongs,
    /// The names that reductions around the current place bind.
    bound: Vec<&'a str>,
}

impl<'a> Finder<'a> {
    fn find(&mut self, expr: &'a Expr, is_position: bool) {
        let outside = self.bound.len();
        match &expr.kind {
            ExprKind::Name(name) if !self.bound.contains(&name.as_str()) => {
                let known = self.indices.iter_mut().find(|index| index.binder.is_none() && index.name == name);
                match known {
                    Some(index) => index.is_index |= is_position,
                    None => self.add(name, expr.span.start, is_position, None),
                }
            }
            ExprKind::Reduce { indices, .. } => {
                for binder in indices {
                    self.bound.push(&binder.text);
                    self.add(&binder.text, binder.span.start, true, Some(binder));
                }
            }
            _ => {}
        }
        visit_parts(expr, &mut |part, stands| self.find(part, is_position || stands));
        self.bound.truncate(outside);
    }

    /// A new index, with its range if `where` states one.
    fn add(&mut self, name: &'a str, at: u32, is_position: bool, binder: Option<&'a Name>) {
        let stated = self.statement.ranges.iter().find(|range| range.index.text == name);
        let range = stated.map(|range| (range.lo, range.hi));
        let belongs = if binder.is_some() { Belongs::Reduction } else { self.belongs };
        let is_index = is_position || range.is_some();
        self.indices.push(Index { name, at, belongs, binder, outer: None, range, is_index });
    }
}

impl<'c, 'a> Scope<'c, 'a> {
    /// A statement with its indices.
    pub(super) fn new(symbols: &'c mut Symbols<'a>, statement: &'a Statement) -> Self {
        let mut finder = Finder { statement, indices: Vec::new(), belongs: Belongs::Left, bound: Vec::new() };
        for position in &statement.positions {
            finder.find(position, true);
        }
        finder.belongs = Belongs::Right;
        finder.find(&statement.value, false);
        let mut indices = finder.indices;
        indices.retain(|index| index.binder.is_some() || index.is_index && !symbols.is_node(index.name));
        Self {
            symbols,
            statement,
            indices,
            inner: None,
            places: Vec::new(),
            arguments: Vec::new(),
            values: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Checks what `where` states.
    pub(super) fn states_ranges(&self) -> Checked<()> {
        let ranges = &self.statement.ranges;
        for (number, range) in ranges.iter().enumerate() {
            let index = &range.index;
            self.is_no_node(index)?;
            if ranges[..number].iter().any(|range| range.index.text == index.text) {
                let message = format_args!("{} is named twice; name each index once", index.text);
                return Err(self.fail(ErrorKind::DuplicateNode, index.span.start, message));
            }
        }
        for range in ranges {
            let name = &range.index.text;
            if !self.indices.iter().any(|index| index.name == name) {
                let message = format_args!("{name} stands nowhere else in the statement; leave its range out");
                return Err(self.fail(MEANING, range.index.span.start, message));
            }
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn fail(&self, kind: ErrorKind, at: u32, message: Arguments<'_>) -> Failed {
        self.symbols.faults.fail(kind, at, message)
    }

    fn free(&self, name: &str) -> Option<IndexId> {
        self.indices.iter().position(|index| index.name == name && index.binder.is_none())
    }

    /// Binds the indices of a reduction: inside it, they hide others of their names.
    pub(super) fn bind(&mut self, names: &'a [Name]) -> Checked<Vec<IndexId>> {
        let mut bound: Vec<IndexId> = Vec::new();
        for name in names {
            self.is_no_node(name)?;
            let is_this = |index: &Index<'a>| index.binder.is_some_and(|binder| std::ptr::eq(binder, name));
            if let Some(index) = self.indices.iter().position(is_this) {
                self.indices[index].outer = self.inner;
                self.inner = Some(index);
                bound.push(index);
            }
        }
        Ok(bound)
    }

    /// What a name is that stands by itself.
    pub(super) fn meaning(&mut self, name: &str, at: u32) -> Checked<Meaning> {
        if let Some(node) = self.symbols.node(name) {
            return Ok(Meaning::Node(node));
        }
        let mut bound = self.inner;
        while let Some(index) = bound {
            if self.indices[index].name == name {
                return Ok(Meaning::Index(index));
            }
            bound = self.indices[index].outer;
        }
        self.free(name).map(Meaning::Index).ok_or_else(|| self.unknown(name, at))
    }

    /// The node of an access.
    pub(super) fn accessed(&mut self, name: &Name) -> Checked<NodeIndex> {
        self.symbols.node(&name.text).ok_or_else(|| self.unknown(&name.text, name.span.start))
    }

    fn unknown(&self, name: &str, at: u32) -> Failed {
        self.fail(
            ErrorKind::UnknownNode,
            at,
            format_args!(
                "unknown name \"{name}\": no node that is declared, given or assigned before, and no index in a position, \
                 in where or in a reduction here; declare it"
            ),
        )
    }

    fn is_no_node(&self, name: &Name) -> Checked<()> {
        if self.symbols.is_node(&name.text) { Err(self.node_as_index(&name.text, name.span.start)) } else { Ok(()) }
    }

    pub(super) fn node_as_index(&self, name: &str, at: u32) -> Failed {
        let message = format_args!("\"{name}\" is a node here, so it cannot be an index; give the index another name");
        self.fail(ErrorKind::DuplicateNode, at, message)
    }
}
