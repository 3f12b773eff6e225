//! Random programs three ways: what they mean, and what two drivers do. What fails is cut down.
//!
//! Nearly all of the time goes to shader compilers, so each program goes to the GPU twice: as a user would have it, and in
//! another way that its seed draws. Or in the way that `WGSLAB_FUZZ_WAY` names, or in every one: see [`Ways`]. All ways of a
//! program are compiled together, and run beside one another; those that give the driver the same kernels run once.

use wgslab::notation::program::{Origin, Program, ProgramNode, Ty};
use wgslab::schedule::Candidate;
use wgslab::{Binding, Code, Context, Device, Driver, Forced, MemoryMode, ProgramSpec, TensorNode};

mod count;
mod smaller;
mod together;
mod ways;

use super::grow::{Grown, grow};
use super::model::Random;
use super::naive::{State, Val, decode, run, zeros};
pub use count::Count;
use smaller::smaller;
use together::together;
pub use ways::{APART_BYTES, Ways};
use ways::{OnGpu, Takes, WAYS, drawn};

/// What programs run on.
#[derive(Debug)]
pub struct Devices<A: Driver, B: Driver> {
    pub host: Device<A>,
    pub gpu: Device<B>,
    /// The same with all that its adapter has, for schedules that not every device has.
    pub wide: Device<B>,
    /// A GPU whose slabs are small, and in heaps of their own.
    pub apart: Device<B>,
    /// How programs go on it.
    pub ways: Ways,
}

/// The nodes that are in the context after the runs, by name.
type Contents = Vec<(String, Vec<u8>)>;

/// A device, whether every statement stays a kernel of its own there, and how kernels are spread over it.
struct Way<'d, D: Driver> {
    device: &'d Device<D>,
    is_plain: bool,
    /// Whether every node that is given has a slab of its own.
    is_apart: bool,
    schedule: Option<Forced>,
    binding: Option<Binding>,
    takes: Take,
}

/// The schedules that the kernels of a program have.
#[derive(Clone, Copy)]
enum Take {
    First,
    /// Drawn by that number.
    Drawn(u64),
    /// That one of each, in turn.
    Nth(usize),
}

/// The nodes that a program is given.
fn nodes_of(grown: &Grown) -> Vec<TensorNode> {
    let node = |node: &wgslab::notation::check::Given| {
        let mode = if node.is_constant { MemoryMode::Constant } else { MemoryMode::OnDevice };
        TensorNode::with_mode(node.name.clone(), node.dtype, node.shape.clone(), mode)
    };
    grown.given.iter().map(node).collect()
}

fn said(error: wgslab::Error) -> String {
    format!("refused: {error}")
}

