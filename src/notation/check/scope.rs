//! The names of one statement: which are indices, in the order of appearance, and what stands where.

use super::fault::{Checked, Fault, MEANING};
use super::symbols::Symbols;
use crate::error::ErrorKind;
use crate::notation::ast::{Expr, ExprKind, Name, Span, Statement};
use crate::notation::program::{Affine, IndexId, NodeIndex};

/// The values of an index: from the first to behind the last.
pub(super) type Range = (i64, i64);

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
    pub(super) at: Span,
    pub(super) belongs: Belongs,
    /// Where a reduction binds it.
    binder: Option<&'a Name>,
    pub(super) range: Option<Range>,
}

/// A position of an access.
#[derive(Debug)]
pub(super) struct Place {
    /// None where it is computed from tensors.
    pub(super) affine: Option<Affine>,
    pub(super) span: Span,
}

/// An access to a tensor.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) node: NodeIndex,
    pub(super) places: Vec<Place>,
    /// Whether it may leave the tensor.
    pub(super) is_padded: bool,
    /// Whether it is the left side itself.
    pub(super) is_target: bool,
    /// The indices of the reductions around it.
    pub(super) under: Vec<IndexId>,
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
    /// The indices that reductions around the current place bind, the innermost last.
    pub(super) bound: Vec<IndexId>,
    pub(super) accesses: Vec<Access>,
    /// The indices of `argmax` and `argmin`.
    pub(super) arguments: Vec<(IndexId, Span)>,
}

/// Calls `visit` for every part of an expression, and whether it is a position of an access.
pub(super) fn parts<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr, bool)) {
    match &expr.kind {
        ExprKind::Access { positions, .. } => positions.iter().for_each(|position| visit(position, true)),
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(_, a) => visit(a, false),
        ExprKind::Binary(_, a, b) | ExprKind::Pad { access: a, value: b } => {
            visit(a, false);
            visit(b, false);
        }
        ExprKind::Conditional(condition, a, b) => {
            visit(condition, false);
            visit(a, false);
            visit(b, false);
        }
        ExprKind::Call(_, arguments) => arguments.iter().for_each(|argument| visit(argument, false)),
        ExprKind::Reduce { body, .. } => visit(body, false),
        _ => {}
    }
}

/// A name where it stands.
enum Mention<'a> {
    /// By itself, and no reduction binds it; whether it is part of a position.
    Free(&'a str, Span, bool),
    /// Where a reduction binds it.
    Bound(&'a Name),
}

/// Calls `visit` for every name of an expression but those of accesses, in the order of the text.
fn mentions<'a>(expr: &'a Expr, is_position: bool, bound: &mut Vec<&'a str>, visit: &mut dyn FnMut(Mention<'a>)) {
    match &expr.kind {
        ExprKind::Name(name) if !bound.contains(&name.as_str()) => visit(Mention::Free(name, expr.span, is_position)),
        ExprKind::Reduce { indices, body, .. } => {
            let outside = bound.len();
            for index in indices {
                bound.push(&index.text);
                visit(Mention::Bound(index));
            }
            mentions(body, is_position, bound, visit);
            bound.truncate(outside);
        }
        _ => parts(expr, &mut |part, stands| mentions(part, is_position || stands, bound, visit)),
    }
}

