//! Random programs of the device layer, applied to any driver: what each step gives must be the same everywhere.

mod kernels;
mod random;

use wgslab::{Access, Code, Context, CtxBuffers, DType, Device, Driver, Error, Landing, Routine, TensorNode};

use kernels::kernel;
pub use random::{Random, make_nodes};

/// One step. Indices are into the nodes, contexts and routines made so far.
#[derive(Clone, Debug)]
pub enum Op {
    Zeros { context: usize, nodes: Vec<usize> },
    Upload { context: usize, nodes: Vec<usize>, bytes: Vec<Vec<u8>> },
    Alias { context: usize, node: usize },
    Child { context: usize },
    Forget { context: usize },
    Write { context: usize, node: usize, start: u64, bytes: Vec<u8> },
    Zero { context: usize, node: usize, start: u64, len: u64 },
    Copy { context: usize, from: usize, from_start: u64, to: usize, to_start: u64, len: u64 },
    Link { context: usize, from: usize, to: usize, in_place: bool },
    Merge { context: usize, node: usize },
    Transfer { context: usize, node: usize, source: usize, into: Landing },
    Run { routine: usize, amount: i32 },
    Drop { routine: usize },
    Read { context: usize, node: usize },
    Finalize { context: usize },
    FreeConstants,
    Look,
}

/// The next step of a program with so many contexts and routines.
pub fn make_op(random: &mut Random, nodes: &[TensorNode], contexts: usize, routines: usize) -> Op {
    let context = random.index(contexts);
    let node = random.index(nodes.len());
    let size = nodes[node].size_bytes();
    let start = random.below(size + 2);
    match random.below(32) {
        0..=2 => Op::Zeros { context, nodes: some(random, nodes.len()) },
        3..=6 => {
            let chosen = some(random, nodes.len());
            let bytes = chosen.iter().map(|&node| random.bytes(nodes[node].size_bytes())).collect();
            Op::Upload { context, nodes: chosen, bytes }
        }
        7..=8 => Op::Alias { context, node },
        9 => Op::Child { context },
        10 => Op::Forget { context },
        11..=13 => {
            let len = random.below(size.saturating_sub(start) + 2);
            Op::Write { context, node, start, bytes: random.bytes(len) }
        }
        14..=15 => Op::Zero { context, node, start, len: random.below(size.saturating_sub(start) + 2) },
        16..=17 => {
            let from = random.index(nodes.len());
            let from_start = random.below(nodes[from].size_bytes() + 1);
            Op::Copy { context, from, from_start, to: node, to_start: start, len: random.below(size + 1) }
        }
        18..=20 => Op::Link { context, from: random.index(nodes.len()), to: node, in_place: random.below(3) == 0 },
        21 => Op::Merge { context, node },
        22 => Op::Transfer { context, node, source: random.index(contexts), into: Landing::MergeBuffer },
        23 => Op::Transfer { context, node, source: random.index(contexts), into: Landing::Node },
        24..=26 => Op::Run { routine: random.index(routines), amount: random.below(100) as i32 - 50 },
        27 => Op::Drop { routine: random.index(routines) },
        28..=29 => Op::Read { context, node },
        30 => Op::Finalize { context },
        _ => [Op::FreeConstants, Op::Look][random.index(2)].clone(),
    }
}

fn some(random: &mut Random, count: usize) -> Vec<usize> {
    (0..1 + random.index(3)).map(|_| random.index(count)).collect()
}

/// A program's objects on one device.
pub struct World<D: Driver> {
    pub device: Device<D>,
    pub contexts: Vec<Context<D>>,
    pub routines: Vec<Option<Routine<D>>>,
}

/// What a step gave: a value that says everything, or the kind and text of the error, without the device's name.
pub type Outcome = Result<String, String>;

impl<D: Driver> World<D> {
    pub fn new(device: &Device<D>) -> Self {
        Self { device: device.clone(), contexts: vec![Context::root(device)], routines: Vec::new() }
    }

    /// Applies a step, and says what it gave.
    pub async fn apply(&mut self, op: &Op, nodes: &[TensorNode]) -> Outcome {
        self.step(op, nodes).await.map_err(|error| {
            let text = error.to_string().replace(self.device.name(), "DEVICE");
            format!("{}: {text}", error.kind().code())
        })
    }

