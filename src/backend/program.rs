//! Programs in index notation: text → syntax → program → loops → kernels, which link and run like any others.

use std::sync::Arc;

use crate::backend::compile::{Admits, Parts};
use crate::backend::virtuals::Virtuals;
use crate::device::Device;
use crate::driver::{Driver, OptimizeCtx};
use crate::error::{Error, ErrorKind, Result};
use crate::loops::ir::{BufferKind, Loops, any_load};
use crate::loops::lower::lower;
use crate::loops::optimise::versions::redefines;
use crate::loops::optimise::{has_points, optimise, split};
use crate::loops::virtuals::Computation;
use crate::node::{MemoryMode, TensorNode};
use crate::notation::check::{Given, check_parsed};
use crate::notation::parse;
use crate::notation::program::{Program, StaticBound};
use crate::notation::spec::{ProgramSource, ProgramSpec};
use crate::schedule::busy;
use crate::wgsl::emit::{EmitLimits, emit};
use crate::wgsl::spec::{KernelSpec, NestOf};

/// The statics of a program, with what they must satisfy.
#[derive(Debug)]
struct Bounds {
    statics: Vec<String>,
    /// The names of the nodes.
    nodes: Vec<String>,
    bounds: Vec<StaticBound>,
}

impl<D: Driver> Device<D> {
    /// The kernels of a program in index notation.
    pub(crate) fn program_parts(&self, spec: &ProgramSpec, known: &OptimizeCtx) -> Result<Parts> {
        let program = checked(spec)?;
        let mut nodes = nodes_of(&program, spec);
        let mut loops = lower(&program);
        let merged: Vec<bool> = program.nodes.iter().map(|node| spec.merged.contains(&node.name)).collect();
        let virtuals = virtuals(&mut loops, &mut nodes, &merged, known)?;
        check_apart(&program, &nodes, &merged)?;
        if !spec.is_plain {
            optimise(&mut loops);
            let is_cpu = self.adapter().device_type == "cpu";
            split(&mut loops, busy(is_cpu), is_cpu);
        }
        let loops = Arc::new(loops);
        let tensors: Vec<TensorNode> = loops
            .buffers
            .iter()
            .map(|buffer| match buffer.kind {
                BufferKind::Node(index) => nodes[index].clone(),
                BufferKind::Temporary => {
                    TensorNode::with_mode(buffer.name.clone(), buffer.dtype, buffer.shape.clone(), MemoryMode::Local)
                }
            })
            .collect();
        let mut limits = EmitLimits::of(self.limits(), self.adapter());
        limits.target.forced = spec.schedule;
        limits.by_fours &= tensors.iter().all(|node| start_of(node).is_multiple_of(4 * 4));
        let mut kernels = Vec::with_capacity(loops.nests.len());
        for (index, nest) in loops.nests.iter().enumerate().filter(|(_, nest)| has_points(nest)) {
            let emitted = emit(&loops, nest, &limits);
            let name = format!("{}/{}", spec.name, nest.name);
            let mut kernel = KernelSpec::new(name, emitted.text)
                .statics((0..program.statics.len()).map(|index| format!("s{index}")))
                .grid(emitted.grid);
            let mut buffers = Vec::with_capacity(emitted.tensors.len());
            for (position, (buffer, access)) in emitted.tensors.iter().enumerate() {
                let (name, node) = (format!("t{position}"), &tensors[*buffer]);
                let is_merged =
                    matches!(loops.buffers[*buffer].kind, BufferKind::Node(at) if merged.get(at) == Some(&true));
                kernel = if is_merged { kernel.merge_tensor(name, node) } else { kernel.tensor(name, node, *access) };
                buffers.push(*buffer);
            }
            kernel.nest = Some(NestOf {
                loops: loops.clone(),
                nest: index,
                buffers,
                by_fours: emitted.by_fours,
                schedule: emitted.schedule,
            });
            kernels.push(Arc::new(kernel));
        }
        // Also what is written for no point, and read or listed as an output all the same.
        let is_given = |node: &TensorNode| spec.given.iter().any(|(_, given)| given == node);
        let (own, others) = nodes.split_at(program.nodes.len());
        let created = tensors.into_iter().filter(|node| !is_given(node) && !others.contains(node));
        // Temporaries have no node that a context could be asked for.
        let is_kept = |index: &usize| loops.buffers.iter().any(|buffer| buffer.kind == BufferKind::Node(*index));
        let kept = (0..own.len()).filter(is_kept);
        let names = kept.map(|index| (program.nodes[index].name.clone(), nodes[index].clone()));
        let bounds = Bounds {
            statics: program.statics.clone(),
            nodes: program.nodes.iter().map(|node| node.name.clone()).collect(),
            bounds: program.static_bounds.clone(),
        };
        Ok(Parts {
            name: spec.name.clone(),
            statics: program.statics.clone(),
            specs: kernels,
            created: created.collect(),
            names: names.collect(),
            admits: Some(Box::new(bounds)),
            virtuals,
        })
    }
}

