//! From syntax to a checked program: names, types, ranges, bounds.
//!
//! Each statement is read once, in the order of the text, which resolves its names and types and lists its accesses; the
//! ranges follow from those, and bounds from the ranges.

mod access;
mod affine;
mod bounds;
mod fault;
mod injective;
mod literal;
mod made;
mod ranges;
mod scope;
mod statement;
mod symbols;
mod types;

#[cfg(test)]
mod tests;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::notation::ast::{Ast, Item};
use crate::notation::program::Program;
use fault::Fault;
use symbols::Symbols;

/// A node given to a program through the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Its name in the program.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: Vec<u32>,
    /// Whether no statement may write it: a constant, or what the merge buffer holds.
    pub is_constant: bool,
}

/// Checks a program. `text` is what it was parsed from, for the messages; of a program that was built, it is empty.
///
/// # Errors
///
/// The first mistake, with its place: `UnknownNode`, `DuplicateNode`; `ShapeMismatch` for ranks, extents, ranges and
/// accesses out of bounds; `DTypeMismatch` for types and literals that do not fit; `LimitExceeded` for what no 32-bit index
/// can count; `NotationMeaning` for other programs that are well formed and have no meaning.
pub fn check(text: &str, ast: &Ast, given: &[Given], outputs: &[String]) -> Result<Program> {
    let error = |number: usize, item: &Item, fault: Fault| {
        if text.is_empty() { fault.in_item(number + 1, item) } else { fault.in_text(text) }
    };
    for (number, item) in ast.items.iter().enumerate() {
        if let Some(fault) = made::mistake(item) {
            return Err(error(number, item, fault));
        }
    }
    run(ast, given, outputs).map_err(|refused| match refused {
        Refused::Program(error) => error,
        Refused::Item(number, fault) => error(number, &ast.items[number], *fault),
    })
}

/// Checks a program that was parsed from that text, as [`check`] does. It has no mistake that only hands can make, so that
/// a page, where there are texts only, need not look for such.
pub(crate) fn check_parsed(text: &str, ast: &Ast, given: &[Given], outputs: &[String]) -> Result<Program> {
    run(ast, given, outputs).map_err(|refused| match refused {
        Refused::Program(error) => error,
        Refused::Item(_, fault) => fault.in_text(text),
    })
}

/// Why a program is none.
enum Refused {
    /// Because of what is given or listed.
    Program(Error),
    /// Because of a line.
    Item(usize, Box<Fault>),
}

fn run(ast: &Ast, given: &[Given], outputs: &[String]) -> std::result::Result<Program, Refused> {
    let mut symbols = Symbols::new(given).map_err(Refused::Program)?;
    for (number, item) in ast.items.iter().enumerate() {
        let checked = match item {
            Item::Declaration(declaration) => symbols.declare(declaration),
            Item::Statement(statement) => statement::check(&mut symbols, statement),
        };
        if checked.is_err() {
            let bug = || Refused::Program(Error::bug("a check fails without a mistake"));
            return Err(symbols.faults.take().map_or_else(bug, |fault| Refused::Item(number, fault)));
        }
    }
    symbols.finish(outputs).map_err(Refused::Program)
}
