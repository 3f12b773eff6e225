//! Extending a context: new nodes go, in order, into slabs of their own that the child owns.

use crate::context::{Context, ContextBuilder, CtxBuffers};
use crate::device::Device;
use crate::device::pools::{alloc_pool, free_pool};
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{MemoryMode, TensorNode};
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::plan::{PlanLimits, PlanNode, SegmentPlan, plan_segments};
use crate::sorted_map::SortedMap;

impl<D: Driver> Context<D> {
    /// A child that has `nodes` too, in new slabs: as few as the device's cap allows, working nodes and constants
    /// apart. With `zeroed` they are filled with zeros, else their contents are unspecified.
    ///
    /// A refusal changes nothing: no pool stays, and no later address is another.
    pub(crate) fn extend(&self, nodes: &[&TensorNode], zeroed: bool) -> Result<Context<D>> {
        self.extend_as(self.child(), nodes, zeroed)
    }

    /// As [`Context::extend`], with the other parts of the child as `builder` has them.
    pub(crate) fn extend_as(
        &self,
        builder: ContextBuilder<D>,
        nodes: &[&TensorNode],
        zeroed: bool,
    ) -> Result<Context<D>> {
        self.check_live()?;
        check_absent(self.ctx_buffers(), nodes)?;
        let device = self.device();
        let first = device.next_pool_id();
        let mut delta = Delta { device, held: Vec::new(), places: Vec::new(), minted: Vec::new() };
        let placed = delta.place_all(nodes, zeroed);
        if let Err(error) = placed {
            delta.roll_back(first);
            return Err(error);
        }
        let Delta { held, places, minted, .. } = delta;
        if zeroed {
            // New constants are filled now, with zeros; otherwise whoever fills them shares them.
            places
                .iter()
                .filter(|(_, loc)| minted.contains(&loc.pool_id))
                .for_each(|(node, loc)| device.share(node, *loc));
        }
        let mut buffers = self.ctx_buffers().clone();
        for (node, loc) in places {
            buffers.insert(node.id(), (node, loc));
        }
        Ok(builder.holding(held).ctx_buffers(buffers).build())
    }
}

fn check_absent(buffers: &CtxBuffers, nodes: &[&TensorNode]) -> Result<()> {
    let mut seen = SortedMap::new();
    for node in nodes {
        if let Some((_, loc)) = buffers.get(&node.id()) {
            let message = format!("node {node} is in the context already, at {loc}; write to it with from_host");
            return Err(Error::new(ErrorKind::DuplicateNode, message));
        }
        if seen.insert(node.id(), ()).is_some() {
            let message = format!("node {node} is named twice; name it once");
            return Err(Error::new(ErrorKind::DuplicateNode, message));
        }
    }
    Ok(())
}

fn plan_nodes(nodes: &[&TensorNode], limits: PlanLimits) -> Result<SegmentPlan> {
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let plan_nodes: Vec<_> =
        nodes.iter().zip(&names).map(|(node, name)| PlanNode { name, size_bytes: node.size_bytes() }).collect();
    plan_segments(&plan_nodes, limits)
}

/// Pools and places on their way into a context.
struct Delta<'a, D: Driver> {
    device: &'a Device<D>,
    /// New pools, and those of constants that the device has already.
    held: Vec<PoolId>,
    places: Vec<(TensorNode, BufferLoc)>,
    minted: Vec<PoolId>,
}

impl<D: Driver> Delta<'_, D> {
    fn place_all(&mut self, nodes: &[&TensorNode], zeroed: bool) -> Result<()> {
        let (constants, working): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.mode() == MemoryMode::Constant);
        self.place(&working, MemoryMode::OnDevice, zeroed)?;
        let cached = |node: &&TensorNode| self.device.record().constant(node);
        let (known, new): (Vec<_>, Vec<_>) = constants.into_iter().partition(|node| cached(node).is_some());
        self.place(&new, MemoryMode::Constant, zeroed)?;
        let mut record = self.device.record();
        for node in known {
            if let Some(loc) = record.constant(node) {
                record.hold(loc.pool_id);
                self.held.push(loc.pool_id);
                self.places.push((node.clone(), loc));
            }
        }
        Ok(())
    }

    fn place(&mut self, nodes: &[&TensorNode], mode: MemoryMode, zeroed: bool) -> Result<()> {
        let limits = self.device.limits().plan();
        let plan = plan_nodes(nodes, limits).map_err(|error| error.context(self.device.name()))?;
        let mut segments = Vec::with_capacity(plan.segment_sizes_bytes.len());
        for &size_bytes in &plan.segment_sizes_bytes {
            let pool_id = self.device.record().mint_pool_id()?;
            self.minted.push(pool_id);
            alloc_pool(self.device, pool_id, size_bytes, limits.alignment_bytes, Some(mode))?;
            self.held.push(pool_id);
            segments.push(pool_id);
            if zeroed {
                D::clear_recycled(self.device.runner(), pool_id)?;
            }
        }
        let mut record = self.device.record();
        for (&node, place) in nodes.iter().zip(&plan.places) {
            let loc = BufferLoc { pool_id: segments[place.segment], offset: place.offset };
            record.settle_node(node, loc);
            self.places.push((node.clone(), loc));
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
