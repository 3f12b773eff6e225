//! Computations of virtual nodes, for later programs of a line of contexts.
//!
//! A virtual node has no bytes. The program that writes it leaves its computation, and a later program that reads it computes
//! it there.

use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Loops, Nest};
use crate::loops::optimise::{SMALL_WORK, inline, versions};
use crate::loops::rewrite::{rename_reads, rename_writes};
use crate::node::{MemoryMode, TensorNode};
use crate::notation::program::{Expr, ExprKind, Position, Term};

/// How a virtual node is computed: a nest that sets each of its elements, from nodes of a context.
#[derive(Debug, PartialEq)]
pub struct Computation {
    nest: Nest,
    /// Its tensors: the node itself, then those that are read.
    buffers: Vec<Buffer>,
    /// The nodes that are read.
    reads: Vec<TensorNode>,
}

impl Computation {
    /// How the last value of a buffer is computed in some loops, if that can be known afterwards; `nodes` are those that
    /// the buffers are, some of them in the merge buffer. Gives what is in the way.
    pub(crate) fn of(
        loops: &Loops,
        target: BufferIndex,
        nodes: &[TensorNode],
        merged: &[bool],
    ) -> Result<Self, String> {
        let mut loops = loops.clone();
        // It is to stay, with all else put into it.
        loops.buffers[target].kind = BufferKind::Node(usize::MAX);
        versions::split(&mut loops);
        inline::inline(&mut loops, true, SMALL_WORK);
        let mut writers = loops.nests.iter().enumerate().filter(|(_, nest)| nest.writes(target));
        let (Some((at, nest)), None) = (writers.next(), writers.next()) else {
            return Err("it is set in parts".to_owned());
        };
        if nest.stages.len() != 1 || !versions::redefines(&loops, nest, target) {
            return Err("it is set in parts".to_owned());
        }
        if nest.any_part(&mut uses_static) {
            return Err("it depends on a static".to_owned());
        }
        let (mut buffers, mut reads) = (vec![loops.buffers[target].clone()], Vec::new());
        let mut numbers = vec![target];
        for (number, buffer) in loops.buffers.iter().enumerate() {
            if !nest.reads(number) {
                continue;
            }
            let mut why = "which does not outlive the program";
            if let BufferKind::Node(node) = buffer.kind {
                let is_there = |read: &&TensorNode| read.mode() != MemoryMode::Local && merged.get(node) != Some(&true);
                let read = nodes.get(node).filter(is_there);
                if number == target || loops.nests[at + 1..].iter().any(|later| later.writes(number)) {
                    why = "which is written after it";
                } else if let Some(read) = read {
                    numbers.push(number);
                    buffers.push(buffer.clone());
                    reads.push(read.clone());
                    continue;
                }
            }
            return Err(format!("it is made of \"{}\", {why}", buffer.name));
        }
        let mut nest = nest.clone();
        let renamed = |known| numbers.iter().position(|number| *number == known).unwrap_or_default();
        rename_reads(&mut nest, &renamed);
        rename_writes(&mut nest, &renamed);
        buffers[0].kind = BufferKind::Temporary;
        Ok(Self { nest, buffers, reads })
    }

    /// Computes the node in front of some loops, whose buffer `target` it is. What it reads, and the loops do not know, is
    /// added to `nodes`.
    pub(crate) fn put_in_front(
        &self,
        loops: &mut Loops,
        target: BufferIndex,
        nodes: &mut Vec<TensorNode>,
        merged: &[bool],
    ) {
        let mut numbers = vec![target];
        for (buffer, read) in self.buffers[1..].iter().zip(&self.reads) {
            let is_it = |(at, node): (usize, &TensorNode)| node == read && merged.get(at) != Some(&true);
            let node = nodes.iter().enumerate().position(is_it).unwrap_or_else(|| {
                nodes.push(read.clone());
                nodes.len() - 1
            });
            let kind = BufferKind::Node(node);
            let known = loops.buffers.iter().position(|known| known.kind == kind);
            numbers.push(known.unwrap_or_else(|| {
                loops.buffers.push(Buffer { kind, ..buffer.clone() });
                loops.buffers.len() - 1
            }));
        }
        let mut nest = self.nest.clone();
        let renamed = |known: BufferIndex| numbers[known];
        rename_reads(&mut nest, &renamed);
        rename_writes(&mut nest, &renamed);
        loops.nests.insert(0, nest);
    }

    /// The nodes that are read.
    pub fn reads(&self) -> &[TensorNode] {
        &self.reads
    }
}

fn uses_static(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Static(_) => true,
        ExprKind::Load(load) => load.positions.iter().any(is_static),
        _ => false,
    }
}

fn is_static(position: &Position) -> bool {
    match position {
        Position::Affine(affine) => affine.terms.iter().any(|(term, _)| matches!(term, Term::Static(_))),
        Position::Computed(_) => false,
    }
}
