//! Statements: the left side, the right side, the ranges, and what follows from them.

use super::affine::alone;
use super::fault::{Checked, Fault, MEANING};
use super::operand::mismatch;
use super::scope::{Belongs, Scope};
use super::symbols::{Symbols, is_countable};
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{self, AssignOp};
use crate::notation::program::{
    Expr, IndexId, LoopIndex, NodeIndex, Origin, Position, Statement, StaticBound, Term, Ty, Write,
};
use crate::notation::words::MAX_RANK;

/// Checks a statement, and adds it to the program.
pub(super) fn check<'a>(symbols: &mut Symbols<'a>, statement: &'a ast::Statement) -> Checked<()> {
    let name = statement.target.text.as_str();
    let at = statement.target.span;
    if symbols.is_constant(name) {
        let message = format!("\"{name}\" is a constant, initialised once; give it as on_device to write to it");
        return Err(Fault::new(MEANING, at, message));
    }
    let known = symbols.node(name);
    let target = known.unwrap_or_else(|| symbols.reserve(name, Origin::Created));
    let is_new = known.is_none();
    let mut scope = Scope::new(symbols, statement)?;
    let positions = if is_new { scope.created()? } else { scope.target(target)? };
    let value = scope.operand(&statement.value)?;
    scope.is_set_from_the_left()?;
    let (value, dtype) = if is_new {
        let value = value.settled()?;
        let dtype = match value.ty {
            Ty::F32 => DType::F32,
            Ty::I32 => DType::I32,
            Ty::U32 => DType::U32,
            Ty::Bool => DType::Bool,
        };
        accumulates(statement, dtype)?;
        (value, dtype)
    } else {
        let dtype = scope.symbols.at(target).dtype;
        accumulates(statement, dtype)?;
        (value.stored(dtype, name)?, dtype)
    };
    scope.find_ranges()?;
    let bounds = scope.check_bounds()?;
    if statement.op == AssignOp::Set {
        scope.is_injective(&positions)?;
    }
    let shape = if is_new { Some(scope.shape(&positions)?) } else { None };
    let checked = scope.finish(target, positions, value);
    if let Some(shape) = shape {
        symbols.define(name, at, target, dtype, shape);
    }
    symbols.program.statements.push(checked);
    for bound in bounds {
        let is_same = |known: &StaticBound| {
            (&known.terms, known.least, known.most, known.node, known.axis)
                == (&bound.terms, bound.least, bound.most, bound.node, bound.axis)
        };
        if !symbols.program.static_bounds.iter().any(is_same) {
            symbols.program.static_bounds.push(bound);
        }
    }
    Ok(())
}

fn accumulates(statement: &ast::Statement, dtype: DType) -> Checked<()> {
    if dtype != DType::Bool || statement.op == AssignOp::Set {
        return Ok(());
    }
    let (name, op) = (&statement.target.text, statement.op.symbol());
    let message = format!("\"{name}\" is bool, and {op} takes numbers; make it i32, or use = with && and ||");
    Err(mismatch(statement.op_span, message))
}

impl<'a> Scope<'_, 'a> {
    /// The left side of the first assignment of a node that is neither declared nor given.
    fn created(&mut self) -> Checked<Vec<Position>> {
        let statement = self.statement;
        let name = &statement.target.text;
        if let AssignOp::Onto(_) = statement.op {
            let message = format!(
                "\"{name}\" has no contents to accumulate onto: nothing is declared, given or assigned before under that \
                 name; use = or the form with ! (+=!), or declare it"
            );
            return Err(Fault::new(ErrorKind::UnknownNode, statement.op_span, message));
        }
        if let Some(index) = self.indices.iter().find(|index| index.name == name) {
            let message =
                format!("\"{name}\" is the node that is created here and an index; give the index another name");
            return Err(Fault::new(ErrorKind::DuplicateNode, index.at, message));
        }
        let rank = statement.positions.len();
        if rank > MAX_RANK {
            let message = format!("\"{name}\" has rank {rank}; programs work with rank 0 to {MAX_RANK}");
            return Err(Fault::new(ErrorKind::ShapeMismatch, statement.target.span, message));
        }
        let mut positions = Vec::with_capacity(rank);
        let mut seen: Vec<IndexId> = Vec::new();
        for position in &statement.positions {
            let affine = self.affine(position)?;
            let Some((affine, index)) = affine.and_then(|affine| alone(&affine).map(|index| (affine, index))) else {
                let message = format!(
                    "the first assignment creates \"{name}\", so its positions must be plain indices; declare \"{name}\" \
                     before to write a part of it"
                );
                return Err(Fault::new(MEANING, position.span, message));
            };
            if seen.contains(&index) {
                let index = self.indices[index].name;
                let message = format!(
                    "the first assignment creates \"{name}\", so its indices must be distinct, and {index} stands twice; \
                     declare \"{name}\" before to write its diagonal"
                );
                return Err(Fault::new(MEANING, position.span, message));
            }
            seen.push(index);
            positions.push(Position::Affine(affine));
        }
        Ok(positions)
    }

    /// With `=`, every index of the right side must stand on the left.
    fn is_set_from_the_left(&self) -> Checked<()> {
        let right = self.indices.iter().find(|index| index.belongs == Belongs::Right);
        match right {
            Some(index) if self.statement.op == AssignOp::Set => {
                let name = index.name;
                let message = format!(
                    "{name} stands on the right of = only; put it on the left too, sum over it (+=!), or reduce over it \
                     (sum[{name}](..))"
                );
                Err(Fault::new(MEANING, index.at, message))
            }
            _ => Ok(()),
        }
    }

    /// The extents of a created node.
    fn shape(&self, positions: &[Position]) -> Checked<Vec<u32>> {
        let mut shape = Vec::with_capacity(positions.len());
        for position in positions {
            let Position::Affine(affine) = position else { continue };
            let Some(&(Term::Index(index), _)) = affine.terms.first() else { continue };
            let index = &self.indices[index];
            let (lo, hi) = index.range.unwrap_or_default();
            if lo != 0 {
                let (target, name) = (&self.statement.target.text, index.name);
                let message = format!(
                    "the first assignment creates \"{target}\", so {name} must run from 0, and runs over {lo}:{hi}; declare \
                     \"{target}\" before to write a part of it"
                );
                return Err(Fault::new(ErrorKind::ShapeMismatch, index.at, message));
            }
            shape.push(u32::try_from(hi).unwrap_or_default());
        }
        is_countable(&self.statement.target, &shape)?;
        Ok(shape)
    }

    fn finish(self, target: NodeIndex, positions: Vec<Position>, value: Expr) -> Statement {
        let of = |belongs| {
            let all = self.indices.iter().enumerate();
            all.filter(move |(_, index)| index.belongs == belongs).map(|(number, _)| number).collect()
        };
        let (free, reduced) = (of(Belongs::Left), of(Belongs::Right));
        let ranged = self.indices.iter().map(|index| {
            let (lo, hi) = index.range.unwrap_or_default();
            LoopIndex { name: index.name.to_owned(), lo, hi }
        });
        let indices = ranged.collect();
        let write = match self.statement.op {
            AssignOp::Set => Write::Set,
            AssignOp::Onto(accumulate) => Write::Onto(accumulate),
            AssignOp::Fresh(accumulate) => Write::Fresh(accumulate),
        };
        Statement { target, positions, write, value, indices, free, reduced, span: self.statement.span }
    }
}