impl<D: Driver> Way<'_, D> {
    /// A program, each kernel in the first of its schedules.
    async fn compile(&self, grown: &Grown, nodes: &[TensorNode]) -> Result<Code<D>, String> {
        let mut spec = ProgramSpec::new("fuzz", grown.text.clone()).outputs(grown.outputs.clone());
        (spec.is_plain, spec.schedule, spec.binding) = (self.is_plain, self.schedule, self.binding);
        for node in nodes {
            spec = spec.node(node);
        }
        self.device.compile(spec).await.map_err(said)
    }

    /// Its kernels in the schedules that they take.
    async fn take(&self, code: &Code<D>) -> Result<Code<D>, String> {
        let chosen = self.chosen(code);
        if chosen.iter().all(|at| *at == 0) {
            return Ok(code.clone());
        }
        self.device.reschedule(code, &chosen).await.map_err(said)
    }

    /// The number of the schedule that each kernel takes.
    fn chosen(&self, code: &Code<D>) -> Vec<usize> {
        let mut random = Random::new(if let Take::Drawn(seed) = self.takes { seed } else { 0 });
        let mut take = |(_, candidates): (&str, &[Candidate])| match self.takes {
            Take::First => 0,
            Take::Drawn(_) => random.below(candidates.len() as u64) as usize,
            Take::Nth(at) => at % candidates.len(),
        };
        code.candidates().map(&mut take).collect()
    }

    /// All that the driver is given with a code: what is the same in two ways, it cannot tell apart.
    fn given(&self, code: &Code<D>) -> String {
        let mut text = format!("{:p} {}", self.device, self.is_apart);
        let mut nodes: Vec<&TensorNode> = Vec::new();
        for ((spec, (_, candidates)), at) in code.specs().zip(code.candidates()).zip(self.chosen(code)) {
            text.push_str(&format!("\n{:?} {:?}", spec.grid, candidates[at].schedule.binding));
            for tensor in &spec.tensors {
                let number = nodes.iter().position(|node| **node == tensor.node).unwrap_or_else(|| {
                    nodes.push(&tensor.node);
                    nodes.len() - 1
                });
                let node = &tensor.node;
                let (label, dtype, shape, mode) = (node.label(), node.dtype(), node.shape(), node.mode());
                text.push_str(&format!(", {number} {label} {dtype} {shape:?} {mode:?} {:?}", tensor.access));
            }
            text.push_str(&format!("\n{:?}\n{}", spec.statics, spec.text));
        }
        text
    }

    /// What a code leaves, and how many of its kernels are bound to three heaps or more.
    async fn run(
        &self,
        grown: &Grown,
        program: &Program,
        nodes: &[TensorNode],
        code: &Code<D>,
    ) -> Result<(Contents, u64), String> {
        let loaded: Vec<(&TensorNode, &[u8])> = nodes.iter().zip(grown.bytes.iter().map(Vec::as_slice)).collect();
        if self.is_apart {
            // Heaps that earlier programs left would hold all of this one.
            self.device.free_unused_constants();
            self.device.trim().map_err(said)?;
        }
        let mut context = Context::root(self.device);
        for together in loaded.chunks(if self.is_apart { 1 } else { loaded.len().max(1) }) {
            context = context.init_from_host_many(together).map_err(said)?;
        }
        let routine = context.link(code).await.map_err(said)?;
        let values: Vec<(&str, i32)> = (grown.statics.iter())
            .filter(|(name, _)| program.statics.contains(name))
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        for _ in 0..grown.runs {
            routine.run_with(&values).map_err(said)?;
        }
        let mut read = Vec::new();
        for node in &program.nodes {
            let tensor = code.node(&node.name).ok().filter(|tensor| routine.context().loc(tensor).is_some());
            if let Some(tensor) = tensor {
                read.push((node.name.clone(), tensor.clone()));
            } else if node.origin != Origin::Created || node.is_output {
                return Err(format!("\"{}\" is not in the context", node.name));
            }
        }
        let tensors: Vec<&TensorNode> = read.iter().map(|(_, tensor)| tensor).collect();
        let bytes = routine.context().to_host_many(&tensors).await.map_err(said)?;
        let is_wide = |line: &&str| line.starts_with("pooled") && line.contains("; binding 2 (");
        let heaps = routine.explain().lines().filter(is_wide).count() as u64;
        Ok((read.iter().map(|(name, _)| name.clone()).zip(bytes).collect(), heaps))
    }
}

/// What a program leaves that goes one way by itself.
async fn drive<D: Driver>(way: &Way<'_, D>, grown: &Grown, program: &Program) -> Result<Contents, String> {
    let nodes = nodes_of(grown);
    let code = way.take(&way.compile(grown, &nodes).await?).await?;
    Ok(way.run(grown, program, &nodes, &code).await?.0)
}

/// What a program means, or `None` where it cannot be run.
fn meaning(grown: &Grown) -> Option<(Program, State)> {
    let program = grown.program().ok()?;
    let statics = grown.statics_of(&program)?;
    let mut state = zeros(&program);
    for (node, elements) in program.nodes.iter().zip(&mut state) {
        if let Some(at) = grown.given.iter().position(|given| given.name == node.name) {
            *elements = decode(node.dtype, &grown.bytes[at]);
        }
    }
    for _ in 0..grown.runs {
        run(&program, &statics, &mut state);
    }
    Some((program, state))
}

fn is_close(got: Val, want: Val) -> bool {
    if want.ty != Ty::F32 {
        return got.bits == want.bits;
    }
    let (got, expected) = (got.as_f64(), want.as_f64());
    got == expected || got.is_nan() && expected.is_nan() || (got - expected).abs() <= want.err
}

