//! What random programs must give, from plain bytes: the contracts of the device layer written down a second time, with
//! nothing of the crate's own code, so that a mistake which both drivers share is found.
//!
//! A pool is a `Vec<u8>`; a context is a map from nodes to places; a routine is a record of what it reads and writes.
//! What is alive is found by marking, not by counting references.

mod blocks;
mod kernels;
mod lines;
mod memory;
mod moves;

use std::collections::BTreeMap;

use wgslab::{DType, Landing, MemoryMode, TensorNode};

use super::model::{Kernel, Op};
use memory::Memory;

/// A refusal: its code, and what the message must say; one of several where the step is wrong in several ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    reasons: Vec<(&'static str, String)>,
}

impl Refusal {
    fn add(&mut self, code: &'static str, about: impl Into<String>) {
        self.reasons.push((code, about.into()));
    }

    fn or_ok(self) -> Result<(), Refusal> {
        if self.reasons.is_empty() { Ok(()) } else { Err(self) }
    }

    /// One of these reasons, or of another's.
    fn or(mut self, other: Result<(), Refusal>) -> Self {
        self.reasons.extend(other.err().into_iter().flat_map(|other| other.reasons));
        self
    }

    /// Whether there is no other reason.
    pub fn is_only(&self, code: &str) -> bool {
        self.reasons.iter().all(|(known, _)| *known == code)
    }

    /// Whether an error is one of those, given as `code: text`.
    pub fn is(&self, error: &str) -> bool {
        self.reasons.iter().any(|(code, about)| error.starts_with(&format!("{code}: ")) && error.contains(about))
    }
}

fn refuse<T>(code: &'static str, about: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { reasons: vec![(code, about.into())] })
}

/// A node: facts only.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    label: String,
    element: u64,
    len: u64,
    constant: bool,
    mode: MemoryMode,
    dtype: DType,
    /// Index of what it is a view of, and the first element there.
    base: Option<(usize, u64)>,
}

impl Node {
    fn size(&self) -> u64 {
        self.element * self.len
    }
}

/// Where a node is: a pool, and bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    pool: u32,
    offset: u64,
}

/// A context: of a device, by index.
#[derive(Clone, Debug)]
struct Line {
    device: usize,
    parent: Option<usize>,
    places: BTreeMap<usize, Place>,
    /// Pools that it keeps.
    holds: Vec<u32>,
    finalized: bool,
    merging: Option<usize>,
    /// The routines that were linked on the way here, in order: what each reads and writes, views as their roots.
    touches: Vec<Touch>,
}

impl Line {
    fn root(device: usize) -> Self {
        let (places, holds, touches) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { device, parent: None, places, holds, finalized: false, merging: None, touches }
    }
}

#[derive(Clone, Debug)]
struct Touch {
    routine: usize,
    reads: Vec<usize>,
    writes: Vec<usize>,
}

/// Where the local nodes of one link are.
type Scratch = BTreeMap<usize, Place>;

#[derive(Clone, Debug)]
enum Work {
    /// `from` is the merge buffer where it is merged.
    Kernel { kernel: Kernel, from: Option<(usize, Place)>, to: (usize, Place), merged: bool },
    /// `into` is `None` for the merge buffer.
    Copy { node: usize, from: Place, into: Option<Place> },
}

#[derive(Clone, Debug)]
struct Job {
    context: usize,
    source: Option<usize>,
    work: Work,
    waits_for: Vec<usize>,
    ran: bool,
    alive: bool,
}

/// The model of a world with two devices.
#[derive(Clone, Debug)]
pub struct Oracle {
    nodes: Vec<Node>,
    memories: [Memory; 2],
    /// Every context that ever was; `handles` are those that the program holds.
    lines: Vec<Line>,
    handles: Vec<usize>,
    jobs: Vec<Job>,
    pools: Vec<(usize, u32)>,
    /// Routines that write local nodes which others read; they are never dropped.
    makers: Vec<usize>,
}

