//! The nodes and statics of a program, as far as it has been read.

use super::Given;
use super::fault::{Checked, Faults};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::node::List;

use crate::notation::ast::{Declaration, Name};
use crate::notation::program::{NodeIndex, Origin, Program, ProgramNode, StaticIndex};
use crate::notation::words::MAX_RANK;

/// A name that means a node.
struct Symbol<'a> {
    name: &'a str,
    given: Option<&'a Given>,
    /// A node given through the API becomes part of the program with its first mention.
    node: Option<NodeIndex>,
    /// Of a node that the text declares: where. Of others that it creates: where it first assigns them.
    defined: Option<u32>,
}

/// Names and what they mean so far.
pub(super) struct Symbols<'a> {
    /// By name.
    known: Vec<Symbol<'a>>,
    pub(super) faults: Faults,
    pub(super) program: Program,
}

impl<'a> Symbols<'a> {
    pub(super) fn new(all_given: &'a [Given]) -> Result<Self> {
        let mut symbols = Self { known: Vec::new(), faults: Faults::default(), program: Program::default() };
        for given in all_given {
            let (name, rank) = (&given.name, given.shape.len());
            let Err(place) = symbols.find(name) else {
                let message =
                    format_args!("node \"{name}\" is given twice; give each node once, under a name of its own");
                return Err(Error::say(ErrorKind::DuplicateNode, message));
            };
            if rank > MAX_RANK {
                let message = format_args!("node \"{name}\" has rank {rank}; programs work with rank 0 to {MAX_RANK}");
                return Err(Error::say(ErrorKind::ShapeMismatch, message));
            }
            symbols.known.insert(place, Symbol { name, given: Some(given), node: None, defined: None });
        }
        Ok(symbols)
    }

    /// Where a name is known, or would be.
    fn find(&self, name: &str) -> std::result::Result<usize, usize> {
        self.known.binary_search_by(|symbol| symbol.name.cmp(name))
    }

    fn symbol(&self, name: &str) -> Option<&Symbol<'a>> {
        self.find(name).ok().and_then(|place| self.known.get(place))
    }

    /// Whether a name is a node here.
    pub(super) fn is_node(&self, name: &str) -> bool {
        self.symbol(name).is_some()
    }

    /// Whether a node was given as a constant.
    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.symbol(name).and_then(|symbol| symbol.given).is_some_and(|given| given.is_constant)
    }

    /// The node of a name.
    pub(super) fn node(&mut self, name: &str) -> Option<NodeIndex> {
        let place = self.find(name).ok()?;
        let next = self.program.nodes.len();
        let symbol = &mut self.known[place];
        if let (None, Some(given)) = (symbol.node, symbol.given) {
            symbol.node = Some(next);
            let (dtype, shape) = (given.dtype, given.shape.clone());
            self.reserve(name, Origin::Given);
            self.fill(next, dtype, shape);
            return Some(next);
        }
        symbol.node
    }

    /// The place of a node that is about to be created: no name leads to it yet.
    pub(super) fn reserve(&mut self, name: &str, origin: Origin) -> NodeIndex {
        let (dtype, shape) = (DType::F32, Vec::new());
        self.program.nodes.push(ProgramNode { name: name.to_owned(), dtype, shape, origin, is_output: false });
        self.program.nodes.len() - 1
    }

    fn fill(&mut self, node: NodeIndex, dtype: DType, shape: Vec<u32>) {
        let node = &mut self.program.nodes[node];
        (node.dtype, node.shape) = (dtype, shape);
    }

    /// From here on the name is that node.
    pub(super) fn define(&mut self, name: &'a str, at: u32, node: NodeIndex, dtype: DType, shape: Vec<u32>) {
        self.fill(node, dtype, shape);
        if let Err(place) = self.find(name) {
            self.known.insert(place, Symbol { name, given: None, node: Some(node), defined: Some(at) });
        }
    }

    pub(super) fn at(&self, node: NodeIndex) -> &ProgramNode {
        &self.program.nodes[node]
    }

    pub(super) fn static_index(&mut self, name: &str) -> StaticIndex {
        let statics = &mut self.program.statics;
        statics.iter().position(|known| known == name).unwrap_or_else(|| {
            statics.push(name.to_owned());
            statics.len() - 1
        })
    }

    pub(super) fn declare(&mut self, declaration: &'a Declaration) -> Checked<()> {
        let Declaration { dtype, ref extents, .. } = *declaration;
        let name = declaration.name.text.as_str();
        let at = declaration.name.span.start;
        if let Some(first) = self.symbol(name).and_then(|symbol| symbol.defined) {
            let message =
                format_args!("\"{name}\" is defined already; declare a node once, before its first assignment");
            let failed = self.faults.fail(ErrorKind::DuplicateNode, at, message);
            self.faults.and(first, format_args!("\"{name}\" is defined here"));
            return Err(failed);
        }
        let Some(node) = self.node(name) else {
            self.is_countable(&declaration.name, extents)?;
            let node = self.reserve(name, Origin::Declared);
            self.define(name, at, node, dtype, extents.clone());
            return Ok(());
        };
        let given = self.at(node);
        if given.dtype != dtype || given.shape != *extents {
            let kind = if given.dtype == dtype { ErrorKind::ShapeMismatch } else { ErrorKind::DTypeMismatch };
            return Err(self.faults.fail(
                kind,
                at,
                format_args!(
                    "\"{name}\" is declared {dtype}{} and given as {}{}; declare what is given, or leave the \
                     declaration out",
                    List(extents),
                    given.dtype,
                    List(&given.shape)
                ),
            ));
        }
        if let Ok(place) = self.find(name) {
            self.known[place].defined = Some(at);
        }
        Ok(())
    }

    /// Whether the elements of a node can be counted: exactly in JavaScript too, in any order of multiplication.
    pub(super) fn is_countable(&self, name: &Name, shape: &[u32]) -> Checked<()> {
        const MOST: u64 = 1 << 53;
        let mut count = 1u64;
        for &extent in shape {
            // What is too large stays so.
            if extent > 0 {
                let extent = u64::from(extent);
                count = if count > MOST / extent { MOST + 1 } else { count * extent };
            }
        }
        if count <= MOST {
            return Ok(());
        }
        let message = format_args!(
            "\"{}\" with shape {} has more than 2^53 elements; give it smaller extents",
            name.text,
            List(shape)
        );
        Err(self.faults.fail(ErrorKind::LimitExceeded, name.span.start, message))
    }

    /// Marks the outputs, and gives the program.
    pub(super) fn finish(mut self, outputs: &[String]) -> Result<Program> {
        for output in outputs {
            let Some(node) = self.node(output) else {
                let message = format_args!(
                    "output \"{output}\" is no node of the program; list nodes that it assigns, or that are declared or \
                     given"
                );
                return Err(Error::say(ErrorKind::UnknownNode, message));
            };
            self.program.nodes[node].is_output = true;
        }
        Ok(self.program)
    }
}
