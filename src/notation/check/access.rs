//! Accesses: their positions, and what they are on the left.

use super::fault::{Checked, Fault, MEANING};
use super::operand::{Operand, mismatch};
use super::scope::{Access, Place, Scope, parts};
use crate::error::ErrorKind;
use crate::notation::ast::{AssignOp, Expr, ExprKind, Span};
use crate::notation::program::{Expr as Typed, ExprKind as Kind, Load, NodeIndex, Position, Ty};

impl<'a> Scope<'_, 'a> {
    /// An element of a node, with the value outside the tensor if it may leave it.
    pub(super) fn load(
        &mut self,
        node: NodeIndex,
        positions: &'a [Expr],
        at: Span,
        pad: Option<&'a Expr>,
    ) -> Checked<Operand<'a>> {
        self.has_rank(node, positions.len(), at)?;
        let (resolved, places) = self.positions(positions)?;
        let (is_padded, under) = (pad.is_some(), self.bound.clone());
        self.accesses.push(Access { node, places, is_padded, is_target: false, under });
        let ty = Ty::of(self.symbols.at(node).dtype);
        let pad = match pad {
            Some(value) => {
                let value = self.operand(value)?;
                if let (Some(found), Ty::I32 | Ty::U32 | Ty::Bool) = (value.ty(), ty)
                    && found != ty
                {
                    let (name, wanted) = (&self.symbols.at(node).name, ty.name());
                    let found = found.name();
                    let message =
                        format!("\"{name}\" is {wanted} and the value outside is {found}; write {wanted}(..)");
                    return Err(mismatch(value.span(), message));
                }
                Some(Box::new(value.into_ty(ty)?))
            }
            None => None,
        };
        let load = Load { node, positions: resolved, pad };
        Ok(Operand::Typed(Typed { kind: Kind::Load(load), ty }, at))
    }

    fn has_rank(&self, node: NodeIndex, found: usize, at: Span) -> Checked<()> {
        let node = self.symbols.at(node);
        let rank = node.shape.len();
        if rank == found {
            return Ok(());
        }
        let (name, shape) = (&node.name, &node.shape);
        let count = |number: usize| if number == 1 { "1 position".to_owned() } else { format!("{number} positions") };
        let (wanted, found_text) = (count(rank), count(found));
        let remedy = match (rank, found) {
            (0, _) => format!("write {name}"),
            (_, 0) => format!("write {name}[..] with {wanted}, or give the index another name"),
            _ => format!("write {wanted}"),
        };
        let message = format!("\"{name}\" has rank {rank} (shape {shape:?}), found {found_text}; {remedy}");
        Err(Fault::new(ErrorKind::ShapeMismatch, at, message))
    }

    fn positions(&mut self, positions: &'a [Expr]) -> Checked<(Vec<Position>, Vec<Place>)> {
        let mut resolved = Vec::with_capacity(positions.len());
        let mut places = Vec::with_capacity(positions.len());
        for position in positions {
            let affine = self.affine(position)?;
            resolved.push(match &affine {
                Some(affine) => Position::Affine(affine.clone()),
                None => Position::Computed(self.computed(position)?),
            });
            places.push(Place { affine, span: position.span });
        }
        Ok((resolved, places))
    }

    fn computed(&mut self, position: &'a Expr) -> Checked<Typed> {
        let value = self.operand(position)?;
        if let Some(found @ (Ty::F32 | Ty::Bool)) = value.ty() {
            let found = found.name();
            let message = format!("a position must be an integer, found {found}; write i32(..)");
            return Err(mismatch(position.span, message));
        }
        if self.count(position) == 0 {
            let message = "a position must be a sum of indices, statics and integers with constant factors, or read a \
                           tensor; where the index is split (i / 4, i % 4), run over its parts (x[4 * q + r])";
            return Err(Fault::new(MEANING, position.span, message));
        }
        value.settled()
    }

    /// How many accesses of tensors stand in an expression.
    fn count(&self, expr: &Expr) -> usize {
        let mut count = match &expr.kind {
            ExprKind::Access { .. } => 1,
            ExprKind::Name(name) if self.symbols.is_node(name) => 1,
            _ => 0,
        };
        parts(expr, &mut |part, _| count += self.count(part));
        count
    }

    /// The left side, of a node that exists.
    pub(super) fn target(&mut self, node: NodeIndex) -> Checked<Vec<Position>> {
        let statement = self.statement;
        self.has_rank(node, statement.positions.len(), statement.target.span)?;
        let (resolved, places) = self.positions(&statement.positions)?;
        for (position, expr) in resolved.iter().zip(&statement.positions) {
            if let Position::Computed(_) = position {
                self.is_scatter(expr)?;
            }
        }
        self.accesses.push(Access { node, places, is_padded: false, is_target: true, under: Vec::new() });
        Ok(resolved)
    }

    fn is_scatter(&self, position: &Expr) -> Checked<()> {
        if self.statement.op == AssignOp::Set {
            let message = "= cannot scatter, since two points may write one element; use +=, *=, max= or min=, or gather \
                           on the right instead";
            return Err(Fault::new(MEANING, position.span, message));
        }
        let count = self.count(position);
        if count == 1 {
            return Ok(());
        }
        let message = format!(
            "a position on the left may hold one tensor access, found {count}; assign the position to a node first"
        );
        Err(Fault::new(MEANING, position.span, message))
    }
}
