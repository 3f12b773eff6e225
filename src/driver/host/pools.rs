//! The slabs of the host driver.

use crate::driver::limits::DriverMemory;
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::{BufferLoc, PoolId, bad_alignment, check_range, no_such_pool};
use crate::slab::strided::Strided;
use crate::sorted_map::SortedMap;

/// Slabs by pool.
#[derive(Debug, Default)]
pub(super) struct Pools {
    slabs: SortedMap<PoolId, Vec<u8>>,
    peak_bytes: u64,
    budget_bytes: Option<u64>,
}

impl Pools {
    pub(super) fn set_budget(&mut self, budget_bytes: Option<u64>) {
        self.budget_bytes = budget_bytes;
    }

    pub(super) fn alloc(&mut self, pool_id: PoolId, size_bytes: u64, alignment: u64) -> Result<()> {
        if !alignment.is_power_of_two() {
            return Err(bad_alignment(pool_id, alignment));
        }
        let used = self.in_use_bytes() - self.size_bytes(pool_id).unwrap_or(0);
        if let Some(budget) = self.budget_bytes.filter(|budget| used.saturating_add(size_bytes) > *budget) {
            let message = format_args!(
                "pool {pool_id}: a slab of {size_bytes} bytes beside the {used} in use would exceed the budget of {budget}; \
                 finalize contexts, or raise memory_budget_bytes"
            );
            return Err(Error::say(ErrorKind::OutOfMemory, message));
        }
        let mut slab = Vec::new();
        let len = usize::try_from(size_bytes).ok();
        if len.is_none_or(|len| slab.try_reserve_exact(len).is_err()) {
            let message = format_args!(
                "pool {pool_id}: the host has no {size_bytes} bytes left; finalize contexts and try again"
            );
            return Err(Error::say(ErrorKind::OutOfMemory, message));
        }
        slab.resize(size_bytes as usize, 0);
        self.slabs.insert(pool_id, slab);
        self.peak_bytes = self.peak_bytes.max(self.in_use_bytes());
        Ok(())
    }

    pub(super) fn free(&mut self, pool_id: PoolId) -> Result<()> {
        self.slabs.remove(&pool_id).map(drop).ok_or_else(|| no_such_pool(pool_id))
    }

    pub(super) fn size_bytes(&self, pool_id: PoolId) -> Option<u64> {
        self.slabs.get(&pool_id).map(|slab| slab.len() as u64)
    }

    fn in_use_bytes(&self) -> u64 {
        self.slabs.values().map(|slab| slab.len() as u64).sum()
    }

    pub(super) fn memory(&self) -> DriverMemory {
        let in_use_bytes = self.in_use_bytes();
        DriverMemory {
            reserved_bytes: in_use_bytes,
            heap_count: self.slabs.len(),
            in_use_bytes,
            peak_bytes: self.peak_bytes,
            staging_bytes: 0,
        }
    }

    pub(super) fn range(&self, loc: BufferLoc, len: u64) -> Result<&[u8]> {
        let slab = self.slabs.get(&loc.pool_id).ok_or_else(|| no_such_pool(loc.pool_id))?;
        check_range(loc, len, slab.len() as u64)?;
        Ok(&slab[loc.offset as usize..(loc.offset + len) as usize])
    }

    pub(super) fn range_mut(&mut self, loc: BufferLoc, len: u64) -> Result<&mut [u8]> {
        let slab = self.slabs.get_mut(&loc.pool_id).ok_or_else(|| no_such_pool(loc.pool_id))?;
        check_range(loc, len, slab.len() as u64)?;
        Ok(&mut slab[loc.offset as usize..(loc.offset + len) as usize])
    }

    pub(super) fn copy(&mut self, src: BufferLoc, dst: BufferLoc, len: u64) -> Result<()> {
        if src.pool_id == dst.pool_id {
            self.range(src, len)?;
            self.range(dst, len)?;
            if let Some(slab) = self.slabs.get_mut(&src.pool_id) {
                slab.copy_within(src.offset as usize..(src.offset + len) as usize, dst.offset as usize);
            }
            return Ok(());
        }
        let bytes = self.range(src, len)?.to_vec();
        self.range_mut(dst, len)?.copy_from_slice(&bytes);
        Ok(())
    }

    /// The places that `moved` takes bytes from, as a row.
    pub(super) fn gather(&self, loc: BufferLoc, moved: &Strided) -> Result<Vec<u8>> {
        let range = self.range(loc, moved.src_reach())?;
        let mut row = Vec::with_capacity(moved.len_bytes() as usize);
        moved.each_run(&mut |src, _| {
            row.extend_from_slice(&range[src as usize..(src + moved.run_bytes) as usize]);
            Ok(())
        })?;
        Ok(row)
    }

    /// Puts a row at the places that `moved` takes bytes to.
    pub(super) fn scatter(&mut self, loc: BufferLoc, moved: &Strided, row: &[u8]) -> Result<()> {
        let range = self.range_mut(loc, moved.dst_reach())?;
        let mut rest = row;
        moved.each_run(&mut |_, dst| {
            let Some((run, after)) = rest.split_at_checked(moved.run_bytes as usize) else {
                return Err(Error::bug(format_args!("a row of {} bytes is shorter than its block", row.len())));
            };
            range[dst as usize..dst as usize + run.len()].copy_from_slice(run);
            rest = after;
            Ok(())
        })
    }
}
