//! The body of a kernel as it grows: one `let` per value, each in the outermost loop that has what it needs, each once.
//!
//! Nothing in a body traps or has effects but the stores at its end, so a value may be computed earlier than it is asked
//! for, and for points that do not need it. Values are named by a counter: equal nests give equal texts.

use crate::sorted_map::SortedMap;

/// A value that was computed, or a literal.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// How the text names it.
    pub text: String,
    /// The loops around it.
    pub depth: usize,
    /// Whether the front end would compute with it, and refuse what overflows.
    pub is_literal: bool,
}

impl Operand {
    pub fn literal(text: String) -> Self {
        Self { text, depth: 0, is_literal: true }
    }
}

/// A loop's body, or the function's.
#[derive(Default)]
struct Scope {
    text: String,
    known: SortedMap<String, String>,
}

/// The scopes that are open, outermost first.
pub(super) struct Block {
    scopes: Vec<Scope>,
    names: usize,
}

/// The scopes that were put aside while something is computed outside them.
pub(super) struct Inner(Vec<Scope>);

impl Block {
    pub fn new() -> Self {
        Self { scopes: vec![Scope::default()], names: 0 }
    }

    /// The loops that are open.
    pub fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    /// A name that nothing else has.
    pub fn name(&mut self, prefix: char) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names - 1)
    }

    /// A statement in the innermost scope.
    pub fn line(&mut self, line: &str) {
        self.line_at(self.scopes.len() - 1, line);
    }

    fn line_at(&mut self, depth: usize, line: &str) {
        if let Some(scope) = self.scopes.get_mut(depth) {
            for _ in 0..=depth {
                scope.text.push_str("  ");
            }
            scope.text.push_str(line);
            scope.text.push('\n');
        }
    }

    /// The value of an expression that needs what is there in so many loops.
    pub fn value(&mut self, depth: usize, expression: String) -> Operand {
        let known = self.scopes.get(depth).and_then(|scope| scope.known.get(&expression));
        let text = match known {
            Some(name) => name.clone(),
            None => {
                let name = self.name('v');
                self.line_at(depth, &format!("let {name} = {expression};"));
                if let Some(scope) = self.scopes.get_mut(depth) {
                    scope.known.insert(expression, name.clone());
                }
                name
            }
        };
        Operand { text, depth, is_literal: false }
    }

    /// Opens a loop that goes on in [`Block::close`].
    pub fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Ends the innermost loop.
    pub fn close(&mut self, head: &str) {
        let Some(scope) = self.scopes.pop() else { return };
        self.line(&format!("{head} {{"));
        let depth = self.depth();
        if let Some(outer) = self.scopes.last_mut() {
            outer.text.push_str(&scope.text);
        }
        self.line_at(depth, "}");
    }

    /// Leaves all loops but the outer `depth`, for what does not change in them.
    pub fn leave(&mut self, depth: usize) -> Inner {
        Inner(self.scopes.split_off((depth + 1).min(self.scopes.len())))
    }

    /// Comes back.
    pub fn enter(&mut self, inner: Inner) {
        self.scopes.extend(inner.0);
    }

    /// The text; all loops are closed.
    pub fn finish(mut self) -> String {
        self.scopes.pop().map(|scope| scope.text).unwrap_or_default()
    }
}
