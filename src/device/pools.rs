//! The slab interface of the signature: allocate, free, zero and resolve a pool of a device.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use crate::device::Device;
use crate::driver::limits::ALIGNMENT_BYTES;
use crate::driver::{Driver, SlabRef};
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::node::MemoryMode;
use crate::slab::loc::{BufferLoc, PoolId, no_such_pool};
use crate::slab::plan::padded_bytes;

/// Allocates the slab of `pool_id`; an existing slab under the id is freed first. `size_bytes` is rounded up to a
/// multiple of 256, `alignment` is in bytes, a power of two. The contents are unspecified until they are written
/// or zeroed. Contexts allocate by themselves; this is for those who place tensors on their own.
///
/// # Errors
/// `LimitExceeded` for what the device can never hold, `OutOfMemory` for what it cannot hold now, `DeviceLost`.
pub fn alloc_pool<D: Driver>(
    device: &Device<D>,
    pool_id: PoolId,
    size_bytes: u64,
    alignment: u64,
    mode: Option<MemoryMode>,
) -> Result<()> {
    let size_bytes = checked_size(pool_id, size_bytes).map_err(|error| error.context(device.name()))?;
    let allocated = D::alloc_pool(device.runner(), pool_id, size_bytes, alignment, mode);
    let mut record = device.record();
    if allocated.is_ok() || D::pool_size_bytes(device.runner(), pool_id).is_none() {
        // What was under the id is gone, also where memory ran out after that.
        record.pool_freed(pool_id);
    }
    allocated.map_err(|error| error.context(device.name()))?;
    record.pool_allocated(pool_id, size_bytes);
    if pool_id == PoolId::MERGE {
        record.vacate_merge_buffer(size_bytes);
    }
    Ok(())
}

static NEXT_PRIVATE: AtomicU32 = AtomicU32::new(PoolId::FIRST_PRIVATE.0);

/// A slab that the crate needs for a while; it goes when this does.
pub(crate) struct PrivatePool<D: Driver> {
    runner: Weak<D::Runner>,
    pool_id: PoolId,
}

impl<D: Driver> PrivatePool<D> {
    /// A slab like any other, or `fresh`: of memory that no recorded work touches, for [`Driver::write_ahead`].
    pub(crate) fn alloc(device: &Device<D>, len_bytes: u64, fresh: bool) -> Result<Self> {
        let pool_id = PoolId(NEXT_PRIVATE.fetch_add(1, Ordering::Relaxed) | PoolId::FIRST_PRIVATE.0);
        let size_bytes = checked_size(PoolId::MERGE, len_bytes)?;
        let runner = device.runner();
        let allocated = if fresh {
            D::alloc_fresh(runner, pool_id, size_bytes)
        } else {
            D::alloc_pool(runner, pool_id, size_bytes, ALIGNMENT_BYTES, None)
        };
        allocated.map_err(|error| error.context(device.name()))?;
        Ok(Self { runner: Arc::downgrade(runner), pool_id })
    }

    pub(crate) fn loc(&self) -> BufferLoc {
        BufferLoc { pool_id: self.pool_id, offset: 0 }
    }
}

impl<D: Driver> Drop for PrivatePool<D> {
    fn drop(&mut self) {
        if let Some(runner) = self.runner.upgrade() {
            // Without its device it is gone already.
            let _ = D::free_pool(&runner, self.pool_id);
        }
    }
}

/// The size of a slab, rounded up: the same on every driver, so that the same ranges are inside everywhere.
fn checked_size(pool_id: PoolId, size_bytes: u64) -> Result<u64> {
    let refused = |what: &str| Error::say(ErrorKind::LimitExceeded, format_args!("pool {pool_id}: {what}"));
    if pool_id >= PoolId::FIRST_PRIVATE {
        let message =
            format_args!("pool id {}: pool ids end before {}; use another", pool_id.0, PoolId::FIRST_PRIVATE.0);
        return Err(Error::say(ErrorKind::LimitExceeded, message));
    }
    padded_bytes(size_bytes, ALIGNMENT_BYTES)
        .ok_or_else(|| refused(&format!("{size_bytes} bytes are more than any device has; ask for less")))
}

/// Frees the slab of `pool_id` and drops its table entry.
///
/// # Errors
/// `Disposed` if there is no such pool.
pub fn free_pool<D: Driver>(device: &Device<D>, pool_id: PoolId) -> Result<()> {
    device.record().pool_freed(pool_id);
    D::free_pool(device.runner(), pool_id).map_err(|error| error.context(device.name()))
}

/// Zeroes exactly the bytes from `offset` to `offset + len_bytes` of a pool; neighbours keep theirs.
///
/// # Errors
/// `Disposed` if there is no such pool, `ShapeMismatch` for a range that leaves it, `DeviceLost`.
pub fn memset_zero<D: Driver>(device: &Device<D>, pool_id: PoolId, offset: u64, len_bytes: u64) -> Result<Event<D>> {
    let loc = BufferLoc { pool_id, offset };
    D::memset_zero(device.runner(), loc, len_bytes).map(Event::new).map_err(|error| error.context(device.name()))
}

/// The driver's slab behind a location, and the offset in it. Valid until the next allocation, freeing or move.
///
/// # Errors
/// `Disposed` if there is no such pool, `ShapeMismatch` for an offset that leaves it.
pub fn resolve_pool<D: Driver>(device: &Device<D>, loc: BufferLoc) -> Result<SlabRef<D::Slab>> {
    D::resolve_pool(device.runner(), loc).map_err(|error| error.context(device.name()))
}

/// The size of a pool's slab, in bytes.
///
/// # Errors
/// `Disposed` if there is no such pool.
pub fn pool_size_bytes<D: Driver>(device: &Device<D>, pool_id: PoolId) -> Result<u64> {
    D::pool_size_bytes(device.runner(), pool_id).ok_or_else(|| no_such_pool(pool_id).context(device.name()))
}
