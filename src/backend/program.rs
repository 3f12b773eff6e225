//! Programs in index notation: text → syntax → program → loops → kernels, which link and run like any others.

use std::fmt::Write;
use std::sync::Arc;

use crate::backend::compile::{Admits, Parts};
use crate::backend::nest::{kernel, rescheduled, target};
use crate::backend::tune::Tuning;
use crate::backend::virtuals::Virtuals;
use crate::device::Device;
use crate::driver::{Driver, OptimizeCtx};
use crate::error::{Error, ErrorKind, Result};
use crate::loops::ir::{Buffer, BufferIndex, BufferKind, Loops, any_load, each_computed};
use crate::loops::lower::lower;
use crate::loops::optimise::versions::redefines;
use crate::loops::optimise::{SMALL_WORK, has_points, join_rows, optimise, split};
use crate::loops::virtuals::Computation;
use crate::node::{MemoryMode, TensorNode};
use crate::notation::check::{Given, check_parsed};
use crate::notation::parse;
use crate::notation::program::{Program, StaticBound, times};
use crate::notation::spec::{ProgramSource, ProgramSpec};
use crate::notation::words::is_name;
use crate::schedule::{Target, busy, rows};
use crate::wgsl::spec::KernelSpec;

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
        let limits = self.limits();
        let target = target(limits, self.adapter(), spec);
        self.tunable(spec, &|splitting| parts_of(spec, known, target, splitting, limits.workgroups_per_dimension))
    }
}

/// The kernels of a program, and all else that its code is made of.
fn parts_of(
    spec: &ProgramSpec,
    known: &OptimizeCtx,
    mut target: Target,
    splitting: usize,
    most_workgroups: u32,
) -> Result<Parts> {
    let program = checked(spec)?;
    let mut nodes = nodes_of(&program, spec);
    let mut loops = lower(&program);
    let mut merged = Vec::new();
    for node in &program.nodes {
        merged.push(spec.merged.contains(&node.name));
    }
    let virtuals = virtuals(&mut loops, &mut nodes, &merged, known)?;
    check_apart(&program, &nodes, &merged)?;
    if !spec.is_plain {
        // Those who force schedules want to see all there is, however small.
        optimise(&mut loops, if target.forced().is_some() { 0 } else { SMALL_WORK });
        split(&mut loops, busy(target.is_cpu, splitting), target.is_cpu);
        if target.has_rows {
            join_rows(&mut loops, rows(&target));
        }
    }
    let loops = Arc::new(loops);
    let (mut tensors, mut kept) = (Vec::new(), vec![false; nodes.len()]);
    for Buffer { kind, name, dtype, shape, .. } in &loops.buffers {
        tensors.push(match *kind {
            BufferKind::Node(index) => {
                kept[index] = true;
                nodes[index].clone()
            }
            BufferKind::Temporary => TensorNode::with_mode(name.clone(), *dtype, shape.clone(), MemoryMode::Local),
        });
    }
    target.is_aligned = tensors.iter().all(|node| start_of(node).is_multiple_of(4 * 4));
    let node_of = |buffer: BufferIndex| {
        let merged = matches!(loops.buffers[buffer].kind, BufferKind::Node(at) if merged.get(at) == Some(&true));
        (tensors[buffer].clone(), merged)
    };
    let mut specs = Vec::new();
    for (index, nest) in loops.nests.iter().enumerate().filter(|(_, nest)| has_points(nest)) {
        let mut base = KernelSpec::new(format!("{}/{}", spec.name, nest.name), "");
        for index in 0..program.statics.len() {
            base.statics.push(format!("s{index}"));
        }
        let mut kernel = kernel(base, (&loops, index), &target, most_workgroups, &node_of);
        if let Some(at) = spec.chosen.get(specs.len()) {
            kernel = rescheduled(kernel, *at as usize);
        }
        specs.push(Arc::new(kernel));
    }
    // Also what is written for no point, and read or listed as an output all the same.
    let (own, others) = nodes.split_at(program.nodes.len());
    let (mut created, mut names) = (Vec::new(), Vec::new());
    for node in &tensors {
        if !spec.given.iter().any(|(_, given)| given == node) && !others.contains(node) {
            created.push(node.clone());
        }
    }
    let mut bounds = Bounds { statics: program.statics, nodes: Vec::new(), bounds: program.static_bounds };
    for (index, node) in own.iter().enumerate() {
        let name = &program.nodes[index].name;
        // Temporaries have no node that a context could be asked for.
        if kept[index] {
            names.push((name.clone(), node.clone()));
        }
        bounds.nodes.push(name.clone());
    }
    Ok(Parts {
        name: spec.name.clone(),
        statics: bounds.statics.clone(),
        specs,
        created,
        names,
        admits: Some(Arc::new(bounds)),
        virtuals,
        tuning: Tuning::default(),
    })
}

