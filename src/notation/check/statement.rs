//! Statements: the left side, the right side, the ranges, and what follows from them.

use std::fmt::Arguments;

use super::fault::{Checked, Failed, MEANING};
use super::scope::{Belongs, Scope};
use super::symbols::Symbols;
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{self, AssignOp};
use crate::notation::program::{Affine, IndexId, LoopIndex, NodeIndex, Origin, Position, Statement, Term, Write};

/// Checks a statement, and adds it to the program.
pub(super) fn check<'a>(symbols: &mut Symbols<'a>, statement: &'a ast::Statement) -> Checked<()> {
    let name = statement.target.text.as_str();
    let at = statement.target.span.start;
    if symbols.is_constant(name) {
        let message =
            format_args!("\"{name}\" can only be read, as a constant or from the merge buffer; assign to another node");
        return Err(symbols.faults.fail(MEANING, at, message));
    }
    let known = symbols.node(name);
    let target = known.unwrap_or_else(|| symbols.reserve(name, Origin::Created));
    let is_new = known.is_none();
    let mut scope = Scope::new(symbols, statement);
    let dtype = scope.read(target, is_new)?;
    let shape = if is_new { scope.shape()? } else { Vec::new() };
    scope.finish(target);
    if is_new {
        symbols.define(name, at, target, dtype, shape);
    }
    Ok(())
}

impl<'a> Scope<'_, 'a> {
    /// Resolves and checks both sides; the dtype of the target.
    fn read(&mut self, target: NodeIndex, is_new: bool) -> Checked<DType> {
        let statement = self.statement;
        self.states_ranges()?;
        if is_new {
            self.created()?;
        } else {
            self.target(target)?;
        }
        self.operand(&statement.value)?;
        self.is_set_from_the_left()?;
        if is_new {
            self.settle(&statement.value)?;
        }
        let dtype = match self.last_ty() {
            Some(ty) if is_new => ty.dtype(),
            _ => self.symbols.at(target).dtype,
        };
        self.accumulates(dtype)?;
        if !is_new {
            self.store(&statement.value, dtype, target)?;
        }
        self.find_ranges()?;
        self.check_bounds()?;
        if statement.op == AssignOp::Set {
            self.is_injective()?;
        }
        Ok(dtype)
    }

    fn accumulates(&self, dtype: DType) -> Checked<()> {
        let statement = self.statement;
        if dtype != DType::Bool || statement.op == AssignOp::Set {
            return Ok(());
        }
        let (name, op) = (&statement.target.text, statement.op.symbol());
        Err(self.mismatch(
            statement.op_span.start,
            format_args!("\"{name}\" is bool, and {op} takes numbers; make it i32, or use = with && and ||"),
        ))
    }

    /// The left side of the first assignment of a node that is neither declared nor given.
    fn created(&mut self) -> Checked<()> {
        let statement = self.statement;
        let name = &statement.target.text;
        if let AssignOp::Onto(_) = statement.op {
            return Err(self.fail(
                ErrorKind::UnknownNode,
                statement.op_span.start,
                format_args!(
                    "\"{name}\" has no contents to accumulate onto; use = or the form with ! (+=!), or declare it"
                ),
            ));
        }
        if let Some(index) = self.indices.iter().find(|index| index.name == name) {
            return Err(self.node_as_index(name, index.at));
        }
        let mut seen: Vec<IndexId> = Vec::new();
        for position in &statement.positions {
            let at = position.span.start;
            let mut affine = Affine::default();
            let is_affine = self.affine(position, &mut affine)?;
            let index = affine.alone().filter(|index| is_affine && !seen.contains(index));
            let Some(index) = index else {
                return Err(self.creates(MEANING, at, format_args!("its positions must be distinct plain indices")));
            };
            seen.push(index);
            self.positions.push(Position::Affine(affine));
        }
        Ok(())
    }

    fn creates(&self, kind: ErrorKind, at: u32, why: Arguments<'_>) -> Failed {
        let name = &self.statement.target.text;
        let message =
            format_args!("the first assignment creates \"{name}\", so {why}; to write a part of it, declare it before");
        self.fail(kind, at, message)
    }

    /// With `=`, every index of the right side must stand on the left.
    fn is_set_from_the_left(&self) -> Checked<()> {
        let right = self.indices.iter().find(|index| index.belongs == Belongs::Right);
        let Some(index) = right.filter(|_| self.statement.op == AssignOp::Set) else { return Ok(()) };
        let name = index.name;
        Err(self.fail(
            MEANING,
            index.at,
            format_args!(
                "{name} stands on the right of = only; put it on the left too, or sum over it (+=!, sum[{name}](..))"
            ),
        ))
    }

    /// The extents of a created node.
    fn shape(&self) -> Checked<Vec<u32>> {
        let target = &self.statement.target;
        let mut shape = Vec::new();
        for position in &self.positions {
            let Position::Affine(affine) = position else { continue };
            let Some(&(Term::Index(index), _)) = affine.terms.first() else { continue };
            let index = &self.indices[index];
            let (lo, hi) = index.range.unwrap_or_default();
            if lo != 0 {
                let why = format_args!("{} must run from 0, and runs over {lo}:{hi}", index.name);
                return Err(self.creates(ErrorKind::ShapeMismatch, index.at, why));
            }
            shape.push(hi as u32);
        }
        self.symbols.is_countable(target, &shape)?;
        Ok(shape)
    }

    /// Adds the statement to the program.
    fn finish(mut self, target: NodeIndex) {
        let value = self.pop();
        let (mut free, mut reduced, mut indices) = (Vec::new(), Vec::new(), Vec::new());
        for (number, index) in self.indices.iter().enumerate() {
            match index.belongs {
                Belongs::Left => free.push(number),
                Belongs::Right => reduced.push(number),
                Belongs::Reduction => {}
            }
            let (lo, hi) = index.range.unwrap_or_default();
            indices.push(LoopIndex { name: index.name.to_owned(), lo, hi });
        }
        let write = match self.statement.op {
            AssignOp::Set => Write::Set,
            AssignOp::Onto(accumulate) => Write::Onto(accumulate),
            AssignOp::Fresh(accumulate) => Write::Fresh(accumulate),
        };
        let (positions, span) = (self.positions, self.statement.span);
        let statement = Statement { target, positions, write, value, indices, free, reduced, span };
        self.symbols.program.statements.push(statement);
    }
}
