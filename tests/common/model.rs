//! Random programs of the device layer, applied to any driver: what each step gives must be the same everywhere.
//!
//! Every index of a step is taken modulo what there is, so that a program from which steps were taken out still runs.

mod draw;
mod kernels;
mod memory;
mod random;
mod work;

use wgslab::{
    Block, Code, Context, CtxBuffers, Device, Driver, Error, ErrorKind, Landing, MemoryMode, PoolId, Routine, Span,
    TensorNode, free_pool, host,
};

pub use draw::{KINDS, followers, make_op};
pub use kernels::Kernel;
pub use random::{Random, make_nodes};

use super::blocks::{read_block, write_block};

/// One step. Indices are into the nodes, contexts and routines made so far, and into the pools made by hand.
#[derive(Clone, Debug)]
pub enum Op {
    Zeros {
        context: usize,
        nodes: Vec<usize>,
    },
    Upload {
        context: usize,
        nodes: Vec<usize>,
        bytes: Vec<Vec<u8>>,
    },
    Alias {
        context: usize,
        node: usize,
    },
    Child {
        context: usize,
    },
    Forget {
        context: usize,
    },
    /// A child, or a context without a parent, with some parts of its own.
    Parts {
        context: usize,
        keep: Option<Vec<usize>>,
        merging: Option<Option<usize>>,
        orphan: bool,
    },
    DropContext {
        context: usize,
    },
    Write {
        context: usize,
        node: usize,
        start: u64,
        bytes: Vec<u8>,
    },
    Zero {
        context: usize,
        node: usize,
        start: u64,
        len: u64,
    },
    Copy {
        context: usize,
        from: usize,
        from_start: u64,
        to: usize,
        to_start: u64,
        len: u64,
    },
    Link {
        context: usize,
        kernel: Kernel,
    },
    LinkBatch {
        context: usize,
        kernels: Vec<Kernel>,
    },
    Forecast {
        context: usize,
        kernel: Kernel,
    },
    Merge {
        context: usize,
        node: usize,
    },
    Transfer {
        context: usize,
        node: usize,
        source: usize,
        into: Landing,
    },
    InitFromDevice {
        context: usize,
        node: usize,
        source: usize,
    },
    /// Through the host: between contexts of any devices.
    CopyFrom {
        context: usize,
        node: usize,
        source: usize,
        into: Landing,
    },
    InitFromOther {
        context: usize,
        node: usize,
        source: usize,
    },
    /// From and to a device of the host driver; into a new place where `into` is `None`.
    FromForeign {
        context: usize,
        node: usize,
        bytes: Vec<u8>,
        into: Option<Landing>,
    },
    ToForeign {
        context: usize,
        node: usize,
    },
    Run {
        routine: usize,
        amount: i32,
    },
    Sequence {
        routines: Vec<(usize, i32)>,
        times: u32,
    },
    Drop {
        routine: usize,
    },
    Read {
        context: usize,
        node: usize,
    },
    ReadAt {
        context: usize,
        node: usize,
        start: u64,
        len: u64,
    },
    /// Stepped parts.
    FromBlock {
        context: usize,
        node: usize,
        span: Span,
        bytes: Vec<u8>,
    },
    ToBlock {
        context: usize,
        node: usize,
        span: Span,
    },
    CopyBlock {
        context: usize,
        from: usize,
        from_span: Span,
        to: usize,
        to_span: Span,
    },
    Finalize {
        context: usize,
    },
    /// A pool under an id of one's own, that far behind the next; or the merge buffer's.
    AllocPool {
        device: usize,
        gap: u32,
        merge: bool,
        size: u64,
    },
    ZeroPool {
        pool: usize,
        start: u64,
        len: u64,
    },
    FreePool {
        pool: usize,
    },
    /// Frees the pool that a node lies in.
    FreeUnder {
        context: usize,
        node: usize,
    },
    /// A child that has a node in a pool made by hand.
    Place {
        context: usize,
        node: usize,
        pool: usize,
        offset: u64,
    },
    /// Work of one device waits for all that was recorded on another's.
    WaitFor {
        context: usize,
        source: usize,
    },
    FreeConstants,
    Trim,
    Compact,
    Look,
}

