//! Text → tokens. Lines end here: where a line goes on, its end is no token.

use crate::error::Result;
use crate::notation::ast::Span;
use crate::notation::float::float;
use crate::notation::place::syntax_error;

macro_rules! signs {
    ($($variant:ident $text:literal,)*) => {
        /// An operator or a bracket.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Sign { $($variant,)* }

        impl Sign {
            /// Every sign; one that another starts with comes after it.
            const ALL: &'static [(Sign, &'static str)] = &[$((Sign::$variant, $text),)*];
        }
    };
}

signs! {
    MaxFresh "max=!",
    MinFresh "min=!",
    MaxOnto "max=",
    MinOnto "min=",
    AddFresh "+=!",
    MulFresh "*=!",
    AddOnto "+=",
    MulOnto "*=",
    Power "**",
    Shl "<<",
    Shr ">>",
    Le "<=",
    Ge ">=",
    EqualEqual "==",
    NotEqual "!=",
    AndAnd "&&",
    OrOr "||",
    Equal "=",
    Plus "+",
    Minus "-",
    Star "*",
    Slash "/",
    Percent "%",
    Less "<",
    Greater ">",
    And "&",
    Or "|",
    Caret "^",
    Not "!",
    Tilde "~",
    Question "?",
    Colon ":",
    Comma ",",
    ParenOpen "(",
    BracketOpen "[",
    ParenClose ")",
    BracketClose "]",
    Semicolon ";",
}

/// What a token is; its text is that of its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Int(u32),
    Float(f64),
    /// A word: a name, or reserved.
    Word,
    /// `@name`
    Static,
    Sign(Sign),
    /// The end of a line that does not go on. Stands directly behind the token before it, since that is where an author
    /// would put what is missing.
    LineEnd,
    /// The end of the text, once; as a line end.
    End,
}

/// A token where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// The tokens of a text; the last one is the only [`Kind::End`].
///
/// # Errors
/// [`crate::ErrorKind::NotationSyntax`] with the place of what is no token.
pub(crate) fn lex(text: &str) -> Result<Vec<Token>> {
    if u32::try_from(text.len()).is_err() {
        let message = format!("the text has {} bytes, more than 4294967295; split it", text.len());
        return Err(syntax_error("", Span::default(), message));
    }
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, brackets: 0, tokens: Vec::new() };
    // Editors on Windows write a byte order mark, which no author sees.
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.step()? {}
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

