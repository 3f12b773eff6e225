//! Accesses: their positions, and what they are on the left.

use super::fault::{Checked, MEANING};
use super::scope::{Access, Place, Scope, visit_parts};
use super::types::Takes;
use crate::error::ErrorKind;
use crate::node::List;
use crate::notation::ast::{AssignOp, Expr, ExprKind};
use crate::notation::program::{Affine, ExprKind as Kind, Load, NodeIndex, Position, Ty};

impl<'a> Scope<'_, 'a> {
    /// An element of a node, with the value outside the tensor if it may leave it.
    pub(super) fn load(
        &mut self,
        node: NodeIndex,
        positions: &'a [Expr],
        at: u32,
        pad: Option<&'a Expr>,
    ) -> Checked<()> {
        let access = if pad.is_some() { Access::Padded } else { Access::Read };
        let positions = self.positions(node, positions, at, access)?;
        let dtype = self.symbols.at(node).dtype;
        let ty = Ty::of(dtype);
        let pad = match pad {
            Some(value) => {
                self.operand(value)?;
                self.store(value, ty.dtype(), node)?;
                Some(self.pop())
            }
            None => None,
        };
        self.push(Kind::Load(Load { node, positions, pad }), ty);
        Ok(())
    }

    fn has_as_many(&self, node: NodeIndex, found: usize, at: u32) -> Checked<()> {
        let node = self.symbols.at(node);
        let (name, shape, rank) = (&node.name, &node.shape, node.shape.len());
        if rank == found {
            return Ok(());
        }
        let remedy = match (rank, found) {
            (0, _) => "leave the bracket out",
            (_, 0) => "write a bracket, or give the index another name",
            _ => "write one per axis",
        };
        Err(self.fail(
            ErrorKind::ShapeMismatch,
            at,
            format_args!(
                "\"{name}\" has rank {rank} (shape {}), and found are {found} positions; {remedy}",
                List(shape)
            ),
        ))
    }

    /// The positions of an access.
    fn positions(&mut self, node: NodeIndex, positions: &'a [Expr], at: u32, access: Access) -> Checked<Vec<Position>> {
        self.has_as_many(node, positions.len(), at)?;
        let mut resolved = Vec::new();
        let mut places = Vec::new();
        for (axis, position) in positions.iter().enumerate() {
            let (span, extent) = (position.span, self.symbols.at(node).shape[axis]);
            let mut sum = Affine::default();
            let affine = if self.affine(position, &mut sum)? {
                resolved.push(Position::Affine(sum.clone()));
                Some(sum)
            } else {
                self.computed(position)?;
                resolved.push(Position::Computed(self.pop()));
                None
            };
            places.push(Place { affine, span, node, axis, extent, access, under: self.inner });
        }
        self.places.append(&mut places);
        Ok(resolved)
    }

    fn computed(&mut self, position: &'a Expr) -> Checked<()> {
        self.operand(position)?;
        self.takes(Takes::Integers, &[position], "a position")?;
        if self.count(position) == 0 {
            return Err(self.fail(
                MEANING,
                position.span.start,
                format_args!(
                    "a position is a sum of indices, statics and integers with constant factors, or reads a tensor; in \
                     place of i / 4 and i % 4, run over both (x[4 * q + r])"
                ),
            ));
        }
        self.settle(position)
    }

    /// How many accesses of tensors stand in an expression.
    fn count(&self, expr: &Expr) -> usize {
        let mut count = match &expr.kind {
            ExprKind::Access { .. } => 1,
            ExprKind::Name(name) => usize::from(self.symbols.is_node(name)),
            _ => 0,
        };
        visit_parts(expr, &mut |part, _| count += self.count(part));
        count
    }

    /// The left side, of a node that exists.
    pub(super) fn target(&mut self, node: NodeIndex) -> Checked<()> {
        let statement = self.statement;
        let exprs = &statement.positions;
        self.positions = self.positions(node, exprs, statement.target.span.start, Access::Target)?;
        for (position, expr) in self.positions.iter().zip(exprs) {
            if let Position::Computed(_) = position {
                self.is_scatter(expr)?;
            }
        }
        Ok(())
    }

    fn is_scatter(&self, position: &Expr) -> Checked<()> {
        let at = position.span.start;
        if self.statement.op == AssignOp::Set {
            return Err(self.fail(
                MEANING,
                at,
                format_args!(
                    "= cannot scatter, since two points may write one element; accumulate (+=), or gather on the right"
                ),
            ));
        }
        let count = self.count(position);
        if count == 1 {
            return Ok(());
        }
        Err(self.fail(
            MEANING,
            at,
            format_args!("a position on the left takes one tensor access, found {count}; assign it to a node first"),
        ))
    }
}
