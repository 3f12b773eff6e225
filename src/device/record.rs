//! What the shared layer keeps of a device: pool ids, who lives where, and who wrote last.

use std::sync::Arc;

#[cfg(feature = "notation")]
use crate::device::Tuned;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{NodeId, TensorNode};
use crate::slab::layout::Layout;
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::report::{NodeReport, PoolReport};
use crate::sorted_map::SortedMap;

/// A pool as the shared layer sees it.
#[derive(Debug)]
struct Pool {
    size_bytes: u64,
    /// The nodes in it: those of its segment of a layout. A pool made by hand has none that anybody knows of.
    residents: Option<(Arc<Layout>, u32)>,
    /// Contexts that keep it: the one that minted it, those with views into it, and the cache for each constant in it.
    holders: u32,
}

/// The mutable part of the device record.
#[derive(Debug)]
pub(crate) struct Record {
    pub(super) next_pool_id: PoolId,
    pub(super) merge_buffer: Option<(TensorNode, BufferLoc)>,
    pub(super) merge_buffer_capacity: u64,
    /// Counts the tenancies of the merge buffer, so that a slow one knows whether it is still its own.
    pub(super) merge_tenancy: u64,
    /// The last writer of each node, by sequence number. Entries go when the node's pool does.
    pub(super) updating_for: SortedMap<NodeId, u64>,
    pub(super) updating_for_merge_buffer: Option<u64>,
    pub(super) constant_buffer_cache: SortedMap<NodeId, BufferLoc>,
    pools: SortedMap<PoolId, Pool>,
    #[cfg(feature = "notation")]
    pub(crate) tuned: Tuned,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            next_pool_id: PoolId::FIRST,
            merge_buffer: None,
            merge_buffer_capacity: 0,
            merge_tenancy: 0,
            updating_for: SortedMap::new(),
            updating_for_merge_buffer: None,
            constant_buffer_cache: SortedMap::new(),
            pools: SortedMap::new(),
            #[cfg(feature = "notation")]
            tuned: Tuned::default(),
        }
    }

    /// Takes the next pool id.
    pub(crate) fn mint_pool_id(&mut self) -> Result<PoolId> {
        let id = self.next_pool_id;
        if id >= PoolId::FIRST_PRIVATE {
            let count = PoolId::FIRST_PRIVATE.0;
            let message = format_args!(
                "the device has given out all of its {count} pool ids, which are never reused; open a new one"
            );
            return Err(Error::say(ErrorKind::LimitExceeded, message));
        }
        self.next_pool_id = PoolId(id.0 + 1);
        Ok(id)
    }

    /// Gives back the `count` ids from `first` on, after a refused allocation, so that a refusal changes no later
    /// address; unless somebody else has taken ids in the meantime.
    pub(crate) fn return_pool_ids(&mut self, first: PoolId, count: u32) {
        if self.next_pool_id == PoolId(first.0 + count) {
            self.next_pool_id = first;
        }
    }

    pub(super) fn pool_allocated(&mut self, pool_id: PoolId, size_bytes: u64) {
        self.next_pool_id = self.next_pool_id.max(PoolId(pool_id.0.saturating_add(1)));
        self.pools.insert(pool_id, Pool { size_bytes, residents: None, holders: 1 });
    }

    pub(super) fn pool_freed(&mut self, pool_id: PoolId) {
        if pool_id == PoolId::MERGE {
            self.vacate_merge_buffer(0);
        }
        if let Some(pool) = self.pools.remove(&pool_id) {
            self.forget_writers(&pool);
            self.constant_buffer_cache.retain(|_, loc| loc.pool_id != pool_id);
        }
    }

    fn forget_writers(&mut self, pool: &Pool) {
        let Some((layout, segment)) = &pool.residents else { return };
        if layout.len() > self.updating_for.len() {
            let is_in = |node: NodeId| layout.get(node).is_some_and(|resident| resident.segment == *segment);
            self.updating_for.retain(|node, _| !is_in(*node));
        } else {
            for resident in layout.iter().filter(|resident| resident.segment == *segment) {
                self.updating_for.remove(&resident.node.id());
            }
        }
    }

    /// The merge buffer was made anew: nobody is in it.
    pub(super) fn vacate_merge_buffer(&mut self, capacity: u64) {
        self.merge_buffer = None;
        self.merge_buffer_capacity = capacity;
        self.merge_tenancy += 1;
    }

    /// Keeps a pool, on behalf of a context or of the cache of constants.
    pub(crate) fn hold(&mut self, pool_id: PoolId) {
        if let Some(pool) = self.pools.get_mut(&pool_id) {
            pool.holders += 1;
        }
    }

    /// Lets go of a pool. True when nobody keeps it any more: then it must be freed.
    pub(crate) fn release(&mut self, pool_id: PoolId) -> bool {
        self.pools.get_mut(&pool_id).is_some_and(|pool| {
            pool.holders = pool.holders.saturating_sub(1);
            pool.holders == 0
        })
    }

    /// Where the device has that constant already.
    pub(crate) fn constant(&self, node: &TensorNode) -> Option<BufferLoc> {
        self.constant_buffer_cache.get(&node.id()).copied()
    }

    /// Keeps a constant, which has its bytes, for all contexts of the device; unless another thread was first.
    pub(super) fn cache_constant(&mut self, node: &TensorNode, loc: BufferLoc) {
        if !self.constant_buffer_cache.contains_key(&node.id()) {
            self.constant_buffer_cache.insert(node.id(), loc);
            self.hold(loc.pool_id);
        }
    }

    /// Takes out the pools that only the cache of constants keeps.
    pub(super) fn take_unused_constants(&mut self) -> Vec<PoolId> {
        let mut cached: SortedMap<PoolId, u32> = SortedMap::new();
        for loc in self.constant_buffer_cache.values() {
            let count = cached.get(&loc.pool_id).copied().unwrap_or(0);
            cached.insert(loc.pool_id, count + 1);
        }
        let unused = |pool_id: &PoolId| {
            self.pools.get(pool_id).is_none_or(|pool| cached.get(pool_id).is_some_and(|count| *count >= pool.holders))
        };
        let mut pools = Vec::new();
        for (pool_id, _) in cached.iter() {
            if unused(pool_id) {
                pools.push(*pool_id);
            }
        }
        self.constant_buffer_cache.retain(|_, loc| !pools.contains(&loc.pool_id));
        pools
    }

    /// Notes that the nodes of a segment of a layout live in a pool.
    pub(crate) fn settle(&mut self, pool_id: PoolId, layout: &Arc<Layout>, segment: u32) {
        if let Some(pool) = self.pools.get_mut(&pool_id) {
            pool.residents = Some((layout.clone(), segment));
        }
    }

    pub(super) fn pool_reports(&self) -> Vec<PoolReport> {
        let mut reports = Vec::new();
        for (pool_id, pool) in self.pools.iter() {
            reports.push(pool.report(*pool_id));
        }
        reports
    }
}

impl Pool {
    fn report(&self, pool_id: PoolId) -> PoolReport {
        let mut nodes: Vec<NodeReport> = Vec::new();
        if let Some((layout, segment)) = &self.residents {
            for resident in layout.iter().filter(|resident| resident.segment == *segment) {
                let (label, offset) = (resident.node.label().to_owned(), resident.offset);
                let place = nodes.iter().rposition(|other| other.offset <= offset).map_or(0, |before| before + 1);
                nodes.insert(place, NodeReport { label, offset, size_bytes: resident.node.size_bytes() });
            }
        }
        // A pool made by hand has no known residents, and so no padding.
        let used: u64 = nodes.iter().map(|node| node.size_bytes).sum();
        let padding_bytes = if nodes.is_empty() { 0 } else { self.size_bytes.saturating_sub(used) };
        PoolReport { pool_id, size_bytes: self.size_bytes, padding_bytes, nodes }
    }
}
