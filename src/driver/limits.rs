//! What a device is and can hold, as plain data.

use serde::Serialize;

use crate::slab::plan::PlanLimits;

/// Where tensors start, in bytes: WebGPU's default `minStorageBufferOffsetAlignment`. It is the same on every driver,
/// whatever the adapter would allow, so that locations are the same everywhere.
pub const ALIGNMENT_BYTES: u64 = 256;

/// The limits that planning, compiling and linking respect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceLimits {
    /// The largest slab, in bytes.
    pub segment_cap_bytes: u64,
    /// Where tensors start, in bytes.
    pub alignment_bytes: u64,
    /// Storage bindings of one kernel.
    pub storage_buffers: u32,
    /// Workgroups of a grid, per dimension.
    pub workgroups_per_dimension: u32,
    /// Invocations of one workgroup.
    pub invocations_per_workgroup: u32,
    /// Bytes of workgroup memory.
    pub workgroup_storage_bytes: u32,
    /// Bytes of the parameter block of one kernel.
    pub uniform_binding_bytes: u64,
    /// Whether kernels may use subgroup operations, `subgroup_id` and `num_subgroups` among them.
    pub has_subgroups: bool,
}

impl DeviceLimits {
    /// The part that the segment planner needs.
    pub fn plan(&self) -> PlanLimits {
        PlanLimits { segment_cap_bytes: self.segment_cap_bytes, alignment_bytes: self.alignment_bytes }
    }
}

/// What a device runs on, as its driver reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdapterInfo {
    /// The adapter's name.
    pub name: String,
    /// `vulkan`, `metal`, `dx12`, `webgpu` or `host`.
    pub backend: String,
    /// The system driver's name and version, if it says.
    pub driver: String,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub device_type: String,
}

/// Memory that the driver has taken from the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverMemory {
    /// Bytes of all heaps.
    pub reserved_bytes: u64,
    /// Buffers that hold them.
    pub heap_count: usize,
    /// Bytes of all slabs.
    pub in_use_bytes: u64,
    /// The largest `in_use_bytes` so far.
    pub peak_bytes: u64,
    /// Bytes of staging buffers for uploads and readbacks.
    pub staging_bytes: u64,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Bytes of slabs that were copied to another place.
    pub moved_bytes: u64,
    /// Bytes given back to the system.
    pub freed_bytes: u64,
}

/// Counters of a runner since the device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerStats {
    /// Batches handed to the device.
    pub submissions: u64,
    /// Compute passes.
    pub passes: u64,
    /// Kernels dispatched, the built-in ones included.
    pub dispatches: u64,
    /// Uploads.
    pub uploads: u64,
    /// Copies on the device.
    pub copies: u64,
    /// Ranges zeroed. New nodes are zeroed where their memory was used before, adjacent ones together, and not before
    /// something uses the memory.
    pub zeros: u64,
    /// Ranges read back.
    pub readbacks: u64,
    /// Staging buffers mapped for them.
    pub maps: u64,
    /// GPU buffers created.
    pub buffers_created: u64,
    /// Bind groups created.
    pub bind_groups_created: u64,
    /// Pipelines created.
    pub pipelines_created: u64,
}

impl RunnerStats {
    /// What was counted since those counts were taken: what a step did, for example.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            submissions: self.submissions - earlier.submissions,
            passes: self.passes - earlier.passes,
            dispatches: self.dispatches - earlier.dispatches,
            uploads: self.uploads - earlier.uploads,
            copies: self.copies - earlier.copies,
            zeros: self.zeros - earlier.zeros,
            readbacks: self.readbacks - earlier.readbacks,
            maps: self.maps - earlier.maps,
            buffers_created: self.buffers_created - earlier.buffers_created,
            bind_groups_created: self.bind_groups_created - earlier.bind_groups_created,
            pipelines_created: self.pipelines_created - earlier.pipelines_created,
        }
    }
}
