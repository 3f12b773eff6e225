//! What the check accepts and what it refuses.

mod enumerated;
mod meaning;
mod mistakes;
mod more_mistakes;
mod programs;

use super::{Given, check};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::notation::parse;
use crate::notation::program::Program;

fn given() -> Vec<Given> {
    let mut given = Vec::new();
    for (name, dtype, shape) in [
        ("a", DType::F32, &[4, 6][..]),
        ("b", DType::F32, &[6, 5]),
        ("v", DType::F32, &[8]),
        ("w", DType::F32, &[3]),
        ("ids", DType::I32, &[8]),
        ("us", DType::U32, &[8]),
        ("flags", DType::Bool, &[8]),
        ("half", DType::F16, &[8]),
        ("bytes", DType::U8, &[8]),
        ("signed", DType::I8, &[8]),
        ("s", DType::F32, &[]),
        ("n", DType::I32, &[]),
        ("empty", DType::F32, &[0]),
        ("fixed", DType::F32, &[8]),
        ("huge", DType::F32, &[4_294_967_295]),
    ] {
        given.push(Given { name: name.to_owned(), dtype, shape: shape.to_vec(), is_constant: name == "fixed" });
    }
    given
}

fn checked(text: &str) -> Result<Program> {
    check(text, &parse(text)?, &given(), &[])
}

fn program(text: &str) -> Program {
    checked(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The statements of a program as they are printed, with `text` as the program.
fn printed(text: &str) -> Vec<String> {
    let program = program(text);
    let all = program.to_string();
    let lines: Vec<&str> = all.lines().collect();
    lines[lines.len() - program.statements.len()..].iter().map(|&line| line.to_owned()).collect()
}

/// The kind, the place and the message of a program's mistake.
fn mistake(text: &str) -> String {
    let error: Error = match checked(text) {
        Ok(program) => return format!("is accepted:\n{program}"),
        Err(error) => error,
    };
    let at = &error.diagnostics()[0];
    assert_eq!(at.excerpt, text.lines().nth(at.line as usize - 1).unwrap().trim_end(), "{text}");
    format!("{} {}:{} {}", error.kind().code(), at.line, at.column, at.message)
}

fn compare(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let found = mistake(text);
        if found != *expected {
            wrong += &format!("        (\n            {text:?},\n            {found:?},\n        ),\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
