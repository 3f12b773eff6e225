//! Text → syntax: declarations, statements, `where`.

#[cfg(test)]
mod error_tests;
mod expression;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::notation::ast::{AssignOp, Ast, Declaration, Expr, IndexRange, Item, Name, Span, Statement};
use crate::notation::lex::{Kind, Token, lex, quote};
use crate::notation::place::syntax_error;
use crate::notation::words::{MAX_RANK, text_for};
use expression::Pending;
use std::fmt::Arguments;

/// The syntax of a text.
///
/// # Errors
/// [`crate::ErrorKind::NotationSyntax`] with the first place that is not well formed: what was found there, what was
/// expected, and what to write.
pub fn parse(text: &str) -> Result<Ast> {
    let tokens = lex(text)?;
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        depth: 0,
        height: 0,
        operands: Vec::new(),
        pending: Vec::new(),
        ranges: Vec::new(),
        reduced: Vec::new(),
        error: None,
    };
    match parser.program() {
        Ok(items) => Ok(Ast { items }),
        Err(Failed) => Err(parser.error.unwrap_or_else(|| Error::bug("an operand is missing"))),
    }
}

/// Why a part of the text was not read: the error lies in the parser. Results that hold nothing else are small, and so is
/// the code that passes them on.
struct Failed;

type Parsed<T> = std::result::Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// How many brackets and conditionals are open.
    depth: u32,
    /// The height of the last expression, or list of expressions, that was read.
    height: u32,
    /// Operands with their heights, and operators whose right operand is not complete.
    operands: Vec<(Expr, u32)>,
    pending: Vec<Pending>,
    /// The `where` clause, as far as it has been read, and the indices of reductions whose body is read.
    ranges: Vec<IndexRange>,
    reduced: Vec<Name>,
    error: Option<Error>,
}

