//! Random programs three ways: what they mean, and what two drivers do. What fails is cut down.
//!
//! Nearly all of the time goes to shader compilers, so each program goes to the GPU twice: as a user would have it, and in
//! another way that its seed draws. Or in the way that `WGSLAB_FUZZ_WAY` names, or in every one: see [`Ways`].

use std::fmt;

use wgslab::notation::program::{Origin, Program, ProgramNode, Ty};
use wgslab::schedule::Candidate;
use wgslab::{Binding, Code, Context, Device, Driver, Forced, MemoryMode, ProgramSpec, TensorNode};

mod smaller;

use super::grow::{Grown, grow};
use super::model::Random;
use super::naive::{State, Val, decode, run, zeros};
use smaller::smaller;

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Count {
    pub programs: u64,
    pub statements: u64,
    pub refused: u64,
    pub elements: u64,
    /// Elements of which nothing can be said.
    pub unknown: u64,
    /// Elements that must be exact.
    pub exact: u64,
    /// Whether the GPU has subgroups.
    pub has_subgroups: bool,
    /// What ran on the GPU, for each of the ways.
    pub ways: [Ran; WAYS.len()],
}

/// What ran in one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    pub programs: u64,
    /// Kernels by who computes a point: an invocation, one of a tile, a workgroup; of the last, those by subgroups.
    pub kernels: [u64; 4],
    /// Kernels whose tensors lie in three heaps or more.
    pub heaps: u64,
}

/// Programs after which every way must have been gone, and every schedule met.
const MANY: u64 = 500;

impl Count {
    /// # Errors
    /// If too little was compared to prove anything, or some way was not gone.
    pub fn check(&self, ways: Ways) -> Result<(), String> {
        let is_enough = self.refused * 3 <= self.statements + self.refused && self.unknown * 3 <= self.elements;
        let is_met = |(at, (way, ran)): (usize, (&OnGpu, &Ran))| match way.schedule {
            _ if !ways.have(at) => true,
            None if way.is_apart => ran.heaps * 4 > ran.programs,
            None | Some(Forced::LikeGpu) => ran.programs > 0,
            Some(Forced::PerPoint) => ran.kernels[0] > 0,
            Some(Forced::Tiled) => ran.kernels[1] > 0,
            Some(Forced::PerWorkgroup) => ran.kernels[2] > 0,
            Some(Forced::Subgroups) => ran.kernels[2] > 0 && (ran.kernels[3] > 0) == self.has_subgroups,
        };
        let all = [0, 1, 2].into_iter().all(|who| self.ways.iter().any(|ran| ran.kernels[who] > 0));
        let are_met = all && WAYS.iter().zip(&self.ways).enumerate().all(is_met);
        if is_enough && (are_met || self.programs < MANY) {
            Ok(())
        } else {
            Err(format!("too little was compared: {self}\n{}", self.table()))
        }
    }

    /// How often each way was gone.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:22}{:>10}{:>12}{:>10}{:>12}{:>12}{:>12}",
            "on the gpu", "programs", "per point", "tiled", "workgroups", "subgroups", "3 heaps"
        );
        for (way, Ran { programs, kernels: [point, tiled, workgroup, subgroups], heaps }) in WAYS.iter().zip(self.ways)
        {
            text.push_str(&format!(
                "\n{:22}{programs:>10}{point:>12}{tiled:>10}{workgroup:>12}{subgroups:>12}{heaps:>12}",
                way.name
            ));
        }
        text
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { programs, statements, refused, elements, unknown, exact, .. } = self;
        write!(
            f,
            "{programs} programs of {statements} statements ({refused} refused), {elements} elements compared on each \
             driver: {exact} exactly, {unknown} undefined"
        )
    }
}

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

/// How programs go on the GPU, beside as a user would have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// In one way, which the seed draws.
    Drawn,
    /// In the way of that number.
    One(usize),
    /// In every way.
    Every,
}

impl Ways {
    /// Those that the text names: `every`, or a name of the table of ways.
    pub fn named(text: Option<&str>) -> Self {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Self::Drawn };
        if text == "every" {
            return Self::Every;
        }
        let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
        let at = names.iter().position(|name| *name == text);
        Self::One(at.unwrap_or_else(|| panic!("no way \"{text}\", but every, {}", names.join(", "))))
    }

    /// Whether programs go that way at some time.
    fn have(self, at: usize) -> bool {
        match self {
            Self::Drawn => at == 0 || WAYS[at].weight > 0,
            Self::One(one) => at == 0 || at == one,
            Self::Every => true,
        }
    }
}