impl Oracle {
    /// A world without contexts but the two roots, on devices whose next pools are these.
    pub fn new(nodes: &[TensorNode], next_pools: [u32; 2], cap: u64, budget: Option<u64>) -> Self {
        let index_of = |node: &TensorNode| nodes.iter().position(|known| known.id() == node.id()).unwrap();
        let facts = |node: &TensorNode| Node {
            name: format!("n{}\"{}\"", node.id().0, node.label()),
            label: node.label().to_owned(),
            element: match node.dtype() {
                DType::U8 => 1,
                DType::F16 => 2,
                _ => 4,
            },
            len: u64::from(node.shape()[0]),
            constant: node.mode() == MemoryMode::Constant,
            mode: node.mode(),
            dtype: node.dtype(),
            base: node.base().map(|(base, start)| (index_of(base), start)),
        };
        Self {
            nodes: nodes.iter().map(facts).collect(),
            memories: next_pools.map(|next| Memory::new(next, cap, budget)),
            lines: vec![Line::root(0), Line::root(1)],
            handles: vec![0, 1],
            jobs: Vec::new(),
            pools: Vec::new(),
            makers: Vec::new(),
        }
    }

    /// What a step must give.
    pub fn apply(&mut self, op: &Op) -> Result<String, Refusal> {
        let given = self.step(op);
        self.sweep();
        given
    }

