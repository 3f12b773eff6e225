//! What is wrong with a program, before it is known what text it came from.

use crate::error::{Error, ErrorKind};
use crate::notation::ast::{Item, Span};
use crate::notation::place;

/// Of programs that are well formed and have no meaning, where no other kind says what is wrong.
pub(super) const MEANING: ErrorKind = ErrorKind::NotationMeaning;

/// A mistake and where it stands.
#[derive(Debug)]
pub(super) struct Fault {
    kind: ErrorKind,
    span: Span,
    message: String,
    other: Option<(Span, String)>,
}

/// The result of a part of the check.
pub(super) type Checked<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn new(kind: ErrorKind, span: Span, message: impl Into<String>) -> Self {
        Self { kind, span, message: message.into(), other: None }
    }

    /// The same mistake, with the other place that it is about.
    pub(super) fn and(mut self, span: Span, message: impl Into<String>) -> Self {
        self.other = Some((span, message.into()));
        self
    }

    /// The error, with places in the text; of a program that was built and has no text, with the line's number in the
    /// program.
    pub(super) fn into_error(self, text: &str, number: usize, item: &Item) -> Error {
        let name = match item {
            Item::Declaration(declaration) => &declaration.name.text,
            Item::Statement(statement) => &statement.target.text,
        };
        if text.is_empty() {
            let what = match item {
                Item::Declaration(_) => "the declaration of",
                Item::Statement(_) => "the statement that writes",
            };
            return Error::new(self.kind, format!("item {number} of the program, {what} \"{name}\": {}", self.message));
        }
        let at = place::at(text, self.span.start, self.message);
        let summary = format!("the program is not valid at {}:{}", at.line, at.column);
        let mut diagnostics = vec![at];
        diagnostics.extend(self.other.map(|(span, message)| place::at(text, span.start, message)));
        Error::with_diagnostics(self.kind, summary, diagnostics)
    }
}