/// A slab of [`Devices::apart`], in which most tensors fit, and a heap: each slab has one of its own, made to measure.
pub const APART_BYTES: [u64; 2] = [16 << 10, 1];

/// A way that a program goes on the GPU.
struct OnGpu {
    name: &'static str,
    is_plain: bool,
    is_apart: bool,
    schedule: Option<Forced>,
    /// The schedules of its kernels.
    takes: Takes,
    /// How often it is drawn.
    weight: u64,
}

/// Which of all schedules that a kernel has it takes: fours or none, many lanes, direct bindings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    First,
    /// One that is drawn.
    Drawn,
    /// Each in turn, with both binding plans.
    Each,
}

/// As a user would have it, always; of the others one, drawn.
const WAYS: [OnGpu; 10] = {
    const fn way(name: &'static str, weight: u64) -> OnGpu {
        OnGpu { name, is_plain: false, is_apart: false, schedule: None, takes: Takes::First, weight }
    }
    [
        way("as it is", 0),
        OnGpu { is_plain: true, ..way("plain", 3) },
        OnGpu { schedule: Some(Forced::Tiled), ..way("forced tiled", 3) },
        OnGpu { schedule: Some(Forced::PerWorkgroup), ..way("forced per workgroup", 3) },
        OnGpu { schedule: Some(Forced::Subgroups), ..way("forced subgroups", 3) },
        OnGpu { schedule: Some(Forced::LikeGpu), ..way("as on a gpu", 3) },
        // Most kernels are so anyway.
        OnGpu { schedule: Some(Forced::PerPoint), ..way("forced per point", 1) },
        OnGpu { is_apart: true, ..way("many heaps", 2) },
        OnGpu { takes: Takes::Drawn, ..way("schedules drawn", 4) },
        // Twenty times and more, so where that is asked for.
        OnGpu { takes: Takes::Each, ..way("each schedule", 0) },
    ]
};

