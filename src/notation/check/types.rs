//! Expressions with their types.

use super::fault::{Checked, Fault, MEANING};
use super::literal;
use super::operand::{Operand, choice, common, constant, float, mismatch, unified};
use super::scope::{Meaning, Scope};
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, Function, Name, ReduceOp, Span, UnaryOp};
use crate::notation::program::{Expr as Typed, ExprKind as Kind, IndexId, Ty, Value};

impl<'a> Scope<'_, 'a> {
    /// An expression, resolved; each part of it is resolved once, in the order of the text. Expressions may be deep, so
    /// that what recurses holds little: each kind has a function, and what it does with its parts another.
    pub(super) fn operand(&mut self, expr: &'a Expr) -> Checked<Operand<'a>> {
        if literal::is_literal(expr) {
            return Ok(Operand::Literal(expr));
        }
        if literal::is_truth(expr) {
            return Ok(Operand::Typed(constant(Value::Bool(literal::truth(expr)?)), expr.span));
        }
        match &expr.kind {
            ExprKind::Access { name, positions } => self.access(name, positions, None),
            ExprKind::Pad { access, value } => self.pad(access, value),
            ExprKind::Unary(op, a) => self.unary(*op, a, expr.span),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, expr.span),
            ExprKind::Conditional(condition, a, b) => self.conditional(condition, a, b, expr.span),
            ExprKind::Call(function, arguments) => self.call(*function, arguments, expr.span),
            ExprKind::Cast(dtype, a) => self.operand(a).and_then(|a| cast(*dtype, a, expr.span)),
            ExprKind::Bitcast(dtype, a) => self.operand(a).and_then(|a| bitcast(*dtype, a, expr.span)),
            ExprKind::Reduce { op, indices, body } => self.reduce(*op, indices, body, expr.span),
            _ => self.leaf(expr),
        }
    }

    fn leaf(&mut self, expr: &'a Expr) -> Checked<Operand<'a>> {
        let typed = |kind, ty| Ok(Operand::Typed(Typed { kind, ty }, expr.span));
        let value = match &expr.kind {
            ExprKind::Name(name) => match self.meaning(name, expr.span)? {
                Meaning::Index(index) => return typed(Kind::Index(index), Ty::I32),
                Meaning::Node(node) => return self.load(node, &[], expr.span, None),
            },
            ExprKind::Static(name) => return typed(Kind::Static(self.symbols.static_index(name)), Ty::I32),
            ExprKind::Float(number) => {
                let narrow = *number as f32;
                if narrow.is_infinite() {
                    let message = "this number is too large for f32 (3.4028235e38 at most); write inf";
                    return Err(mismatch(expr.span, message));
                }
                Value::F32(narrow)
            }
            ExprKind::Inf => Value::F32(f32::INFINITY),
            ExprKind::Nan => Value::F32(f32::NAN),
            ExprKind::Pi => Value::F32(std::f32::consts::PI),
            ExprKind::Bool(truth) => Value::Bool(*truth),
            _ => return Ok(Operand::Literal(expr)),
        };
        Ok(Operand::Typed(constant(value), expr.span))
    }

    fn access(&mut self, name: &'a Name, positions: &'a [Expr], pad: Option<&'a Expr>) -> Checked<Operand<'a>> {
        let node = self.accessed(name)?;
        self.load(node, positions, name.span, pad)
    }

    fn pad(&mut self, access: &'a Expr, value: &'a Expr) -> Checked<Operand<'a>> {
        if let ExprKind::Access { name, positions } = &access.kind {
            return self.access(name, positions, Some(value));
        }
        let message = "pad takes an access of a tensor first (pad(x[i - 1], 0)); put the rest around the pad";
        Err(Fault::new(MEANING, access.span, message))
    }

    fn unary(&mut self, op: UnaryOp, a: &'a Expr, span: Span) -> Checked<Operand<'a>> {
        self.operand(a).and_then(|a| unary(op, a, span))
    }

    fn binary(&mut self, op: BinaryOp, a: &'a Expr, b: &'a Expr, span: Span) -> Checked<Operand<'a>> {
        let a = self.operand(a)?;
        self.operand(b).and_then(|b| binary(op, a, b, span))
    }

    fn conditional(&mut self, condition: &'a Expr, a: &'a Expr, b: &'a Expr, span: Span) -> Checked<Operand<'a>> {
        let condition = self.operand(condition).and_then(|condition| condition.condition("a condition"))?;
        let condition = Box::new(condition);
        let a = Box::new(self.operand(a)?);
        self.operand(b).and_then(|b| chosen(condition, a, b, span))
    }

    fn call(&mut self, function: Function, arguments: &'a [Expr], span: Span) -> Checked<Operand<'a>> {
        let word = function.name();
        if arguments.len() != function.arity() {
            let (wanted, found) = (function.arity(), arguments.len());
            let message = format!("{word} takes {wanted} arguments, found {found}; write {word}({})", "..");
            return Err(Fault::new(ErrorKind::NotationSyntax, span, message));
        }
        if let (Function::Select, [condition, a, b]) = (function, arguments) {
            return self.conditional(condition, a, b, span);
        }
        let mut operands = Vec::with_capacity(arguments.len());
        for argument in arguments {
            operands.push(self.operand(argument)?);
        }
        called(function, operands, span)
    }

    fn reduce(&mut self, op: ReduceOp, names: &'a [Name], body: &'a Expr, span: Span) -> Checked<Operand<'a>> {
        let outside = self.bound.len();
        let indices = self.bind(names)?;
        let body = self.operand(body)?;
        self.bound.truncate(outside);
        self.reduced(op, indices, body, span)
    }

    fn reduced(&mut self, op: ReduceOp, indices: Vec<IndexId>, body: Operand<'a>, span: Span) -> Checked<Operand<'a>> {
        let word = op.name();
        let is_argument = matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin);
        if indices.is_empty() || is_argument && indices.len() > 1 {
            let wanted = if is_argument { "one index" } else { "indices" };
            let message = format!("{word} takes {wanted}, found {}; write {word}[k](..)", indices.len());
            return Err(Fault::new(MEANING, span, message));
        }
        if is_argument {
            self.arguments.extend(indices.iter().map(|&index| (index, span)));
        }
        let body = number(body, word)?;
        let ty = if is_argument { Ty::I32 } else { body.ty };
        Ok(Operand::Typed(Typed { kind: Kind::Reduce { op, indices, body: Box::new(body) }, ty }, span))
    }
}

fn unary(op: UnaryOp, operand: Operand<'_>, span: Span) -> Checked<Operand<'_>> {
    let a = match op {
        UnaryOp::Not => operand.condition("the operand of !")?,
        UnaryOp::Neg => number(operand, "-")?,
        UnaryOp::BitNot => integer(operand, "~")?,
    };
    let ty = a.ty;
    Ok(Operand::Typed(Typed { kind: Kind::Unary(op, Box::new(a)), ty }, span))
}

fn binary<'a>(op: BinaryOp, a: Operand<'a>, b: Operand<'a>, span: Span) -> Checked<Operand<'a>> {
    let word = op.symbol();
    let (a, b) = match op {
        BinaryOp::And | BinaryOp::Or => {
            let of = format!("an operand of {word}");
            (a.condition(&of)?, b.condition(&of)?)
        }
        BinaryOp::Pow => power(a, b)?,
        BinaryOp::Shl | BinaryOp::Shr => amount(a, b, word)?,
        BinaryOp::BitAnd | BinaryOp::BitXor | BinaryOp::BitOr => {
            for side in [&a, &b] {
                match side.ty() {
                    Some(Ty::Bool) => {
                        let message = format!("{word} takes integers, found bool; use &&, || or !=");
                        return Err(mismatch(side.span(), message));
                    }
                    Some(Ty::F32) => return Err(no_integer(side, word)),
                    _ => {}
                }
            }
            pair(a, b, word)?
        }
        _ => {
            let is_order = matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge);
            if is_order && a.ty() == Some(Ty::Bool) {
                let message =
                    format!("{word} takes numbers, found bool; comparisons do not chain: write a < b && b < c");
                return Err(mismatch(a.span(), message));
            }
            if !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
                is_number(&a, word)?;
                is_number(&b, word)?;
            }
            pair(a, b, word)?
        }
    };
    let ty = if literal::is_arithmetic(op) { a.ty } else { Ty::Bool };
    Ok(Operand::Typed(Typed { kind: Kind::Binary(op, Box::new(a), Box::new(b)), ty }, span))
}