fn checked(spec: &ProgramSpec) -> Result<Program> {
    if spec.merged.len() > 1 {
        let message = "a program merges one node, since the merge buffer has one tenant; split it";
        return Err(Error::new(ErrorKind::KernelInterface, message));
    }
    let given: Vec<Given> = spec
        .given
        .iter()
        .map(|(name, node)| Given {
            name: name.clone(),
            dtype: node.dtype(),
            shape: node.shape().to_vec(),
            is_constant: node.mode() == MemoryMode::Constant || spec.merged.contains(name),
        })
        .collect();
    let (text, ast) = match &spec.source {
        ProgramSource::Text(text) => (text.clone(), parse(text)?),
        // So that mistakes have a text to point into.
        ProgramSource::Built(built) => (built.written)(&built.ast)?,
    };
    let mut program = check_parsed(&text, &ast, &given, &spec.outputs)?;
    if spec.outputs.is_empty() {
        keep_results(&mut program);
    }
    Ok(program)
}

/// Without a list of outputs, what is created and not read afterwards is one: nobody else could want it.
fn keep_results(program: &mut Program) {
    for index in 0..program.nodes.len() {
        let last_write = program.statements.iter().rposition(|statement| statement.target == index);
        let is_read_after = |at: usize| {
            program.statements[at + 1..].iter().any(|statement| {
                any_load(&statement.value, &mut |load| load.node == index)
                    || statement.positions.iter().any(|position| match position {
                        crate::notation::program::Position::Affine(_) => false,
                        crate::notation::program::Position::Computed(expr) => {
                            any_load(expr, &mut |load| load.node == index)
                        }
                    })
            })
        };
        let is_result = last_write.is_some_and(|at| !is_read_after(at));
        program.nodes[index].is_output |= is_result;
    }
}

/// A node of the context, or to be created there, for each node of the program. Those that are neither given nor outputs
/// are not used: their buffers are temporaries.
fn nodes_of(program: &Program, spec: &ProgramSpec) -> Vec<TensorNode> {
    let given = |name: &str| spec.given.iter().find(|(known, _)| known == name).map(|(_, node)| node.clone());
    program
        .nodes
        .iter()
        .map(|node| {
            given(&node.name).unwrap_or_else(|| TensorNode::new(node.name.clone(), node.dtype, node.shape.clone()))
        })
        .collect()
}

/// Makes temporaries of the virtual nodes: those that are read before they are set are computed in front, and how those that
/// are written are computed is kept.
fn virtuals(loops: &mut Loops, nodes: &mut Vec<TensorNode>, merged: &[bool], known: &OptimizeCtx) -> Result<Virtuals> {
    let mut virtuals = Virtuals { known: known.clone(), ..Virtuals::default() };
    let is_virtual = |at: &usize| nodes[*at].mode() == MemoryMode::Virtual;
    let all: Vec<usize> = (0..nodes.len()).filter(is_virtual).collect();
    all.iter().for_each(|&at| loops.buffers[at].kind = BufferKind::Temporary);
    let is_written = |at: &usize| loops.nests.iter().any(|nest| nest.writes(*at));
    let written: Vec<usize> = all.iter().copied().filter(is_written).collect();
    for at in all {
        let node = nodes[at].clone();
        let first = loops.nests.iter().find(|nest| nest.reads(at) || nest.writes(at));
        if !first.is_some_and(|nest| nest.reads(at) || !redefines(loops, nest, at)) {
            continue;
        }
        let Some(left) = known.get(&node) else {
            let message = format_args!(
                "node {node} is virtual, and nothing before computes it; compile with the optimize_ctx of the context that \
                 the routine that writes it leaves, or make it on_device"
            );
            return Err(Error::say(ErrorKind::UnknownNode, message));
        };
        left.computation.put_in_front(loops, at, nodes, merged);
        virtuals.uses.push((node, left.computation.clone()));
    }
    for at in written {
        let how = Computation::of(loops, at, nodes, merged).map_err(|why| {
            let message = format_args!(
                "node {} is virtual, and later programs could not compute it: {why}; make it on_device, or local",
                nodes[at]
            );
            Error::say(ErrorKind::KernelInterface, message)
        })?;
        virtuals.leaves.push((nodes[at].clone(), Arc::new(how)));
    }
    Ok(virtuals)
}

