//! Text → syntax: declarations, statements, `where`.

#[cfg(test)]
mod error_tests;
mod expression;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::notation::ast::{Accumulate, AssignOp, Ast, Declaration, Expr, IndexRange, Item, Name, Span, Statement};
use crate::notation::lex::{Kind, Sign, Token, lex, quote};
use crate::notation::place::{position, syntax_error};
use crate::notation::words::{MAX_RANK, Word};

/// The syntax of a text.
///
/// # Errors
/// [`crate::ErrorKind::NotationSyntax`] with the first place that is not well formed: what was found there, what was
/// expected, and what to write.
pub fn parse(text: &str) -> Result<Ast> {
    let tokens = lex(text)?;
    Parser { text, tokens, at: 0, depth: 0 }.program()
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// How many brackets and conditionals are open.
    depth: u32,
}

impl Parser<'_> {
    fn program(&mut self) -> Result<Ast> {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Kind::End => return Ok(Ast { items }),
                Kind::LineEnd | Kind::Sign(Sign::Semicolon) => self.advance(),
                _ => {
                    items.push(self.item()?);
                    if !matches!(self.peek(), Kind::End | Kind::LineEnd | Kind::Sign(Sign::Semicolon)) {
                        return Err(self.after_item(items.last()));
                    }
                }
            }
        }
    }

    fn item(&mut self) -> Result<Item> {
        let start = self.token().span;
        let name = self.name(self.start_remedy())?;
        if self.eat(Sign::Colon) {
            return self.declaration(name).map(Item::Declaration);
        }
        let positions = match self.peek() {
            Kind::Sign(Sign::BracketOpen) => self.positions()?.0,
            _ => Vec::new(),
        };
        let op_span = self.token().span;
        let op = self.assign_op()?;
        let value = *self.expression()?.expr;
        let ranges = if self.word() == Some(Word::Where) { self.ranges()? } else { Vec::new() };
        let span = self.since(start);
        Ok(Item::Statement(Statement { target: name, positions, op, op_span, value, ranges, span }))
    }

    fn declaration(&mut self, name: Name) -> Result<Declaration> {
        let Some(Word::DType(dtype)) = self.word() else {
            return Err(self.expected(match self.peek() {
                Kind::Sign(Sign::Equal) => "a dtype; assign with `=` alone",
                _ => "a dtype: f32, f16, bf16, i32, u32, i8, u8 or bool",
            }));
        };
        self.advance();
        let mut extents = Vec::new();
        let open = self.token().span;
        if self.eat(Sign::BracketOpen) && !self.eat(Sign::BracketClose) {
            loop {
                let Kind::Int(extent) = self.peek() else {
                    return Err(self.expected("an extent, an integer of at most 4294967295"));
                };
                if extents.len() == MAX_RANK {
                    return Err(self.rank_error(self.token().span));
                }
                extents.push(extent);
                self.advance();
                if !self.eat(Sign::Comma) {
                    break;
                }
            }
            self.close(open, "`,` or `]`", Sign::BracketClose)?;
        }
        let span = self.since(name.span);
        Ok(Declaration { name, dtype, extents, span })
    }

    fn assign_op(&mut self) -> Result<AssignOp> {
        let op = match self.peek() {
            Kind::Sign(Sign::Equal) => AssignOp::Set,
            Kind::Sign(Sign::AddOnto) => AssignOp::Onto(Accumulate::Add),
            Kind::Sign(Sign::MulOnto) => AssignOp::Onto(Accumulate::Mul),
            Kind::Sign(Sign::MaxOnto) => AssignOp::Onto(Accumulate::Max),
            Kind::Sign(Sign::MinOnto) => AssignOp::Onto(Accumulate::Min),
            Kind::Sign(Sign::AddFresh) => AssignOp::Fresh(Accumulate::Add),
            Kind::Sign(Sign::MulFresh) => AssignOp::Fresh(Accumulate::Mul),
            Kind::Sign(Sign::MaxFresh) => AssignOp::Fresh(Accumulate::Max),
            Kind::Sign(Sign::MinFresh) => AssignOp::Fresh(Accumulate::Min),
            _ => return Err(self.expected(self.assign_remedy())),
        };
        self.advance();
        Ok(op)
    }

    fn ranges(&mut self) -> Result<Vec<IndexRange>> {
        let mut ranges = Vec::new();
        loop {
            // `where`, or the comma.
            self.advance();
            let index = self.name("the name of an index, as in `where i in 0:9`")?;
            if self.word() != Some(Word::In) {
                return Err(self.expected("`in` and a range, as in `where i in 0:9`"));
            }
            self.advance();
            let lo = self.bound()?;
            if !self.eat(Sign::Colon) {
                return Err(self.expected("`:` and the end of the range, as in `0:9`"));
            }
            let hi = self.bound()?;
            let span = self.since(index.span);
            if lo > hi {
                let name = &index.text;
                let message =
                    format!("found {lo}:{hi} for `{name}`, a range that ends before it starts, expected `lo <= hi`");
                return Err(syntax_error(self.text, span, message));
            }
            ranges.push(IndexRange { index, lo, hi, span });
            if self.peek() != Kind::Sign(Sign::Comma) {
                return Ok(ranges);
            }
        }
    }

    fn bound(&mut self) -> Result<i64> {
        let negative = self.eat(Sign::Minus);
        let Kind::Int(value) = self.peek() else {
            return Err(self.expected("an integer; the ends of a range are integer literals, as in `-1:9`"));
        };
        self.advance();
        Ok(if negative { -i64::from(value) } else { i64::from(value) })
    }

    /// A name that is not reserved.
    fn name(&mut self, expected: &str) -> Result<Name> {
        match self.word() {
            Some(Word::Free) => {}
            Some(Word::Where | Word::In) | None => return Err(self.expected(expected)),
            Some(_) => {
                let word = quote(self.text, self.token().span);
                return Err(self.fail(format!("found {word}, which is reserved, expected {expected}")));
            }
        }
        let span = self.token().span;
        self.advance();
        Ok(Name { text: self.text_of(span).to_owned(), span })
    }

    /// `[...]` behind a node, with the height of the highest.
    fn positions(&mut self) -> Result<(Vec<Expr>, u32)> {
        let (positions, height) = self.list(Sign::BracketClose)?;
        match positions.get(MAX_RANK) {
            Some(ninth) => Err(self.rank_error(ninth.span)),
            None => Ok((positions, height)),
        }
    }

    fn rank_error(&self, ninth: Span) -> Error {
        syntax_error(self.text, ninth, "found a ninth axis; nodes have at most 8: flatten some of them".to_owned())
    }

    fn token(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> Kind {
        self.token().kind
    }

    fn peek_at(&self, offset: usize) -> Kind {
        self.tokens.get(self.at + offset).map_or(Kind::End, |token| token.kind)
    }

    /// What the next token is as a word.
    fn word(&self) -> Option<Word> {
        let token = self.token();
        (token.kind == Kind::Word).then(|| Word::of(self.text_of(token.span)))
    }

    fn text_of(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn eat(&mut self, sign: Sign) -> bool {
        let is_next = self.peek() == Kind::Sign(sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// From there to behind the last token that was read.
    fn since(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        Span { start: start.start, end: last.map_or(start.end, |token| token.span.end) }
    }

    /// The bracket that closes the one at `open`.
    fn close(&mut self, open: Span, expected: &str, close: Sign) -> Result<()> {
        if self.eat(close) {
            return Ok(());
        }
        let (line, column) = position(self.text, open.start as usize);
        let expected = format!("{expected} for the bracket at {line}:{column}");
        let between = Span { start: self.since(open).end, end: self.token().span.start };
        if self.text_of(between).contains('\n') {
            // What the next line starts with is innocent.
            return Err(syntax_error(self.text, between, format!("found the end of the line, expected {expected}")));
        }
        let remedy = match self.peek() {
            Kind::Sign(Sign::Colon) if close == Sign::BracketClose => {
                "; there are no slices: name an index, and give its range with `where`"
            }
            _ => self.operator_remedy(),
        };
        Err(self.expected(&format!("{expected}{remedy}")))
    }

    fn fail(&self, message: String) -> Error {
        syntax_error(self.text, self.token().span, message)
    }

    /// The next token is not what must stand there.
    fn expected(&self, expected: &str) -> Error {
        let found = match self.peek() {
            Kind::LineEnd => "the end of the line".to_owned(),
            Kind::End => "the end of the program".to_owned(),
            _ => quote(self.text, self.token().span),
        };
        self.fail(format!("found {found}, expected {expected}"))
    }

    /// What should start a statement.
    fn start_remedy(&self) -> &'static str {
        const TARGET: &str = "a statement `name[index, ...] = expression` or a declaration `name: dtype[extents]`";
        match self.peek() {
            Kind::Sign(Sign::Slash) if self.peek_at(1) == Kind::Sign(Sign::Slash) => {
                "a statement; a comment starts with `#`"
            }
            Kind::Sign(Sign::ParenClose | Sign::BracketClose) => "a statement; no bracket is open here",
            Kind::Sign(_) if self.at > 0 => {
                "a statement; to go on with the line before, end that line with the operator"
            }
            Kind::Word if self.word() == Some(Word::Where) => {
                "a statement; `where` stands on the line on which its statement ends"
            }
            Kind::Static => "a statement; a static index is given when the routine is run, and cannot be assigned",
            Kind::Word => "the name of a node",
            _ => TARGET,
        }
    }

    fn assign_remedy(&self) -> &'static str {
        let before_equal = self.peek_at(1) == Kind::Sign(Sign::Equal);
        match self.peek() {
            Kind::Sign(Sign::EqualEqual) => "an assignment operator; did you mean `=`?",
            Kind::Sign(Sign::Minus) if before_equal => "an assignment operator; subtract with `+= -(...)`",
            Kind::Sign(Sign::Slash) if before_equal => "an assignment operator; divide with `*= 1.0 / (...)`",
            Kind::Sign(Sign::Plus | Sign::Star) if before_equal => {
                "an assignment operator; `+=` and `*=` are written without a space"
            }
            Kind::Word if matches!(self.text_of(self.token().span), "max" | "min") => {
                "an assignment operator; `max=` and `min=` are written without a space"
            }
            Kind::Sign(Sign::BracketOpen) => "an assignment operator; all indices stand in one bracket, `x[i, j]`",
            _ => "an assignment operator: `=`, `+=`, `*=`, `max=`, `min=`, or with `!`, as in `+=!`",
        }
    }

    fn after_item(&self, item: Option<&Item>) -> Error {
        match item {
            Some(Item::Declaration(_)) => {
                self.expected("the end of the line or `;`; a declaration is `name: dtype[extents]` and has no value")
            }
            Some(Item::Statement(statement)) if !statement.ranges.is_empty() => {
                self.expected("`,` and another range, the end of the line, or `;`")
            }
            _ => {
                let remedy = match self.peek() {
                    Kind::Sign(Sign::ParenClose | Sign::BracketClose) => "; no bracket is open here",
                    _ => self.operator_remedy(),
                };
                self.expected(&format!("an operator, `where`, the end of the line, or `;`{remedy}"))
            }
        }
    }
}