/// The first difference, if any; counts what was compared.
fn difference(program: &Program, state: &State, contents: &Contents, count: &mut Count) -> Option<String> {
    for (name, bytes) in contents {
        let at = program.nodes.iter().position(|node| node.name == *name).unwrap();
        let node = &program.nodes[at];
        let got = decode(node.dtype, bytes);
        if got.len() != state[at].len() {
            return Some(format!("{name} has {} elements, not {}", got.len(), state[at].len()));
        }
        for (offset, (got, want)) in got.iter().zip(&state[at]).enumerate() {
            count.elements += 1;
            if !want.is_known() {
                count.unknown += 1;
                continue;
            }
            count.exact += u64::from(want.err == 0.0);
            if !is_close(*got, *want) {
                return Some(format!(
                    "{name} {:?} {}, element {offset}: got {}, want {} (within {:e})",
                    node.shape,
                    node.dtype,
                    shown(*got),
                    shown(*want),
                    want.err
                ));
            }
        }
    }
    None
}

fn shown(value: Val) -> String {
    match value.ty {
        Ty::F32 => format!("{:?}", value.as_f32()),
        Ty::Bool => value.truth().to_string(),
        _ => value.whole().to_string(),
    }
}

/// What a driver does wrong.
async fn fault<D: Driver>(way: &Way<'_, D>, grown: &Grown, count: &mut Count) -> Option<String> {
    let (program, state) = meaning(grown)?;
    match drive(way, grown, &program).await {
        Ok(contents) => difference(&program, &state, &contents, count),
        Err(error) => Some(error),
    }
}

/// Cuts a program down as long as the driver still does it wrong.
async fn shrunk<D: Driver>(way: &Way<'_, D>, mut grown: Grown, mut message: String) -> (Grown, String) {
    let mut tries = 0;
    let mut once = grown.clone();
    once.runs = 1;
    if let Some(other) = fault(way, &once, &mut Count::default()).await {
        (grown, message) = (once, other);
    }
    'smaller: loop {
        for candidate in smaller(&grown) {
            tries += 1;
            if tries > 400 {
                break 'smaller;
            }
            if let Some(other) = fault(way, &candidate, &mut Count::default()).await {
                (grown, message) = (candidate, other);
                continue 'smaller;
            }
        }
        break;
    }
    (grown, message)
}

fn report(seed: u64, driver: &str, grown: &Grown, message: &str) -> String {
    let mut text = format!("seed {seed}, {driver}: {message}\n{}\n", grown.text.trim_end());
    for (node, bytes) in grown.given.iter().zip(&grown.bytes) {
        let values: Vec<String> = decode(node.dtype, bytes).into_iter().take(40).map(shown).collect();
        text.push_str(&format!("  {}: {}{:?} = {}\n", node.name, node.dtype, node.shape, values.join(" ")));
    }
    text.push_str(&format!("  outputs {:?}, statics {:?}, {} runs", grown.outputs, grown.statics, grown.runs));
    text
}

/// Runs the program of a seed on both drivers.
///
/// # Errors
/// What differs, with the program cut down to what it takes.
pub async fn check_seed<A: Driver, B: Driver>(
    seed: u64,
    devices: &Devices<A, B>,
    count: &mut Count,
) -> Result<(), String> {
    let grown = grow(seed);
    count.refused += grown.refused;
    count.has_subgroups = devices.wide.limits().has_subgroups;
    let Some((program, state)) = meaning(&grown) else {
        return Ok(());
    };
    count.programs += 1;
    count.statements += grown.taken;
    let check = Check { seed, grown, program, state };
    let on_host = |is_plain| Way {
        device: &devices.host,
        is_plain,
        is_apart: false,
        schedule: None,
        binding: None,
        takes: Take::First,
    };
    check.alone("host", &on_host(false), count).await?;
    // What is compared is counted once.
    let mut none = Count::default();
    check.alone("host, plain", &on_host(true), &mut none).await?;
    let others = match devices.ways {
        Ways::Drawn => drawn(seed)..drawn(seed) + 1,
        Ways::One(one) => one..one + 1,
        Ways::Every => 1..WAYS.len(),
    };
    let mut goings = Vec::new();
    for at in [0].into_iter().chain(others) {
        count.ways[at].programs += 1;
        goings.extend(check.goings(at, devices));
    }
    check.on_gpu(goings, count).await
}

/// A program that goes a way of the table.
struct Going<'d, D: Driver> {
    at: usize,
    name: String,
    way: Way<'d, D>,
}

/// A program, and what it should leave.
struct Check {
    seed: u64,
    grown: Grown,
    program: Program,
    state: State,
}

