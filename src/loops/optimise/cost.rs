//! What it costs to compute a value, in units of a simple operation. The figures are rough on purpose: they decide between
//! computing something again and storing it, not between two ways of computing it.

use crate::dtype::DType;
use crate::loops::ir::Nest;
use crate::loops::rewrite::each_child;
use crate::notation::ast::{BinaryOp, Function};
use crate::notation::program::{self, Expr, ExprKind, LoopIndex, points};

/// A load.
pub const ACCESS: u64 = 4;
/// A division, a conversion to or from a float of 16 bits.
const SLOW: u64 = 4;
/// A function of the library: exponentials, logarithms, trigonometry.
const FUNCTION: u64 = 8;
/// Functions that are made of several of those.
const LONG_FUNCTION: u64 = 32;

/// What computing an expression once costs, where an access costs so much, and how many parts it has; both saturate.
pub fn cost(expr: &Expr, indices: &[LoopIndex], access: u64) -> (u64, u64) {
    let (own, mut times) = match &expr.kind {
        ExprKind::Const(_) | ExprKind::Index(_) | ExprKind::Static(_) | ExprKind::Stage(_) => (0, 1),
        ExprKind::Load(_) => (access, 1),
        ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, ..) => (SLOW, 1),
        ExprKind::Binary(BinaryOp::Pow, ..) => (FUNCTION, 1),
        ExprKind::Cast(DType::F16 | DType::BF16, _) => (SLOW, 1),
        ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Conditional(..)
        | ExprKind::Cast(..)
        | ExprKind::Bitcast(_) => (1, 1),
        ExprKind::Call(function, _) => (of_function(*function), 1),
        ExprKind::Reduce { indices: over, .. } => (0, points(indices, over)),
    };
    let (mut inner, mut parts) = (0u64, 1u64);
    each_child(expr, &mut |child| {
        let (cost, size) = cost(child, indices, access);
        inner = inner.saturating_add(cost);
        parts = parts.saturating_add(size);
    });
    if let ExprKind::Reduce { .. } = expr.kind {
        inner = inner.saturating_add(1);
        times = times.max(1);
    }
    (program::times(inner, times).saturating_add(own), parts)
}

fn of_function(function: Function) -> u64 {
    match function {
        Function::Abs
        | Function::Sign
        | Function::Floor
        | Function::Ceil
        | Function::Round
        | Function::Trunc
        | Function::Min
        | Function::Max
        | Function::Clamp
        | Function::Fma
        | Function::Relu
        | Function::Select
        | Function::IsNan
        | Function::IsInf => 1,
        Function::Sqrt | Function::Rsqrt => SLOW,
        Function::Threefry | Function::Uniform | Function::Normal | Function::Erf | Function::Gelu => LONG_FUNCTION,
        _ => FUNCTION,
    }
}

/// How deep an expression is.
pub fn depth(expr: &Expr) -> u32 {
    let mut most = 0;
    each_child(expr, &mut |child| most = most.max(depth(child)));
    most + 1
}

/// How many parts the expressions of a nest have together, and how deep the deepest is.
pub fn size(nest: &Nest) -> (u64, u32) {
    let (mut parts, mut deepest) = (0, 0);
    for stage in &nest.stages {
        stage.each_expr(&mut |expr| {
            parts += cost(expr, &nest.indices, 0).1;
            deepest = deepest.max(depth(expr));
        });
    }
    (parts, deepest)
}

/// The operations of a nest at all its points.
pub fn operations(nest: &Nest) -> u64 {
    let mut point = 0u64;
    for stage in &nest.stages {
        let (mut own, _) = cost(&stage.value, &nest.indices, 0);
        if let Some(fold) = &stage.fold {
            own = program::times(points(&nest.indices, &fold.over), own.saturating_add(1));
        }
        point = point.saturating_add(own);
    }
    program::times(points(&nest.indices, &nest.free), point)
}
