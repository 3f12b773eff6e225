//! A place in a text that an author wrote, with what is wrong there.
//!
//! Lines and columns are 1-based; columns count characters, as editors do. The excerpt is always of the author's
//! text, never of generated text.

use std::fmt;

use serde::Serialize;

/// One message about one place in an author's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// The line of the author's text.
    pub excerpt: String,
}

impl Diagnostic {
    /// A diagnostic at that place of `text`. A place after the end is moved to the end, so that the excerpt is never
    /// of anything but `text`.
    pub fn at(text: &str, line: u32, column: u32, message: impl Into<String>) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let message = message.into();
        let Some(last) = lines.len().checked_sub(1) else {
            return Self { line: 1, column: 1, message, excerpt: String::new() };
        };
        let index = (line.max(1) as usize - 1).min(last);
        let excerpt = lines[index].trim_end().to_owned();
        let end = excerpt.chars().count() as u32 + 1;
        let column = if line as usize > lines.len() { end } else { column.clamp(1, end) };
        Self { line: index as u32 + 1, column, message, excerpt }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.line.to_string().len();
        writeln!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        writeln!(f, "{} | {}", self.line, self.excerpt)?;
        // A tab in the excerpt must be a tab in the caret line too, or the caret drifts.
        let pad: String =
            self.excerpt.chars().take(self.column as usize - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "{:gutter$} | {pad}^", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_the_column() {
        let at = Diagnostic::at("let a = 1;\n\tlet b = c;\n", 2, 10, "unknown c");
        assert_eq!(at.to_string(), "2:10: unknown c\n2 | \tlet b = c;\n  | \t        ^");
    }

    #[test]
    fn a_place_after_the_text_is_its_end() {
        let at = Diagnostic::at("fn main() {", 40, 3, "expected }");
        assert_eq!((at.line, at.column, at.excerpt.as_str()), (1, 12, "fn main() {"));
    }
}