impl Check {
    /// The goings of a way of the table, but for the turns of each schedule.
    fn goings<'d, A: Driver, B: Driver>(&self, at: usize, devices: &'d Devices<A, B>) -> Vec<Going<'d, B>> {
        let OnGpu { name, is_plain, is_apart, schedule, takes, .. } = WAYS[at];
        let is_small = |node: &ProgramNode| {
            let len: u64 = node.shape.iter().map(|extent| u64::from(*extent)).product();
            len * node.dtype.size_bytes() <= APART_BYTES[0]
        };
        let device = if is_apart && self.program.nodes.iter().all(is_small) {
            &devices.apart
        } else if schedule == Some(Forced::Subgroups) || takes != Takes::First {
            &devices.wide
        } else {
            &devices.gpu
        };
        let bindings = match takes {
            Takes::Each => &[Some(Binding::Pooled), Some(Binding::Direct)][..],
            // One for each tensor would not show which heaps they are in.
            _ if is_apart => &[Some(Binding::Pooled)],
            _ => &[None],
        };
        let takes = match takes {
            Takes::First => Take::First,
            Takes::Drawn => Take::Drawn(self.seed),
            Takes::Each => Take::Nth(0),
        };
        let going = |&binding: &Option<Binding>| {
            let name = match (takes, binding) {
                (Take::Nth(_), Some(binding)) => format!("gpu, {name}, {binding:?}"),
                _ => format!("gpu, {name}"),
            };
            Going { at, name, way: Way { device, is_plain, is_apart, schedule, binding, takes } }
        };
        bindings.iter().map(going).collect()
    }

    /// Goes all the ways beside one another, each that is unlike those before it, and those with turns in each of them.
    async fn on_gpu<D: Driver>(&self, goings: Vec<Going<'_, D>>, count: &mut Count) -> Result<(), String> {
        let nodes = nodes_of(&self.grown);
        let compiled = together(goings.iter().map(|going| going.way.compile(&self.grown, &nodes))).await;
        let (mut turns, mut wrong) = (Vec::new(), Vec::new());
        for (Going { at, name, way }, code) in goings.into_iter().zip(compiled) {
            let code = match code {
                Ok(code) => code,
                Err(message) => {
                    wrong.push((Going { at, name, way }, message));
                    continue;
                }
            };
            if let Take::Nth(_) = way.takes {
                let most = code.candidates().map(|(_, candidates)| candidates.len()).max().unwrap_or(1);
                turns.extend((0..most).map(|turn| {
                    let way = Way { takes: Take::Nth(turn), ..way };
                    (Going { at, name: format!("{name} {turn}"), way }, code.clone())
                }));
            } else {
                turns.push((Going { at, name, way }, code));
            }
        }
        // All codes stay until the end: kernels that are the same in two of them are compiled once.
        let taken = together(turns.iter().map(|(going, code)| going.way.take(code))).await;
        let (mut unlike, mut given) = (Vec::new(), Vec::new());
        for ((going, _), code) in turns.into_iter().zip(taken) {
            match code {
                Err(message) => wrong.push((going, message)),
                Ok(code) => {
                    let this = going.way.given(&code);
                    count.ways[going.at].note(&code.explain(), given.contains(&this));
                    if !given.contains(&this) {
                        given.push(this);
                        unlike.push((going, code));
                    }
                }
            }
        }
        let ran =
            together(unlike.iter().map(|(going, code)| going.way.run(&self.grown, &self.program, &nodes, code))).await;
        for ((going, _), ran) in unlike.into_iter().zip(ran) {
            let message = match ran {
                Err(message) => Some(message),
                Ok((contents, heaps)) => {
                    count.ways[going.at].heaps += heaps;
                    difference(&self.program, &self.state, &contents, &mut Count::default())
                }
            };
            if let Some(message) = message {
                wrong.push((going, message));
            }
        }
        // The others may have failed because one did.
        for (Going { name, way, .. }, _) in &wrong {
            self.alone(name, way, &mut Count::default()).await?;
        }
        let Some((Going { name, .. }, message)) = wrong.first() else { return Ok(()) };
        Err(report(self.seed, &format!("{name}, but not by itself"), &self.grown, message))
    }

    async fn alone<D: Driver>(&self, name: &str, way: &Way<'_, D>, count: &mut Count) -> Result<(), String> {
        let message = match drive(way, &self.grown, &self.program).await {
            Err(message) => message,
            Ok(contents) => match difference(&self.program, &self.state, &contents, count) {
                None => return Ok(()),
                Some(message) => message,
            },
        };
        let (grown, message) = shrunk(way, self.grown.clone(), message).await;
        Err(report(self.seed, name, &grown, &message))
    }
}