/// Refuses nodes that lie on the same bytes where one of them is written: statements mean what they say only of nodes
/// that are apart. The merge buffer is apart from all, whatever node it holds.
fn check_apart(program: &Program, nodes: &[TensorNode], merged: &[bool]) -> Result<()> {
    let is_merged = |at: usize| merged.get(at) == Some(&true);
    for statement in &program.statements {
        let written = &nodes[statement.target];
        let others = nodes.iter().enumerate().filter(|(at, _)| *at != statement.target && !is_merged(*at));
        let Some((_, other)) = others.into_iter().find(|(_, node)| meet(node, written)) else { continue };
        let (name, other) = (written.label(), other.label());
        let message = format_args!(
            "\"{name}\" is written, and \"{other}\" lies on the same bytes; use one name for them, or copy \"{other}\" first"
        );
        return Err(Error::say(ErrorKind::KernelInterface, message));
    }
    Ok(())
}

/// Whether two nodes have bytes in common.
fn meet(one: &TensorNode, other: &TensorNode) -> bool {
    let range = |node: &TensorNode| {
        let start = start_of(node);
        (start, start.saturating_add(node.size_bytes()))
    };
    let ((start, end), (first, last)) = (range(one), range(other));
    one.root() == other.root() && start < last && first < end
}

/// Where a node starts in what it is a view of in the end, in bytes.
fn start_of(node: &TensorNode) -> u64 {
    let (mut start, mut node_or_base) = (0u64, node);
    while let Some((base, first)) = node_or_base.base() {
        start = start.saturating_add(first.saturating_mul(base.dtype().size_bytes()));
        node_or_base = base;
    }
    start
}

impl Admits for Bounds {
    fn check(&self, values: &[i32]) -> Result<()> {
        for bound in &self.bounds {
            let mut sum = 0i128;
            for (index, factor) in &bound.terms {
                sum += i128::from(values.get(*index).copied().unwrap_or(0)) * i128::from(*factor);
            }
            if (i128::from(bound.least)..=i128::from(bound.most)).contains(&sum) {
                continue;
            }
            let node = self.nodes.get(bound.node).map_or("", String::as_str);
            let name = |index: &usize| self.statics.get(*index).map_or("", String::as_str);
            let message = match bound.terms[..] {
                [(index, factor)] => {
                    let value = values.get(index).copied().unwrap_or(0);
                    let (mut least, mut most) = (bound.least, bound.most);
                    if factor < 0 {
                        (least, most) = (most.wrapping_neg(), least.wrapping_neg());
                    }
                    let size = factor.saturating_abs();
                    let (least, most) = (floor(least.wrapping_neg(), size).wrapping_neg(), floor(most, size));
                    format!(
                        "@{} = {value} leaves axis {} of \"{node}\"; give it from {least} to {most}",
                        name(&index),
                        bound.axis
                    )
                }
                _ => {
                    let mut all = String::new();
                    for (index, factor) in &bound.terms {
                        let plus = if all.is_empty() { "" } else { " + " };
                        let value = values.get(*index).copied().unwrap_or(0);
                        all.push_str(&format!("{plus}{factor} * @{} ({value})", name(index)));
                    }
                    format!(
                        "{all} leaves axis {} of \"{node}\"; their sum must be from {} to {}",
                        bound.axis, bound.least, bound.most
                    )
                }
            };
            return Err(Error::new(ErrorKind::ShapeMismatch, message));
        }
        Ok(())
    }
}

/// The largest integer that times `b`, which is positive, is at most `a`.
fn floor(a: i64, b: i64) -> i64 {
    let quotient = a.checked_div(b).unwrap_or(0);
    quotient - i64::from(quotient.wrapping_mul(b) > a)
}