impl Op {
    /// What a step is counted as.
    pub fn kind(&self, nodes: &[TensorNode]) -> String {
        let has_local = |kernel: &Kernel| {
            [Some(kernel.to()), kernel.from()].into_iter().flatten().any(|node| nodes[node].mode() == MemoryMode::Local)
        };
        match self {
            Op::Link { kernel, .. } if has_local(kernel) => "Link, local".to_owned(),
            Op::Link { kernel, .. } => format!("Link {kernel}"),
            Op::LinkBatch { kernels, .. } if kernels.iter().any(has_local) => "LinkBatch, local".to_owned(),
            _ => format!("{self:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
        }
    }
}

/// The devices of one driver that programs run on, with one of the host driver.
#[derive(Debug)]
pub struct Devices<D: Driver> {
    pub both: [Device<D>; 2],
    pub foreign: Device<host::Host>,
}

/// A program's objects.
pub struct World<'a, D: Driver> {
    pub devices: &'a Devices<D>,
    /// The first two are the roots.
    pub contexts: Vec<Context<D>>,
    pub routines: Vec<Option<Routine<D>>>,
    /// Made by hand: index of the device, and id.
    pub pools: Vec<(usize, PoolId)>,
    /// Routines that write local nodes which others read.
    makers: Vec<usize>,
    /// Compiled once, so that they are linked again and again: by device.
    codes: Vec<(usize, Kernel, Code<D>)>,
}

/// What a step gave: a value that says everything, or the kind and text of the error, without the device's name.
pub type Outcome = Result<String, String>;

impl<'a, D: Driver> World<'a, D> {
    pub fn new(devices: &'a Devices<D>) -> Self {
        let contexts = devices.both.iter().map(Context::root).collect();
        Self { devices, contexts, routines: Vec::new(), pools: Vec::new(), makers: Vec::new(), codes: Vec::new() }
    }

    fn context(&self, index: usize) -> &Context<D> {
        &self.contexts[index % self.contexts.len()]
    }

    /// Applies a step, and says what it gave.
    pub async fn apply(&mut self, op: &Op, nodes: &[TensorNode]) -> Outcome {
        self.step(op, nodes).await.map_err(|error| {
            if error.kind() == ErrorKind::NotRun {
                // Routine ids count over all worlds.
                return "not-run: an earlier routine".to_owned();
            }
            let mut text = error.to_string();
            for (index, device) in self.devices.both.iter().enumerate() {
                text = text.replace(device.name(), &format!("DEVICE {index}"));
            }
            text = text.replace(self.devices.foreign.name(), "FOREIGN");
            format!("{}: {text}", error.kind().code())
        })
    }

