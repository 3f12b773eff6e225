//! Expressions: operators by their levels, and what stands between them.

use super::{Failed, Parsed, Parser};
use crate::dtype::DType;
use crate::notation::ast::{BinaryOp, Expr, ExprKind, Function, ReduceOp, Span, UnaryOp};
use crate::notation::lex::{Kind, Token, quote};
use crate::notation::words::{MAX_DEPTH, level, text_for, word};

/// How many indices one reduction may have, so that looking for one that is named twice takes no time.
const MAX_REDUCED: usize = 64;

/// An operator whose right operand is not complete.
pub(super) struct Pending {
    kind: Kind,
    /// Of [`level::UNARY`] with nothing on its left.
    level: u8,
    start: u32,
}

fn unary_op(kind: Kind) -> Option<UnaryOp> {
    match kind {
        Kind::Minus => Some(UnaryOp::Neg),
        Kind::Not => Some(UnaryOp::Not),
        Kind::Tilde => Some(UnaryOp::BitNot),
        _ => None,
    }
}

fn binary_op(kind: Kind) -> Option<BinaryOp> {
    BinaryOp::ALL.get(kind as usize).copied()
}

impl Parser<'_> {
    /// An expression, with its height in `self`: it is bounded, so that everyone may walk it recursively.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let start = self.token().span.start;
            return Err(self.too_deep(start));
        }
        let mut expr = self.operators()?;
        if self.eat(Kind::Question) {
            let height = self.height;
            let then = self.expression()?;
            let height = self.height.max(height);
            if !self.eat(Kind::Colon) {
                let remedy = self.operator_remedy();
                return Err(self.expected(format_args!("`:` and the other value of `c ? a : b`{remedy}")));
            }
            let other = self.expression()?;
            self.height = self.height.max(height);
            let start = expr.span.start;
            expr = self.above(ExprKind::Conditional(expr, then, other), start)?;
        }
        self.depth -= 1;
        Ok(expr)
    }

    /// Operands and operators, without recursion: a stack of operands, and one of operators that still wait.
    fn operators(&mut self) -> Parsed<Expr> {
        let outside = self.pending.len();
        loop {
            while unary_op(self.peek()).is_some() {
                self.wait(level::UNARY);
            }
            let operand = self.primary()?;
            self.operands.push((operand, self.height));
            let next = binary_op(self.peek());
            let level = next.map_or(level::CONDITIONAL, BinaryOp::level);
            while self.pending.len() > outside
                && let Some(op) =
                    self.pending.pop_if(|top| top.level > level || (top.level == level && level != level::POWER))
            {
                self.complete(&op)?;
            }
            if next.is_none() {
                let (expr, height) = self.operand()?;
                self.height = height;
                return Ok(expr);
            }
            self.wait(level);
        }
    }

    /// Puts the operator that stands here on the stack.
    fn wait(&mut self, level: u8) {
        let Token { kind, span, .. } = *self.token();
        self.pending.push(Pending { kind, level, start: span.start });
        self.at += 1;
    }

    fn operand(&mut self) -> Parsed<(Expr, u32)> {
        self.operands.pop().ok_or(Failed)
    }

    /// Makes an expression of an operator and the last operands.
    fn complete(&mut self, op: &Pending) -> Parsed<()> {
        let (right, mut height) = self.operand()?;
        let place = right.span.start;
        let mut start = op.start;
        let kind = match (unary_op(op.kind), binary_op(op.kind)) {
            (Some(unary), _) if op.level == level::UNARY => ExprKind::Unary(unary, right),
            (_, Some(binary)) => {
                let (left, left_height) = self.operand()?;
                height = height.max(left_height);
                start = left.span.start;
                ExprKind::Binary(binary, left, right)
            }
            _ => return Err(Failed),
        };
        if height >= MAX_DEPTH {
            return Err(self.too_deep(place));
        }
        self.height = height;
        let expr = self.above(kind, start)?;
        self.operands.push((expr, self.height));
        Ok(())
    }

    /// An expression from `start` to here, above what was read last.
    fn above(&mut self, kind: ExprKind, start: u32) -> Parsed<Expr> {
        if self.height >= MAX_DEPTH {
            return Err(self.too_deep(start));
        }
        self.height += 1;
        Ok(Expr::new(kind, self.since(start)))
    }

    fn too_deep(&mut self, place: u32) -> Failed {
        self.fail(
            place,
            format_args!(
                "found an expression over {MAX_DEPTH} operators and brackets deep; give parts of it names in statements \
                 of their own"
            ),
        )
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let Token { kind, span, value, .. } = *self.token();
        let kind = match kind {
            Kind::Int => ExprKind::Int(value as u32),
            Kind::Float => ExprKind::Float(value),
            Kind::Static => {
                let name = self.text_of(Span { start: span.start + 1, ..span });
                if word(name).0 != Kind::Free {
                    let message = format_args!("found `@{name}`, which is reserved, expected another name");
                    return Err(self.fail(span.start, message));
                }
                ExprKind::Static(name.to_owned())
            }
            Kind::ParenOpen => {
                self.at += 1;
                let mut inner = self.expression()?;
                self.close_list(span.start, Kind::ParenClose, "")?;
                inner.span = self.since(span.start);
                return Ok(inner);
            }
            Kind::True => ExprKind::Bool(true),
            Kind::False => ExprKind::Bool(false),
            Kind::Inf => ExprKind::Inf,
            Kind::Nan => ExprKind::Nan,
            Kind::Pi => ExprKind::Pi,
            Kind::Where | Kind::In => return Err(self.no_operand()),
            _ if kind.is_word() => return self.word_expression(),
            _ => return Err(self.no_operand()),
        };
        self.at += 1;
        self.height = 0;
        self.above(kind, span.start)
    }

    /// What starts with a name or the word of a function.
    fn word_expression(&mut self) -> Parsed<Expr> {
        let Token { kind, which, span, .. } = *self.token();
        let which = usize::from(which);
        self.at += 1;
        let expr = match kind {
            Kind::Free => return self.named(span),
            Kind::Reduce => return self.reduction(ReduceOp::ALL[which], span),
            Kind::Function => match Function::ALL[which] {
                Function::Max if self.peek() == Kind::BracketOpen => return self.reduction(ReduceOp::Max, span),
                Function::Min if self.peek() == Kind::BracketOpen => return self.reduction(ReduceOp::Min, span),
                function => ExprKind::Call(function, self.arguments(span, function.arity())?),
            },
            _ => {
                let mut arguments = self.arguments(span, 1 + usize::from(kind == Kind::Pad))?;
                let last = arguments.pop().ok_or(Failed)?;
                match kind {
                    Kind::DType => ExprKind::Cast(DType::ALL[which], last),
                    Kind::Bitcast => ExprKind::Bitcast(DType::ALL[which], last),
                    _ => {
                        let access = arguments.pop().ok_or(Failed)?;
                        if !matches!(access.kind, ExprKind::Access { .. }) {
                            let found = quote(self.text_of(access.span));
                            let message =
                                format_args!("found {found}, expected an access; write `pad(x[i - 1], value)`");
                            return Err(self.fail(access.span.start, message));
                        }
                        ExprKind::Pad { access, value: last }
                    }
                }
            }
        };
        self.above(expr, span.start)
    }

    /// `i`, `x[i]`
    fn named(&mut self, span: Span) -> Parsed<Expr> {
        let text = self.text_of(span);
        match self.peek() {
            Kind::BracketOpen => {
                let positions = self.positions()?;
                self.above(ExprKind::Access { name: self.name_at(span), positions }, span.start)
            }
            Kind::ParenOpen => {
                let remedy = function_remedy(text);
                Err(self.fail(span.start, format_args!("found `{text}(`, which is no function; {remedy}")))
            }
            Kind::Free if text == "not" => {
                Err(self.fail(span.start, format_args!("found `not`, expected an operator; write `!`")))
            }
            _ => {
                self.height = 0;
                self.above(ExprKind::Name(text.to_owned()), span.start)
            }
        }
    }

    fn reduction(&mut self, op: ReduceOp, start: Span) -> Parsed<Expr> {
        let name = op.name();
        let open = self.token().span.start;
        if !self.eat(Kind::BracketOpen) {
            return Err(self.expected(format_args!("`[` and the indices to reduce over, as in `{name}[i](...)`")));
        }
        let outside = self.reduced.len();
        loop {
            let span = self.token().span;
            self.name("the name of an index to reduce over")?;
            let (text, at) = (self.text_of(span), span.start);
            if self.reduced.iter().skip(outside).any(|known| known.text == text) {
                return Err(self.fail(at, format_args!("found `{text}` twice in `{name}`; name each index once")));
            }
            let most = if matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin) { 1 } else { MAX_REDUCED };
            if self.reduced.len() - outside == most {
                let message = format_args!(
                    "found an index too many for `{name}`, which takes {most}: flatten axes, or reduce in several statements"
                );
                return Err(self.fail(at, message));
            }
            self.reduced.push(self.name_at(span));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.close(open, Kind::BracketClose)?;
        let open = self.token().span.start;
        if !self.eat(Kind::ParenOpen) {
            return Err(self.expected(format_args!("`(` and what to reduce, as in `{name}[i](...)`")));
        }
        let body = self.expression()?;
        self.close_list(open, Kind::ParenClose, "")?;
        let indices = self.reduced.split_off(outside);
        self.above(ExprKind::Reduce { op, indices, body }, start.start)
    }

    /// `(...)` behind the word of a function that takes so many.
    fn arguments(&mut self, word: Span, arity: usize) -> Parsed<Vec<Expr>> {
        const REMEDIES: &str = "log2\t; for another base, divide by its `log`
max1 min1\t; over an index, write it in brackets, as in `max[i](...)`
max min\t; nest it, as in `max(max(a, b), c)`
pad1\t; the second is the value outside the tensor";
        let name = self.text_of(word);
        if self.peek() != Kind::ParenOpen {
            let wanted = arguments_of(arity);
            return Err(self.expected(format_args!("`(` and its {wanted}; `{name}` is reserved for the function")));
        }
        let arguments = self.list(Kind::ParenClose)?;
        let count = arguments.len();
        if count != arity {
            let remedy = text_for(REMEDIES, &format!("{name}{count}")).or_else(|| text_for(REMEDIES, name));
            let (found, remedy) = (arguments_of(count), remedy.unwrap_or(""));
            return Err(self.fail(word.start, format_args!("found {found}, but `{name}` takes {arity}{remedy}")));
        }
        Ok(arguments)
    }

    /// Expressions between commas, from the opening bracket to the closing one.
    pub(super) fn list(&mut self, close: Kind) -> Parsed<Vec<Expr>> {
        let open = self.token().span.start;
        self.at += 1;
        let (mut list, mut height) = (Vec::new(), 0);
        if !self.eat(close) {
            loop {
                list.push(self.expression()?);
                height = self.height.max(height);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.close(open, close)?;
        }
        self.height = height;
        Ok(list)
    }

    /// An operand is missing here.
    fn no_operand(&mut self) -> Failed {
        // By what is before and what is found, or by that alone.
        const REMEDIES: &str = "/_/\t; `/` truncates integers, and a comment starts with `#`
=_=\t; write `=` once
[_: ,_:\t; there are no slices: name an index, and give its range with `where`
,_] ,_)\t; leave out the comma before it
+\t; there is no unary plus: leave it out
[\t; there are no lists: brackets stand behind a name";
        let Token { kind, span, .. } = *self.token();
        let before = self.text_of(self.token_at(self.at.wrapping_sub(1)).span);
        let found = self.text_of(span);
        let remedy = match kind {
            Kind::LineEnd | Kind::End => "; a line goes on behind an operator, `=`, `?`, `:` or `,`",
            _ if kind.is_word() && self.token_at(self.at + 1).kind == Kind::ParenOpen => {
                "; choose by a condition with `c ? a : b` or `select(c, a, b)`"
            }
            _ => text_for(REMEDIES, &format!("{before}_{found}")).or_else(|| text_for(REMEDIES, found)).unwrap_or(""),
        };
        self.expected(format_args!("an expression{remedy}"))
    }

    /// What should stand where an operator is missing, as the end of a message.
    pub(super) fn operator_remedy(&self) -> &'static str {
        const REMEDIES: &str = "=\t; did you mean `==`?
!\t; did you mean `!=`?
[\t; all indices stand in one bracket behind a name: `x[i, j]`, not `x[i][j]`
:\t; `:` belongs to `c ? a : b`
;\t; `;` ends a statement
,\t; `,` stands in brackets and in `where`
and\t; write `&&`
or\t; write `||`
if\t; write `c ? a : b`
is\t; write `==`";
        let Token { kind, span, .. } = *self.token();
        let starts_operand = !kind.is_sign() && !matches!(kind, Kind::LineEnd | Kind::End);
        let otherwise = if starts_operand || kind == Kind::ParenOpen { "; multiply with `*`" } else { "" };
        text_for(REMEDIES, self.text_of(span)).unwrap_or(otherwise)
    }
}

fn arguments_of(count: usize) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} argument{ending}")
}

/// What NumPy, C and WGSL call what is here called otherwise.
fn function_remedy(name: &str) -> &'static str {
    const REMEDIES: &str = "ln\twrite `log(...)`
power\twrite `a ** b`
maximum\twrite `max(a, b)`
minimum\twrite `min(a, b)`
arcsin\twrite `asin(...)`
arccos\twrite `acos(...)`
arctan\twrite `atan(...)`
arctan2\twrite `atan2(y, x)`
fabs\twrite `abs(...)`
float f64\twrite `f32(...)`
int\twrite `i32(...)`
uint\twrite `u32(...)`
mean average\tdivide a `sum[i](...)` by the extent
expm1\twrite `exp(...) - 1`
log1p\twrite `log(1 + ...)`
fmod mod\twrite `a % b`
rand random\twrite `uniform(seed, counter)`
randn\twrite `normal(seed, counter)`
bitcast_f16 bitcast_bf16 bitcast_i8 bitcast_u8 bitcast_bool\tthere are `bitcast_f32`, `bitcast_i32` and `bitcast_u32`";
    text_for(REMEDIES, name).unwrap_or("an access is written with brackets, `x[i]`, and a product with `*`")
}
