//! Extending a context: new nodes go, in order, into slabs of their own that the child owns.

use std::sync::Arc;

use crate::context::ctx_buffers::Layer;
use crate::context::{Context, ContextBuilder, CtxBuffers};
use crate::device::Device;
use crate::device::pools::{alloc_pool, free_pool};
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{MemoryMode, TensorNode};
use crate::slab::layout::{Layout, Resident};
use crate::slab::loc::PoolId;
use crate::slab::plan::{Lifetime, PlanLimits, SegmentPlan, pack_lifetimes, plan_segments};

/// New nodes, planned: pure data, so that whoever allocates the same nodes again plans them once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    working: Arc<Group>,
    /// Local nodes, in memory that they share. No context has them.
    scratch: Arc<Group>,
    /// Planned when they are placed: the device may have some of them by then.
    constants: Vec<TensorNode>,
}

/// Nodes of one kind with their places, and the slabs that they need.
#[derive(Debug, Default)]
struct Group {
    layout: Arc<Layout>,
    segment_sizes_bytes: Vec<u64>,
}

/// A local node, with the first and the last of the codes that use it.
pub(crate) type Local<'a> = (&'a TensorNode, usize, usize);

impl Group {
    fn plan(nodes: &[&TensorNode], limits: PlanLimits) -> Result<Self> {
        let plan = plan_segments(nodes.iter().map(|node| node.size_bytes()), limits, |index| nodes[index].to_string())?;
        Self::new(nodes, plan)
    }

    fn pack(nodes: &[Local<'_>], limits: PlanLimits) -> Result<Self> {
        let (mut lifetimes, mut locals) = (Vec::new(), Vec::new());
        for &(node, first, last) in nodes {
            lifetimes.push(Lifetime { size_bytes: node.size_bytes(), first, last });
            locals.push(node);
        }
        let plan = pack_lifetimes(&lifetimes, limits, |index| nodes[index].0.to_string())?;
        Self::new(&locals, plan)
    }

    fn new(nodes: &[&TensorNode], plan: SegmentPlan) -> Result<Self> {
        let mut layout = Layout::with_capacity(nodes.len());
        for (&node, place) in nodes.iter().zip(&plan.places) {
            let (segment, offset) = (place.segment as u32, place.offset);
            if !layout.insert(Resident { node: node.clone(), segment, offset }) {
                return Err(named_twice(node));
            }
        }
        Ok(Self { layout: Arc::new(layout), segment_sizes_bytes: plan.segment_sizes_bytes })
    }
}

impl Delta {
    /// Plans nodes, in order: as few slabs as the cap allows, working nodes, local ones and constants apart. Undecided
    /// nodes are kept on the device from here on.
    pub(crate) fn plan(nodes: &[&TensorNode], locals: &[Local<'_>], limits: PlanLimits) -> Result<Self> {
        let (mut constants, mut working) = (Vec::new(), Vec::new());
        for node in nodes {
            node.settle_mode();
            (if node.mode() == MemoryMode::Constant { &mut constants } else { &mut working }).push(*node);
        }
        let working = Arc::new(Group::plan(&working, limits)?);
        let mut distinct: Vec<TensorNode> = Vec::new();
        for node in constants {
            if distinct.contains(node) {
                return Err(named_twice(node));
            }
            distinct.push(node.clone());
        }
        let scratch = if locals.is_empty() { Arc::default() } else { Arc::new(Group::pack(locals, limits)?) };
        Ok(Self { working, scratch, constants: distinct })
    }

    /// The sizes of the slabs that placing it would allocate, in bytes, if the device has none of its constants.
    pub(crate) fn slab_sizes_bytes(&self, limits: PlanLimits) -> Result<Vec<u64>> {
        let constants: Vec<_> = self.constants.iter().collect();
        let constants = Group::plan(&constants, limits)?;
        let mut sizes = self.working.segment_sizes_bytes.clone();
        sizes.extend_from_slice(&self.scratch.segment_sizes_bytes);
        sizes.extend_from_slice(&constants.segment_sizes_bytes);
        Ok(sizes)
    }

    /// Where a node will be that is no constant: in the slab of which of the child's own pools, and how far into it.
    pub(crate) fn place_of(&self, node: &TensorNode) -> Option<(u32, u64)> {
        let place = |group: &Group, before: usize| {
            group.layout.get(node.id()).map(|resident| (before as u32 + resident.segment, resident.offset))
        };
        place(&self.working, 0).or_else(|| place(&self.scratch, self.working.segment_sizes_bytes.len()))
    }
}

/// Refuses to give a context a node that no context can have.
fn check_kept(node: &TensorNode) -> Result<()> {
    let why = match node.mode() {
        MemoryMode::OnDevice | MemoryMode::Constant => return Ok(()),
        MemoryMode::Local => "exists only while the routines of one link run",
        MemoryMode::Virtual => "is computed where it is used, and has no bytes",
    };
    let message = format_args!("node {node} is {}: it {why}; make it on_device to keep it in a context", node.mode());
    Err(Error::say(ErrorKind::Unsupported, message))
}

fn named_twice(node: &TensorNode) -> Error {
    Error::say(ErrorKind::DuplicateNode, format_args!("node {node} is named twice; name it once"))
}

impl<D: Driver> Context<D> {
    /// A child that has `nodes` too, in new slabs. With `zeroed` they are filled with zeros, else their contents are
    /// unspecified.
    ///
    /// A refusal changes nothing: no pool stays, and no later address is another.
    pub(crate) fn extend(&self, nodes: &[&TensorNode], zeroed: bool) -> Result<Context<D>> {
        self.check_live()?;
        nodes.iter().try_for_each(|node| check_kept(node))?;
        let present = nodes.iter().find_map(|node| self.ctx_buffers().get(node).map(|loc| (node, loc)));
        if let Some((node, loc)) = present {
            let message = format_args!("node {node} is in the context already, at {loc}; write to it instead");
            return Err(Error::say(ErrorKind::DuplicateNode, message));
        }
        let delta = self.plan(nodes, &[])?;
        self.extend_by(self.child(), &delta, zeroed)
    }

