//! From bytes of a text to the line and the column that an author counts.

use crate::diagnostic::Diagnostic;
use crate::error::{Error, ErrorKind};

/// The line and the column of a byte, 1-based, the column in characters. A byte behind the end is the end.
pub(crate) fn position(text: &str, byte: usize) -> (u32, u32) {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line as u32, before[line_start..].chars().count() as u32 + 1)
}

/// What is wrong at that byte.
pub(crate) fn at(text: &str, byte: u32, message: String) -> Diagnostic {
    let (line, column) = position(text, byte as usize);
    Diagnostic::at(text, line, column, message)
}

/// A text that is not well formed at that byte.
pub(crate) fn syntax_error(text: &str, byte: u32, message: String) -> Error {
    let diagnostic = at(text, byte, message);
    let message = format!("index notation is not well formed at {}:{}", diagnostic.line, diagnostic.column);
    Error::with_diagnostics(ErrorKind::NotationSyntax, message, vec![diagnostic])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_with_lf_or_crlf() {
        let text = "äx = 1\r\ny = 2\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 2), (1, 2));
        assert_eq!(position(text, 1), (1, 1), "inside a character");
        assert_eq!(position(text, 9), (2, 1));
        assert_eq!(position(text, 1000), (3, 1));
        let end = at(text, 1000, "end".to_owned());
        assert_eq!((end.line, end.column, end.excerpt.as_str()), (2, 6, "y = 2"));
    }
}
