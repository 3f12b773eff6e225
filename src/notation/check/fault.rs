//! What is wrong with a program, before it is known what text it came from.

use std::cell::Cell;
use std::fmt::Arguments;

use crate::error::{Error, ErrorKind};
use crate::notation::ast::Item;
use crate::notation::place;

/// Of programs that are well formed and have no meaning, where no other kind says what is wrong.
pub(super) const MEANING: ErrorKind = ErrorKind::NotationMeaning;

/// Why a part of the check stopped: the mistake lies in [`Faults`]. Results that hold nothing else are small, and so is the
/// code that passes them on.
#[derive(Debug)]
pub(super) struct Failed;

/// The result of a part of the check.
pub(super) type Checked<T> = Result<T, Failed>;

/// A mistake and the byte at which it stands.
pub(super) struct Fault {
    kind: ErrorKind,
    at: u32,
    message: String,
    other: Option<(u32, String)>,
}

impl Fault {
    pub(super) fn new(kind: ErrorKind, at: u32, message: String) -> Self {
        Self { kind, at, message, other: None }
    }

    /// The error, with places in the text.
    pub(super) fn in_text(self, text: &str) -> Error {
        place::error(self.kind, "the program is not valid", text, (self.at, self.message), self.other)
    }

    /// The error of a program that was built and has no text, with the line's number in the program.
    pub(super) fn in_item(self, number: usize, item: &Item) -> Error {
        let (what, name) = match item {
            Item::Declaration(declaration) => ("the declaration of", &declaration.name.text),
            Item::Statement(statement) => ("the statement that writes", &statement.target.text),
        };
        Error::new(self.kind, format!("item {number} of the program, {what} \"{name}\": {}", self.message))
    }
}

/// Where the mistake lies that ends the check.
#[derive(Default)]
pub(super) struct Faults {
    fault: Cell<Option<Box<Fault>>>,
}

impl Faults {
    #[cold]
    pub(super) fn fail(&self, kind: ErrorKind, at: u32, message: Arguments<'_>) -> Failed {
        self.fault.set(Some(Box::new(Fault::new(kind, at, message.to_string()))));
        Failed
    }

    /// Adds the other place that the mistake is about.
    pub(super) fn and(&self, at: u32, message: Arguments<'_>) {
        if let Some(mut fault) = self.fault.take() {
            fault.other = Some((at, message.to_string()));
            self.fault.set(Some(fault));
        }
    }

    /// The mistake.
    pub(super) fn take(&self) -> Option<Box<Fault>> {
        self.fault.take()
    }
}
