//! The merge buffer of a device: pool 0, one tenant at a time, grown when needed.

use crate::device::Device;
use crate::device::pools::alloc_pool;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
use crate::slab::loc::{BufferLoc, PoolId};

impl<D: Driver> Device<D> {
    /// Makes the merge buffer at least that large. Growing it ends its tenancy; work that was recorded keeps its place.
    pub(crate) fn reserve_merge_buffer(&self, size_bytes: u64) -> Result<()> {
        if (1..=self.merge_buffer_capacity()).contains(&size_bytes.max(1)) {
            return Ok(());
        }
        alloc_pool(self, PoolId::MERGE, size_bytes, self.limits().alignment_bytes, None)
    }

    /// Notes the tenant of the merge buffer, and the work that puts it there.
    pub(crate) fn set_merge_buffer(&self, node: &TensorNode, seq: u64) {
        let mut record = self.record();
        record.merge_buffer = Some((node.clone(), BufferLoc { pool_id: PoolId::MERGE, offset: 0 }));
        record.merge_tenancy += 1;
        record.updating_for_merge_buffer = Some(seq);
    }

    /// Ends the tenancy of the merge buffer, for somebody who fills it piece by piece; gives the number of the new one.
    pub(crate) fn begin_tenancy(&self) -> u64 {
        let mut record = self.record();
        let capacity = record.merge_buffer_capacity;
        record.vacate_merge_buffer(capacity);
        record.merge_tenancy
    }

    /// Refuses to go on filling the merge buffer after somebody else has used it.
    pub(crate) fn check_tenancy(&self, tenancy: u64, node: &TensorNode) -> Result<()> {
        if self.record().merge_tenancy == tenancy {
            return Ok(());
        }
        let message = format_args!(
            "the merge buffer of {} was used by somebody else while node {node} was on its way there; copy it again",
            self.name()
        );
        Err(Error::say(ErrorKind::MergeMismatch, message))
    }

    /// Refuses to merge a node that is not the tenant.
    pub(crate) fn check_merge_buffer(&self, node: &TensorNode) -> Result<()> {
        let held = self.record().merge_buffer.clone();
        if held.as_ref().is_some_and(|(held, _)| held == node) {
            return Ok(());
        }
        Err(merge_mismatch(self.name(), node, held.as_ref().map(|(held, _)| held)))
    }
}

/// The error of a merge buffer that holds something else.
pub(crate) fn merge_mismatch(device: &str, wanted: &TensorNode, held: Option<&TensorNode>) -> Error {
    let holds = held.map_or_else(|| "nothing".to_owned(), |node| format!("node {node}"));
    let message = format_args!(
        "the merge buffer of {device} holds {holds}, but node {wanted} is to be merged; copy it there first, and link \
         behind that copy"
    );
    Error::say(ErrorKind::MergeMismatch, message)
}