impl<'c, 'a> Scope<'c, 'a> {
    /// Finds the indices of a statement.
    pub(super) fn new(symbols: &'c mut Symbols<'a>, statement: &'a Statement) -> Checked<Self> {
        let mut known: Vec<&'a str> = Vec::new();
        for range in &statement.ranges {
            is_no_node(symbols, &range.index)?;
            if known.contains(&range.index.text.as_str()) {
                let message = format!("where names {} twice; give each index one range", range.index.text);
                return Err(Fault::new(ErrorKind::DuplicateNode, range.index.span, message));
            }
            if range.lo > range.hi {
                let message =
                    format!("the range {}:{} ends before it starts; lo:hi needs lo <= hi", range.lo, range.hi);
                return Err(Fault::new(MEANING, range.span, message));
            }
            known.push(&range.index.text);
        }
        let sides = || statement.positions.iter().map(|position| (position, true)).chain([(&statement.value, false)]);
        for (expr, is_left) in sides() {
            mentions(expr, is_left, &mut Vec::new(), &mut |mention| match mention {
                Mention::Free(name, _, true) if !symbols.is_node(name) && !known.contains(&name) => known.push(name),
                _ => {}
            });
        }
        let mut scope = Self {
            symbols,
            statement,
            indices: Vec::new(),
            bound: Vec::new(),
            accesses: Vec::new(),
            arguments: Vec::new(),
        };
        for (expr, is_left) in sides() {
            let belongs = if is_left { Belongs::Left } else { Belongs::Right };
            mentions(expr, is_left, &mut Vec::new(), &mut |mention| match mention {
                Mention::Free(name, at, _) if known.contains(&name) && scope.free(name).is_none() => {
                    scope.add(name, at, belongs, None);
                }
                Mention::Bound(binder) => scope.add(&binder.text, binder.span, Belongs::Reduction, Some(binder)),
                Mention::Free(..) => {}
            });
        }
        for range in &statement.ranges {
            let name = range.index.text.as_str();
            if !scope.indices.iter().any(|index| index.name == name) {
                let message = format!("where names {name}, which stands nowhere in the statement; leave it out");
                return Err(Fault::new(MEANING, range.index.span, message));
            }
        }
        Ok(scope)
    }

    /// A new index, with its range if `where` states one.
    fn add(&mut self, name: &'a str, at: Span, belongs: Belongs, binder: Option<&'a Name>) {
        let stated = self.statement.ranges.iter().find(|range| range.index.text == name);
        let range = stated.map(|range| (range.lo, range.hi));
        self.indices.push(Index { name, at, belongs, binder, range });
    }

    fn free(&self, name: &str) -> Option<IndexId> {
        self.indices.iter().position(|index| index.name == name && index.belongs != Belongs::Reduction)
    }

    /// Binds the indices of a reduction: inside it, they hide others of their names.
    pub(super) fn bind(&mut self, names: &'a [Name]) -> Checked<Vec<IndexId>> {
        let outside = self.bound.len();
        for name in names {
            is_no_node(self.symbols, name)?;
            let bound = &self.bound[outside..];
            if bound.iter().any(|&index| self.indices[index].name == name.text) {
                let message = format!("the reduction names {} twice; name each index once", name.text);
                return Err(Fault::new(ErrorKind::DuplicateNode, name.span, message));
            }
            let is_this = |index: &Index<'a>| index.binder.is_some_and(|binder| std::ptr::eq(binder, name));
            self.bound.extend(self.indices.iter().position(is_this));
        }
        Ok(self.bound[outside..].to_vec())
    }

    /// What a name is that stands by itself.
    pub(super) fn meaning(&mut self, name: &'a str, at: Span) -> Checked<Meaning> {
        if let Some(node) = self.symbols.node(name) {
            return Ok(Meaning::Node(node));
        }
        let bound = self.bound.iter().rev().copied().find(|&index| self.indices[index].name == name);
        if let Some(index) = bound.or_else(|| self.free(name)) {
            return Ok(Meaning::Index(index));
        }
        Err(self.unknown(name, at))
    }

    /// The node of an access.
    pub(super) fn accessed(&mut self, name: &'a Name) -> Checked<NodeIndex> {
        self.symbols.node(&name.text).ok_or_else(|| self.unknown(&name.text, name.span))
    }

    fn unknown(&self, name: &str, at: Span) -> Fault {
        let message = if name == self.statement.target.text {
            format!(
                "\"{name}\" has no contents before its first assignment, which is here; declare it (\"{name}: f32[..]\")"
            )
        } else {
            format!(
                "unknown name \"{name}\": no node of that name is declared, given or assigned before, and no index of \
                 that name stands in a position, in where or in a reduction here"
            )
        };
        Fault::new(ErrorKind::UnknownNode, at, message)
    }
}

fn is_no_node(symbols: &Symbols, name: &Name) -> Checked<()> {
    if !symbols.is_node(&name.text) {
        return Ok(());
    }
    let message = format!("\"{0}\" is a node here, so it cannot be an index; give the index another name", name.text);
    Err(Fault::new(ErrorKind::DuplicateNode, name.span, message))
}
