//! Expressions with something put in place of something: indices by sums of other indices, loads by what was computed.

use crate::loops::ir::{BufferIndex, Nest, each_computed};
use crate::notation::ast::BinaryOp;
use crate::notation::program::{Affine, Expr, ExprKind, IndexId, Load, Position, Term, Ty, Value};

/// Calls `change` for every part of an expression, the inner ones first: also in positions and pads.
pub fn each_part(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
    each_child_mut(expr, &mut |child| each_part(child, change));
    change(expr);
}

/// Calls `change` for the expressions right inside an expression.
pub fn each_child_mut(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
    match &mut expr.kind {
        ExprKind::Const(_) | ExprKind::Index(_) | ExprKind::Static(_) | ExprKind::Stage(_) => {}
        ExprKind::Load(load) => {
            for position in &mut load.positions {
                if let Position::Computed(expr) = position {
                    change(expr);
                }
            }
            if let Some(pad) = &mut load.pad {
                change(pad);
            }
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(a) => change(a),
        ExprKind::Binary(_, a, b) => {
            change(a);
            change(b);
        }
        ExprKind::Conditional(a, b, c) => {
            change(a);
            change(b);
            change(c);
        }
        ExprKind::Call(_, arguments) => arguments.iter_mut().for_each(change),
        ExprKind::Reduce { body, .. } => change(body),
    }
}

/// What stands for each index of a nest in another one.
pub struct IndexMap {
    of: Vec<Option<Affine>>,
}

impl IndexMap {
    /// Nothing stands for so many indices.
    pub fn new(count: usize) -> Self {
        Self { of: vec![None; count] }
    }

    /// Each of so many indices stands for itself.
    pub fn identity(count: usize) -> Self {
        let mut map = Self::new(count);
        for index in 0..count {
            map.put(index, Affine::index(index, 0));
        }
        map
    }

    /// What stands for an index.
    pub fn get(&self, index: IndexId) -> Option<&Affine> {
        self.of.get(index)?.as_ref()
    }

    /// Says what stands for an index.
    pub fn put(&mut self, index: IndexId, affine: Affine) {
        if let Some(of) = self.of.get_mut(index) {
            *of = Some(affine);
        }
    }

    /// All that stands for indices.
    pub fn all(&self) -> impl Iterator<Item = &Affine> {
        self.of.iter().flatten()
    }
}

/// An affine expression over the indices that stand for its own.
fn mapped(affine: &Affine, map: &IndexMap) -> Option<Affine> {
    let mut sum = Affine::constant(affine.constant);
    for &(term, factor) in &affine.terms {
        match term {
            Term::Index(index) => sum.add(map.get(index)?, factor)?,
            Term::Static(_) => sum.add_term(term, factor)?,
        }
    }
    Some(sum)
}

/// Puts what stands for them in place of all indices of the affine positions; false where that does not go.
pub fn map_affines(positions: &mut [Position], map: &IndexMap) -> bool {
    positions.iter_mut().all(|position| match position {
        Position::Affine(affine) => mapped(affine, map).map(|mapped| *affine = mapped).is_some(),
        Position::Computed(_) => true,
    })
}

/// Puts what stands for them in place of all indices of an expression; false where that does not go.
pub fn map_expr(expr: &mut Expr, map: &IndexMap) -> bool {
    let mut is_mapped = true;
    each_part(expr, &mut |part| is_mapped &= map_part(part, map));
    is_mapped
}

/// The same for a part of an expression whose inner parts are done.
pub fn map_part(part: &mut Expr, map: &IndexMap) -> bool {
    match &mut part.kind {
        ExprKind::Index(index) => {
            let Some(affine) = map.get(*index) else { return false };
            *part = value_of(affine);
            true
        }
        ExprKind::Load(load) => map_affines(&mut load.positions, map),
        ExprKind::Reduce { indices, .. } => map_indices(indices, map),
        _ => true,
    }
}

/// Puts the indices that stand for them in place of indices; false where others than such do.
pub fn map_indices(indices: &mut [IndexId], map: &IndexMap) -> bool {
    indices.iter_mut().all(|index| {
        let other = map.get(*index).and_then(Affine::alone);
        other.map(|other| *index = other).is_some()
    })
}

/// The value of an affine expression that fits an i32, whatever wraps on the way.
fn value_of(affine: &Affine) -> Expr {
    let constant = |value: i64| Expr::constant(Value::I32(value as i32));
    let add = |sum: Option<Expr>, value| match sum {
        Some(sum) => Expr::binary(BinaryOp::Add, sum, value, Ty::I32),
        None => value,
    };
    let mut sum: Option<Expr> = None;
    for &(term, factor) in &affine.terms {
        let kind = match term {
            Term::Index(index) => ExprKind::Index(index),
            Term::Static(number) => ExprKind::Static(number),
        };
        let mut value = Expr::new(kind, Ty::I32);
        if factor != 1 {
            value = Expr::binary(BinaryOp::Mul, value, constant(factor), Ty::I32);
        }
        sum = Some(add(sum, value));
    }
    match sum {
        Some(sum) if affine.constant == 0 => sum,
        sum => add(sum, constant(affine.constant)),
    }
}

/// Calls `rename` with every buffer that a nest reads.
pub fn rename_reads(nest: &mut Nest, rename: &dyn Fn(BufferIndex) -> BufferIndex) {
    for stage in &mut nest.stages {
        stage.each_part(&mut |part| {
            if let ExprKind::Load(load) = &mut part.kind {
                load.node = rename(load.node);
            }
        });
    }
}

/// Calls `rename` with every buffer that a nest writes.
pub fn rename_writes(nest: &mut Nest, rename: &dyn Fn(BufferIndex) -> BufferIndex) {
    for store in nest.stages.iter_mut().filter_map(|stage| stage.store.as_mut()) {
        store.target = rename(store.target);
    }
}

/// Whether any part of an expression matches.
pub fn any_part(expr: &Expr, matches: &mut dyn FnMut(&Expr) -> bool) -> bool {
    let mut found = matches(expr);
    each_child(expr, &mut |child| found = found || any_part(child, matches));
    found
}

/// Whether an expression depends on an index.
pub fn uses_index(expr: &Expr, index: IndexId) -> bool {
    any_part(expr, &mut |part| match &part.kind {
        ExprKind::Index(own) => *own == index,
        ExprKind::Load(load) => load.positions.iter().any(|position| match position {
            Position::Affine(affine) => affine.terms.iter().any(|(term, _)| *term == Term::Index(index)),
            Position::Computed(_) => false,
        }),
        _ => false,
    })
}

/// The expressions right inside an expression.
pub fn each_child<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Index(_) | ExprKind::Static(_) | ExprKind::Stage(_) => {}
        ExprKind::Load(Load { positions, pad, .. }) => {
            each_computed(positions, visit);
            if let Some(pad) = pad {
                visit(pad);
            }
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(a) => visit(a),
        ExprKind::Binary(_, a, b) => {
            visit(a);
            visit(b);
        }
        ExprKind::Conditional(a, b, c) => {
            visit(a);
            visit(b);
            visit(c);
        }
        ExprKind::Call(_, arguments) => arguments.iter().for_each(visit),
        ExprKind::Reduce { body, .. } => visit(body),
    }
}
