//! Text → tokens. Lines end here: where a line goes on, its end is no token.

use crate::error::{Error, Result};
use crate::node::parts;
use crate::notation::ast::Span;
use crate::notation::float::float;
use crate::notation::place::syntax_error;
use crate::notation::words::{SIGNS, text_for, word};

/// What a token is; its text is that of its span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    // The signs, in the order of [`SIGNS`].
    Power,
    Star,
    Slash,
    Percent,
    Plus,
    Minus,
    Shl,
    Shr,
    And,
    Caret,
    Or,
    Less,
    Le,
    Greater,
    Ge,
    EqualEqual,
    NotEqual,
    AndAnd,
    OrOr,
    Equal,
    AddOnto,
    MulOnto,
    MaxOnto,
    MinOnto,
    AddFresh,
    MulFresh,
    MaxFresh,
    MinFresh,
    Not,
    Tilde,
    Question,
    Colon,
    Comma,
    ParenOpen,
    BracketOpen,
    ParenClose,
    BracketClose,
    Semicolon,
    /// An integer of at most 32 bits.
    Int,
    Float,
    /// `@name`
    Static,
    /// A word that is not reserved: a node or an index.
    Free,
    /// The word of a function; `max` and `min` are reductions too, if `[` follows.
    Function,
    DType,
    Bitcast,
    Reduce,
    Pad,
    Where,
    In,
    True,
    False,
    Inf,
    Nan,
    Pi,
    /// The end of a line that does not go on. Stands directly behind the token before it, since that is where an author
    /// would put what is missing.
    LineEnd,
    /// The end of the text, once; as a line end.
    #[default]
    End,
}

impl Kind {
    const SIGNS: &[Kind] = {
        use Kind::*;
        &[
            Power,
            Star,
            Slash,
            Percent,
            Plus,
            Minus,
            Shl,
            Shr,
            And,
            Caret,
            Or,
            Less,
            Le,
            Greater,
            Ge,
            EqualEqual,
            NotEqual,
            AndAnd,
            OrOr,
            Equal,
            AddOnto,
            MulOnto,
            MaxOnto,
            MinOnto,
            AddFresh,
            MulFresh,
            MaxFresh,
            MinFresh,
            Not,
            Tilde,
            Question,
            Colon,
            Comma,
            ParenOpen,
            BracketOpen,
            ParenClose,
            BracketClose,
            Semicolon,
        ]
    };

    pub(crate) const fn is_sign(self) -> bool {
        (self as u8) < Kind::Int as u8
    }

    pub(crate) const fn is_word(self) -> bool {
        Kind::Free as u8 <= self as u8 && self as u8 <= Kind::Pi as u8
    }

    pub(crate) const fn is_closing(self) -> bool {
        matches!(self, Kind::ParenClose | Kind::BracketClose)
    }
}

/// A token where it stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Of a word which one, as [`word`] tells.
    pub(crate) which: u8,
    pub(crate) span: Span,
    /// The value of a number.
    pub(crate) value: f64,
}