impl<'a> Parser<'a> {
    fn program(&mut self) -> Parsed<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Kind::End => return Ok(items),
                Kind::LineEnd | Kind::Semicolon => self.at += 1,
                _ => {
                    let item = self.item()?;
                    if !matches!(self.peek(), Kind::End | Kind::LineEnd | Kind::Semicolon) {
                        return Err(self.after_item(&item));
                    }
                    items.push(item);
                }
            }
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        let name = self.token().span;
        self.name(self.start_remedy())?;
        if self.eat(Kind::Colon) {
            return self.declaration(name);
        }
        let positions = if self.peek() == Kind::BracketOpen { self.positions()? } else { Vec::new() };
        let op_span = self.token().span;
        let number = (self.peek() as usize).wrapping_sub(Kind::Equal as usize);
        let Some(&op) = AssignOp::ALL.get(number) else {
            let remedy = self.assign_remedy();
            return Err(self.expected(format_args!("an assignment operator{remedy}")));
        };
        self.at += 1;
        let value = self.expression()?;
        if self.peek() == Kind::Where {
            self.where_clause()?;
        }
        let (target, span) = (self.name_at(name), self.since(name.start));
        let ranges = std::mem::take(&mut self.ranges);
        Ok(Item::Statement(Statement { target, positions, op, op_span, value, ranges, span }))
    }

    fn declaration(&mut self, name: Span) -> Parsed<Item> {
        let Token { kind, which, .. } = *self.token();
        let (Kind::DType, Some(&dtype)) = (kind, DType::ALL.get(usize::from(which))) else {
            let remedy = if kind == Kind::Equal {
                "; assign with `=` alone"
            } else {
                ": f32, f16, bf16, i32, u32, i8, u8 or bool"
            };
            return Err(self.expected(format_args!("a dtype{remedy}")));
        };
        self.at += 1;
        let mut extents = Vec::new();
        let open = self.token().span.start;
        if self.eat(Kind::BracketOpen) && !self.eat(Kind::BracketClose) {
            loop {
                let Token { kind, span, value, .. } = *self.token();
                if kind != Kind::Int {
                    return Err(self.expected(format_args!("an extent, an integer of at most 4294967295")));
                }
                if extents.len() == MAX_RANK {
                    return Err(self.rank_error(span.start));
                }
                extents.push(value as u32);
                self.at += 1;
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.close(open, Kind::BracketClose)?;
        }
        let (name, span) = (self.name_at(name), self.since(name.start));
        Ok(Item::Declaration(Declaration { name, dtype, extents, span }))
    }

    fn where_clause(&mut self) -> Parsed<()> {
        loop {
            // `where`, or the comma.
            self.at += 1;
            let name = self.token().span;
            self.name("the name of an index, as in `where i in 0:9`")?;
            if !self.eat(Kind::In) {
                return Err(self.expected(format_args!("`in` and a range, as in `where i in 0:9`")));
            }
            let lo = self.bound()?;
            if !self.eat(Kind::Colon) {
                return Err(self.expected(format_args!("`:` and the end of the range, as in `0:9`")));
            }
            let hi = self.bound()?;
            if lo > hi {
                let index = self.text_of(name);
                let message = format_args!(
                    "found {lo}:{hi} for `{index}`, a range that ends before it starts, expected `lo <= hi`"
                );
                return Err(self.fail(name.start, message));
            }
            let (index, span) = (self.name_at(name), self.since(name.start));
            self.ranges.push(IndexRange { index, lo, hi, span });
            if self.peek() != Kind::Comma {
                return Ok(());
            }
        }
    }

    fn bound(&mut self) -> Parsed<i64> {
        let is_negative = self.eat(Kind::Minus);
        let Token { kind: Kind::Int, value, .. } = *self.token() else {
            return Err(
                self.expected(format_args!("an integer; the ends of a range are integer literals, as in `-1:9`"))
            );
        };
        self.at += 1;
        Ok(if is_negative { -value as i64 } else { value as i64 })
    }

    /// Takes a name that is not reserved.
    fn name(&mut self, expected: &str) -> Parsed<()> {
        let Token { kind, span, .. } = *self.token();
        let text = self.text_of(span);
        match kind {
            Kind::Free => {
                self.at += 1;
                Ok(())
            }
            Kind::Where | Kind::In => Err(self.expected(format_args!("{expected}"))),
            _ if !kind.is_word() => Err(self.expected(format_args!("{expected}"))),
            _ => {
                let start = span.start;
                Err(self.fail(start, format_args!("found `{text}`, which is reserved, expected {expected}")))
            }
        }
    }

    fn name_at(&self, span: Span) -> Name {
        Name { text: self.text_of(span).to_owned(), span }
    }

    /// `[...]` behind a node.
    fn positions(&mut self) -> Parsed<Vec<Expr>> {
        let positions = self.list(Kind::BracketClose)?;
        match positions.get(MAX_RANK) {
            Some(ninth) => Err(self.rank_error(ninth.span.start)),
            None => Ok(positions),
        }
    }

    fn rank_error(&mut self, ninth: u32) -> Failed {
        self.fail(ninth, format_args!("found a ninth axis; nodes have at most 8: flatten some of them"))
    }

    fn token(&self) -> &Token {
        self.token_at(self.at)
    }

    fn token_at(&self, at: usize) -> &Token {
        const END: Token = Token { kind: Kind::End, which: 0, span: Span { start: 0, end: 0 }, value: 0.0 };
        self.tokens.get(at).unwrap_or(&END)
    }

    fn peek(&self) -> Kind {
        self.token().kind
    }

    fn text_of(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn eat(&mut self, kind: Kind) -> bool {
        if self.peek() != kind {
            return false;
        }
        self.at += 1;
        true
    }

    /// From there to behind the last token that was read.
    fn since(&self, start: u32) -> Span {
        Span { start, end: self.token_at(self.at.wrapping_sub(1)).span.end }
    }

    /// The bracket that closes the one at `open`.
    fn close(&mut self, open: u32, close: Kind) -> Parsed<()> {
        self.close_list(open, close, "`,` or ")
    }

    /// The same, where something else than the bracket may stand.
    fn close_list(&mut self, open: u32, close: Kind, or: &str) -> Parsed<()> {
        if self.eat(close) {
            return Ok(());
        }
        let Diagnostic { line, column, .. } = Diagnostic::at(self.text, open as usize, "");
        let sign = if close == Kind::ParenClose { ")" } else { "]" };
        let token = *self.token();
        let between = Span { start: self.since(open).end, end: token.span.start };
        let is_behind = self.text_of(between).bytes().any(|byte| byte == b'\n');
        let remedy = match token.kind {
            // What the next line starts with is innocent.
            _ if is_behind => "",
            Kind::Colon if close == Kind::BracketClose => {
                "; there are no slices: name an index, and give its range with `where`"
            }
            _ => self.operator_remedy(),
        };
        let found = if is_behind { "the end of the line" } else { &self.found() };
        let start = if is_behind { between.start } else { token.span.start };
        Err(self.fail(
            start,
            format_args!("found {found}, expected {or}`{sign}` for the bracket at {line}:{column}{remedy}"),
        ))
    }

    #[cold]
    fn fail(&mut self, at: u32, message: Arguments<'_>) -> Failed {
        self.error = Some(syntax_error(self.text, at, message.to_string()));
        Failed
    }

    /// What stands here, in words.
    fn found(&self) -> String {
        let Token { kind, span, .. } = *self.token();
        match kind {
            Kind::LineEnd => "the end of the line".to_owned(),
            Kind::End => "the end of the program".to_owned(),
            _ => quote(self.text_of(span)),
        }
    }

    /// The next token is not what must stand there.
    #[cold]
    fn expected(&mut self, expected: Arguments<'_>) -> Failed {
        let (found, at) = (self.found(), self.token().span.start);
        self.fail(at, format_args!("found {found}, expected {expected}"))
    }

    /// What should start a statement.
    fn start_remedy(&self) -> &'static str {
        match self.peek() {
            Kind::Slash if self.token_at(self.at + 1).kind == Kind::Slash => "a statement; a comment starts with `#`",
            kind if kind.is_closing() => "a statement; no bracket is open here",
            kind if kind.is_sign() && self.at > 0 => {
                "a statement; to go on with the line before, end that line with the operator"
            }
            Kind::Where => "a statement; `where` stands on the line on which its statement ends",
            Kind::Static => "a statement; a static index is given when the routine is run, and cannot be assigned",
            kind if kind.is_word() => "the name of a node",
            _ => "a statement `name[index, ...] = expression` or a declaration `name: dtype[extents]`",
        }
    }

    fn assign_remedy(&self) -> &'static str {
        const BEFORE_EQUAL: &str = "-\t; subtract with `+= -(...)`
/\t; divide with `*= 1.0 / (...)`
+ *\t; `+=` and `*=` are written without a space";
        const REMEDIES: &str = "==\t; did you mean `=`?
[\t; all indices stand in one bracket, `x[i, j]`
max min\t; `max=` and `min=` are written without a space";
        let found = self.text_of(self.token().span);
        let is_before_equal = self.token_at(self.at + 1).kind == Kind::Equal;
        is_before_equal
            .then(|| text_for(BEFORE_EQUAL, found))
            .flatten()
            .or_else(|| text_for(REMEDIES, found))
            .unwrap_or(": `=`, `+=`, `*=`, `max=`, `min=`, or with `!`, as in `+=!`")
    }

    fn after_item(&mut self, item: &Item) -> Failed {
        match item {
            Item::Declaration(_) => self.expected(format_args!(
                "the end of the line or `;`; a declaration is `name: dtype[extents]` and has no value"
            )),
            Item::Statement(statement) if !statement.ranges.is_empty() => {
                self.expected(format_args!("`,` and another range, the end of the line, or `;`"))
            }
            _ => {
                let remedy =
                    if self.peek().is_closing() { "; no bracket is open here" } else { self.operator_remedy() };
                self.expected(format_args!("an operator, `where`, the end of the line, or `;`{remedy}"))
            }
        }
    }
}
