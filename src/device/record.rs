//! What the shared layer keeps of a device: pool ids, who lives where, and who wrote last.

use crate::node::{NodeId, TensorNode};
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::report::{NodeReport, PoolReport};
use crate::sorted_map::SortedMap;

/// A pool as the shared layer sees it.
#[derive(Debug)]
struct Pool {
    size_bytes: u64,
    residents: Vec<(TensorNode, u64)>,
}

/// The mutable part of the device record.
#[derive(Debug)]
pub(crate) struct Record {
    pub(super) next_pool_id: PoolId,
    pub(super) merge_buffer: Option<(TensorNode, BufferLoc)>,
    pub(super) merge_buffer_capacity: u64,
    /// The last writer of each node, by sequence number. Entries go when the node's pool does.
    pub(super) updating_for: SortedMap<NodeId, u64>,
    pub(super) updating_for_merge_buffer: Option<u64>,
    pub(super) constant_buffer_cache: SortedMap<NodeId, BufferLoc>,
    pools: SortedMap<PoolId, Pool>,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            next_pool_id: PoolId::FIRST,
            merge_buffer: None,
            merge_buffer_capacity: 0,
            updating_for: SortedMap::new(),
            updating_for_merge_buffer: None,
            constant_buffer_cache: SortedMap::new(),
            pools: SortedMap::new(),
        }
    }

    /// Takes the next pool id.
    pub(crate) fn mint_pool_id(&mut self) -> PoolId {
        let id = self.next_pool_id;
        self.next_pool_id = PoolId(id.0 + 1);
        id
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
        self.pools.insert(pool_id, Pool { size_bytes, residents: Vec::new() });
    }

    pub(super) fn pool_freed(&mut self, pool_id: PoolId) {
        if let Some(pool) = self.pools.remove(&pool_id) {
            for (node, _) in &pool.residents {
                self.updating_for.remove(&node.id());
            }
        }
    }

    /// Notes that a node lives in a pool.
    pub(crate) fn settle_node(&mut self, node: &TensorNode, loc: BufferLoc) {
        if let Some(pool) = self.pools.get_mut(&loc.pool_id) {
            pool.residents.push((node.clone(), loc.offset));
        }
    }

    pub(super) fn pool_reports(&self) -> Vec<PoolReport> {
        self.pools.iter().map(|(&pool_id, pool)| pool.report(pool_id)).collect()
    }
}

impl Pool {
    fn report(&self, pool_id: PoolId) -> PoolReport {
        let nodes: Vec<_> = self
            .residents
            .iter()
            .map(|(node, offset)| NodeReport {
                label: node.label().to_owned(),
                offset: *offset,
                size_bytes: node.size_bytes(),
            })
            .collect();
        // A pool made by hand has no known residents, and so no padding.
        let used: u64 = nodes.iter().map(|node| node.size_bytes).sum();
        let padding_bytes = if nodes.is_empty() { 0 } else { self.size_bytes.saturating_sub(used) };
        PoolReport { pool_id, size_bytes: self.size_bytes, padding_bytes, nodes }
    }
}