impl Lexer<'_> {
    fn byte(&self, offset: usize) -> u8 {
        self.bytes.get(self.at + offset).copied().unwrap_or(0)
    }

    /// One token or one piece of blank; false behind the last.
    fn step(&mut self) -> Result<bool> {
        if self.at >= self.bytes.len() {
            self.push_end(Kind::End);
            return Ok(false);
        }
        match self.byte(0) {
            b' ' | b'\t' => self.at += 1,
            b'\r' if self.byte(1) == b'\n' => self.at += 1,
            b'\n' => {
                self.line_end();
                self.at += 1;
            }
            b'#' => {
                let rest = &self.bytes[self.at..];
                // Not past a lone CR, which is refused: an author who sees a line end there would miss the rest.
                self.at += rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
            }
            byte if byte.is_ascii_digit() || (byte == b'.' && self.byte(1).is_ascii_digit()) => self.number()?,
            b'@' => {
                let end = self.word_end(self.at + 1);
                if end == self.at + 1 || self.byte(1).is_ascii_digit() {
                    return Err(self.fail(
                        self.at + 1,
                        "the name of a static index directly behind it; a matrix product is `c[i, j] +=! a[i, k] * b[k, j]`",
                    ));
                }
                self.push(Kind::Static, end);
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let end = self.word_end(self.at);
                let is_assignment =
                    matches!(&self.text[self.at..end], "max" | "min") && self.bytes.get(end) == Some(&b'=');
                if !(is_assignment && self.sign()) {
                    self.push(Kind::Word, end);
                }
            }
            _ => {
                if !self.sign() {
                    return Err(self.stray());
                }
            }
        }
        Ok(true)
    }

    fn push(&mut self, kind: Kind, end: usize) {
        self.tokens.push(Token { kind, span: Span { start: self.at as u32, end: end as u32 } });
        self.at = end;
    }

    fn push_end(&mut self, kind: Kind) {
        let end = self.tokens.last().map_or(0, |token| token.span.end);
        self.tokens.push(Token { kind, span: Span { start: end, end } });
    }

    /// Takes the longest sign that stands here, if any.
    fn sign(&mut self) -> bool {
        let rest = &self.bytes[self.at..];
        let Some((sign, text)) = Sign::ALL.iter().find(|(_, text)| rest.starts_with(text.as_bytes())) else {
            return false;
        };
        match sign {
            Sign::ParenOpen | Sign::BracketOpen => self.brackets += 1,
            Sign::ParenClose | Sign::BracketClose => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.push(Kind::Sign(*sign), self.at + text.len());
        true
    }

    fn line_end(&mut self) {
        let goes_on = match self.tokens.last().map(|token| token.kind) {
            // Empty statements need no tokens.
            None | Some(Kind::LineEnd) => true,
            Some(Kind::Sign(sign)) => !matches!(sign, Sign::ParenClose | Sign::BracketClose),
            Some(_) => false,
        };
        if !goes_on && self.brackets == 0 {
            self.push_end(Kind::LineEnd);
        }
    }

    /// Behind the word that starts there.
    fn word_end(&self, start: usize) -> usize {
        let word = self.bytes[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
        start + word.count()
    }

    fn digits_end(&self, start: usize) -> usize {
        start + self.bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        let mut end = self.digits_end(start);
        let mut is_float = false;
        if self.bytes.get(end) == Some(&b'.') {
            is_float = true;
            end = self.digits_end(end + 1);
        }
        if let Some(b'e' | b'E') = self.bytes.get(end) {
            let sign = usize::from(matches!(self.bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = end + 1 + sign;
            if self.bytes.get(exponent).is_some_and(u8::is_ascii_digit) {
                is_float = true;
                end = self.digits_end(exponent);
            }
        }
        let is_more = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        let all = end + self.bytes[end..].iter().take_while(|byte| is_more(byte)).count();
        if all > end {
            return Err(self.fail(all, number_remedy(&self.text[start..all], &self.text[end..all])));
        }
        let digits = &self.text[start..end];
        if is_float {
            return match float(digits) {
                value if value.is_finite() => {
                    self.push(Kind::Float(value), end);
                    Ok(())
                }
                _ => Err(self.fail(end, "a float of at most 1.7976931348623157e308; write `inf` for infinity")),
            };
        }
        match digits.parse::<u32>() {
            Ok(value) => {
                self.push(Kind::Int(value), end);
                Ok(())
            }
            Err(_) => {
                Err(self.fail(end, "an integer of at most 4294967295; write a float with a point or an exponent"))
            }
        }
    }

    fn stray(&self) -> crate::error::Error {
        let character = self.text[self.at..].chars().next().unwrap_or(' ');
        let remedy = match character {
            '\r' => "a line end; end lines with LF or CR LF, not with CR alone",
            '.' => "an operator; there are no attributes, and a number has a digit beside its point",
            '{' | '}' => "an operator or a bracket; brackets are `(` `)` and `[` `]`",
            '"' | '\'' | '`' => "an operator or a name; there are no strings, and a comment starts with `#`",
            '\\' => "an operator; a line goes on by itself inside brackets and after an operator",
            '$' => "an operator or a name; a static index is written `@name`",
            '\u{a0}' | '\u{2002}'..='\u{200b}' | '\u{202f}' | '\u{3000}' => "a plain space; replace it",
            '×' | '·' | '⋅' | '∗' => "an operator; multiply with `*`",
            '÷' => "an operator; divide with `/`",
            '−' | '–' | '—' => "an operator; subtract with `-`",
            '≤' => "an operator; write `<=`",
            '≥' => "an operator; write `>=`",
            '≠' => "an operator; write `!=`",
            '²' | '³' => "an operator; write a power with `**`",
            'π' => "an operator or a name; write `pi`",
            '∞' => "an operator or a name; write `inf`",
            _ => "an operator or a name; names are ASCII letters, digits and `_`",
        };
        let end = self.at + character.len_utf8();
        if character.is_ascii_graphic() {
            return self.fail(end, remedy);
        }
        // What is invisible, or looks like something else, is told by its number.
        let message = format!("found the character U+{:04X}, expected {remedy}", character as u32);
        syntax_error(self.text, Span { start: self.at as u32, end: end as u32 }, message)
    }

    /// What is found is the text from here to `end`.
    fn fail(&self, end: usize, expected: &str) -> crate::error::Error {
        let span = Span { start: self.at as u32, end: end as u32 };
        syntax_error(self.text, span, format!("found {}, expected {expected}", quote(self.text, span)))
    }
}

/// The text of a span in a message; of a long one the start.
pub(crate) fn quote(text: &str, span: Span) -> String {
    const MOST: usize = 40;
    let text = text.get(span.start as usize..span.end as usize).unwrap_or("");
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// What is wrong with a number that goes on as a word.
fn number_remedy(number: &str, rest: &str) -> &'static str {
    let second = number.as_bytes().get(1).map_or(0, u8::to_ascii_lowercase);
    if number.starts_with('0') && matches!(second, b'x' | b'b' | b'o') {
        "a decimal number; there are no others"
    } else if rest.contains('_') {
        "a number without `_`"
    } else if number.contains("..") {
        "one point in a number; a range is written `lo:hi`"
    } else if rest.starts_with('.') {
        "one point in a number"
    } else if matches!(rest, "e" | "E") {
        "digits in the exponent, as in `1e-3`"
    } else {
        "a number without a suffix; multiply with `*`, and choose a type with a cast, as in `u32(1)`"
    }
}