fn chosen<'a>(condition: Box<Typed>, a: Box<Operand<'a>>, b: Operand<'a>, span: Span) -> Checked<Operand<'a>> {
    if a.ty().is_none() && b.ty().is_none() {
        return Ok(Operand::Choice(condition, a, Box::new(b)));
    }
    let (a, b) = pair(*a, b, "a choice")?;
    Ok(Operand::Typed(choice(condition, a, b), span))
}

fn called(function: Function, operands: Vec<Operand<'_>>, span: Span) -> Checked<Operand<'_>> {
    let word = function.name();
    for operand in &operands {
        is_number(operand, word)?;
    }
    let (arguments, ty) = match function {
        Function::IsNan | Function::IsInf => (unified(operands, Ty::F32)?, Ty::Bool),
        Function::Threefry | Function::Uniform | Function::Normal => {
            for operand in &operands {
                if let Some(found @ (Ty::I32 | Ty::F32)) = operand.ty() {
                    let message = format!("{word} takes u32, found {}; write u32(..)", found.name());
                    return Err(mismatch(operand.span(), message));
                }
            }
            let ty = if function == Function::Threefry { Ty::U32 } else { Ty::F32 };
            (unified(operands, Ty::U32)?, ty)
        }
        Function::Pow => {
            let mut sides = operands.into_iter();
            let (Some(base), Some(exponent)) = (sides.next(), sides.next()) else {
                return Err(Fault::new(ErrorKind::Bug, span, "bug: pow has no arguments"));
            };
            let (base, exponent) = power(base, exponent)?;
            let ty = base.ty;
            (vec![base, exponent], ty)
        }
        _ => {
            let ty = if literal::is_on_integers(function) { common(&operands, word)? } else { Ty::F32 };
            (unified(operands, ty)?, ty)
        }
    };
    Ok(Operand::Typed(Typed { kind: Kind::Call(function, arguments), ty }, span))
}

/// An operand of a type: literals as i32, as u32 where they fit only that.
fn concrete(operand: Operand<'_>) -> Checked<Typed> {
    match operand {
        Operand::Literal(expr) if !literal::fits(literal::fold(expr, Ty::I32)?, Ty::I32) => {
            literal::constant(expr, Ty::U32)
        }
        other => other.settled(),
    }
}

fn cast(dtype: DType, operand: Operand<'_>, span: Span) -> Checked<Operand<'_>> {
    let ty = Ty::of(dtype);
    let expr = match (operand, dtype) {
        (Operand::Literal(expr), DType::F32) => {
            return Ok(Operand::Typed(literal::constant(expr, Ty::F32)?, span));
        }
        (Operand::Literal(expr), DType::F16 | DType::BF16) => literal::constant(expr, Ty::F32)?,
        // An integer becomes f32 and is rounded once more, as when it is stored.
        (other, DType::F16 | DType::BF16) => float(other.settled()?),
        (other, _) => concrete(other)?,
    };
    Ok(Operand::Typed(Typed { kind: Kind::Cast(dtype, Box::new(expr)), ty }, span))
}

fn bitcast(dtype: DType, operand: Operand<'_>, span: Span) -> Checked<Operand<'_>> {
    let a = concrete(operand)?;
    if a.ty == Ty::Bool || !matches!(dtype, DType::F32 | DType::I32 | DType::U32) {
        let found = a.ty.name();
        let message = format!("bitcast_{dtype} takes a value of 32 bits to another, found {found}; write {dtype}(..)");
        return Err(mismatch(span, message));
    }
    Ok(Operand::Typed(Typed { kind: Kind::Bitcast(Box::new(a)), ty: Ty::of(dtype) }, span))
}

fn is_number(operand: &Operand<'_>, word: &str) -> Checked<()> {
    if operand.ty() != Some(Ty::Bool) {
        return Ok(());
    }
    let message = format!("{word} takes numbers, found bool; convert it (f32(..), i32(..)), or use && and ||");
    Err(mismatch(operand.span(), message))
}

fn number(operand: Operand<'_>, word: &str) -> Checked<Typed> {
    is_number(&operand, word)?;
    operand.settled()
}

fn no_integer(operand: &Operand<'_>, word: &str) -> Fault {
    let found = operand.ty().map_or("an integer", Ty::name);
    mismatch(operand.span(), format!("{word} takes integers, found {found}; write i32(..) or u32(..)"))
}

fn integer(operand: Operand<'_>, word: &str) -> Checked<Typed> {
    match operand.ty() {
        Some(Ty::F32 | Ty::Bool) => Err(no_integer(&operand, word)),
        _ => operand.settled(),
    }
}

fn pair(a: Operand<'_>, b: Operand<'_>, word: &str) -> Checked<(Typed, Typed)> {
    let operands = [a, b];
    let ty = common(&operands, word)?;
    let [a, b] = operands;
    Ok((a.into_ty(ty)?, b.into_ty(ty)?))
}

/// Of two integers, the second may be of either type; a literal takes the type of the first where it fits.
fn exponent(ty: Ty, operand: Operand<'_>) -> Checked<Typed> {
    match operand {
        Operand::Literal(expr) if !literal::fits(literal::fold(expr, ty)?, ty) => {
            literal::constant(expr, if ty == Ty::I32 { Ty::U32 } else { Ty::I32 })
        }
        Operand::Typed(expr, _) if expr.ty != Ty::F32 && expr.ty != Ty::Bool => Ok(expr),
        other => other.into_ty(ty),
    }
}

fn power(a: Operand<'_>, b: Operand<'_>) -> Checked<(Typed, Typed)> {
    is_number(&a, "**")?;
    is_number(&b, "**")?;
    if a.ty() == Some(Ty::F32) || b.ty() == Some(Ty::F32) {
        return Ok((a.into_ty(Ty::F32)?, b.into_ty(Ty::F32)?));
    }
    let ty = a.ty().or(b.ty()).unwrap_or(Ty::I32);
    Ok((a.into_ty(ty)?, exponent(ty, b)?))
}

fn amount(a: Operand<'_>, b: Operand<'_>, word: &str) -> Checked<(Typed, Typed)> {
    for side in [&a, &b] {
        if let Some(Ty::F32 | Ty::Bool) = side.ty() {
            return Err(no_integer(side, word));
        }
    }
    let ty = a.ty().or(b.ty()).unwrap_or(Ty::I32);
    Ok((a.into_ty(ty)?, exponent(ty, b)?))
}
