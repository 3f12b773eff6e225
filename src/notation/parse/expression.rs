//! Expressions: operators by their levels, and what stands between them.

use super::Parser;
use crate::error::{Error, Result};
use crate::notation::ast::{BinaryOp, Expr, ExprKind, Function, Name, ReduceOp, Span, UnaryOp};
use crate::notation::lex::{Kind, Sign, quote};
use crate::notation::place::syntax_error;
use crate::notation::words::{MAX_DEPTH, Word, level};

/// How many indices one reduction may have, so that looking for one that is named twice takes no time.
const MAX_REDUCED: usize = 64;

/// An expression with its height, which is bounded so that everyone may walk it recursively.
pub(super) struct Tall {
    /// Boxed at once, for small frames on the stack.
    pub(super) expr: Box<Expr>,
    height: u32,
}

/// An operator whose right operand is not complete.
enum Pending {
    Unary(UnaryOp, Span),
    Binary(BinaryOp),
}

impl Pending {
    fn level(&self) -> u8 {
        match self {
            Pending::Unary(..) => level::UNARY,
            Pending::Binary(op) => op.level(),
        }
    }
}

fn unary_op(kind: Kind) -> Option<UnaryOp> {
    match kind {
        Kind::Sign(Sign::Minus) => Some(UnaryOp::Neg),
        Kind::Sign(Sign::Not) => Some(UnaryOp::Not),
        Kind::Sign(Sign::Tilde) => Some(UnaryOp::BitNot),
        _ => None,
    }
}