    async fn step(&mut self, op: &Op, nodes: &[TensorNode]) -> Result<String, Error> {
        match op {
            Op::Zeros { context, nodes: chosen } => {
                let chosen: Vec<_> = chosen.iter().map(|&node| &nodes[node]).collect();
                self.push(self.contexts[*context].init_zeros(&chosen)?)
            }
            Op::Upload { context, nodes: chosen, bytes } => {
                let pairs: Vec<_> =
                    chosen.iter().zip(bytes).map(|(&node, bytes)| (&nodes[node], bytes.as_slice())).collect();
                self.push(self.contexts[*context].init_from_host_many(&pairs)?)
            }
            Op::Alias { context, node } => self.push(self.contexts[*context].alias(&[&nodes[*node]])?),
            Op::Child { context } => self.push(self.contexts[*context].child().build()),
            Op::Forget { context } => {
                // A child without nodes: it must keep nothing that its parents let go of.
                self.push(self.contexts[*context].child().ctx_buffers(CtxBuffers::new()).build())
            }
            Op::Write { context, node, start, bytes } => {
                let (node, size) = (&nodes[*node], nodes[*node].dtype().size_bytes());
                let whole = bytes.len() as u64 / size * size;
                let bytes = &bytes[..whole as usize];
                let context = &self.contexts[*context];
                match size {
                    1 => context.from_host_at::<u8>(node, *start, bytes),
                    2 => context.from_host_at::<u16>(node, *start / size, &elements(bytes)),
                    _ => context.from_host_at::<i32>(node, *start / size, &elements(bytes)),
                }?;
                Ok(String::new())
            }
            Op::Zero { context, node, start, len } => {
                self.contexts[*context].zero(&nodes[*node], *start, *len)?;
                Ok(String::new())
            }
            Op::Copy { context, from, from_start, to, to_start, len } => {
                let (from, to) = (&nodes[*from], &nodes[*to]);
                self.contexts[*context].copy_bytes(from, *from_start, to, *to_start, *len)?;
                Ok(String::new())
            }
            Op::Link { context, from, to, in_place } => {
                let (from, to) = (&nodes[*from], &nodes[*to]);
                // Two views that overlap are a race in a kernel, whatever the device layer does.
                let overlap = from != to && from.root() == to.root();
                if overlap || from.dtype() != to.dtype() || from.dtype() == DType::F16 {
                    return Ok("no kernel".to_owned());
                }
                let access = if *in_place || from == to { Access::ReadWrite } else { Access::Write };
                let code = self.device.compile(kernel(from, to, access, false)).await?;
                self.link(*context, &code).await
            }
            Op::Merge { context, node } => {
                let node = &nodes[*node];
                if node.dtype() == DType::F16 {
                    return Ok("no kernel".to_owned());
                }
                let code = self.device.compile(kernel(node, node, Access::ReadWrite, true)).await?;
                self.link(*context, &code).await
            }
            Op::Transfer { context, node, source, into } => {
                let (to, from) = (&self.contexts[*context], &self.contexts[*source]);
                let Some(routine) = to.device_to_device(&nodes[*node], *into, from)? else {
                    return Ok("nothing to move".to_owned());
                };
                self.contexts.push(routine.context().clone());
                self.routines.push(Some(routine));
                Ok("a copy".to_owned())
            }
            Op::Run { routine, amount } => {
                let Some(Some(routine)) = self.routines.get(*routine) else { return Ok("no routine".to_owned()) };
                let statics: &[i32] = if routine.bindings().is_empty() { &[] } else { &[*amount] };
                let waiting = routine.execution_deps().len();
                routine.run_values(statics).map_err(without_ids)?;
                Ok(format!("{waiting}"))
            }
            Op::Drop { routine } => {
                let dropped = self.routines.get_mut(*routine).and_then(Option::take);
                Ok(format!("{}", dropped.is_some()))
            }
            Op::Read { context, node } => {
                Ok(format!("{:?}", self.contexts[*context].to_host_many(&[&nodes[*node]]).await?))
            }
            Op::Finalize { context } => {
                self.contexts[*context].finalize();
                Ok(String::new())
            }
            Op::FreeConstants => Ok(self.device.free_unused_constants().to_string()),
            Op::Look => Ok(self.look()),
        }
    }

    fn push(&mut self, context: Context<D>) -> Result<String, Error> {
        let locs = format!("{:?}", context.ctx_buffers());
        self.contexts.push(context);
        Ok(locs)
    }

    async fn link(&mut self, context: usize, code: &Code<D>) -> Result<String, Error> {
        let routine = self.contexts[context].link(code).await?;
        let locs = format!("{:?}", routine.context().ctx_buffers());
        self.contexts.push(routine.context().clone());
        self.routines.push(Some(routine));
        Ok(locs)
    }

    /// What the device says of its memory: pools, nodes, bytes in use and padding.
    pub fn look(&self) -> String {
        let report = self.device.report();
        format!("{} {} {:?}", report.in_use_bytes, report.padding_bytes, report.pools)
    }

    /// All bytes of all live contexts, as far as they can be read.
    pub async fn all_bytes(&self) -> Vec<String> {
        let mut all = Vec::new();
        for context in &self.contexts {
            for (node, _) in context.locs() {
                all.push(match context.to_host_many(&[&node]).await {
                    Ok(bytes) => format!("{node} {bytes:?}"),
                    Err(error) => format!("{node} {}", error.kind().code()),
                });
            }
        }
        all
    }
}

/// Routine ids count over both worlds.
fn without_ids(error: Error) -> Error {
    let text = error.to_string();
    if error.kind().code() == "not-run" {
        Error::new(error.kind(), "an earlier routine")
    } else {
        Error::new(error.kind(), text)
    }
}

fn elements<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}
