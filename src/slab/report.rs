//! The memory report: what is reserved, what is used, what is padding, pool by pool, with the labels of the nodes.

use serde::Serialize;

use crate::slab::loc::PoolId;

/// A node's range in its pool, as a report shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// The node's label.
    pub label: String,
    /// Bytes from the start of the pool.
    pub offset: u64,
    /// Bytes of its elements, without padding.
    pub size_bytes: u64,
}

/// One pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolReport {
    /// The pool's name.
    pub pool_id: PoolId,
    /// Bytes of its slab.
    pub size_bytes: u64,
    /// Bytes of it that no node uses: alignment padding.
    pub padding_bytes: u64,
    /// The nodes in it, in the order in which they were placed.
    pub nodes: Vec<NodeReport>,
}

/// All memory of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryReport {
    /// Bytes taken from the driver: the device's heaps, staging not included.
    pub reserved_bytes: u64,
    /// Buffers that hold them.
    pub heap_count: usize,
    /// Bytes of all slabs.
    pub in_use_bytes: u64,
    /// Bytes of slabs that no node uses.
    pub padding_bytes: u64,
    /// The largest `in_use_bytes` since the device was opened.
    pub peak_bytes: u64,
    /// Bytes of staging buffers for uploads and readbacks.
    pub staging_bytes: u64,
    /// Every pool, by id.
    pub pools: Vec<PoolReport>,
}
