//! Steps by chance.

use wgslab::{DType, Landing, MemoryMode, Span, TensorNode};

use super::{Kernel, Op, Random};

/// How many numbers `make_op` tells apart.
pub const KINDS: u64 = 84;

/// The next step, of the kind with that number, of a program with so many contexts and routines.
pub fn make_op(random: &mut Random, kind: u64, nodes: &[TensorNode], contexts: usize, routines: usize) -> Op {
    let context = recent(random, contexts);
    let node = random.index(nodes.len());
    let size = nodes[node].size_bytes();
    let start = random.below(size + 2);
    let source = random.index(contexts);
    match kind {
        0..=3 => Op::Zeros { context, nodes: some(random, nodes.len()) },
        4..=11 => {
            let chosen = some(random, nodes.len());
            // Now and then a byte too many.
            let excess = u64::from(random.below(24) == 0);
            let bytes = chosen.iter().map(|&node| random.bytes(nodes[node].size_bytes() + excess)).collect();
            Op::Upload { context, nodes: chosen, bytes }
        }
        12..=14 => Op::Alias { context, node },
        15 => [Op::Child { context }, Op::WaitFor { context, source }][random.index(2)].clone(),
        16 => [Op::Forget { context }, Op::DropContext { context }][random.index(2)].clone(),
        17 => {
            let keep = (random.below(2) == 0).then(|| some(random, nodes.len()));
            let merging = [None, Some(None), Some(Some(node)), Some(Some(node))][random.index(4)];
            Op::Parts { context, keep, merging, orphan: random.below(4) == 0 }
        }
        18..=21 => {
            let len = random.below(size.saturating_sub(start) + 2);
            Op::Write { context, node, start, bytes: random.bytes(len) }
        }
        22..=23 => Op::Zero { context, node, start, len: random.below(size.saturating_sub(start) + 2) },
        24..=26 => {
            let from = random.index(nodes.len());
            let from_start = random.below(nodes[from].size_bytes() + 1);
            Op::Copy { context, from, from_start, to: node, to_start: start, len: random.below(size + 1) }
        }
        27..=31 => Op::Link { context, kernel: kernel(random, nodes, Form::Add) },
        72 => Op::Link { context, kernel: kernel(random, nodes, Form::Fill) },
        73..=74 => Op::Link { context, kernel: kernel(random, nodes, Form::Cast) },
        75 => Op::Link { context, kernel: kernel(random, nodes, Form::Strided) },
        32 | 76..=79 => Op::LinkBatch { context, kernels: batch(random, nodes) },
        33 => {
            let form = any_form(random);
            Op::Forecast { context, kernel: kernel(random, nodes, form) }
        }
        34..=35 | 80 => Op::Merge { context, node },
        36..=37 | 81 => Op::Transfer { context, node, source, into: Landing::MergeBuffer },
        38 => Op::Transfer { context, node, source, into: Landing::Node },
        39 => Op::InitFromDevice { context, node, source },
        40..=41 => Op::CopyFrom { context, node, source, into: landing(random) },
        42 => Op::InitFromOther { context, node, source },
        43 => {
            let into = [None, Some(Landing::Node), Some(Landing::MergeBuffer)][random.index(3)];
            Op::FromForeign { context, node, bytes: random.bytes(size), into }
        }
        44 => Op::ToForeign { context, node },
        45..=49 | 82 => Op::Run { routine: recent(random, routines), amount: amount(random) },
        50 | 83 => {
            let steps = 1 + random.index(4);
            let first = recent(random, routines);
            // Those of a batch stand one behind the other.
            let is_row = random.below(2) == 0;
            let step = |at, random: &mut Random| if is_row { first + at } else { recent(random, routines) };
            let routines = (0..steps).map(|at| (step(at, random), amount(random))).collect();
            Op::Sequence { routines, times: random.below(3) as u32 }
        }
        51 => Op::Drop { routine: random.index(routines) },
        52..=54 => Op::Read { context, node },
        55 => {
            let len = nodes[node].element_len();
            let start = random.below(len + 2);
            Op::ReadAt { context, node, start, len: random.below(len.saturating_sub(start) + 2) }
        }
        56 => Op::Finalize { context },
        57 | 61 => {
            let (device, gap, size) = (random.index(2), random.below(3) as u32, random.below(1500));
            Op::AllocPool { device, gap, merge: random.below(6) == 0, size }
        }
        58 => Op::Place { context, node, pool: random.index(8), offset: random.below(80) * 4 },
        59 => Op::ZeroPool { pool: random.index(8), start, len: random.below(300) },
        60 => [Op::FreePool { pool: random.index(8) }, Op::FreeUnder { context, node }][random.index(2)].clone(),
        62 => Op::FreeConstants,
        64..=65 => {
            let span = span(random, &nodes[node]);
            let len = u64::from(span.extent) + random.below(8) / 7;
            Op::FromBlock { context, node, span, bytes: random.bytes(len * nodes[node].dtype().size_bytes()) }
        }
        66 => Op::ToBlock { context, node, span: span(random, &nodes[node]) },
        67..=69 => {
            let to = if random.below(3) == 0 { node } else { random.index(nodes.len()) };
            let from_span = span(random, &nodes[node]);
            let to_span = span_like(random, from_span, &nodes[to]);
            Op::CopyBlock { context, from: node, from_span, to, to_span }
        }
        70..=71 => Op::Compact,
        _ => [Op::Look, Op::Trim][random.index(2)].clone(),
    }
}