fn checked(spec: &ProgramSpec) -> Result<Program> {
    if spec.merged.len() > 1 {
        let message = "a program merges one node, since the merge buffer has one tenant; split it";
        return Err(Error::new(ErrorKind::KernelInterface, message));
    }
    let mut given = Vec::new();
    for (name, node) in &spec.given {
        // Before the text is read, where such a name would be a mistake of its own.
        if !is_name(name) {
            let message = format_args!(
                "node {node} is given as \"{name}\", which is reserved or no name (letters, digits, `_`); give it under another \
                 one: nodes: {{ w: node }}, or node_as(\"w\", &node)"
            );
            return Err(Error::say(ErrorKind::KernelInterface, message));
        }
        given.push(Given {
            name: name.clone(),
            dtype: node.dtype(),
            shape: node.shape().to_vec(),
            is_constant: node.mode() == MemoryMode::Constant || spec.merged.contains(name),
        });
    }
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
    for (index, node) in program.nodes.iter_mut().enumerate() {
        let mut is_result = false;
        for statement in program.statements.iter() {
            let mut is_read = |expr| is_result &= !any_load(expr, &mut |load| load.node == index);
            is_read(&statement.value);
            each_computed(&statement.positions, &mut is_read);
            is_result |= statement.target == index;
        }
        node.is_output |= is_result;
    }
}

/// A node of the context, or to be created there, for each node of the program. Those that are neither given nor outputs
/// are not used: their buffers are temporaries.
fn nodes_of(program: &Program, spec: &ProgramSpec) -> Vec<TensorNode> {
    let mut nodes = Vec::new();
    for node in &program.nodes {
        nodes.push(match spec.given.iter().find(|(known, _)| *known == node.name) {
            Some((_, given)) => given.clone(),
            None => TensorNode::new(node.name.clone(), node.dtype, node.shape.clone()),
        });
    }
    nodes
}

/// Makes temporaries of the virtual nodes: those that are read before they are set are computed in front, and how those that
/// are written are computed is kept.
fn virtuals(loops: &mut Loops, nodes: &mut Vec<TensorNode>, merged: &[bool], known: &OptimizeCtx) -> Result<Virtuals> {
    let mut virtuals = Virtuals { known: known.clone(), ..Virtuals::default() };
    let count = nodes.len();
    let mut written = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if node.mode() == MemoryMode::Virtual {
            loops.buffers[at].kind = BufferKind::Temporary;
            if loops.nests.iter().any(|nest| nest.writes(at)) {
                written.push(at);
            }
        }
    }
    for at in 0..count {
        let node = nodes[at].clone();
        let first = loops.nests.iter().find(|nest| nest.reads(at) || nest.writes(at));
        let is_read = first.is_some_and(|nest| nest.reads(at) || !redefines(loops, nest, at));
        if node.mode() != MemoryMode::Virtual || !is_read {
            continue;
        }
        let Some(left) = known.get(&node) else {
            let message = format_args!(
                "node {node} is virtual, and nothing before computes it; compile in the context of the routine that \
                 writes it, or make it on_device"
            );
            return Err(Error::say(ErrorKind::UnknownNode, message));
        };
        left.computation.put_in_front(loops, at, nodes, merged);
        virtuals.uses.push((node, left.computation.clone()));
    }
    for at in written {
        let node = nodes[at].clone();
        match Computation::of(loops, at, nodes, merged) {
            Ok(how) => virtuals.leaves.push((node, Arc::new(how))),
            Err(why) => {
                let message = format_args!(
                    "node {node} is virtual, and later programs could not compute it: {why}; make it on_device, or local"
                );
                return Err(Error::say(ErrorKind::KernelInterface, message));
            }
        }
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
        start = start.saturating_add(times(first, base.dtype().size_bytes()));
        node_or_base = base;
    }
    start
}

/// By how much sums of 64 bits wrap.
const WRAPS: f64 = 18_446_744_073_709_551_616.0;

impl Admits for Bounds {
    fn check(&self, values: &[i32]) -> Result<()> {
        for bound in &self.bounds {
            let (mut sum, mut about) = (0i64, 0.0);
            for (index, factor) in &bound.terms {
                let value = values.get(*index).copied().unwrap_or(0);
                sum = sum.wrapping_add(i64::from(value).wrapping_mul(*factor));
                about += f64::from(value) * *factor as f64;
            }
            // 64 bits wrap by 2^64, of which the sum in floats is a small part away; 128 bits would bring library code.
            let has_wrapped = (about - sum as f64).abs() > WRAPS / 2.0;
            if !has_wrapped && (bound.least..=bound.most).contains(&sum) {
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
                        let _ = write!(all, "{plus}{factor} * @{} ({value})", name(index));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::ast::Span;

    #[test]
    fn sums_of_statics_do_not_wrap() {
        let admits = |factors: &[i64], value: i32, most: i64| {
            let terms: Vec<_> = factors.iter().copied().enumerate().collect();
            let bound = StaticBound { terms, least: 0, most, node: 0, axis: 0, span: Span::default() };
            let statics = factors.iter().map(|factor| format!("s{factor}")).collect();
            let bounds = Bounds { statics, nodes: vec!["x".to_owned()], bounds: vec![bound] };
            bounds.check(&vec![value; factors.len()]).is_ok()
        };
        assert!(admits(&[3], 5, 15) && !admits(&[3], 5, 14) && !admits(&[-3], 5, 15));
        assert!(admits(&[1 << 40, -(1 << 40)], i32::MAX, 0), "what is far on the way comes back");
        assert!(!admits(&[1 << 33], i32::MIN, i64::MAX), "minus 2^64");
        assert!(!admits(&[i64::MIN; 4], i32::MIN, 0), "2^96");
        assert!(!admits(&[i64::MAX], i32::MAX, i64::MAX));
    }
}
