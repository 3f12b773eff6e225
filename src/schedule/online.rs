//! Stages that one turn over a row is enough for: a maximum, and the sum of the exponentials below it.

use crate::loops::ir::{Nest, Stage};
use crate::loops::rewrite::{IndexMap, any_part, map_expr};
use crate::notation::ast::{Accumulate, BinaryOp, Function};
use crate::notation::program::{Affine, Expr, ExprKind, Ty, Value, points};

/// The number of the maximum, which the sum comes right behind.
pub fn online(nest: &Nest) -> Option<usize> {
    (0..nest.stages.len()).find(|at| is_below(nest, *at))
}

fn is_below(nest: &Nest, at: usize) -> bool {
    let [Stage { value, fold: Some(greatest), .. }, Stage { value: below, fold: Some(sum), .. }, ..] =
        &nest.stages[at..]
    else {
        return false;
    };
    let Some(ExprKind::Binary(BinaryOp::Sub, of, from)) = exponent(below) else { return false };
    let mut map = IndexMap::identity(nest.indices.len());
    let mut is_same = sum.over.len() == greatest.over.len();
    for (own, other) in sum.over.iter().zip(&greatest.over) {
        let (one, two) = (&nest.indices[*own], &nest.indices[*other]);
        is_same &= (one.lo, one.hi) == (two.lo, two.hi);
        map.put(*own, Affine::index(*other, 0));
    }
    let mut of = of.clone();
    value.ty == Ty::F32
        && greatest.op == Some(Accumulate::Max)
        && sum.op == Some(Accumulate::Add)
        && !greatest.is_each
        && !sum.is_each
        && is_same
        && points(&nest.indices, &greatest.over) > 0
        // So that it is a number but for infinities, whatever it is of.
        && greatest.start.kind == ExprKind::Const(Value::F32(f32::NEG_INFINITY))
        && from.kind == ExprKind::Stage(at)
        && map_expr(&mut of, &map)
        && of == *value
        && !any_part(&sum.start, &mut |part| matches!(part.kind, ExprKind::Stage(_)))
}

/// What an exponential is of.
fn exponent(expr: &Expr) -> Option<&ExprKind> {
    match &expr.kind {
        ExprKind::Call(Function::Exp, arguments) => arguments.first().map(|argument| &argument.kind),
        _ => None,
    }
}