/// What is likely to come behind a step that did something, now and then with others between: what is linked runs, and is
/// linked in another context too; what ran runs again where its slabs moved; a constant is shared by another context, which
/// outlives the first; a copy into the merge buffer is run and merged, and what merges is run again when somebody else is in the
/// merge buffer.
pub fn followers(random: &mut Random, op: &Op, nodes: &[TensorNode], (contexts, routines): (usize, usize)) -> Vec<Op> {
    let run = |random: &mut Random| Op::Run { routine: routines - 1, amount: amount(random) };
    let is_constant = |node: &&usize| nodes[**node].mode() == MemoryMode::Constant && nodes[**node].base().is_none();
    match *op {
        Op::Link { ref kernel, .. } => {
            let again = Op::Link { context: recent(random, contexts), kernel: kernel.clone() };
            if random.below(2) == 0 { vec![run(random), again] } else { vec![run(random)] }
        }
        Op::Run { routine, .. } if random.below(4) == 0 => {
            let ends = Op::Finalize { context: random.index(contexts) };
            vec![ends, Op::Compact, Op::Run { routine, amount: amount(random) }]
        }
        Op::LinkBatch { ref kernels, .. } => {
            let first = routines.saturating_sub(kernels.len());
            vec![Op::Sequence { routines: (first..routines).map(|at| (at, amount(random))).collect(), times: 1 }]
        }
        Op::Zeros { nodes: ref made, .. } | Op::Upload { nodes: ref made, .. } => {
            let shared = made.iter().find(is_constant).map(|&constant| {
                let again = Op::Zeros { context: random.index(2), nodes: vec![constant] };
                vec![again, Op::Finalize { context: contexts - 1 }, Op::FreeConstants]
            });
            shared.unwrap_or_default()
        }
        Op::Transfer { node, into: Landing::MergeBuffer, .. } => {
            vec![run(random), Op::Merge { context: contexts - 1, node }]
        }
        Op::Merge { context, .. } => {
            let other = random.index(nodes.len());
            let bytes = random.bytes(nodes[other].size_bytes());
            let moves_in = Op::FromForeign { context, node: other, bytes, into: Some(Landing::MergeBuffer) };
            vec![run(random), moves_in, run(random)]
        }
        _ => Vec::new(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Add,
    Fill,
    Cast,
    Strided,
}

fn any_form(random: &mut Random) -> Form {
    [Form::Add, Form::Fill, Form::Cast, Form::Strided][random.index(4)]
}

fn kernel(random: &mut Random, nodes: &[TensorNode], form: Form) -> Kernel {
    let (mut from, mut to) = (random.index(nodes.len()), random.index(nodes.len()));
    if form == Form::Cast && nodes[from].shape()[0] == 0 {
        // Empty nodes are as long as each other, and most of what can be cast would be empty.
        from = random.index(nodes.len());
    }
    if form == Form::Cast && random.below(8) > 0 {
        let is_as_long =
            |&to: &usize| nodes[to].shape() == nodes[from].shape() && nodes[to].dtype() != nodes[from].dtype();
        let as_long: Vec<usize> = (0..nodes.len()).filter(is_as_long).collect();
        to = as_long.get(random.index(as_long.len())).copied().unwrap_or(to);
    }
    between(random, nodes, form, (from, to))
}

fn between(random: &mut Random, nodes: &[TensorNode], form: Form, (from, to): (usize, usize)) -> Kernel {
    match form {
        Form::Add => Kernel::Add { from, to, in_place: random.below(3) == 0 },
        Form::Fill => Kernel::Fill { to },
        Form::Cast => Kernel::Cast { from, to },
        Form::Strided => {
            let from_span = span(random, &nodes[from]);
            Kernel::Strided { from, from_span, to, to_span: span_like(random, from_span, &nodes[to]) }
        }
    }
}

/// A form of kernel that nodes admit, most of the time.
fn fitting(random: &mut Random, from: &TensorNode, to: &TensorNode) -> Form {
    let is_alike = from.dtype() == to.dtype() && from.dtype() != DType::F16;
    let is_as_long = from.shape() == to.shape() && (is_alike || from.dtype() != to.dtype());
    let wanted = any_form(random);
    let fits = match wanted {
        Form::Add | Form::Strided => is_alike,
        Form::Cast => is_as_long,
        Form::Fill => true,
    };
    match (fits || random.below(16) == 0, is_alike, is_as_long) {
        (true, ..) => wanted,
        (_, true, _) => Form::Add,
        (_, _, true) => Form::Cast,
        _ => Form::Fill,
    }
}

/// Kernels one behind the other; by way of local nodes, where there are some.
fn batch(random: &mut Random, nodes: &[TensorNode]) -> Vec<Kernel> {
    let is_local = |&node: &usize| nodes[node].mode() == MemoryMode::Local && nodes[node].base().is_none();
    let locals: Vec<usize> = (0..nodes.len()).filter(is_local).collect();
    let by_way = if locals.is_empty() || random.below(4) == 0 { 0 } else { 1 + random.index(4) };
    let mut kernels = Vec::new();
    let mut from = random.index(nodes.len());
    for step in 0..=by_way.max(random.index(3)) {
        let to = if step < by_way { locals[random.index(locals.len())] } else { random.index(nodes.len()) };
        let form = fitting(random, &nodes[from], &nodes[to]);
        kernels.push(between(random, nodes, form, (from, to)));
        from = if step < by_way { to } else { random.index(nodes.len()) };
    }
    kernels
}

/// A stepped part of a node with as many elements as another, most of the time.
fn span_like(random: &mut Random, other: Span, node: &TensorNode) -> Span {
    let mut span = span(random, node);
    if random.below(8) > 0 {
        // As many, as close together as they must be to fit.
        let len = node.shape()[0];
        span.extent = other.extent;
        while span.step > 1 && span.start + span.step * span.extent > len {
            span.step -= 1;
        }
        span.start = span.start.min(len.saturating_sub(span.extent));
    }
    span
}

/// A stepped part of a node; now and then one that does not fit.
fn span(random: &mut Random, node: &TensorNode) -> Span {
    let len = node.shape()[0];
    let start = random.below(u64::from(len) + 1) as u32;
    let end = start + random.below(u64::from(len - start) + 1) as u32;
    let mut span = Span::stepped(start..end, 1 + random.below(4) as u32);
    match random.below(60) {
        0 => span.step = 0,
        1 => span.extent += 1,
        _ => {}
    }
    span
}

fn some(random: &mut Random, count: usize) -> Vec<usize> {
    (0..1 + random.index(3)).map(|_| random.index(count)).collect()
}

/// The last ones are in use more often than the first.
fn recent(random: &mut Random, count: usize) -> usize {
    if random.below(3) == 0 { random.index(count) } else { count.saturating_sub(1 + random.index(4)) }
}

fn amount(random: &mut Random) -> i32 {
    random.below(100) as i32 - 50
}

fn landing(random: &mut Random) -> Landing {
    [Landing::Node, Landing::MergeBuffer][random.index(2)]
}
