//! Garbage: no panic, no hang, and a place inside the text for each error.

use super::parse;
use crate::error::ErrorKind;
use crate::notation::lex::lex;
use crate::notation::testing::{PROGRAMS, Random, random_ast};

/// Whether it was a program.
fn check(text: &str) -> bool {
    let error = match parse(text) {
        Ok(ast) => {
            let form = ast.to_string();
            let again = parse(&form).unwrap_or_else(|error| panic!("{text:?}\n{form}\n{error}"));
            assert_eq!(again, ast, "{text:?}\n{form}");
            return true;
        }
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::NotationSyntax, "{text:?}");
    let [diagnostic] = error.diagnostics() else { panic!("{text:?}: {error}") };
    let line = text.lines().nth(diagnostic.line as usize - 1).unwrap_or_else(|| panic!("{text:?}: {error}"));
    assert_eq!(diagnostic.excerpt, line.trim_ascii_end(), "{text:?}");
    assert!((1..=line.chars().count() + 1).contains(&(diagnostic.column as usize)), "{text:?}: {error}");
    assert!(diagnostic.message.starts_with("found "), "{text:?}: {error}");
    assert!(diagnostic.message.chars().count() < 200, "{text:?}: {error}");
    false
}

#[test]
fn random_bytes_are_no_program() {
    let mut random = Random::new(10);
    for _ in 0..5_000 {
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8).collect();
        check(&String::from_utf8_lossy(&bytes));
        let ascii: String = bytes.iter().map(|byte| char::from(byte % 96 + 31)).collect();
        check(&ascii.replace('\x1f', "\n"));
    }
}

#[test]
fn random_tokens_are_seldom_a_program() {
    const TOKENS: &[&str] = &[
        "x",
        "i",
        "y",
        "sum",
        "max",
        "exp",
        "f32",
        "pad",
        "where",
        "in",
        "inf",
        "true",
        "bitcast_u32",
        "argmax",
        "not",
        "@s",
        "1",
        "0",
        "2.5",
        "1e3",
        "4294967295",
        "(",
        ")",
        "[",
        "]",
        "[",
        "]",
        ",",
        ",",
        ":",
        "?",
        ";",
        "\n",
        "\r\n",
        "# c\n",
        "=",
        "=",
        "+=",
        "*=",
        "max=",
        "min=",
        "+=!",
        "*=!",
        "max=!",
        "min=!",
        "**",
        "*",
        "/",
        "%",
        "+",
        "-",
        "<<",
        ">>",
        "&",
        "^",
        "|",
        "<",
        "<=",
        ">",
        ">=",
        "==",
        "!=",
        "&&",
        "||",
        "!",
        "~",
        "{",
        ".",
        "ä",
        "\t",
    ];
    let mut random = Random::new(11);
    let mut programs = 0;
    for round in 0..10_000 {
        let mut text = if round % 2 == 0 { "y[i] = x[".to_owned() } else { String::new() };
        for _ in 0..random.below(20) {
            text.push_str(random.one_of(TOKENS));
            text.push_str(random.one_of(&["", " "]));
        }
        programs += u32::from(check(&text));
    }
    assert!(programs > 100, "{programs}");
}

/// A program with a token deleted, doubled, swapped with another, or taken from elsewhere.
fn mutated(random: &mut Random, text: &str) -> String {
    let Ok(tokens) = lex(text) else { return text.to_owned() };
    let mut parts: Vec<&str> = Vec::new();
    let mut end = 0;
    for token in &tokens {
        let (start, stop) = (token.span.start as usize, token.span.end as usize);
        parts.extend([&text[end..start.max(end)], &text[start..stop]]);
        end = stop;
    }
    parts.push(&text[end..]);
    for _ in 0..=random.below(3) {
        let (a, b) = (random.below(parts.len()), random.below(parts.len()));
        match random.below(4) {
            0 => parts[a] = "",
            1 => parts.insert(a, parts[a]),
            2 => parts.swap(a, b),
            _ => parts[a] = parts[b],
        }
    }
    parts.concat()
}

#[test]
fn damaged_programs_are_told_where() {
    let mut random = Random::new(12);
    let (mut programs, mut refused) = (0, 0);
    let mut count = |is_program| if is_program { programs += 1 } else { refused += 1 };
    for round in 0..10_000 {
        let text = match round % 2 {
            0 => random.one_of(PROGRAMS).to_owned(),
            _ => random_ast(&mut random).to_string(),
        };
        let text = mutated(&mut random, &text);
        count(check(&text));
        // Cut anywhere, as while it is typed.
        let mut end = random.below(text.len() + 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        count(check(&text[..end]));
    }
    assert!(programs > 1_000 && refused > 1_000, "{programs} programs, {refused} refused");
}
