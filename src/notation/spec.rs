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
    /// How kernels reach their tensors, wherever they can so; without it, as it is likely to be fast.
    pub binding: Option<Binding>,
    /// Whether schedules are measured on the device.
    pub tune: Tune,
    /// Milliseconds that measuring may take altogether, at most a round over.
    pub tune_budget_ms: Option<u32>,
    /// In how many parts long reductions are split: as is likely to be fast (0), a fourth of them (1), four times as many (2), as
    /// few as may be (3).
    pub splitting: usize,
    /// The numbers of the schedules of its kernels; the first ones without.
    pub(crate) chosen: Vec<u32>,
    /// The kernel of it that is compiled alone, on nodes of its own, to be measured.
    #[allow(dead_code, reason = "a page asks for it")]
    pub(crate) trial: Option<usize>,
}

/// Whether schedules are measured on the device, with the shapes of the program, and remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tune {
    /// They are not, nor is what was measured before looked at: the choice is the same on every run.
    #[default]
    Off,
    /// Four of them for each kernel, for a second at most.
    Quick,
    /// All of them, for twenty seconds at most.
    Full,
}

/// How all kernels of a program are spread over the device, wherever they can be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// An invocation a point.
    PerPoint,
    /// An invocation several points, which need not divide what there is.
    Tiled,
    /// An invocation several points, of which the workgroup has in its memory what several invocations want.
    Staged,
    /// A workgroup a point.
    PerWorkgroup,
    /// A workgroup a point, and subgroups where the device has them.
    Subgroups,
    /// As it is likely to be fast on a GPU, also on an adapter that is a CPU: to see there what would be done.
    LikeGpu,
}

impl Forced {
    /// Every way.
    pub const ALL: [Self; 6] =
        [Self::PerPoint, Self::Tiled, Self::Staged, Self::PerWorkgroup, Self::Subgroups, Self::LikeGpu];
}

/// How a kernel reaches its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Each buffer that holds tensors is bound once, whole; tensors are told apart by offsets. Always legal.
    Pooled,
    /// Each tensor has a binding of its own. Where that is not legal, tensors are reached as `Pooled`.
    Direct,
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
        Self {
            name: name.into(),
            source,
            given,
            merged,
            outputs,
            is_plain: false,
            schedule: None,
            binding: None,
            tune: Tune::Off,
            tune_budget_ms: None,
            splitting: 0,
            chosen: Vec::new(),
            trial: None,
        }
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

    /// Reaches tensors in that way wherever it is legal, to compare ways, and to test them.
    #[must_use]
    pub fn binding(mut self, binding: Binding) -> Self {
        self.binding = Some(binding);
        self
    }

    /// Takes the schedules that are fastest on the device: as they were measured before, or are now. That takes up to a second,
    /// or twenty if `Full`, and as much memory as the largest kernel's tensors; no data is touched. On the host driver there is
    /// nothing to measure.
    #[must_use]
    pub fn tune(mut self, tune: Tune) -> Self {
        self.tune = tune;
        self
    }

    /// Bounds how long measuring may take, in milliseconds. Kernels for which no time is left have the schedule with the least
    /// estimate, and are measured when they are compiled the next time.
    #[must_use]
    pub fn tune_budget_ms(mut self, budget_ms: u32) -> Self {
        self.tune_budget_ms = Some(budget_ms);
        self
    }
}