    async fn step(&mut self, op: &Op, nodes: &[TensorNode]) -> Result<String, Error> {
        match op {
            Op::Zeros { context, nodes: chosen } => {
                let chosen: Vec<_> = chosen.iter().map(|&node| &nodes[node]).collect();
                self.push(self.context(*context).init_zeros(&chosen)?)
            }
            Op::Upload { context, nodes: chosen, bytes } => {
                let pairs: Vec<_> =
                    chosen.iter().zip(bytes).map(|(&node, bytes)| (&nodes[node], bytes.as_slice())).collect();
                self.push(self.context(*context).init_from_host_many(&pairs)?)
            }
            Op::Alias { context, node } => self.push(self.context(*context).alias(&[&nodes[*node]])?),
            Op::Child { context } => self.push(self.context(*context).child().build()),
            Op::Forget { context } => {
                // A child without nodes: it must keep nothing that its parents let go of.
                self.push(self.context(*context).child().ctx_buffers(CtxBuffers::new()).build())
            }
            Op::Parts { context, keep, merging, orphan } => {
                self.parts(*context, keep.as_ref(), *merging, *orphan, nodes)
            }
            Op::DropContext { context } => {
                let index = *context % self.contexts.len();
                self.contexts[index] = Context::root(self.contexts[index].device());
                Ok(String::new())
            }
            Op::Write { context, node, start, bytes } => self.write(*context, &nodes[*node], *start, bytes),
            Op::Zero { context, node, start, len } => {
                self.context(*context).zero(&nodes[*node], *start, *len)?;
                Ok(String::new())
            }
            Op::Copy { context, from, from_start, to, to_start, len } => {
                let (from, to) = (&nodes[*from], &nodes[*to]);
                self.context(*context).copy_bytes(from, *from_start, to, *to_start, *len)?;
                Ok(String::new())
            }
            Op::Link { context, kernel } => self.link(*context, kernel, nodes).await,
            Op::LinkBatch { context, kernels } => self.link_batch(*context, kernels, nodes).await,
            Op::Forecast { context, kernel } => self.forecast(*context, kernel, nodes).await,
            Op::Merge { context, node } => self.merge(*context, &nodes[*node]).await,
            Op::Transfer { context, node, source, into } => self.transfer(*context, &nodes[*node], *source, *into),
            Op::InitFromDevice { context, node, source } => {
                let (to, from) = (self.context(*context), self.context(*source));
                self.push(to.init_from_device(&nodes[*node], from)?)
            }
            Op::CopyFrom { context, node, source, into } => {
                let (to, from) = (self.context(*context), self.context(*source));
                to.copy_from(&nodes[*node], *into, from).await?;
                Ok(String::new())
            }
            Op::InitFromOther { context, node, source } => {
                let (to, from) = (self.context(*context), self.context(*source));
                self.push(to.init_from_other(&nodes[*node], from).await?)
            }
            Op::FromBlock { context, node, span, bytes } => {
                let node = &nodes[*node];
                write_block(self.context(*context), node, &Block::new(node, &[*span])?, bytes)?;
                Ok(String::new())
            }
            Op::ToBlock { context, node, span } => {
                let node = &nodes[*node];
                let bytes = read_block(self.context(*context), node, &Block::new(node, &[*span])?).await?;
                Ok(format!("{bytes:?}"))
            }
            Op::CopyBlock { context, from, from_span, to, to_span } => {
                let (from, to) = (&nodes[*from], &nodes[*to]);
                let blocks = (Block::new(from, &[*from_span])?, Block::new(to, &[*to_span])?);
                self.context(*context).copy_block(from, &blocks.0, to, &blocks.1)?;
                Ok(String::new())
            }
            Op::FromForeign { context, node, bytes, into } => {
                self.copy_foreign(*context, &nodes[*node], bytes, *into).await
            }
            Op::ToForeign { context, node } => self.to_foreign(*context, &nodes[*node]).await,
            Op::Run { routine, amount } => self.run(*routine, *amount),
            Op::Sequence { routines, times } => self.sequence(routines, *times),
            Op::Drop { routine } => {
                if self.makers.contains(routine) {
                    // Others would read from a local node what it never wrote there.
                    return Ok("no: others read what it makes".to_owned());
                }
                let dropped = self.routines.get_mut(*routine).and_then(Option::take);
                Ok(format!("{}", dropped.is_some()))
            }
            Op::Read { context, node } => {
                Ok(format!("{:?}", self.context(*context).to_host_many(&[&nodes[*node]]).await?))
            }
            Op::ReadAt { context, node, start, len } => self.read_at(*context, &nodes[*node], *start, *len).await,
            Op::Finalize { context } => {
                self.context(*context).finalize();
                Ok(String::new())
            }
            Op::AllocPool { device, gap, merge, size } => self.alloc_pool(*device, *gap, *merge, *size),
            Op::ZeroPool { pool, start, len } => self.zero_pool(*pool, *start, *len),
            Op::FreePool { pool } => self.free_pool(*pool),
            Op::FreeUnder { context, node } => {
                let context = self.context(*context);
                let Some(loc) = context.loc(&nodes[*node]) else { return Ok("no place".to_owned()) };
                free_pool(context.device(), loc.pool_id)?;
                Ok(String::new())
            }
            Op::Place { context, node, pool, offset } => self.place(*context, &nodes[*node], *pool, *offset),
            Op::WaitFor { context, source } => {
                let event = self.context(*source).device().all_work();
                self.context(*context).will_wait_for(&event)?;
                Ok(String::new())
            }
            Op::FreeConstants => {
                let freed = self.devices.both.each_ref().map(Device::free_unused_constants);
                Ok(format!("{freed:?}"))
            }
            Op::Trim => {
                for device in &self.devices.both {
                    device.trim()?;
                }
                Ok(String::new())
            }
            Op::Compact => {
                // What there is to move is the driver's own affair.
                for device in &self.devices.both {
                    device.compact()?;
                }
                Ok(String::new())
            }
            Op::Look => Ok(self.look()),
        }
    }

    fn push(&mut self, context: Context<D>) -> Result<String, Error> {
        let places = places(&context);
        self.contexts.push(context);
        Ok(places)
    }

    fn push_routine(&mut self, routine: Routine<D>) -> Result<String, Error> {
        let context = routine.context().clone();
        self.routines.push(Some(routine));
        self.push(context)
    }
}

/// Where the nodes of a context are, and which one its merge buffer will hold.
fn places<D: Driver>(context: &Context<D>) -> String {
    let locs: Vec<_> = context.locs().iter().map(|(node, loc)| format!("{node}@{loc}")).collect();
    let merging = context.merge_buffer_node().map(|node| format!(" merging {node}")).unwrap_or_default();
    format!("{}{merging}", locs.join(" "))
}
