//! Errors about places in a text.

use crate::diagnostic::Diagnostic;
use crate::error::{Error, ErrorKind};

/// A text that is not well formed at that byte.
pub(crate) fn syntax_error(text: &str, byte: u32, message: String) -> Error {
    error(ErrorKind::NotationSyntax, "index notation is not well formed", text, (byte, message), None)
}

/// A place with what is wrong there.
pub(crate) type Told = (u32, String);

/// An error about a place, and perhaps about another.
pub(crate) fn error(kind: ErrorKind, summary: &str, text: &str, first: Told, other: Option<Told>) -> Error {
    let first = Diagnostic::at(text, first.0 as usize, first.1);
    let summary = format!("{summary} at {}:{}", first.line, first.column);
    let mut diagnostics = vec![first];
    if let Some((byte, message)) = other {
        diagnostics.push(Diagnostic::at(text, byte as usize, message));
    }
    Error::with_diagnostics(kind, summary, diagnostics)
}
