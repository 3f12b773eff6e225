//! Accumulation: loops with a variable around them, each as far out as what it reads allows.

use crate::dtype::DType;
use crate::notation::ast::{Accumulate, ReduceOp};
use crate::notation::program::{Affine, Expr, ExprKind, IndexId, Position, Term, Ty, Value};
use crate::wgsl::emit::Emitter;
use crate::wgsl::emit::block::Operand;
use crate::wgsl::emit::expr::extremum;

impl Emitter<'_> {
    /// `a op b` of an accumulation.
    pub(super) fn combine(&mut self, op: Accumulate, ty: Ty, a: Operand, b: Operand) -> Operand {
        let is_float = ty == Ty::F32;
        match (op, ty) {
            (Accumulate::Add | Accumulate::Max, Ty::Bool) => self.infix("||", a, b),
            (Accumulate::Mul | Accumulate::Min, Ty::Bool) => self.infix("&&", a, b),
            (Accumulate::Add, _) => self.infix("+", a, b),
            (Accumulate::Mul, _) => self.infix("*", a, b),
            (Accumulate::Max, _) => self.call(extremum("max", is_float), &[a, b]),
            (Accumulate::Min, _) => self.call(extremum("min", is_float), &[a, b]),
        }
    }

    /// A reduction inside an expression: a loop as far out as its operands allow.
    pub(super) fn reduce(&mut self, op: ReduceOp, indices: &[IndexId], body: &Expr) -> Operand {
        let depth = self.depth_of(body, indices);
        let inner = self.block.leave(depth);
        let accumulate = match op {
            ReduceOp::Sum => Some(Accumulate::Add),
            ReduceOp::Prod => Some(Accumulate::Mul),
            ReduceOp::Max => Some(Accumulate::Max),
            ReduceOp::Min => Some(Accumulate::Min),
            ReduceOp::ArgMax | ReduceOp::ArgMin => None,
        };
        let value = match accumulate {
            Some(op) => {
                let start = self.constant(neutral(body.ty, op));
                self.accumulate(op, body.ty, start, indices, body)
            }
            None => self.arg(op == ReduceOp::ArgMax, indices, body),
        };
        self.block.enter(inner);
        Operand { depth, ..value }
    }

    /// Accumulates the values of an expression in the innermost scope, in order.
    pub(super) fn accumulate(
        &mut self,
        op: Accumulate,
        ty: Ty,
        start: Operand,
        indices: &[IndexId],
        body: &Expr,
    ) -> Operand {
        let name = self.block.name('a');
        self.block.line(&format!("var {name} = {};", start.text));
        let outside = self.block.depth();
        self.open_loops(indices);
        let value = self.expr(body);
        let depth = self.block.depth();
        let sum = Operand { text: name.clone(), depth, is_literal: false };
        let sum = self.combine(op, ty, sum, value);
        self.block.line(&format!("{name} = {};", sum.text));
        self.close_loops(indices);
        Operand { text: name, depth: outside, is_literal: false }
    }

    fn arg(&mut self, is_max: bool, indices: &[IndexId], body: &Expr) -> Operand {
        let (best, at, found) = (self.block.name('a'), self.block.name('a'), self.block.name('a'));
        self.block.line(&format!("var {best} = {}();", wgsl_type(body.ty)));
        self.block.line(&format!("var {at} = 0i;"));
        self.block.line(&format!("var {found} = false;"));
        let outside = self.block.depth();
        self.open_loops(indices);
        let value = self.expr(body);
        let value = self.runtime(value);
        let index = match indices.first() {
            Some(index) => self.index_value(*index),
            None => self.constant(Value::I32(0)),
        };
        let is_number = if body.ty == Ty::F32 {
            let is_nan = self.call("lab_isnan", std::slice::from_ref(&value));
            format!("!{} && ", is_nan.text)
        } else {
            String::new()
        };
        let order = if is_max { ">" } else { "<" };
        let (value, index) = (value.text, index.text);
        self.block.line(&format!("if ({is_number}(!{found} || {value} {order} {best})) {{"));
        self.block.line(&format!("  {best} = {value};"));
        self.block.line(&format!("  {at} = {index};"));
        self.block.line(&format!("  {found} = true;"));
        self.block.line("}");
        self.close_loops(indices);
        Operand { text: at, depth: outside, is_literal: false }
    }

    /// The loops that a value needs, those of `bound` indices aside.
    fn depth_of(&self, expr: &Expr, bound: &[IndexId]) -> usize {
        let of_index = |index: &IndexId| if bound.contains(index) { 0 } else { self.index_depth(*index) };
        let of_affine = |affine: &Affine| {
            let indices = affine.terms.iter().map(|(term, _)| match term {
                Term::Index(index) => of_index(index),
                Term::Static(_) => 0,
            });
            indices.max().unwrap_or(0)
        };
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Static(_) => 0,
            ExprKind::Index(index) => of_index(index),
            ExprKind::Load(load) => {
                let positions = load.positions.iter().map(|position| match position {
                    Position::Affine(affine) => of_affine(affine),
                    Position::Computed(expr) => self.depth_of(expr, bound),
                });
                let pad = load.pad.as_ref().map_or(0, |pad| self.depth_of(pad, bound));
                positions.max().unwrap_or(0).max(pad)
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Bitcast(a) => self.depth_of(a, bound),
            ExprKind::Binary(_, a, b) => self.depth_of(a, bound).max(self.depth_of(b, bound)),
            ExprKind::Conditional(a, b, c) => {
                self.depth_of(a, bound).max(self.depth_of(b, bound)).max(self.depth_of(c, bound))
            }
            ExprKind::Call(_, arguments) => {
                arguments.iter().map(|argument| self.depth_of(argument, bound)).max().unwrap_or(0)
            }
            ExprKind::Reduce { indices, body, .. } => {
                let bound: Vec<IndexId> = bound.iter().chain(indices).copied().collect();
                self.depth_of(body, &bound)
            }
        }
    }
}

/// The name of a type.
pub(super) fn wgsl_type(ty: Ty) -> &'static str {
    match ty {
        Ty::F32 => "f32",
        Ty::I32 => "i32",
        Ty::U32 => "u32",
        Ty::Bool => "bool",
    }
}

/// What an accumulation of a type starts from.
pub(super) fn neutral(ty: Ty, op: Accumulate) -> Value {
    crate::loops::lower::neutral(
        match ty {
            Ty::F32 => DType::F32,
            Ty::I32 => DType::I32,
            Ty::U32 => DType::U32,
            Ty::Bool => DType::Bool,
        },
        op,
    )
}
