//! What the parser refuses, in syntax that was made by hand.

use super::fault::{Fault, MEANING};
use super::scope::visit_parts;
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{Expr, ExprKind, Item, ReduceOp};
use crate::notation::words::MAX_RANK;

/// The first mistake that no text could have.
pub(super) fn mistake(item: &Item) -> Option<Fault> {
    let (name, rank) = match item {
        Item::Declaration(declaration) => (&declaration.name, declaration.extents.len()),
        Item::Statement(statement) => (&statement.target, statement.positions.len()),
    };
    if rank > MAX_RANK {
        let message = format!("\"{}\" has rank {rank}; programs work with rank 0 to {MAX_RANK}", name.text);
        return Some(Fault::new(ErrorKind::ShapeMismatch, name.span.start, message));
    }
    let Item::Statement(statement) = item else { return None };
    for range in &statement.ranges {
        let (lo, hi) = (range.lo, range.hi);
        if lo > hi {
            let message = format!("the range {lo}:{hi} ends before it starts; lo:hi needs lo <= hi");
            return Some(Fault::new(MEANING, range.span.start, message));
        }
    }
    statement.positions.iter().chain([&statement.value]).find_map(mistake_in)
}

fn mistake_in(expr: &Expr) -> Option<Fault> {
    let fault = |kind, message| Some(Fault::new(kind, expr.span.start, message));
    match &expr.kind {
        ExprKind::Call(function, arguments) if arguments.len() != function.arity() => {
            let (word, wanted, found) = (function.name(), function.arity(), arguments.len());
            let message = format!("{word} takes {wanted} arguments, found {found}; write {word}(..)");
            return fault(ErrorKind::NotationSyntax, message);
        }
        ExprKind::Pad { access, .. } if !matches!(access.kind, ExprKind::Access { .. }) => {
            let message = "pad takes an access of a tensor first (pad(x[i - 1], 0)); put the rest around the pad";
            return fault(MEANING, message.to_owned());
        }
        ExprKind::Bitcast(dtype, _) if !matches!(dtype, DType::F32 | DType::I32 | DType::U32) => {
            let message = format!("bitcast_{dtype} takes a value of 32 bits to another; write {dtype}(..)");
            return fault(ErrorKind::DTypeMismatch, message);
        }
        ExprKind::Reduce { op, indices, .. } => {
            let (word, found) = (op.name(), indices.len());
            let is_argument = matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin);
            if found == 0 || is_argument && found > 1 {
                let wanted = if is_argument { "one index" } else { "indices" };
                return fault(MEANING, format!("{word} takes {wanted}, found {found}; write {word}[k](..)"));
            }
            for (number, index) in indices.iter().enumerate() {
                if indices[..number].iter().any(|other| other.text == index.text) {
                    let message = format!("{} is named twice; name each index once", index.text);
                    return Some(Fault::new(ErrorKind::DuplicateNode, index.span.start, message));
                }
            }
        }
        _ => {}
    }
    let mut first = None;
    visit_parts(expr, &mut |part, _| {
        if first.is_none() {
            first = mistake_in(part);
        }
    });
    first
}
