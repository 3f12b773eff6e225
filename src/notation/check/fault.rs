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
struct Fault {
    kind: ErrorKind,
    at: u32,
    message: String,
    other: Option<(u32, String)>,
}

/// Where the mistake lies that ends the check.
#[derive(Default)]
pub(super) struct Faults {
    fault: Cell<Option<Box<Fault>>>,
}

impl Faults {
    #[cold]
    pub(super) fn fail(&self, kind: ErrorKind, at: u32, message: Arguments<'_>) -> Failed {
        self.fault.set(Some(Box::new(Fault { kind, at, message: message.to_string(), other: None })));
        Failed
    }

    /// Adds the other place that the mistake is about.
    pub(super) fn and(&self, at: u32, message: Arguments<'_>) {
        if let Some(mut fault) = self.fault.take() {
            fault.other = Some((at, message.to_string()));
            self.fault.set(Some(fault));
        }
    }

    /// The error, with places in the text; of a program that was built and has no text, with the line's number in the
    /// program.
    pub(super) fn into_error(self, text: &str, number: usize, item: &Item) -> Error {
        let Some(fault) = self.fault.into_inner() else { return Error::bug("a check fails without a mistake") };
        let Fault { kind, at, message, other } = *fault;
        if text.is_empty() {
            let (what, name) = match item {
                Item::Declaration(declaration) => ("the declaration of", &declaration.name.text),
                Item::Statement(statement) => ("the statement that writes", &statement.target.text),
            };
            return Error::new(kind, format!("item {number} of the program, {what} \"{name}\": {message}"));
        }
        let other = other.map(|(at, message)| place::at(text, at, message));
        place::error(kind, "the program is not valid", place::at(text, at, message), other)
    }
}
