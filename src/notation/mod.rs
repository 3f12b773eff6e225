//! Index notation: text → syntax → program. Pure; nothing here knows a driver.

pub mod ast;
pub mod builder;
pub mod check;
mod display;
mod float;
mod lex;
pub mod parse;
mod place;
pub(crate) mod print;
pub mod program;
pub mod spec;
#[cfg(test)]
mod testing;
pub mod words;

pub use parse::parse;
