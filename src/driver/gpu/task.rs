//! One thing that the runner will do, as plain data with resolved placements.
//!
//! Placements are resolved when a task is recorded: whatever is freed or moved later is reused only by later tasks.

use std::sync::Arc;

use crate::driver::gpu::heaps::HeapId;
use crate::driver::gpu::platform::{BindGroup, Buffer, Pipeline};

/// A recorded task. Offsets and lengths are bytes, multiples of 4; unaligned edges are dispatches of built-in kernels.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Upload ring, or a staging buffer → heap.
    Upload { heap: HeapId, offset: u64, source: Arc<Buffer>, source_offset: u64, len: u64 },
    /// Zeroes a range of a heap.
    Zero { heap: HeapId, offset: u64, len: u64 },
    /// Copies between two different heaps.
    Copy { src: HeapId, src_offset: u64, dst: HeapId, dst_offset: u64, len: u64 },
    /// Heap → a part of the upload ring, on the way to another place of the same heap.
    Lift { heap: HeapId, offset: u64, target: Arc<Buffer>, target_offset: u64, len: u64 },
    /// Runs a kernel.
    Dispatch(Dispatch),
    /// Heap → staging buffer, to be mapped after the batch.
    Stage { heap: HeapId, offset: u64, len: u64, staging: usize, staging_offset: u64 },
}

/// A kernel with everything that it binds.
#[derive(Clone, Debug)]
pub(super) struct Dispatch {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) heaps: Arc<BindGroup>,
    pub(super) params: Arc<BindGroup>,
    /// Offset of the parameter block in the ring.
    pub(super) params_offset: u32,
    pub(super) grid: [u32; 3],
}
