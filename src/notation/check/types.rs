//! Expressions with their types.
//!
//! What is resolved is put on a stack, [`Scope::values`], from which what is above takes it. Expressions of integer literals,
//! and choices between such, have no type until they meet one: on the stack, a constant that is a bool of type i32 stands
//! for a literal, whose value is found in the syntax when its type is known. No checked program has one.

use std::fmt::Arguments;

use super::fault::{Checked, Failed};
use super::literal;
use super::scope::{Meaning, Scope, parts};
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, Function, ReduceOp, UnaryOp};
use crate::notation::program::{Expr as Typed, ExprKind as Kind, IndexId, NodeIndex, Ty, Value};
use crate::notation::words::level;

/// What an operator or a function takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Anything of one type.
    One,
    /// Numbers of one type.
    Numbers,
    /// Numbers of one type that are compared.
    Ordered,
    /// Floats, and integers as such.
    Floats,
    /// u32.
    Unsigned,
    /// Integers of one type.
    Integers,
    /// Integers of one type; of bools, other operators are meant.
    Bits,
    /// An integer, and another of any integer type.
    Shift,
    /// As a shift, and floats.
    Power,
    /// Bools.
    Truths,
}

/// The byte at which an operand stands, for messages.
pub(super) fn start(expr: &Expr) -> u32 {
    match &expr.kind {
        ExprKind::Access { name, .. } => name.span.start,
        ExprKind::Pad { access, .. } => start(access),
        _ => expr.span.start,
    }
}

/// The first branch of a choice, in what is resolved and in the syntax.
fn first_branch<'t, 'e>(typed: &'t Typed, expr: &'e Expr) -> Option<(&'t Typed, &'e Expr)> {
    let Kind::Conditional(_, typed, _) = &typed.kind else { return None };
    let expr = match &expr.kind {
        ExprKind::Conditional(_, a, _) => a,
        ExprKind::Call(_, arguments) => arguments.get(1)?,
        _ => return None,
    };
    Some((typed, expr))
}

/// The type of what is resolved; none of literals and of choices between them.
fn ty_of(mut typed: &Typed) -> Option<Ty> {
    let ty = typed.ty;
    while let Kind::Conditional(_, branch, _) = &typed.kind {
        typed = branch;
    }
    let is_literal = matches!(typed.kind, Kind::Const(Value::Bool(_))) && typed.ty != Ty::Bool;
    if is_literal { None } else { Some(ty) }
}

fn convert(typed: &mut Typed, dtype: DType) {
    let inner = std::mem::replace(typed, nothing());
    *typed = Typed::new(Kind::Cast(dtype, inner), Ty::of(dtype));
}

/// An integer as a float; anything else as it is.
fn float(typed: &mut Typed) {
    if matches!(typed.ty, Ty::I32 | Ty::U32) {
        convert(typed, DType::F32);
    }
}

/// What stands for a literal.
fn nothing() -> Typed {
    Typed::new(Kind::Const(Value::Bool(false)), Ty::I32)
}

