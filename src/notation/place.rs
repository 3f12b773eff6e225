//! From bytes of a text to the line and the column that an author counts.

use crate::diagnostic::Diagnostic;
use crate::error::{Error, ErrorKind};

/// What is wrong at that byte: lines and columns are 1-based, columns count characters. A byte behind the last line is its
/// end.
pub(crate) fn at(text: &str, byte: u32, message: String) -> Diagnostic {
    // The line end at the end of the text starts no line.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (mut line, mut start) = (1, 0);
    for (at, character) in text.bytes().enumerate() {
        if character == b'\n' && at < byte as usize {
            line += 1;
            start = at + 1;
        }
    }
    let excerpt = text.get(start..).unwrap_or("").split('\n').next().unwrap_or("").trim_end();
    let mut column = 1;
    for character in excerpt.chars() {
        start += character.len_utf8();
        column += u32::from(start <= byte as usize);
    }
    Diagnostic { line, column, message, excerpt: excerpt.to_owned() }
}

/// A text that is not well formed at that byte.
pub(crate) fn syntax_error(text: &str, byte: u32, message: String) -> Error {
    error(ErrorKind::NotationSyntax, "index notation is not well formed", text, (byte, message), None)
}

/// A place with what is wrong there.
pub(crate) type Told = (u32, String);

/// An error about a place, and perhaps about another.
pub(crate) fn error(kind: ErrorKind, summary: &str, text: &str, first: Told, other: Option<Told>) -> Error {
    let mut diagnostics = Vec::new();
    for (byte, message) in [Some(first), other].into_iter().flatten() {
        diagnostics.push(at(text, byte, message));
    }
    let place = diagnostics.first().map_or((1, 1), |first| (first.line, first.column));
    Error::with_diagnostics(kind, format!("{summary} at {}:{}", place.0, place.1), diagnostics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_with_lf_or_crlf() {
        let place = |byte| {
            let Diagnostic { line, column, excerpt, .. } = at("äx = 1\r\ny = 2\n", byte, String::new());
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
