//! The only address in public types: a pool and an offset in it.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// The name of a pool on its device. 0 is the merge buffer's; node pools count from 1 and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct PoolId(pub u32);

impl PoolId {
    /// The pool reserved for the merge buffer.
    pub const MERGE: PoolId = PoolId(0);
    /// The first pool that holds nodes.
    pub const FIRST: PoolId = PoolId(1);
    /// Pool ids from here on are for the crate's own passing needs: they appear in no report, and no address is another for
    /// them.
    pub(crate) const FIRST_PRIVATE: PoolId = PoolId(0xfff0_0000);
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self >= Self::FIRST_PRIVATE {
            // Nobody knows its number; the message says which copy.
            return f.write_str("for bytes on their way");
        }
        write!(f, "p{}", self.0)
    }
}

/// Where a tensor starts: deterministic (the same program has the same locations on every run, driver and browser),
/// comparable, and meaningful in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct BufferLoc {
    /// The pool.
    pub pool_id: PoolId,
    /// Bytes from the start of the pool's slab.
    pub offset: u64,
}

impl BufferLoc {
    /// The location `delta_bytes` further into the same pool: an alias view.
    #[must_use]
    pub fn offset_by(self, delta_bytes: u64) -> Self {
        Self { offset: self.offset + delta_bytes, ..self }
    }
}

impl fmt::Display for BufferLoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.pool_id, self.offset)
    }
}

/// Refuses a range that leaves its pool.
pub(crate) fn check_range(loc: BufferLoc, len_bytes: u64, pool_size_bytes: u64) -> Result<()> {
    if loc.offset.checked_add(len_bytes).is_some_and(|end| end <= pool_size_bytes) {
        return Ok(());
    }
    Err(Error::say(
        ErrorKind::ShapeMismatch,
        format_args!(
            "{len_bytes} bytes at {loc} reach past the {pool_size_bytes} bytes of pool {}; shorten the range",
            loc.pool_id
        ),
    ))
}

/// The error for a pool that is not there.
pub(crate) fn no_such_pool(pool_id: PoolId) -> Error {
    Error::say(
        ErrorKind::Disposed,
        format_args!("pool {pool_id} does not exist: its context was finalized, or it was never allocated"),
    )
}

/// The error for an alignment that is no power of two, or absurd.
pub(crate) fn bad_alignment(pool_id: PoolId, alignment: u64) -> Error {
    let message = format_args!("pool {pool_id}: an alignment of {alignment} bytes is no usable power of two; use 256");
    Error::say(ErrorKind::LimitExceeded, message)
}