fn binary_op(kind: Kind) -> Option<BinaryOp> {
    let Kind::Sign(sign) = kind else { return None };
    Some(match sign {
        Sign::Power => BinaryOp::Pow,
        Sign::Star => BinaryOp::Mul,
        Sign::Slash => BinaryOp::Div,
        Sign::Percent => BinaryOp::Rem,
        Sign::Plus => BinaryOp::Add,
        Sign::Minus => BinaryOp::Sub,
        Sign::Shl => BinaryOp::Shl,
        Sign::Shr => BinaryOp::Shr,
        Sign::And => BinaryOp::BitAnd,
        Sign::Caret => BinaryOp::BitXor,
        Sign::Or => BinaryOp::BitOr,
        Sign::Less => BinaryOp::Lt,
        Sign::Le => BinaryOp::Le,
        Sign::Greater => BinaryOp::Gt,
        Sign::Ge => BinaryOp::Ge,
        Sign::EqualEqual => BinaryOp::Eq,
        Sign::NotEqual => BinaryOp::Ne,
        Sign::AndAnd => BinaryOp::And,
        Sign::OrOr => BinaryOp::Or,
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Tall> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_deep(self.token().span));
        }
        let mut tall = self.operators()?;
        if self.eat(Sign::Question) {
            let then = self.expression()?;
            if !self.eat(Sign::Colon) {
                let remedy = self.operator_remedy();
                return Err(self.expected(&format!("`:` and the other value of `c ? a : b`{remedy}")));
            }
            let other = self.expression()?;
            let height = tall.height.max(then.height).max(other.height);
            let start = tall.expr.span;
            let kind = ExprKind::Conditional(tall.expr, then.expr, other.expr);
            tall = self.above(kind, start, height)?;
        }
        self.depth -= 1;
        Ok(tall)
    }

    /// Operands and operators, without recursion: a stack of operands, and one of operators that still wait.
    fn operators(&mut self) -> Result<Tall> {
        let mut operands = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            while let Some(op) = unary_op(self.peek()) {
                pending.push(Pending::Unary(op, self.token().span));
                self.advance();
            }
            operands.push(self.primary()?);
            let next = binary_op(self.peek());
            let level = next.map_or(level::CONDITIONAL, BinaryOp::level);
            while let Some(top) =
                pending.pop_if(|top| top.level() > level || (top.level() == level && level != level::POWER))
            {
                self.reduce(top, &mut operands)?;
            }
            let Some(op) = next else { break };
            pending.push(Pending::Binary(op));
            self.advance();
        }
        operands.pop().ok_or_else(|| Error::bug("an expression without an operand"))
    }

    fn reduce(&self, op: Pending, operands: &mut Vec<Tall>) -> Result<()> {
        let right = operands.pop().ok_or_else(|| Error::bug("an operator without an operand"))?;
        let end = right.expr.span.end;
        let place = right.expr.span;
        let (kind, start, height) = match op {
            Pending::Unary(op, span) => (ExprKind::Unary(op, right.expr), span.start, right.height),
            Pending::Binary(op) => {
                let left = operands.pop().ok_or_else(|| Error::bug("an operator without a left operand"))?;
                let start = left.expr.span.start;
                let kind = ExprKind::Binary(op, left.expr, right.expr);
                (kind, start, left.height.max(right.height))
            }
        };
        if height >= MAX_DEPTH {
            return Err(self.too_deep(place));
        }
        operands.push(Tall { expr: Box::new(Expr { kind, span: Span { start, end } }), height: height + 1 });
        Ok(())
    }

    /// An expression from `start` to here, above parts of that height.
    fn above(&self, kind: ExprKind, start: Span, height: u32) -> Result<Tall> {
        if height >= MAX_DEPTH {
            return Err(self.too_deep(start));
        }
        Ok(Tall { expr: Box::new(Expr { kind, span: self.since(start) }), height: height + 1 })
    }

    fn too_deep(&self, place: Span) -> Error {
        let message = format!(
            "found an expression over {MAX_DEPTH} operators and brackets deep; give parts of it names in statements of \
             their own"
        );
        syntax_error(self.text, place, message)
    }

    fn primary(&mut self) -> Result<Tall> {
        let start = self.token().span;
        let kind = match self.peek() {
            Kind::Int(value) => ExprKind::Int(value),
            Kind::Float(value) => ExprKind::Float(value),
            Kind::Static => {
                let name = self.text_of(start).trim_start_matches('@').to_owned();
                if Word::of(&name) != Word::Free {
                    return Err(self.fail(format!("found `@{name}`, whose name is reserved, expected another name")));
                }
                ExprKind::Static(name)
            }
            Kind::Sign(Sign::ParenOpen) => {
                self.advance();
                let mut inner = self.expression()?;
                self.close(start, "`)`", Sign::ParenClose)?;
                inner.expr.span = self.since(start);
                return Ok(inner);
            }
            Kind::Word => match Word::of(self.text_of(start)) {
                Word::True => ExprKind::Bool(true),
                Word::False => ExprKind::Bool(false),
                Word::Inf => ExprKind::Inf,
                Word::Nan => ExprKind::Nan,
                Word::Pi => ExprKind::Pi,
                word => return self.word_expression(word, start),
            },
            _ => return Err(self.expected(self.operand_remedy())),
        };
        self.advance();
        self.above(kind, start, 0)
    }

    /// What starts with a name or the word of a function; `start` is that word.
    fn word_expression(&mut self, word: Word, start: Span) -> Result<Tall> {
        if matches!(word, Word::Where | Word::In) {
            return Err(self.expected(self.operand_remedy()));
        }
        self.advance();
        let over_indices = self.peek() == Kind::Sign(Sign::BracketOpen);
        match word {
            Word::Free => self.named(start),
            Word::Reduce(op) => self.reduction(op, start),
            Word::Function(Function::Max) if over_indices => self.reduction(ReduceOp::Max, start),
            Word::Function(Function::Min) if over_indices => self.reduction(ReduceOp::Min, start),
            Word::Function(function) => {
                let (arguments, height) = self.arguments(start, function.arity())?;
                self.above(ExprKind::Call(function, arguments), start, height)
            }
            Word::DType(dtype) => {
                let (argument, height) = self.argument(start)?;
                self.above(ExprKind::Cast(dtype, argument), start, height)
            }
            Word::Bitcast(dtype) => {
                let (argument, height) = self.argument(start)?;
                self.above(ExprKind::Bitcast(dtype, argument), start, height)
            }
            _ => self.pad(start),
        }
    }

    /// `i`, `x[i]`
    fn named(&mut self, start: Span) -> Result<Tall> {
        let text = self.text_of(start).to_owned();
        match self.peek() {
            Kind::Sign(Sign::BracketOpen) => {
                let (positions, height) = self.positions()?;
                self.above(ExprKind::Access { name: Name { text, span: start }, positions }, start, height)
            }
            Kind::Sign(Sign::ParenOpen) => {
                let remedy = function_remedy(&text);
                Err(syntax_error(self.text, start, format!("found `{text}(`, which is no function{remedy}")))
            }
            Kind::Word if text == "not" && self.word() == Some(Word::Free) => {
                Err(syntax_error(self.text, start, "found `not`, expected an operator; write `!`".to_owned()))
            }
            _ => self.above(ExprKind::Name(text), start, 0),
        }
    }

    fn reduction(&mut self, op: ReduceOp, start: Span) -> Result<Tall> {
        let name = op.name();
        let open = self.token().span;
        if !self.eat(Sign::BracketOpen) {
            return Err(self.expected(&format!("`[` and the indices to reduce over, as in `{name}[i](...)`")));
        }
        let mut indices: Vec<Name> = Vec::new();
        loop {
            let index = self.name("the name of an index to reduce over")?;
            if indices.contains(&index) {
                let message = format!("found `{}` twice in `{name}`; name each index once", index.text);
                return Err(syntax_error(self.text, index.span, message));
            }
            if matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin) && !indices.is_empty() {
                let message = format!("found a second index; `{name}` goes over one: flatten the axes first");
                return Err(syntax_error(self.text, index.span, message));
            }
            if indices.len() == MAX_REDUCED {
                let message = format!("found over {MAX_REDUCED} indices in `{name}`; reduce in several statements");
                return Err(syntax_error(self.text, index.span, message));
            }
            indices.push(index);
            if !self.eat(Sign::Comma) {
                break;
            }
        }
        self.close(open, "`,` or `]`", Sign::BracketClose)?;
        let open = self.token().span;
        if !self.eat(Sign::ParenOpen) {
            return Err(self.expected(&format!("`(` and what to reduce, as in `{name}[i](...)`")));
        }
        let body = self.expression()?;
        self.close(open, "`)`", Sign::ParenClose)?;
        let height = body.height;
        self.above(ExprKind::Reduce { op, indices, body: body.expr }, start, height)
    }

    fn pad(&mut self, start: Span) -> Result<Tall> {
        let (mut arguments, height) = self.arguments(start, 2)?;
        let (Some(value), Some(access)) = (arguments.pop(), arguments.pop()) else {
            return Err(Error::bug("pad without two arguments"));
        };
        if !matches!(access.kind, ExprKind::Access { .. }) {
            let found = quote(self.text, access.span);
            let message = format!("found {found}, expected an access; write `pad(x[i - 1], value)`");
            return Err(syntax_error(self.text, access.span, message));
        }
        self.above(ExprKind::Pad { access: Box::new(access), value: Box::new(value) }, start, height)
    }

    fn argument(&mut self, word: Span) -> Result<(Box<Expr>, u32)> {
        let (mut arguments, height) = self.arguments(word, 1)?;
        match arguments.pop() {
            Some(argument) => Ok((Box::new(argument), height)),
            None => Err(Error::bug("a function without its argument")),
        }
    }

    /// `(...)` behind the word of a function that takes so many.
    fn arguments(&mut self, word: Span, arity: usize) -> Result<(Vec<Expr>, u32)> {
        if self.peek() != Kind::Sign(Sign::ParenOpen) {
            let name = self.text_of(word);
            let expected = format!("`(` and its {}; `{name}` is reserved for the function", arguments_of(arity));
            return Err(self.expected(&expected));
        }
        let (arguments, height) = self.list(Sign::ParenClose)?;
        if arguments.len() != arity {
            let name = self.text_of(word);
            let remedy = match (name, arguments.len()) {
                ("max" | "min", 1) => "; over an index, write it in brackets, as in `max[i](...)`",
                ("max" | "min", _) => "; nest it, as in `max(max(a, b), c)`",
                ("log", 2) => "; for another base, divide by its `log`",
                ("pad", 1) => "; the second is the value outside the tensor",
                _ => "",
            };
            let found = arguments_of(arguments.len());
            let message = format!("found {found}, but `{name}` takes {arity}{remedy}");
            return Err(syntax_error(self.text, word, message));
        }
        Ok((arguments, height))
    }

    /// Expressions between commas, from the opening bracket to the closing one, with the height of the highest.
    pub(super) fn list(&mut self, close: Sign) -> Result<(Vec<Expr>, u32)> {
        let open = self.token().span;
        self.advance();
        let (mut list, mut height) = (Vec::new(), 0);
        if self.eat(close) {
            return Ok((list, height));
        }
        loop {
            let Tall { expr, height: next } = self.expression()?;
            list.push(*expr);
            height = height.max(next);
            if !self.eat(Sign::Comma) {
                break;
            }
        }
        self.close(open, if close == Sign::ParenClose { "`,` or `)`" } else { "`,` or `]`" }, close)?;
        Ok((list, height))
    }

    /// What should stand where an operand is missing.
    fn operand_remedy(&self) -> &'static str {
        let before = self.at.checked_sub(1).map_or(Kind::End, |before| self.tokens[before].kind);
        match self.peek() {
            Kind::Sign(Sign::Plus) => "an expression; there is no unary plus: leave it out",
            Kind::Sign(Sign::Slash) if before == Kind::Sign(Sign::Slash) => {
                "an expression; `/` truncates integers, and a comment starts with `#`"
            }
            Kind::Sign(Sign::Equal) if before == Kind::Sign(Sign::Equal) => "an expression; write `=` once",
            Kind::Sign(Sign::Colon) if matches!(before, Kind::Sign(Sign::BracketOpen | Sign::Comma)) => {
                "an expression; there are no slices: name an index, and give its range with `where`"
            }
            Kind::Sign(Sign::ParenClose | Sign::BracketClose) if before == Kind::Sign(Sign::Comma) => {
                "an expression; leave out the comma before it"
            }
            Kind::Sign(Sign::BracketOpen) => "an expression; there are no lists: brackets stand behind a name",
            Kind::Word if self.peek_at(1) == Kind::Sign(Sign::ParenOpen) => {
                "an expression; choose by a condition with `c ? a : b` or `select(c, a, b)`"
            }
            Kind::LineEnd | Kind::End => "an expression; a line goes on behind an operator, `=`, `?`, `:` or `,`",
            _ => "an expression",
        }
    }

    /// What should stand where an operator is missing, as the end of a message.
    pub(super) fn operator_remedy(&self) -> &'static str {
        match self.peek() {
            Kind::Sign(Sign::Equal) => "; did you mean `==`?",
            Kind::Sign(Sign::Not) => "; did you mean `!=`?",
            Kind::Sign(Sign::BracketOpen) => {
                "; all indices stand in one bracket behind a name: `x[i, j]`, not `x[i][j]`"
            }
            Kind::Sign(Sign::Colon) => "; `:` belongs to `c ? a : b`",
            Kind::Sign(Sign::Semicolon) => "; `;` ends a statement",
            Kind::Sign(Sign::Comma) => "; `,` stands in brackets and in `where`",
            Kind::Word => match self.text_of(self.token().span) {
                "and" => "; write `&&`",
                "or" => "; write `||`",
                "if" => "; write `c ? a : b`",
                "is" => "; write `==`",
                _ => "; multiply with `*`",
            },
            Kind::Int(_) | Kind::Float(_) | Kind::Static | Kind::Sign(Sign::ParenOpen) => "; multiply with `*`",
            _ => "",
        }
    }
}

