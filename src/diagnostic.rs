//! A place in a text that an author wrote, with what is wrong there.
//!
//! Lines and columns are 1-based; columns count characters, as editors do. The excerpt is always of the author's
//! text, never of generated text.

use std::fmt;

use serde::Serialize;

/// One message about one place in an author's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// The line of the author's text.
    pub excerpt: String,
}

impl Diagnostic {
    /// A diagnostic at that byte of `text`. A place behind the text is its end, so that the excerpt is never of anything
    /// but `text`.
    pub fn at(text: &str, byte: usize, message: impl Into<String>) -> Self {
        let mut diagnostic = Self::place(text, byte);
        diagnostic.message = message.into();
        diagnostic
    }

    fn place(text: &str, byte: usize) -> Self {
        // The line end at the end of the text starts no line.
        let text = text.strip_suffix('\n').unwrap_or(text);
        let (mut line, mut start) = (1, 0);
        for (at, found) in text.bytes().enumerate() {
            if found == b'\n' && at < byte {
                line += 1;
                start = at + 1;
            }
        }
        let rest = text.get(start..).unwrap_or("");
        let end = rest.bytes().position(|found| found == b'\n');
        let excerpt = rest.get(..end.unwrap_or(rest.len())).unwrap_or("").trim_ascii_end();
        let place = byte.saturating_sub(start);
        let before = excerpt.as_bytes().get(..=place).unwrap_or(excerpt.as_bytes());
        let column = begun(before).count() as u32 + u32::from(place >= excerpt.len());
        Self { line, column, message: String::new(), excerpt: excerpt.to_owned() }
    }
}

/// The first bytes of characters: all that do not continue one.
fn begun(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().copied().filter(|byte| byte & 0xc0 != 0x80)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, message, excerpt } = self;
        let line = line.to_string();
        write!(f, "{line}:{column}: {message}\n{line} | {excerpt}\n")?;
        let mut below = String::new();
        for _ in 0..line.len() {
            below.push_str(" ");
        }
        below.push_str(" | ");
        // A tab in the excerpt must be a tab in the caret line too, or the caret drifts.
        for byte in begun(excerpt.as_bytes()).take(*column as usize - 1) {
            below.push_str(if byte == b'\t' { "\t" } else { " " });
        }
        write!(f, "{below}^")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_the_column() {
        let at = Diagnostic::at("let a = 1;\n\tlet b = c;\n", 20, "unknown c");
        assert_eq!(at.to_string(), "2:10: unknown c\n2 | \tlet b = c;\n  | \t        ^");
    }

    #[test]
    fn a_place_after_the_text_is_its_end() {
        let at = Diagnostic::at("fn main() {", usize::MAX, "expected }");
        assert_eq!((at.line, at.column, at.excerpt.as_str()), (1, 12, "fn main() {"));
        assert_eq!(Diagnostic::at("", 7, "").column, 1);
    }

    #[test]
    fn columns_count_characters_and_lines_end_with_lf_or_crlf() {
        let place = |byte| {
            let Diagnostic { line, column, excerpt, .. } = Diagnostic::at("äx = 1\r\ny = 2\n", byte, "");
            (line, column, excerpt)
        };
        let (first, second) = (|| "äx = 1".to_owned(), || "y = 2".to_owned());
        assert_eq!(place(0), (1, 1, first()));
        assert_eq!(place(2), (1, 2, first()));
        assert_eq!(place(1), (1, 1, first()), "inside a character");
        assert_eq!(place(8), (1, 7, first()), "behind the carriage return");
        assert_eq!(place(9), (2, 1, second()));
        assert_eq!(place(1000), (2, 6, second()));
    }
}
