//! Programs that are a step smaller, to find what a mistake takes.

use wgslab::notation::ast::{Ast, Expr, ExprKind, Item};
use wgslab::notation::parse;

use super::super::grow::Grown;

/// Everything that is a step smaller.
pub fn smaller(grown: &Grown) -> Vec<Grown> {
    let Ok(ast) = parse(&grown.text) else { return Vec::new() };
    let mut found = Vec::new();
    let mut with = |ast: &Ast| {
        let mut next = Grown { text: ast.to_string(), ..grown.clone() };
        let created = |name: &String| {
            let is_target = |item: &Item| matches!(item, Item::Statement(statement) if statement.target.text == *name);
            ast.items.iter().any(is_target)
        };
        next.outputs.retain(created);
        let Ok(program) = next.program() else { return };
        let mut at = 0;
        next.bytes.retain(|_| {
            at += 1;
            program.nodes.iter().any(|node| node.name == next.given[at - 1].name)
        });
        next.given.retain(|given| program.nodes.iter().any(|node| node.name == given.name));
        if next.text.len() < grown.text.len() {
            found.push(next);
        }
    };
    for item in 0..ast.items.len() {
        let mut less = ast.clone();
        less.items.remove(item);
        with(&less);
    }
    for item in 0..ast.items.len() {
        let Item::Statement(statement) = &ast.items[item] else { continue };
        for range in 0..statement.ranges.len() {
            let mut less = ast.clone();
            if let Item::Statement(statement) = &mut less.items[item] {
                statement.ranges.remove(range);
            }
            with(&less);
        }
        let mut parts = 0;
        visit(&mut statement.value.clone(), &mut |_| parts += 1);
        for part in 0..parts {
            for child in 0..4 {
                let mut less = ast.clone();
                let Item::Statement(statement) = &mut less.items[item] else { continue };
                let (mut at, mut is_changed) = (0, false);
                visit(&mut statement.value, &mut |expr| {
                    if at == part
                        && let Some(less) = children(expr).into_iter().nth(child)
                    {
                        *expr = less.clone();
                        is_changed = true;
                    }
                    at += 1;
                });
                if is_changed {
                    with(&less);
                }
            }
        }
    }
    found
}

fn children(expr: &mut Expr) -> Vec<&mut Expr> {
    match &mut expr.kind {
        ExprKind::Access { positions, .. } => positions.iter_mut().collect(),
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(_, a) => vec![a],
        ExprKind::Binary(_, a, b) => vec![a, b],
        ExprKind::Conditional(a, b, c) => vec![a, b, c],
        ExprKind::Call(_, arguments) => arguments.iter_mut().collect(),
        ExprKind::Reduce { body, .. } => vec![body],
        ExprKind::Pad { access, value } => vec![access, value],
        _ => Vec::new(),
    }
}

fn visit(expr: &mut Expr, body: &mut dyn FnMut(&mut Expr)) {
    body(expr);
    for child in children(expr) {
        visit(child, body);
    }
}
