//! The nodes and statics of a program, as far as it has been read.

use super::Given;
use super::fault::{Checked, Fault};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

use crate::notation::ast::{Declaration, Name, Span};
use crate::notation::program::{NodeIndex, Origin, Program, ProgramNode, StaticIndex};
use crate::notation::words::MAX_RANK;
use crate::sorted_map::SortedMap;

/// Names and what they mean so far.
pub(super) struct Symbols<'a> {
    given: SortedMap<&'a str, usize>,
    all_given: &'a [Given],
    known: SortedMap<&'a str, NodeIndex>,
    /// Of nodes that the text declares: where. Of others that it creates: where it first assigns them.
    defined: SortedMap<&'a str, Span>,
    pub(super) program: Program,
}

impl<'a> Symbols<'a> {
    pub(super) fn new(all_given: &'a [Given]) -> Result<Self> {
        let mut given = SortedMap::new();
        for (number, node) in all_given.iter().enumerate() {
            let name = node.name.as_str();
            if given.insert(name, number).is_some() {
                let message = format!("node \"{name}\" is given twice; give each node once, under a name of its own");
                return Err(Error::new(ErrorKind::DuplicateNode, message));
            }
            if node.shape.len() > MAX_RANK {
                let rank = node.shape.len();
                let message = format!("node \"{name}\" has rank {rank}; programs work with rank 0 to {MAX_RANK}");
                return Err(Error::new(ErrorKind::ShapeMismatch, message));
            }
        }
        let (known, defined) = (SortedMap::new(), SortedMap::new());
        Ok(Self { given, all_given, known, defined, program: Program::default() })
    }

    /// Whether a name is a node here.
    pub(super) fn is_node(&self, name: &str) -> bool {
        self.known.contains_key(&name) || self.given.contains_key(&name)
    }

    /// The node of a name; a node given through the API becomes part of the program with its first mention.
    pub(super) fn node(&mut self, name: &'a str) -> Option<NodeIndex> {
        if let Some(&node) = self.known.get(&name) {
            return Some(node);
        }
        let given = &self.all_given[*self.given.get(&name)?];
        let node = self.reserve(name, Origin::Given);
        self.fill(node, given.dtype, given.shape.clone());
        self.known.insert(name, node);
        Some(node)
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
    pub(super) fn define(&mut self, name: &'a str, span: Span, node: NodeIndex, dtype: DType, shape: Vec<u32>) {
        self.fill(node, dtype, shape);
        self.known.insert(name, node);
        self.defined.insert(name, span);
    }

    /// Whether a node was given as a constant.
    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.given.get(&name).is_some_and(|&given| self.all_given[given].is_constant)
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
        let name = declaration.name.text.as_str();
        let at = declaration.name.span;
        if let Some(&first) = self.defined.get(&name) {
            let message = format!("\"{name}\" is defined already; declare a node once, before its first assignment");
            return Err(
                Fault::new(ErrorKind::DuplicateNode, at, message).and(first, format!("\"{name}\" is defined here"))
            );
        }
        let rank = declaration.extents.len();
        if rank > MAX_RANK {
            let message = format!("\"{name}\" has rank {rank}; programs work with rank 0 to {MAX_RANK}");
            return Err(Fault::new(ErrorKind::ShapeMismatch, at, message));
        }
        if let Some(node) = self.node(name) {
            let given = self.at(node);
            if given.dtype != declaration.dtype {
                let message = format!(
                    "\"{name}\" is declared {}, and the node that is given is {}; declare what is given, or leave the \
                     declaration out",
                    declaration.dtype, given.dtype
                );
                return Err(Fault::new(ErrorKind::DTypeMismatch, at, message));
            }
            if given.shape != declaration.extents {
                let message = format!(
                    "\"{name}\" is declared with shape {:?}, and the node that is given has shape {:?}; declare what is \
                     given, or leave the declaration out",
                    declaration.extents, given.shape
                );
                return Err(Fault::new(ErrorKind::ShapeMismatch, at, message));
            }
            self.defined.insert(name, at);
            return Ok(());
        }
        is_countable(&declaration.name, &declaration.extents)?;
        let node = self.reserve(name, Origin::Declared);
        self.define(name, at, node, declaration.dtype, declaration.extents.clone());
        Ok(())
    }

    /// Marks the outputs, and gives the program.
    pub(super) fn finish(mut self, outputs: &'a [String]) -> Result<Program> {
        for output in outputs {
            let Some(node) = self.node(output) else {
                let message = format!(
                    "output \"{output}\" is no node of the program; list nodes that it assigns, or that are declared or \
                     given"
                );
                return Err(Error::new(ErrorKind::UnknownNode, message));
            };
            self.program.nodes[node].is_output = true;
        }
        Ok(self.program)
    }
}

/// Whether the elements of a node can be counted: exactly in JavaScript too, in any order of multiplication.
pub(super) fn is_countable(name: &Name, shape: &[u32]) -> Checked<()> {
    const MOST: u64 = 1 << 53;
    let mut count = Some(1u64);
    for &extent in shape.iter().filter(|&&extent| extent > 0) {
        count = count.and_then(|count| count.checked_mul(u64::from(extent))).filter(|&count| count <= MOST);
    }
    if count.is_some() {
        return Ok(());
    }
    let message =
        format!("\"{}\" with shape {shape:?} has more than 2^53 elements; give it smaller extents", name.text);
    Err(Fault::new(ErrorKind::LimitExceeded, name.span, message))
}