/// The other way of a seed.
fn drawn(seed: u64) -> usize {
    let all = WAYS.iter().map(|way| way.weight).sum();
    let mut roll = Random::new(!seed).below(all);
    WAYS.iter()
        .position(|way| {
            roll < way.weight || {
                roll -= way.weight;
                false
            }
        })
        .unwrap_or(0)
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

/// What a program leaves, what it was compiled to, and how many of its kernels are bound to three heaps or more.
async fn drive<D: Driver>(
    way: &Way<'_, D>,
    grown: &Grown,
    program: &Program,
) -> Result<(Contents, Code<D>, u64), String> {
    let device = way.device;
    let mut spec = ProgramSpec::new("fuzz", grown.text.clone()).outputs(grown.outputs.clone());
    (spec.is_plain, spec.schedule, spec.binding) = (way.is_plain, way.schedule, way.binding);
    let mut nodes = Vec::new();
    for node in &grown.given {
        let mode = if node.is_constant { MemoryMode::Constant } else { MemoryMode::OnDevice };
        nodes.push(TensorNode::with_mode(node.name.clone(), node.dtype, node.shape.clone(), mode));
    }
    for node in &nodes {
        spec = spec.node(node);
    }
    let loaded: Vec<(&TensorNode, &[u8])> = nodes.iter().zip(grown.bytes.iter().map(Vec::as_slice)).collect();
    let text = |error: wgslab::Error| format!("refused: {error}");
    if way.is_apart {
        // Heaps that earlier programs left would hold all of this one.
        device.free_unused_constants();
        device.trim().map_err(text)?;
    }
    let mut context = Context::root(device);
    for together in loaded.chunks(if way.is_apart { 1 } else { loaded.len().max(1) }) {
        context = context.init_from_host_many(together).map_err(text)?;
    }
    let mut code = device.compile(spec).await.map_err(text)?;
    let mut random = Random::new(if let Take::Drawn(seed) = way.takes { seed } else { 0 });
    let mut take = |(_, candidates): (&str, &[Candidate])| match way.takes {
        Take::First => 0,
        Take::Drawn(_) => random.below(candidates.len() as u64) as usize,
        Take::Nth(at) => at % candidates.len(),
    };
    let chosen: Vec<usize> = code.candidates().map(&mut take).collect();
    if chosen.iter().any(|at| *at > 0) {
        code = device.reschedule(&code, &chosen).await.map_err(text)?;
    }
    let routine = context.link(&code).await.map_err(text)?;
    let values: Vec<(&str, i32)> = (grown.statics.iter())
        .filter(|(name, _)| program.statics.contains(name))
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    for _ in 0..grown.runs {
        routine.run_with(&values).map_err(text)?;
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
    let bytes = routine.context().to_host_many(&tensors).await.map_err(text)?;
    let is_wide = |line: &&str| line.starts_with("pooled") && line.contains("; binding 2 (");
    let heaps = routine.explain().lines().filter(is_wide).count() as u64;
    Ok((read.iter().map(|(name, _)| name.clone()).zip(bytes).collect(), code, heaps))
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
        Ok((contents, ..)) => difference(&program, &state, &contents, count),
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
    check.one_way("host", &on_host(false), count).await?;
    // What is compared is counted once.
    let mut none = Count::default();
    check.one_way("host, plain", &on_host(true), &mut none).await?;
    // The first one stays until the others are done: kernels that are the same in both are compiled once.
    let mut codes = Vec::new();
    let others = match devices.ways {
        Ways::Drawn => drawn(seed)..drawn(seed) + 1,
        Ways::One(one) => one..one + 1,
        Ways::Every => 1..WAYS.len(),
    };
    for at in [0].into_iter().chain(others) {
        let OnGpu { name, is_plain, is_apart, schedule, takes, .. } = WAYS[at];
        let is_small = |node: &ProgramNode| {
            let len: u64 = node.shape.iter().map(|extent| u64::from(*extent)).product();
            len * node.dtype.size_bytes() <= APART_BYTES[0]
        };
        let device = if is_apart && check.program.nodes.iter().all(is_small) {
            &devices.apart
        } else if schedule == Some(Forced::Subgroups) || takes != Takes::First {
            &devices.wide
        } else {
            &devices.gpu
        };
        count.ways[at].programs += 1;
        let bindings = match takes {
            Takes::Each => &[Some(Binding::Pooled), Some(Binding::Direct)][..],
            // One for each tensor would not show which heaps they are in.
            _ if is_apart => &[Some(Binding::Pooled)],
            _ => &[None],
        };
        for &binding in bindings {
            let (mut turn, mut turns) = (0, 1);
            while turn < turns {
                let take = match takes {
                    Takes::First => Take::First,
                    Takes::Drawn => Take::Drawn(seed),
                    Takes::Each => Take::Nth(turn),
                };
                let way = Way { device, is_plain, is_apart, schedule, binding, takes: take };
                let name = match binding {
                    Some(binding) if takes == Takes::Each => format!("gpu, {name}, {binding:?} {turn}"),
                    _ => format!("gpu, {name}"),
                };
                let (code, heaps) = check.one_way(&name, &way, &mut none).await?;
                count.ways[at].heaps += heaps;
                let text = code.explain();
                for (kernels, who) in count.ways[at].kernels.iter_mut().zip([
                    ", an invocation each",
                    ", an invocation for",
                    ", a workgroup",
                    "; schedule workgroup by subgroups",
                ]) {
                    *kernels += text.matches(who).count() as u64;
                }
                if takes == Takes::Each {
                    turns = code.candidates().map(|(_, candidates)| candidates.len()).max().unwrap_or(1);
                }
                if turn == 0 {
                    codes.push(code);
                }
                turn += 1;
            }
        }
    }
    Ok(())
}

/// A program, and what it should leave.
struct Check {
    seed: u64,
    grown: Grown,
    program: Program,
    state: State,
}

impl Check {
    async fn one_way<D: Driver>(
        &self,
        name: &str,
        way: &Way<'_, D>,
        count: &mut Count,
    ) -> Result<(Code<D>, u64), String> {
        let message = match drive(way, &self.grown, &self.program).await {
            Err(message) => message,
            Ok((contents, code, heaps)) => match difference(&self.program, &self.state, &contents, count) {
                None => return Ok((code, heaps)),
                Some(message) => message,
            },
        };
        let (grown, message) = shrunk(way, self.grown.clone(), message).await;
        Err(report(self.seed, name, &grown, &message))
    }
}
