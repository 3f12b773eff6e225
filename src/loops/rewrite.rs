//! Expressions with something put in place of something: indices by sums of other indices, loads by what was computed.

use crate::loops::ir::{BufferIndex, Nest};
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

/// What stands for each index of a nest in another one; `None` for those that nothing stands for.
pub type IndexMap = Vec<Option<Affine>>;

/// An index alone, if that is all.
pub fn alone(affine: &Affine) -> Option<IndexId> {
    match (affine.constant, &affine.terms[..]) {
        (0, [(Term::Index(index), 1)]) => Some(*index),
        _ => None,
    }
}

/// The value of an index.
pub fn index(index: IndexId) -> Affine {
    Affine { constant: 0, terms: vec![(Term::Index(index), 1)] }
}

fn order(term: Term) -> (bool, usize) {
    match term {
        Term::Index(index) => (false, index),
        Term::Static(number) => (true, number),
    }
}

/// Adds `factor` times `other`; `None` where 64 bits do not hold it. The terms stay in the order of their numbers, so that
/// equal sums are written alike.
fn add(sum: &mut Affine, other: &Affine, factor: i64) -> Option<()> {
    sum.constant = sum.constant.checked_add(other.constant.checked_mul(factor)?)?;
    for &(term, own) in &other.terms {
        let own = own.checked_mul(factor)?;
        match sum.terms.binary_search_by_key(&order(term), |&(known, _)| order(known)) {
            Ok(at) => {
                sum.terms[at].1 = sum.terms[at].1.checked_add(own)?;
                if sum.terms[at].1 == 0 {
                    sum.terms.remove(at);
                }
            }
            Err(at) => sum.terms.insert(at, (term, own)),
        }
    }
    Some(())
}

/// An affine expression over the indices that stand for its own.
pub fn mapped(affine: &Affine, map: &IndexMap) -> Option<Affine> {
    let mut sum = Affine { constant: affine.constant, terms: Vec::new() };
    for &(term, factor) in &affine.terms {
        match term {
            Term::Index(index) => add(&mut sum, map.get(index)?.as_ref()?, factor)?,
            Term::Static(_) => add(&mut sum, &Affine { constant: 0, terms: vec![(term, 1)] }, factor)?,
        }
    }
    Some(sum)
}

/// Positions over the indices that stand for their own.
pub fn mapped_positions(positions: &[Position], map: &IndexMap) -> Option<Vec<Position>> {
    let mapped = positions.iter().map(|position| match position {
        Position::Affine(affine) => Some(Position::Affine(mapped(affine, map)?)),
        Position::Computed(expr) => {
            let mut expr = expr.clone();
            map_expr(&mut expr, map).then_some(Position::Computed(expr))
        }
    });
    mapped.collect()
}

/// Puts what stands for them in place of all indices of an expression; false where that does not go.
pub fn map_expr(expr: &mut Expr, map: &IndexMap) -> bool {
    let mut is_mapped = true;
    each_part(expr, &mut |part| {
        let done = match &mut part.kind {
            ExprKind::Index(index) => match map.get(*index).cloned().flatten() {
                Some(affine) => {
                    *part = value_of(&affine);
                    true
                }
                None => false,
            },
            ExprKind::Load(load) => load.positions.iter_mut().all(|position| match position {
                Position::Affine(affine) => mapped(affine, map).map(|mapped| *affine = mapped).is_some(),
                Position::Computed(_) => true,
            }),
            ExprKind::Reduce { indices, .. } => indices.iter_mut().all(|index| {
                let other = map.get(*index).and_then(|affine| alone(affine.as_ref()?));
                other.map(|other| *index = other).is_some()
            }),
            _ => true,
        };
        is_mapped &= done;
    });
    is_mapped
}

/// The value of an affine expression that fits an i32, whatever wraps on the way.
fn value_of(affine: &Affine) -> Expr {
    let of = |kind| Expr { kind, ty: Ty::I32 };
    let constant = |value: i64| of(ExprKind::Const(Value::I32(value as i32)));
    let infix = |op, a, b| of(ExprKind::Binary(op, Box::new(a), Box::new(b)));
    let mut sum: Option<Expr> = None;
    for &(term, factor) in &affine.terms {
        let value = of(match term {
            Term::Index(index) => ExprKind::Index(index),
            Term::Static(number) => ExprKind::Static(number),
        });
        let value = if factor == 1 { value } else { infix(BinaryOp::Mul, value, constant(factor)) };
        sum = Some(match sum {
            Some(sum) => infix(BinaryOp::Add, sum, value),
            None => value,
        });
    }
    match sum {
        None => constant(affine.constant),
        Some(sum) if affine.constant == 0 => sum,
        Some(sum) => infix(BinaryOp::Add, sum, constant(affine.constant)),
    }
}

/// Calls `rename` with every buffer that a nest reads.
pub fn rename_reads(nest: &mut Nest, rename: &dyn Fn(BufferIndex) -> BufferIndex) {
    let change = |expr: &mut Expr| {
        each_part(expr, &mut |part| {
            if let ExprKind::Load(load) = &mut part.kind {
                load.node = rename(load.node);
            }
        });
    };
    for stage in &mut nest.stages {
        change(&mut stage.value);
        if let Some(fold) = &mut stage.fold {
            change(&mut fold.start);
        }
        for position in stage.store.iter_mut().flat_map(|store| &mut store.positions) {
            if let Position::Computed(expr) = position {
                change(expr);
            }
        }
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

/// The expressions right inside an expression.
pub fn each_child<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Index(_) | ExprKind::Static(_) | ExprKind::Stage(_) => {}
        ExprKind::Load(Load { positions, pad, .. }) => {
            for position in positions {
                if let Position::Computed(expr) = position {
                    visit(expr);
                }
            }
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