impl<'a> Scope<'_, 'a> {
    pub(super) fn mismatch(&self, at: u32, message: Arguments<'_>) -> Failed {
        self.fail(ErrorKind::DTypeMismatch, at, message)
    }

    pub(super) fn push(&mut self, kind: Kind, ty: Ty) {
        self.values.push(Typed::new(kind, ty));
    }

    pub(super) fn pop(&mut self) -> Typed {
        self.values.pop().unwrap_or_else(nothing)
    }

    /// The type of what was resolved last.
    pub(super) fn last_ty(&self) -> Option<Ty> {
        self.values.last().and_then(ty_of)
    }

    /// An expression, resolved onto the stack; each part of it is resolved once, in the order of the text.
    pub(super) fn operand(&mut self, expr: &'a Expr) -> Checked<()> {
        match literal::class(expr) {
            Some(Ty::Bool) => {
                let truth = self.fold(expr, Ty::I32)? != 0;
                self.push(Kind::Const(Value::Bool(truth)), Ty::Bool);
                return Ok(());
            }
            Some(_) => {
                self.values.push(nothing());
                return Ok(());
            }
            None => {}
        }
        match &expr.kind {
            ExprKind::Access { name, positions } => {
                let node = self.accessed(name)?;
                return self.load(node, positions, name.span.start, None);
            }
            ExprKind::Pad { access, value } => {
                if let ExprKind::Access { name, positions } = &access.kind {
                    let node = self.accessed(name)?;
                    return self.load(node, positions, name.span.start, Some(value));
                }
                return Err(Failed);
            }
            ExprKind::Name(name) => match self.meaning(name, expr.span.start)? {
                Meaning::Index(index) => self.push(Kind::Index(index), Ty::I32),
                Meaning::Node(node) => return self.load(node, &[], expr.span.start, None),
            },
            ExprKind::Static(name) => {
                let index = self.symbols.static_index(name);
                self.push(Kind::Static(index), Ty::I32);
            }
            ExprKind::Float(number) => {
                let narrow = *number as f32;
                if narrow.is_infinite() {
                    return Err(self.mismatch(
                        expr.span.start,
                        format_args!("this number is too large for f32 (3.4028235e38 at most); write inf"),
                    ));
                }
                self.push_float(narrow);
            }
            ExprKind::Inf => self.push_float(f32::INFINITY),
            ExprKind::Nan => self.push_float(f32::NAN),
            ExprKind::Pi => self.push_float(std::f32::consts::PI),
            _ => return self.above(expr),
        }
        Ok(())
    }

    fn push_float(&mut self, value: f32) {
        self.push(Kind::Const(Value::F32(value)), Ty::F32);
    }

    /// An expression above others.
    fn above(&mut self, expr: &'a Expr) -> Checked<()> {
        let outside = self.inner;
        let mut bound = Vec::new();
        let mut is_choice = false;
        match &expr.kind {
            ExprKind::Reduce { indices, .. } => bound = self.bind(indices)?,
            ExprKind::Conditional(..) => is_choice = true,
            ExprKind::Call(function, _) => is_choice = *function == Function::Select,
            _ => {}
        }
        let parts = parts(expr);
        for (number, part) in parts.iter().enumerate() {
            self.operand(part)?;
            if is_choice && number == 0 {
                self.takes(Takes::Truths, &parts[..1], "a condition")?;
            }
        }
        self.inner = outside;
        self.resolved(expr, &parts, bound)
    }

    /// An expression above those that were resolved last.
    fn resolved(&mut self, expr: &Expr, parts: &[&Expr], bound: Vec<IndexId>) -> Checked<()> {
        let at = expr.span.start;
        let mut ty;
        let kind = match &expr.kind {
            ExprKind::Unary(op, _) => {
                let (takes, word) = match op {
                    UnaryOp::Neg => (Takes::Numbers, "-"),
                    UnaryOp::Not => (Takes::Truths, "!"),
                    UnaryOp::BitNot => (Takes::Integers, "~"),
                };
                ty = self.unify(takes, parts, word)?;
                Kind::Unary(*op, self.pop())
            }
            ExprKind::Binary(op, ..) => {
                let takes = match op.level() {
                    level::POWER => Takes::Power,
                    level::SHIFT => Takes::Shift,
                    level::BIT_AND | level::BIT_XOR | level::BIT_OR => Takes::Bits,
                    level::AND | level::OR => Takes::Truths,
                    _ if matches!(op, BinaryOp::Eq | BinaryOp::Ne) => Takes::One,
                    level::COMPARE => Takes::Ordered,
                    _ => Takes::Numbers,
                };
                ty = self.unify(takes, parts, op.symbol())?;
                if !literal::is_arithmetic(*op) {
                    ty = Ty::Bool;
                }
                let (b, a) = (self.pop(), self.pop());
                Kind::Binary(*op, a, b)
            }
            ExprKind::Conditional(..) | ExprKind::Call(Function::Select, _) => {
                let branches = &self.values[self.values.len() - 2..];
                ty = Ty::I32;
                if branches.iter().any(|branch| ty_of(branch).is_some()) {
                    ty = self.unify(Takes::One, &parts[1..], "a choice")?;
                }
                let (b, a, condition) = (self.pop(), self.pop(), self.pop());
                Kind::Conditional(condition, a, b)
            }
            ExprKind::Call(function, _) => {
                let word = function.name();
                let takes = match function {
                    Function::Pow => Takes::Power,
                    Function::Threefry | Function::Uniform | Function::Normal => Takes::Unsigned,
                    _ if literal::is_on_integers(*function) => Takes::Numbers,
                    _ => Takes::Floats,
                };
                ty = self.unify(takes, parts, word)?;
                match function {
                    Function::IsNan | Function::IsInf => ty = Ty::Bool,
                    Function::Uniform | Function::Normal => ty = Ty::F32,
                    _ => {}
                }
                let first = self.values.len() - parts.len();
                Kind::Call(*function, self.values.split_off(first))
            }
            ExprKind::Reduce { op, .. } => {
                ty = self.unify(Takes::Numbers, parts, op.name())?;
                let is_argument = matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin);
                if is_argument {
                    ty = Ty::I32;
                    self.arguments.extend(bound.first().map(|&index| (index, at)));
                }
                Kind::Reduce { op: *op, indices: bound, body: self.pop() }
            }
            ExprKind::Cast(dtype, a) => {
                let is_narrow = matches!(dtype, DType::F16 | DType::BF16);
                ty = Ty::of(*dtype);
                let is_literal = literal::class(a) == Some(Ty::I32);
                if is_literal && ty == Ty::F32 {
                    self.retype(a, ty)?;
                    if *dtype == DType::F32 {
                        return Ok(());
                    }
                } else if is_narrow {
                    self.settle(a)?;
                    // An integer becomes f32 and is rounded once more, as when it is stored.
                    if let Some(value) = self.values.last_mut() {
                        float(value);
                    }
                } else {
                    self.concrete(a)?;
                }
                Kind::Cast(*dtype, self.pop())
            }
            ExprKind::Bitcast(dtype, a) => {
                self.concrete(a)?;
                let operand = self.pop();
                if operand.ty == Ty::Bool {
                    let message = format_args!("bitcast_{dtype} takes 32 bits, found bool; write {dtype}(..)");
                    return Err(self.mismatch(at, message));
                }
                ty = Ty::of(*dtype);
                Kind::Bitcast(operand)
            }
            _ => return Err(Failed),
        };
        self.push(kind, ty);
        Ok(())
    }

    /// Whether the last values are what an operator or a function takes.
    pub(super) fn takes(&self, takes: Takes, parts: &[&Expr], word: &str) -> Checked<()> {
        let first = self.values.len() - parts.len();
        for (number, part) in parts.iter().enumerate() {
            let ty = ty_of(&self.values[first + number]);
            let is_bool = ty == Some(Ty::Bool);
            let is_wrong = match takes {
                Takes::One => false,
                Takes::Truths => !is_bool,
                Takes::Integers | Takes::Bits | Takes::Shift => is_bool || ty == Some(Ty::F32),
                Takes::Unsigned => !is_bool && ty.is_some_and(|ty| ty != Ty::U32),
                Takes::Numbers | Takes::Ordered | Takes::Floats | Takes::Power => is_bool,
            };
            if !is_wrong {
                continue;
            }
            let (what, remedy) = match takes {
                Takes::Truths => ("bool", "compare (.. != 0)"),
                Takes::Unsigned => ("u32", "write u32(..)"),
                Takes::Bits if is_bool => ("integers", "use &&, || or !="),
                Takes::Integers | Takes::Bits | Takes::Shift => ("integers", "write i32(..) or u32(..)"),
                Takes::Ordered => ("numbers", "comparisons do not chain: write a < b && b < c"),
                _ => ("numbers", "convert it (f32(..), i32(..)), or use && and ||"),
            };
            let found = ty.map_or("an integer", Ty::name);
            let at = self.first_literal(first + number, part).map_or(start(part), |literal| literal.span.start);
            return Err(self.mismatch(at, format_args!("{word} takes {what}, found {found}; {remedy}")));
        }
        Ok(())
    }

    /// The literal that a value stands for, or the first of a choice between such.
    fn first_literal<'e>(&self, number: usize, mut expr: &'e Expr) -> Option<&'e Expr> {
        let mut typed = &self.values[number];
        if ty_of(typed).is_some() {
            return None;
        }
        while let Some(branch) = first_branch(typed, expr) {
            (typed, expr) = branch;
        }
        Some(expr)
    }

    /// Checks the last values, and gives them the type that they need; that type.
    fn unify(&mut self, takes: Takes, parts: &[&Expr], word: &str) -> Checked<Ty> {
        if takes == Takes::Unsigned {
            self.takes(Takes::Numbers, parts, word)?;
        }
        self.takes(takes, parts, word)?;
        let first = self.values.len() - parts.len();
        let types = |number: usize| ty_of(&self.values[first + number]);
        let is_free = matches!(takes, Takes::Shift | Takes::Power);
        let ty = match takes {
            Takes::Truths => Ty::Bool,
            Takes::Floats => Ty::F32,
            Takes::Unsigned => Ty::U32,
            _ if is_free => match (types(0), types(1)) {
                (_, Some(Ty::F32)) => Ty::F32,
                (a, b) => a.or(b).unwrap_or(Ty::I32),
            },
            _ => self.common(first, parts, word)?,
        };
        for (number, part) in parts.iter().enumerate() {
            let place = first + number;
            let mut wanted = ty;
            if is_free && number == 1 && ty != Ty::F32 {
                // Of two integers, the second may be of either type; a literal takes the type of the first where it fits.
                wanted = ty_of(&self.values[place]).unwrap_or(ty);
                if literal::class(part) == Some(Ty::I32) && !literal::fits(self.fold(part, ty)?, ty) {
                    wanted = if ty == Ty::I32 { Ty::U32 } else { Ty::I32 };
                }
            }
            self.value_into(place, part, wanted)?;
        }
        Ok(ty)
    }

    /// The type that the values from there on have in common.
    fn common(&self, first: usize, parts: &[&Expr], word: &str) -> Checked<Ty> {
        let types = || self.values[first..].iter().map(ty_of);
        let has_float = types().any(|ty| ty == Some(Ty::F32));
        let mut ty: Option<Ty> = None;
        for (other, part) in types().zip(parts) {
            ty = match (ty, other) {
                (None, other) | (other, None) => other,
                (Some(a), Some(b)) if a == b => ty,
                (Some(a), Some(b)) if has_float && a != Ty::Bool && b != Ty::Bool => Some(Ty::F32),
                (Some(a), Some(b)) => return Err(self.clash(a, b, start(part), word)),
            };
        }
        if ty == Some(Ty::Bool) {
            for (number, part) in parts.iter().enumerate() {
                if let Some(literal) = self.first_literal(first + number, part) {
                    return Err(self.clash(Ty::Bool, Ty::I32, literal.span.start, word));
                }
            }
        }
        Ok(ty.unwrap_or(Ty::I32))
    }

    fn clash(&self, a: Ty, b: Ty, at: u32, word: &str) -> Failed {
        let to = if a == Ty::Bool { b } else { a };
        let (a, b, to) = (a.name(), b.name(), to.name());
        self.mismatch(at, format_args!("{word} of {a} and {b} is not defined; convert one side: {to}(..)"))
    }

    /// The last value as one of a type: literals must fit it, and integers become floats.
    pub(super) fn retype(&mut self, expr: &Expr, ty: Ty) -> Checked<()> {
        self.value_into(self.values.len() - 1, expr, ty)
    }

    fn value_into(&mut self, place: usize, expr: &Expr, ty: Ty) -> Checked<()> {
        let Some(at) = self.becomes(place, expr, ty.dtype())? else { return Ok(()) };
        let (wanted, found) = (ty.name(), self.values[place].ty.name());
        Err(self.mismatch(at, format_args!("expected {wanted}, found {found}; write {wanted}(..)")))
    }

    /// Makes a value one of a dtype as it is read: literals must fit it, and integers become floats. Where a value cannot
    /// become that, its place.
    fn becomes(&mut self, place: usize, expr: &Expr, dtype: DType) -> Checked<Option<u32>> {
        let ty = Ty::of(dtype);
        if let Some(literal) = self.first_literal(place, expr) {
            if ty == Ty::Bool {
                return Ok(Some(literal.span.start));
            }
            self.decide(place, expr, dtype)?;
            return Ok(None);
        }
        let value = &mut self.values[place];
        if ty == Ty::F32 {
            float(value);
        }
        Ok((value.ty != ty).then(|| start(expr)))
    }

    /// Gives literals, and choices between such, the type of a dtype.
    fn decide(&mut self, place: usize, expr: &Expr, dtype: DType) -> Checked<()> {
        let mut values = std::mem::take(&mut self.values);
        let decided = self.decide_in(&mut values[place], expr, dtype);
        self.values = values;
        decided
    }

    fn decide_in(&self, value: &mut Typed, expr: &Expr, dtype: DType) -> Checked<()> {
        value.ty = Ty::of(dtype);
        let Kind::Conditional(_, a, b) = &mut value.kind else {
            value.kind = Kind::Const(self.literal(expr, dtype)?);
            return Ok(());
        };
        let parts = parts(expr);
        for (branch, part) in [a, b].into_iter().zip(&parts[1..]) {
            self.decide_in(branch, part, dtype)?;
        }
        Ok(())
    }

    /// The last value with the type that it has, i32 where nothing decides.
    pub(super) fn settle(&mut self, expr: &Expr) -> Checked<()> {
        let ty = self.last_ty().unwrap_or(Ty::I32);
        self.retype(expr, ty)
    }

    /// The last value with a type: literals as i32, as u32 where they fit only that.
    fn concrete(&mut self, expr: &Expr) -> Checked<()> {
        if literal::class(expr) == Some(Ty::I32) && !literal::fits(self.fold(expr, Ty::I32)?, Ty::I32) {
            return self.retype(expr, Ty::U32);
        }
        self.settle(expr)
    }

    /// The last value as it is stored into an element of a node, or takes the place of one.
    pub(super) fn store(&mut self, expr: &Expr, dtype: DType, node: NodeIndex) -> Checked<()> {
        let place = self.values.len() - 1;
        let Some(at) = self.becomes(place, expr, dtype)? else { return Ok(()) };
        let (name, found) = (&self.symbols.at(node).name, self.values[place].ty.name());
        Err(self.mismatch(at, format_args!("\"{name}\" is {dtype} and the value is {found}; write {dtype}(..)")))
    }
}