fn arguments_of(count: usize) -> String {
    if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") }
}

/// What NumPy, C and WGSL call what is here called otherwise.
fn function_remedy(name: &str) -> &'static str {
    match name {
        "ln" => "; write `log(...)`",
        "power" => "; write `a ** b`",
        "maximum" => "; write `max(a, b)`",
        "minimum" => "; write `min(a, b)`",
        "arcsin" => "; write `asin(...)`",
        "arccos" => "; write `acos(...)`",
        "arctan" => "; write `atan(...)`",
        "arctan2" => "; write `atan2(y, x)`",
        "fabs" => "; write `abs(...)`",
        "float" | "f64" => "; write `f32(...)`",
        "int" => "; write `i32(...)`",
        "uint" => "; write `u32(...)`",
        "mean" | "average" => "; divide a `sum[i](...)` by the extent",
        "expm1" => "; write `exp(...) - 1`",
        "log1p" => "; write `log(1 + ...)`",
        "fmod" | "mod" => "; write `a % b`",
        "bitcast_f16" | "bitcast_bf16" | "bitcast_i8" | "bitcast_u8" | "bitcast_bool" => {
            "; there are `bitcast_f32`, `bitcast_i32` and `bitcast_u32`"
        }
        "rand" | "random" => "; write `uniform(seed, counter)`",
        "randn" => "; write `normal(seed, counter)`",
        _ => "; an access is written with brackets, `x[i]`, and a product with `*`",
    }
}