    fn step(&mut self, op: &Op) -> Result<String, Refusal> {
        match op {
            Op::Zeros { context, nodes } => {
                let child = self.extend(self.handle(*context), nodes, true)?;
                Ok(self.keep(child))
            }
            Op::Upload { context, nodes, bytes } => self.upload(self.handle(*context), nodes, bytes),
            Op::Alias { context, node } => self.alias(self.handle(*context), *node),
            Op::Child { context } => {
                let child = self.child(self.handle(*context));
                Ok(self.keep(child))
            }
            Op::Forget { context } => {
                let child = self.child(self.handle(*context));
                self.lines[child].places.clear();
                Ok(self.keep(child))
            }
            Op::Parts { context, keep, merging, orphan } => {
                let of = self.handle(*context);
                let child = self.child(of);
                if *orphan {
                    let line = &mut self.lines[child];
                    (line.parent, line.merging) = (None, None);
                    line.touches.clear();
                    line.places.clear();
                }
                if let Some(keep) = keep {
                    let mut places = self.lines[of].places.clone();
                    places.retain(|node, _| keep.contains(node));
                    self.lines[child].places = places;
                }
                if let Some(merging) = merging {
                    self.lines[child].merging = *merging;
                }
                Ok(self.keep(child))
            }
            Op::DropContext { context } => {
                let index = *context % self.handles.len();
                let device = self.lines[self.handles[index]].device;
                self.lines.push(Line::root(device));
                self.handles[index] = self.lines.len() - 1;
                Ok(String::new())
            }
            Op::Write { context, node, start, bytes } => self.write(self.handle(*context), *node, *start, bytes),
            Op::Zero { context, node, start, len } => {
                let (device, place) = self.writable(self.handle(*context), *node)?;
                self.inside(*node, *start, *len)?;
                self.memories[device].write(place.at(*start), &vec![0; *len as usize])?;
                Ok(String::new())
            }
            Op::Copy { context, from, from_start, to, to_start, len } => {
                let of = self.handle(*context);
                let (device, source) = self.place(of, *from)?;
                let (_, target) = self.writable(of, *to)?;
                self.inside(*from, *from_start, *len)?;
                self.inside(*to, *to_start, *len)?;
                self.memories[device].copy(source.at(*from_start), target.at(*to_start), *len)?;
                Ok(String::new())
            }
            Op::Link { context, kernel } => self.link(self.handle(*context), kernel),
            Op::LinkBatch { context, kernels } => self.link_batch(self.handle(*context), kernels),
            Op::Forecast { context, kernel } => self.forecast(self.handle(*context), kernel),
            Op::Merge { context, node } => self.merge(self.handle(*context), *node),
            Op::Transfer { context, node, source, into } => {
                let (to, from) = (self.handle(*context), self.handle(*source));
                let Some(job) = self.transfer(to, *node, from, *into)? else { return Ok("nothing to move".to_owned()) };
                Ok(self.keep_job(job))
            }
            Op::InitFromDevice { context, node, source } => {
                self.init_from_device(self.handle(*context), *node, self.handle(*source))
            }
            Op::CopyFrom { context, node, source, into } => {
                let source = self.handle(*source);
                self.copy_from(self.handle(*context), *node, *into, |oracle| oracle.bytes(source, *node))
            }
            Op::InitFromOther { context, node, source } => {
                let source = self.handle(*source);
                self.place(source, *node)?;
                self.init_from(self.handle(*context), *node, |oracle| oracle.bytes(source, *node))
            }
            Op::FromForeign { node, .. } if self.is_unkept(*node) => refuse("unsupported", &self.nodes[*node].name),
            Op::FromForeign { context, node, bytes, into } => match into {
                Some(into) => self.copy_from(self.handle(*context), *node, *into, |_| Ok(bytes.clone())),
                None => self.init_from(self.handle(*context), *node, |_| Ok(bytes.clone())),
            },
            Op::ToForeign { context, node } | Op::Read { context, node } => {
                Ok(format!("{:?}", [self.bytes(self.handle(*context), *node)?]))
            }
            Op::ReadAt { context, node, start, len } => {
                let (device, place) = self.place(self.handle(*context), *node)?;
                let element = self.nodes[*node].element;
                self.inside(*node, start * element, len * element)?;
                Ok(format!("{:?}", self.memories[device].read(place.at(start * element), len * element)?))
            }
            Op::FromBlock { context, node, span, bytes } => {
                self.write_block(self.handle(*context), *node, *span, bytes)
            }
            Op::ToBlock { context, node, span } => self.read_block(self.handle(*context), *node, *span),
            Op::CopyBlock { context, from, from_span, to, to_span } => {
                self.copy_block(self.handle(*context), (*from, *from_span), (*to, *to_span))
            }
            Op::Run { routine, amount } => match self.jobs.get(*routine) {
                Some(job) if job.alive => self.run(*routine, *amount).map(|()| String::new()),
                _ => Ok("no routine".to_owned()),
            },
            Op::Sequence { routines, times } => self.sequence(routines, *times),
            Op::Drop { routine } if self.makers.contains(routine) => Ok("no: others read what it makes".to_owned()),
            Op::Drop { routine } => {
                let was = self.jobs.get(*routine).is_some_and(|job| job.alive);
                if was {
                    self.jobs[*routine].alive = false;
                }
                Ok(was.to_string())
            }
            Op::Finalize { context } => {
                self.finalize(self.handle(*context));
                Ok(String::new())
            }
            Op::AllocPool { device, gap, merge, size } => self.alloc_by_hand(*device, *gap, *merge, *size),
            Op::ZeroPool { pool, start, len } => match self.by_hand(*pool) {
                Some((device, pool)) => {
                    self.memories[device].write(Place { pool, offset: *start }, &vec![0; *len as usize])?;
                    Ok(String::new())
                }
                None => Ok("no pool".to_owned()),
            },
            Op::FreePool { pool } => match self.by_hand(*pool) {
                Some((device, pool)) => self.memories[device].free(pool).map(|()| String::new()),
                None => Ok("no pool".to_owned()),
            },
            Op::FreeUnder { context, node } => {
                let line = &self.lines[self.handle(*context)];
                let Some(place) = line.places.get(node) else { return Ok("no place".to_owned()) };
                self.memories[line.device].free(place.pool).map(|()| String::new())
            }
            Op::Place { node, .. } if self.is_unkept(*node) => Ok("no place".to_owned()),
            Op::Place { context, node, pool, offset } => {
                let of = self.handle(*context);
                let found = self.by_hand(*pool).filter(|(device, _)| *device == self.lines[of].device);
                let Some((_, pool)) = found else { return Ok("no pool".to_owned()) };
                let child = self.child(of);
                self.lines[child].places.insert(*node, Place { pool, offset: *offset });
                Ok(self.keep(child))
            }
            Op::WaitFor { context, .. } => self.live(self.handle(*context)).map(|()| String::new()),
            Op::FreeConstants => Ok(format!("{:?}", self.memories.each_mut().map(Memory::free_constants))),
            Op::Trim | Op::Compact => Ok(String::new()),
            Op::Look => Ok(self.look()),
        }
    }

