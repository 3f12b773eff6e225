//! What is compiled: a program with the nodes that stand for its names.

use crate::error::Result;
use crate::node::TensorNode;
use crate::notation::ast::Ast;

/// What gives a built program its text, for mistakes to point into.
pub(crate) type Written = fn(&Ast) -> Result<(String, Ast)>;

/// A program in index notation, with the nodes that it is given and the names of its outputs.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// The name that messages and reports use.
    pub name: String,
    /// The text, or what a builder made.
    pub source: ProgramSource,
    /// Nodes by their name in the program.
    pub given: Vec<(String, TensorNode)>,
    /// Those of them that are read from the device's merge buffer; one at most.
    pub merged: Vec<String>,
    /// Names that the context will have; with none, every created node that no statement reads afterwards.
    pub outputs: Vec<String>,
    /// Whether each statement stays a kernel of its own.
    pub is_plain: bool,
    /// How kernels are spread over the device, wherever they can be so; without it, as it is likely to be fast.
    pub schedule: Option<Forced>,
}

/// How all kernels of a program are spread over the device, wherever they can be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// An invocation a point.
    PerPoint,
    /// An invocation several points, which need not divide what there is.
    Tiled,
    /// A workgroup a point.
    PerWorkgroup,
}

/// Where a program comes from.
#[derive(Clone, Debug)]
pub enum ProgramSource {
    /// Text.
    Text(String),
    /// A builder.
    Built(Built),
}

/// A program that was built.
#[derive(Clone, Debug)]
pub struct Built {
    pub(crate) ast: Ast,
    /// The printer comes with the builder: a page, which has texts only, has neither.
    pub(crate) written: Written,
}

impl ProgramSpec {
    /// A program of a text, without nodes.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::of(name, ProgramSource::Text(text.into()))
    }

    /// A program that was built.
    pub fn built(name: impl Into<String>, ast: Ast) -> Self {
        Self::of(name, ProgramSource::Built(Built { ast, written: Ast::written }))
    }

    fn of(name: impl Into<String>, source: ProgramSource) -> Self {
        let (given, merged, outputs) = (Vec::new(), Vec::new(), Vec::new());
        Self { name: name.into(), source, given, merged, outputs, is_plain: false, schedule: None }
    }

    /// Gives a node under its label.
    #[must_use]
    pub fn node(self, node: &TensorNode) -> Self {
        let label = node.label().to_owned();
        self.node_as(label, node)
    }

    /// Gives a node under another name.
    #[must_use]
    pub fn node_as(mut self, name: impl Into<String>, node: &TensorNode) -> Self {
        self.given.push((name.into(), node.clone()));
        self
    }

    /// Gives what the device's merge buffer holds a name, to be read; it must hold `node`: the copy that puts it there is
    /// `Context::device_to_device`. A program has one at most.
    #[must_use]
    pub fn merge_node(mut self, name: impl Into<String>, node: &TensorNode) -> Self {
        let name = name.into();
        self.merged.push(name.clone());
        self.node_as(name, node)
    }

    /// Names outputs: nodes of the program that the routine's context will have.
    #[must_use]
    pub fn outputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.outputs.extend(names.into_iter().map(Into::into));
        self
    }

    /// Keeps each statement a kernel of its own, to see what the optimiser does, and to test it.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Spreads kernels over the device in that way wherever it can be, to compare ways, and to test them.
    #[must_use]
    pub fn schedule(mut self, forced: Forced) -> Self {
        self.schedule = Some(forced);
        self
    }
}