/// The tokens of a text; the last one is the only [`Kind::End`].
///
/// # Errors
/// [`crate::ErrorKind::NotationSyntax`] with the place of what is no token.
pub(crate) fn lex(text: &str) -> Result<Vec<Token>> {
    if u32::try_from(text.len()).is_err() {
        let message = format!("the text has {} bytes, more than 4294967295; split it", text.len());
        return Err(syntax_error("", 0, message));
    }
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, brackets: 0, tokens: Vec::new() };
    // Editors on Windows write a byte order mark, which no author sees.
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.at < text.len() {
        lexer.step()?;
    }
    lexer.push_end(Kind::End);
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// How many brackets are open.
    brackets: u32,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Behind the bytes from there on that match.
    fn end_of(&self, mut at: usize, matches: fn(u8) -> bool) -> usize {
        while at < self.bytes.len() && matches(self.byte(at)) {
            at += 1;
        }
        at
    }

    /// The text from there to there.
    fn part(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    /// One token or one piece of blank.
    fn step(&mut self) -> Result<()> {
        let second = self.byte(self.at + 1);
        match self.byte(self.at) {
            b' ' | b'\t' => self.at += 1,
            b'\r' if second == b'\n' => self.at += 1,
            b'\n' => {
                self.line_end();
                self.at += 1;
            }
            // Not past a lone CR, which is refused: an author who sees a line end there would miss the rest.
            b'#' => self.at = self.end_of(self.at, |byte| byte != b'\n' && byte != b'\r'),
            byte if byte.is_ascii_digit() || (byte == b'.' && second.is_ascii_digit()) => self.number()?,
            b'@' => {
                let end = self.end_of(self.at + 1, is_of_word);
                if end == self.at + 1 || second.is_ascii_digit() {
                    return Err(self.fail(
                        self.at + 1,
                        "the name of a static index directly behind it; a matrix product is `c[i, j] +=! a[i, k] * b[k, j]`",
                    ));
                }
                self.push(Kind::Static, end);
            }
            byte if is_of_word(byte) => {
                let end = self.end_of(self.at, is_of_word);
                let text = self.part(self.at, end);
                let is_assignment = matches!(text, "max" | "min") && self.byte(end) == b'=';
                if !(is_assignment && self.sign()) {
                    let (kind, which) = word(text);
                    self.push(kind, end);
                    if let Some(token) = self.tokens.last_mut() {
                        token.which = which;
                    }
                }
            }
            _ => {
                if !self.sign() {
                    return Err(self.stray());
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, end: usize) {
        let span = Span { start: self.at as u32, end: end as u32 };
        self.tokens.push(Token { kind, span, ..Token::default() });
        self.at = end;
    }

    fn push_end(&mut self, kind: Kind) {
        let end = self.tokens.last().map_or(0, |token| token.span.end);
        self.tokens.push(Token { kind, span: Span { start: end, end }, ..Token::default() });
    }

    /// Takes the longest sign that stands here, if any.
    fn sign(&mut self) -> bool {
        let rest = self.part(self.at, self.text.len());
        let (mut length, mut found) = (0, None);
        for (number, sign) in parts(SIGNS, b" ").enumerate() {
            if sign.len() > length && rest.starts_with(sign) {
                (length, found) = (sign.len(), Kind::SIGNS.get(number));
            }
        }
        let Some(&kind) = found else { return false };
        match kind {
            Kind::ParenOpen | Kind::BracketOpen => self.brackets += 1,
            _ if kind.is_closing() => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.push(kind, self.at + length);
        true
    }

    fn line_end(&mut self) {
        let goes_on = match self.tokens.last() {
            // Empty statements need no tokens.
            None => true,
            Some(Token { kind, .. }) => *kind == Kind::LineEnd || kind.is_sign() && !kind.is_closing(),
        };
        if !goes_on && self.brackets == 0 {
            self.push_end(Kind::LineEnd);
        }
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        let mut end = self.end_of(start, is_digit);
        let mut kind = Kind::Int;
        if self.byte(end) == b'.' {
            kind = Kind::Float;
            end = self.end_of(end + 1, is_digit);
        }
        if self.byte(end) | 0x20 == b'e' {
            let exponent = end + 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if is_digit(self.byte(exponent)) {
                kind = Kind::Float;
                end = self.end_of(exponent, is_digit);
            }
        }
        let all = self.end_of(end, |byte| is_of_word(byte) || byte == b'.');
        if all > end {
            return Err(self.fail(all, number_remedy(self.part(end, all))));
        }
        let digits = self.part(start, end);
        // A double holds every integer of 32 bits.
        let value = float(digits);
        self.push(kind, end);
        if let Some(token) = self.tokens.last_mut() {
            token.value = value;
        }
        let expected = match kind {
            Kind::Int if value > f64::from(u32::MAX) => {
                "an integer of at most 4294967295; write a float with a point or an exponent"
            }
            Kind::Float if !value.is_finite() => "a float of at most 1.7976931348623157e308; write `inf` for infinity",
            _ => return Ok(()),
        };
        self.at = start;
        Err(self.fail(end, expected))
    }

    fn stray(&self) -> Error {
        const REMEDIES: &str = "\r\ta line end; end lines with LF or CR LF, not with CR alone
.\tan operator; there are no attributes, and a number has a digit beside its point
{ }\tan operator or a bracket; brackets are `(` `)` and `[` `]`
\" ' `\tan operator or a name; there are no strings, and a comment starts with `#`
\\\tan operator; a line goes on by itself inside brackets and after an operator
$\tan operator or a name; a static index is written `@name`
\u{a0} \u{2002} \u{2003} \u{2004} \u{2005} \u{2006} \u{2007} \u{2008} \u{2009} \u{200a} \u{200b} \u{202f} \u{3000}\ta plain space; replace it
× · ⋅ ∗\tan operator; multiply with `*`
÷\tan operator; divide with `/`
− – —\tan operator; subtract with `-`
≤\tan operator; write `<=`
≥\tan operator; write `>=`
≠\tan operator; write `!=`
² ³\tan operator; write a power with `**`
π\tan operator or a name; write `pi`
∞\tan operator or a name; write `inf`";
        let character = self.part(self.at, self.text.len()).chars().next().unwrap_or(' ');
        let end = self.at + character.len_utf8();
        let remedy = text_for(REMEDIES, self.part(self.at, end))
            .unwrap_or("an operator or a name; names are ASCII letters, digits and `_`");
        if character.is_ascii_graphic() {
            return self.fail(end, remedy);
        }
        // What is invisible, or looks like something else, is told by its number.
        let message = format!("found the character U+{:04X}, expected {remedy}", character as u32);
        syntax_error(self.text, self.at as u32, message)
    }

    /// What is found is the text from here to `end`.
    fn fail(&self, end: usize, expected: &str) -> Error {
        let found = quote(self.part(self.at, end));
        syntax_error(self.text, self.at as u32, format!("found {found}, expected {expected}"))
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Whether a word may go on with that byte.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A part of the text in a message; of a long one the start.
pub(crate) fn quote(text: &str) -> String {
    const MOST: usize = 40;
    // Every byte that does not continue a character begins one.
    match text.bytes().enumerate().filter(|(_, byte)| byte & 0xc0 != 0x80).nth(MOST) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// What a number should be that goes on as a word.
fn number_remedy(rest: &str) -> &'static str {
    match rest.as_bytes() {
        [b'.', ..] => "one point in a number; a range is written `lo:hi`",
        [b'e' | b'E'] => "digits in the exponent, as in `1e-3`",
        _ => {
            "a decimal number without `_` or a suffix; multiply with `*`, and choose a type with a cast, as in `u32(1)`"
        }
    }
}
