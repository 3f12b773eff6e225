//! Programs three ways: the oracle says what must happen, and two drivers do it. What fails is cut down to the steps
//! that it needs.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::ops::Range;

use wgslab::{Driver, TensorNode};

use super::model::{Devices, KINDS, Op, Outcome, Random, World, followers, make_nodes, make_op};
use super::oracle::{Oracle, Refusal};

/// The cap that programs run under: a few nodes fill a pool.
pub const CAP_BYTES: u64 = 1024;

/// So small that a program's slabs lie in several heaps.
pub const SMALL_HEAP_BYTES: u64 = 4096;

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Count {
    pub programs: u64,
    pub steps: u64,
    pub refusals: u64,
    /// By kind of step: how many did something, did nothing, and were refused.
    pub kinds: BTreeMap<String, [u64; 3]>,
    /// By code of the refusal.
    pub codes: BTreeMap<String, u64>,
}

impl Count {
    fn add(&mut self, kind: String, outcome: &Outcome) {
        let column = if outcome.is_err() { 2 } else { usize::from(!does_something(outcome)) };
        self.kinds.entry(kind).or_default()[column] += 1;
        self.steps += 1;
        if let Err(text) = outcome {
            self.refusals += 1;
            *self.codes.entry(text.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }

    /// # Errors
    /// The kinds of steps that never did anything: the programs prove nothing about them.
    pub fn check(&self) -> Result<(), String> {
        let idle: Vec<_> = self.kinds.iter().filter(|(_, counts)| counts[0] == 0).map(|(kind, _)| kind).collect();
        let few = self.refusals > self.steps * 3 / 4;
        if idle.is_empty() && !few { Ok(()) } else { Err(format!("{} refusals; idle: {idle:?}", self.refusals)) }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { programs, steps, refusals, kinds, codes } = self;
        write!(f, "{programs} programs, {steps} steps, {refusals} of them refusals, no difference\n  {codes:?}")?;
        for (kind, [done, nothing, refused]) in kinds {
            write!(f, "\n  {kind:17} {done:7} done {nothing:7} nothing to do {refused:7} refused")?;
        }
        Ok(())
    }
}

/// A program: nodes and steps. The same seed gives the same program everywhere.
#[derive(Debug)]
pub struct Program {
    pub nodes: Vec<TensorNode>,
    pub ops: Vec<Op>,
}

/// Steps of a kind that are tried before one is taken that does nothing.
const TRIES: u32 = 40;

impl Program {
    /// Draws the steps while the oracle runs: most must do something where they stand, some must be refused.
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes = make_nodes(&mut random);
        let mut oracle = Oracle::new(&nodes, [1, 1], CAP_BYTES, None);
        let mut ops = Vec::new();
        let mut planned = VecDeque::new();
        for _ in 0..10 + random.below(50) {
            let (contexts, routines) = oracle.counts();
            let kind = random.below(KINDS);
            let anything = random.below(8) == 0;
            let next = if random.below(2) == 0 { planned.pop_front() } else { None };
            let is_drawn = next.is_none();
            let mut draw = || make_op(&mut random, kind, &nodes, contexts, routines);
            let mut op = next.unwrap_or_else(&mut draw);
            for _ in 0..TRIES {
                if anything || !is_drawn || is_of_use(&op, &oracle.clone().apply(&op)) {
                    break;
                }
                op = draw();
            }
            if does_something(&oracle.apply(&op)) {
                planned.extend(followers(&mut random, &op, &nodes, oracle.counts()));
            }
            ops.push(op);
        }
        Self { nodes, ops }
    }
}

/// A step that does something; or a run that is refused because somebody else is in the merge buffer by now, which only a
/// program that came so far can show.
fn is_of_use(op: &Op, outcome: &Result<String, Refusal>) -> bool {
    let is_run = matches!(op, Op::Run { .. } | Op::Sequence { .. });
    does_something(outcome) || is_run && outcome.as_ref().is_err_and(|refusal| refusal.is_only("merge-mismatch"))
}

fn does_something<E>(outcome: &Result<String, E>) -> bool {
    match outcome {
        Ok(text) => !text.starts_with("no ") && !text.starts_with("nothing") && text != "false",
        Err(_) => false,
    }
}

fn agree(predicted: &Result<String, Refusal>, got: &Outcome) -> bool {
    match (predicted, got) {
        (Ok(predicted), Ok(got)) => predicted == got,
        (Err(refusal), Err(text)) => refusal.is(text),
        _ => false,
    }
}

fn next_pools<D: Driver>(devices: &Devices<D>) -> [u32; 2] {
    devices.both.each_ref().map(|device| device.next_pool_id().0)
}

/// Runs a program on the oracle and on two drivers.
///
/// # Errors
/// The first difference.
async fn compare<A: Driver, B: Driver>(
    program: &Program,
    gpu: &Devices<A>,
    host: &Devices<B>,
    budget: Option<u64>,
    count: &mut Count,
) -> Result<(), String> {
    let Program { nodes, ops } = program;
    let starts = next_pools(gpu);
    if next_pools(host) != starts {
        return Err(format!("the drivers start at pools {starts:?} and {:?}", next_pools(host)));
    }
    let mut oracle = Oracle::new(nodes, starts, CAP_BYTES, budget);
    let (mut one, mut other) = (World::new(gpu), World::new(host));
    for (index, op) in ops.iter().enumerate() {
        let predicted = oracle.apply(op);
        let (on_gpu, on_host) = (one.apply(op, nodes).await, other.apply(op, nodes).await);
        let at = format!("step {index}, {op:?}");
        if on_gpu != on_host {
            return Err(format!("{at}:\n gpu    {on_gpu:?}\n host   {on_host:?}\n oracle {predicted:?}"));
        }
        if !agree(&predicted, &on_gpu) {
            return Err(format!("{at}:\n both   {on_gpu:?}\n oracle {predicted:?}"));
        }
        let looks = [one.look(), other.look(), oracle.look()];
        if looks[0] != looks[1] || looks[0] != looks[2] {
            return Err(format!("after {at}:\n gpu    {}\n host   {}\n oracle {}", looks[0], looks[1], looks[2]));
        }
        count.add(op.kind(nodes), &on_gpu);
    }
    let (on_gpu, on_host, predicted) = (one.all_bytes().await, other.all_bytes().await, oracle.all_bytes());
    for ((on_gpu, on_host), predicted) in on_gpu.iter().zip(&on_host).zip(&predicted) {
        if on_gpu != on_host || on_gpu != predicted {
            return Err(format!("in the end:\n gpu    {on_gpu}\n host   {on_host}\n oracle {predicted}"));
        }
    }
    if on_gpu.len() != predicted.len() || on_host.len() != predicted.len() {
        return Err(format!("{}, {} and {} nodes in the end", on_gpu.len(), on_host.len(), predicted.len()));
    }
    let (on_gpu, on_host) = (std::mem::take(&mut one.pools), std::mem::take(&mut other.pools));
    drop((one, other));
    gpu.clean(&on_gpu).await?;
    host.clean(&on_host).await?;
    count.programs += 1;
    Ok(())
}

/// Runs programs, each on the devices that the one before left.
///
/// # Errors
/// The shortest program found that shows the first difference.
pub async fn run<A: Driver, B: Driver, F: Future<Output = (Devices<A>, Devices<B>)>>(
    open: impl Fn() -> F,
    budget: Option<u64>,
    seeds: Range<u64>,
    count: &mut Count,
) -> Result<(), String> {
    let (one, other) = open().await;
    for seed in seeds {
        let program = Program::random(seed);
        if let Err(said) = compare(&program, &one, &other, budget, count).await {
            let nodes = program.nodes.clone();
            let fails = |program: Program| {
                let devices = open();
                async move {
                    let (one, other) = devices.await;
                    compare(&program, &one, &other, budget, &mut Count::default()).await.err()
                }
            };
            let (ops, said) = shrink(program, said, fails).await;
            return Err(describe(seed, &nodes, &ops, &said));
        }
    }
    for device in &one.both {
        device.await_idle().await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Takes steps out of a program that fails, greedily, as long as it still fails; `fails` runs it on new devices.
async fn shrink<F: Future<Output = Option<String>>>(
    program: Program,
    first: String,
    fails: impl Fn(Program) -> F,
) -> (Vec<Op>, String) {
    let Program { nodes, mut ops } = program;
    let mut said = first;
    let mut chunk = ops.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + chunk).min(ops.len()));
            match fails(Program { nodes: nodes.clone(), ops: fewer.clone() }).await {
                Some(text) => (ops, said) = (fewer, text),
                None => at += chunk,
            }
        }
        chunk /= 2;
    }
    (ops, said)
}

/// A failing program as a report shows it.
fn describe(seed: u64, nodes: &[TensorNode], ops: &[Op], said: &str) -> String {
    let nodes: Vec<_> = nodes
        .iter()
        .map(|node| {
            let base = node.base().map(|(base, start)| format!(" of {base} from {start}")).unwrap_or_default();
            format!("  {node:?} {:?}{base}", node.mode())
        })
        .collect();
    let ops: Vec<_> = ops.iter().map(|op| format!("  {op:?}")).collect();
    format!("seed {seed}: {said}\nnodes\n{}\n{} steps\n{}", nodes.join("\n"), ops.len(), ops.join("\n"))
}
