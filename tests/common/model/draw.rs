//! Steps by chance.

use wgslab::{Landing, Span, TensorNode};

use super::{Op, Random};

/// How many numbers `make_op` tells apart.
pub const KINDS: u64 = 72;

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
        27..=31 => Op::Link { context, from: random.index(nodes.len()), to: node, in_place: random.below(3) == 0 },
        32 => {
            let kernel =
                |random: &mut Random| (random.index(nodes.len()), random.index(nodes.len()), random.below(3) == 0);
            Op::LinkBatch { context, kernels: (0..1 + random.index(3)).map(|_| kernel(random)).collect() }
        }
        33 => Op::Forecast { context, from: random.index(nodes.len()), to: node, in_place: random.below(3) == 0 },
        34..=35 => Op::Merge { context, node },
        36..=37 => Op::Transfer { context, node, source, into: Landing::MergeBuffer },
        38 => Op::Transfer { context, node, source, into: Landing::Node },
        39 => Op::InitFromDevice { context, node, source },
        40..=41 => Op::CopyFrom { context, node, source, into: landing(random) },
        42 => Op::InitFromOther { context, node, source },
        43 => {
            let into = [None, Some(Landing::Node), Some(Landing::MergeBuffer)][random.index(3)];
            Op::FromForeign { context, node, bytes: random.bytes(size), into }
        }
        44 => Op::ToForeign { context, node },
        45..=49 => Op::Run { routine: recent(random, routines), amount: amount(random) },
        50 => {
            let steps = 1 + random.index(3);
            let routines = (0..steps).map(|_| (recent(random, routines), amount(random))).collect();
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
            let mut to_span = span(random, &nodes[to]);
            if random.below(8) > 0 {
                // As many, as close together as they must be to fit.
                let len = nodes[to].shape()[0];
                to_span.extent = from_span.extent;
                while to_span.step > 1 && to_span.start + to_span.step * to_span.extent > len {
                    to_span.step -= 1;
                }
                to_span.start = to_span.start.min(len.saturating_sub(to_span.extent));
            }
            Op::CopyBlock { context, from: node, from_span, to, to_span }
        }
        70..=71 => Op::Compact,
        _ => [Op::Look, Op::Trim][random.index(2)].clone(),
    }
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