    /// Plans nodes for the device of this context.
    pub(crate) fn plan(&self, nodes: &[&TensorNode], locals: &[Local<'_>]) -> Result<Delta> {
        let device = self.device();
        Delta::plan(nodes, locals, device.limits().plan()).map_err(|error| error.context(device.name()))
    }

    /// As [`Context::extend`], by nodes that are planned and absent, with the other parts of the child as `builder` has
    /// them.
    pub(crate) fn extend_by(&self, builder: ContextBuilder<D>, delta: &Delta, zeroed: bool) -> Result<Context<D>> {
        let device = self.device();
        let first = device.next_pool_id();
        let mut minting = Minting { device, held: Vec::new(), minted: Vec::new(), zeroed };
        let mut buffers = self.ctx_buffers().clone();
        if let Err(error) = minting.place(delta, &mut buffers) {
            minting.roll_back(first);
            return Err(error);
        }
        Ok(builder.holding(minting.held).ctx_buffers(buffers).build())
    }
}

/// Pools on their way into a context.
struct Minting<'a, D: Driver> {
    device: &'a Device<D>,
    /// New pools, and those of constants that the device has already.
    held: Vec<PoolId>,
    minted: Vec<PoolId>,
    zeroed: bool,
}

impl<D: Driver> Minting<'_, D> {
    fn place(&mut self, delta: &Delta, buffers: &mut CtxBuffers) -> Result<()> {
        self.place_group(&delta.working, MemoryMode::OnDevice, buffers)?;
        self.place_group(&delta.scratch, MemoryMode::Local, buffers)?;
        if delta.constants.is_empty() {
            return Ok(());
        }
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for node in delta.constants.iter() {
            let is_cached = self.device.record().constant(node).is_some();
            (if is_cached { &mut known } else { &mut new }).push(node);
        }
        let group = Group::plan(&new, self.device.limits().plan())?;
        self.place_group(&group, MemoryMode::Constant, buffers)?;
        if self.zeroed {
            // New constants are filled now, with zeros; otherwise whoever fills them shares them.
            for node in new {
                if let Some(loc) = buffers.get(node) {
                    self.device.share(node, loc);
                }
            }
        }
        let mut record = self.device.record();
        for node in known {
            if let Some(loc) = record.constant(node) {
                record.hold(loc.pool_id);
                self.held.push(loc.pool_id);
                buffers.insert(node.clone(), loc);
            }
        }
        Ok(())
    }

    fn place_group(&mut self, group: &Group, mode: MemoryMode, buffers: &mut CtxBuffers) -> Result<()> {
        if group.segment_sizes_bytes.is_empty() {
            return Ok(());
        }
        let alignment_bytes = self.device.limits().alignment_bytes;
        let mut pools = Vec::with_capacity(group.segment_sizes_bytes.len());
        for (segment, &size_bytes) in group.segment_sizes_bytes.iter().enumerate() {
            let pool_id = self.device.record().mint_pool_id()?;
            self.minted.push(pool_id);
            alloc_pool(self.device, pool_id, size_bytes, alignment_bytes, Some(mode))?;
            self.held.push(pool_id);
            pools.push(pool_id);
            self.device.record().settle(pool_id, &group.layout, segment as u32);
            if self.zeroed && mode != MemoryMode::Local {
                D::clear_recycled(self.device.runner(), pool_id)?;
            }
        }
        if mode != MemoryMode::Local {
            buffers.push(Layer::new(group.layout.clone(), pools));
        }
        Ok(())
    }

    fn roll_back(self, first: PoolId) {
        for &pool_id in &self.held {
            // New pools were just allocated; those of constants are let go of.
            let free = self.device.record().release(pool_id) || self.minted.contains(&pool_id);
            if free {
                let _ = free_pool(self.device, pool_id);
            }
        }
        self.device.record().return_pool_ids(first, self.minted.len() as u32);
    }
}
