//! A checked program in words, for tests and for reports: a line per node, static bound and statement, every operator in
//! brackets, every constant with its type.

use std::fmt::{self, Display, Formatter};

use crate::notation::ast::AssignOp;
use crate::notation::program::{
    Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Origin, Position, Program, Statement, StaticBound, Term, Value,
    Write,
};

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::F32(value) => write!(f, "{value:?}"),
            Value::I32(value) => write!(f, "{value}i"),
            Value::U32(value) => write!(f, "{value}u"),
            Value::Bool(value) => write!(f, "{value}"),
        }
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let origin = match node.origin {
                Origin::Given => "given",
                Origin::Declared => "declared",
                Origin::Created => "created",
            };
            let output = if node.is_output { ", output" } else { "" };
            writeln!(f, "{}: {}{:?} {origin}{output}", node.name, node.dtype, node.shape)?;
        }
        for bound in &self.static_bounds {
            self.write_bound(bound, f)?;
        }
        for statement in &self.statements {
            self.write_statement(statement, f)?;
        }
        Ok(())
    }
}

impl Program {
    fn words<'p>(&'p self, indices: &'p [LoopIndex]) -> Words<'p> {
        let tensors = self.nodes.iter().map(|node| &*node.name).collect();
        Words { tensors, statics: &self.statics, indices }
    }

    fn write_bound(&self, bound: &StaticBound, f: &mut Formatter<'_>) -> fmt::Result {
        let terms = bound.terms.iter().map(|&(number, factor)| (Term::Static(number), factor));
        let sum = Affine { constant: 0, terms: terms.collect() };
        write!(f, "{} <= ", bound.least)?;
        self.words(&[]).write_affine(&sum, f)?;
        writeln!(f, " <= {} for axis {} of {}", bound.most, bound.axis, self.nodes[bound.node].name)
    }

    fn write_statement(&self, statement: &Statement, f: &mut Formatter<'_>) -> fmt::Result {
        let words = self.words(&statement.indices);
        f.write_str(&self.nodes[statement.target].name)?;
        words.write_positions(&statement.positions, f)?;
        let op = match statement.write {
            Write::Set => AssignOp::Set,
            Write::Onto(accumulate) => AssignOp::Onto(accumulate),
            Write::Fresh(accumulate) => AssignOp::Fresh(accumulate),
        };
        write!(f, " {} ", op.symbol())?;
        words.write_expr(&statement.value, f)?;
        write!(f, ": {}", statement.value.ty.name())?;
        words.write_ranges(" for ", &statement.free, f)?;
        words.write_ranges(" over ", &statement.reduced, f)?;
        writeln!(f)
    }
}

/// Expressions in words.
pub(crate) struct Words<'p> {
    /// The names of the tensors.
    pub(crate) tensors: Vec<&'p str>,
    /// The names of the statics.
    pub(crate) statics: &'p [String],
    /// The indices.
    pub(crate) indices: &'p [LoopIndex],
}

impl Words<'_> {
    fn write_affine(&self, affine: &Affine, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&affine.show(&|term| match term {
            Term::Index(index) => &self.indices[index].name,
            Term::Static(number) => &self.statics[number],
        }))
    }

    /// Ranges behind a word.
    pub(crate) fn write_ranges(&self, word: &str, indices: &[IndexId], f: &mut Formatter<'_>) -> fmt::Result {
        for (number, &index) in indices.iter().enumerate() {
            let LoopIndex { name, lo, hi } = &self.indices[index];
            write!(f, "{}{name} in {lo}:{hi}", if number == 0 { word } else { ", " })?;
        }
        Ok(())
    }

    /// Positions in brackets.
    pub(crate) fn write_positions(&self, positions: &[Position], f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (axis, position) in positions.iter().enumerate() {
            if axis > 0 {
                f.write_str(", ")?;
            }
            match position {
                Position::Affine(affine) => self.write_affine(affine, f)?,
                Position::Computed(expr) => {
                    f.write_str("at ")?;
                    self.write_expr(expr, f)?;
                }
            }
        }
        f.write_str("]")
    }

    fn write_load(&self, load: &Load, f: &mut Formatter<'_>) -> fmt::Result {
        if load.pad.is_some() {
            f.write_str("pad(")?;
        }
        f.write_str(self.tensors[load.node])?;
        self.write_positions(&load.positions, f)?;
        if let Some(pad) = &load.pad {
            f.write_str(", ")?;
            self.write_expr(pad, f)?;
            f.write_str(")")?;
        }
        Ok(())
    }

    fn write_list(&self, exprs: &[Expr], f: &mut Formatter<'_>) -> fmt::Result {
        for (number, expr) in exprs.iter().enumerate() {
            if number > 0 {
                f.write_str(", ")?;
            }
            self.write_expr(expr, f)?;
        }
        Ok(())
    }

    fn write_call(&self, name: &str, argument: &Expr, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{name}(")?;
        self.write_expr(argument, f)?;
        f.write_str(")")
    }

    /// An expression.
    pub(crate) fn write_expr(&self, expr: &Expr, f: &mut Formatter<'_>) -> fmt::Result {
        match &expr.kind {
            ExprKind::Const(value) => write!(f, "{value}"),
            ExprKind::Index(index) => f.write_str(&self.indices[*index].name),
            ExprKind::Static(number) => write!(f, "@{}", self.statics[*number]),
            ExprKind::Load(load) => self.write_load(load, f),
            ExprKind::Stage(stage) => write!(f, "%{stage}"),
            ExprKind::Unary(op, a) => self.write_call(op.symbol(), a, f),
            ExprKind::Binary(op, a, b) => {
                f.write_str("(")?;
                self.write_expr(a, f)?;
                write!(f, " {} ", op.symbol())?;
                self.write_expr(b, f)?;
                f.write_str(")")
            }
            ExprKind::Conditional(condition, a, b) => {
                f.write_str("(")?;
                self.write_expr(condition, f)?;
                f.write_str(" ? ")?;
                self.write_expr(a, f)?;
                f.write_str(" : ")?;
                self.write_expr(b, f)?;
                f.write_str(")")
            }
            ExprKind::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                self.write_list(arguments, f)?;
                f.write_str(")")
            }
            ExprKind::Cast(dtype, a) => self.write_call(dtype.name(), a, f),
            ExprKind::Bitcast(a) => {
                write!(f, "bitcast_{}", expr.ty.name())?;
                self.write_call("", a, f)
            }
            ExprKind::Reduce { op, indices, body } => {
                f.write_str(op.name())?;
                self.write_ranges("[", indices, f)?;
                self.write_call("]", body, f)
            }
        }
    }
}
