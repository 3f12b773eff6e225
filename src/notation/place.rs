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
    let mut diagnostics = Vec::new();
    for (byte, message) in [Some(first), other].into_iter().flatten() {
        diagnostics.push(Diagnostic::at(text, byte as usize, message));
    }
    let place = diagnostics.first().map_or((1, 1), |first| (first.line, first.column));
    Error::with_diagnostics(kind, format!("{summary} at {}:{}", place.0, place.1), diagnostics)
}