    /// What the devices must say of their memory, and what each routine waits for.
    pub fn look(&self) -> String {
        let mut seen: Vec<String> = self.memories.iter().map(|memory| memory.look(&self.nodes)).collect();
        for (index, job) in self.jobs.iter().enumerate().filter(|(_, job)| job.alive) {
            let waits = self.waits(job);
            if !waits.is_empty() {
                seen.push(format!("{index} waits for {waits:?}"));
            }
        }
        seen.join("\n")
    }

    /// All bytes of all contexts that the program holds, as far as they can be read.
    pub fn all_bytes(&self) -> Vec<String> {
        let mut all = Vec::new();
        for &handle in &self.handles {
            all.push(self.places(handle));
            for &node in self.lines[handle].places.keys() {
                let name = &self.nodes[node].name;
                all.push(match self.bytes(handle, node) {
                    Ok(bytes) => format!("{name} {bytes:?}"),
                    Err(refusal) => format!("{name} {}", refusal.reasons[0].0),
                });
            }
        }
        all
    }

    /// How many contexts the program holds, and how many routines it made.
    pub fn counts(&self) -> (usize, usize) {
        (self.handles.len(), self.jobs.len())
    }

    fn handle(&self, context: usize) -> usize {
        self.handles[context % self.handles.len()]
    }

    fn by_hand(&self, pool: usize) -> Option<(usize, u32)> {
        self.pools.get(pool % self.pools.len().max(1)).copied()
    }

    fn root(&self, node: usize) -> usize {
        self.nodes[node].base.map_or(node, |(base, _)| self.root(base))
    }

    /// A child that has all that its parent has, and keeps nothing.
    fn child(&mut self, of: usize) -> usize {
        let parent = &self.lines[of];
        let child = Line { parent: Some(of), holds: Vec::new(), finalized: false, ..parent.clone() };
        self.lines.push(child);
        self.lines.len() - 1
    }

    /// The program holds a context from now on.
    fn keep(&mut self, line: usize) -> String {
        self.handles.push(line);
        self.places(line)
    }

    fn keep_job(&mut self, job: Job) -> String {
        let context = job.context;
        self.jobs.push(job);
        self.keep(context)
    }

    fn places(&self, line: usize) -> String {
        let line = &self.lines[line];
        let places: Vec<_> = line
            .places
            .iter()
            .map(|(&node, place)| format!("{}@p{}+{}", self.nodes[node].name, place.pool, place.offset))
            .collect();
        let merging = line.merging.map(|node| format!(" merging {}", self.nodes[node].name)).unwrap_or_default();
        format!("{}{merging}", places.join(" "))
    }

    fn finalize(&mut self, line: usize) {
        let Line { device, holds, finalized, .. } = &mut self.lines[line];
        if !std::mem::replace(finalized, true) {
            holds.iter().for_each(|&pool| self.memories[*device].release(pool));
        }
    }

    /// Ends every context that nobody can reach: neither the program, nor a routine, nor a child of theirs.
    fn sweep(&mut self) {
        let mut reached = vec![false; self.lines.len()];
        let of_jobs = self.jobs.iter().filter(|job| job.alive).flat_map(|job| [Some(job.context), job.source]);
        for start in self.handles.iter().copied().map(Some).chain(of_jobs) {
            let mut next = start;
            while let Some(line) = next.filter(|&line| !reached[line]) {
                reached[line] = true;
                next = self.lines[line].parent;
            }
        }
        for (line, reached) in reached.into_iter().enumerate() {
            if !reached {
                self.finalize(line);
            }
        }
    }
}

/// Whether a landing is the merge buffer.
fn is_merge(into: Landing) -> bool {
    into == Landing::MergeBuffer
}
