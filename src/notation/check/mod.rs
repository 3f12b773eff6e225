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
mod ranges;
mod scope;
mod statement;
mod symbols;
mod types;

#[cfg(test)]
mod tests;

use crate::dtype::DType;
use crate::error::Result;
use crate::notation::ast::{Ast, Item};
use crate::notation::program::Program;
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
    /// Whether it is a constant, which no statement may write.
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
    let mut symbols = Symbols::new(given)?;
    for (number, item) in ast.items.iter().enumerate() {
        let checked = match item {
            Item::Declaration(declaration) => symbols.declare(declaration),
            Item::Statement(statement) => statement::check(&mut symbols, statement),
        };
        if checked.is_err() {
            return Err(symbols.faults.into_error(text, number + 1, item));
        }
    }
    symbols.finish(outputs)
}
