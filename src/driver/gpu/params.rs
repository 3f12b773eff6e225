//! The parameter ring, and the layouts and bind groups that everything shares.
//!
//! Parameter blocks of one batch are gathered here and written to the ring with one write at the flush; since the
//! queue runs in order, each batch may start at the beginning again. Bind groups depend only on the set of heaps, so
//! they are nearly static; those of tensors that have bindings of their own are kept while somebody uses them.

use std::sync::Arc;

use crate::driver::gpu::heaps::HeapId;
use crate::driver::gpu::platform::{BindGroup, BindGroupLayout, Buffer, Device, PipelineLayout, usage};

/// The ring: room for a batch of 1,024 blocks of 256 bytes, or fewer of larger ones.
pub(super) const RING_BYTES: u64 = 256 << 10;

/// Layouts by what they depend on. There are a handful of each, so they are searched, not hashed.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    heaps: Vec<(Vec<bool>, BindGroupLayout)>,
    params: Vec<(u64, BindGroupLayout)>,
}

impl Layouts {
    /// Group 0: one storage binding per heap.
    pub(super) fn heaps(&mut self, device: &Device, read_only: &[bool]) -> &BindGroupLayout {
        let known = self.heaps.iter().position(|(key, _)| key == read_only);
        let index = known.unwrap_or_else(|| {
            self.heaps.push((read_only.to_vec(), device.heaps_layout(read_only)));
            self.heaps.len() - 1
        });
        &self.heaps[index].1
    }

    /// Group 1: the parameter block.
    pub(super) fn params(&mut self, device: &Device, slot_bytes: u64) -> &BindGroupLayout {
        let known = self.params.iter().position(|(key, _)| *key == slot_bytes);
        let index = known.unwrap_or_else(|| {
            self.params.push((slot_bytes, device.params_layout(slot_bytes)));
            self.params.len() - 1
        });
        &self.params[index].1
    }

    /// The layout of a pipeline.
    pub(super) fn pipeline(&mut self, device: &Device, read_only: &[bool], slot_bytes: u64) -> PipelineLayout {
        let heaps = self.heaps(device, read_only).clone();
        device.pipeline_layout(&heaps, self.params(device, slot_bytes))
    }
}

/// The parameter blocks of the open batch.
#[derive(Debug)]
pub(super) struct ParamRing {
    pub(super) buffer: Buffer,
    /// The blocks, as they will be written.
    pub(super) bytes: Vec<u8>,
    groups: Vec<(u64, Arc<BindGroup>)>,
}

impl ParamRing {
    pub(super) fn new(device: &Device) -> Self {
        let buffer = device.create_buffer("wgslab params", RING_BYTES, usage::UNIFORM | usage::COPY_DST);
        Self { buffer, bytes: Vec::with_capacity(RING_BYTES as usize), groups: Vec::new() }
    }

    pub(super) fn has_room(&self, slot_bytes: u64) -> bool {
        self.bytes.len() as u64 + slot_bytes <= RING_BYTES
    }

    /// Appends a block of words, padded to its slot; there must be room. Returns its offset.
    pub(super) fn push(&mut self, words: &[u32], slot_bytes: u64) -> u32 {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(words));
        self.bytes.resize(start + slot_bytes as usize, 0);
        start as u32
    }

    /// The bind group of blocks of that size.
    pub(super) fn group(&mut self, device: &Device, layouts: &mut Layouts, slot_bytes: u64) -> Arc<BindGroup> {
        if let Some((_, group)) = self.groups.iter().find(|(key, _)| *key == slot_bytes) {
            return group.clone();
        }
        let layout = layouts.params(device, slot_bytes);
        let group = Arc::new(device.bind("wgslab params", layout, &[&self.buffer], &[(0, slot_bytes)]));
        self.groups.push((slot_bytes, group.clone()));
        group
    }
}

/// What a bind group binds, in binding order: heaps, whether each is read-only, and ranges of them; none where they are whole.
pub(super) type GroupKey = (Vec<(HeapId, bool)>, Vec<(u64, u64)>);

/// Bind groups from which on those that nobody uses go, before another one of ranges is made: links come and go, and their
/// ranges with them.
const MANY_GROUPS: usize = 64;

/// Bind groups by what they bind. Looked up when a routine is linked or resolved, never when it is run.
#[derive(Debug, Default)]
pub(super) struct HeapGroups {
    groups: Vec<(GroupKey, Arc<BindGroup>)>,
}

impl HeapGroups {
    pub(super) fn get(&self, key: &GroupKey) -> Option<Arc<BindGroup>> {
        self.groups.iter().find(|(known, _)| known == key).map(|(_, group)| group.clone())
    }

    /// Makes the bind group of those heaps.
    pub(super) fn make(
        &mut self,
        device: &Device,
        layouts: &mut Layouts,
        key: GroupKey,
        buffers: &[&Buffer],
    ) -> Arc<BindGroup> {
        if !key.1.is_empty() && self.groups.len() >= MANY_GROUPS {
            self.groups.retain(|((_, ranges), group)| ranges.is_empty() || Arc::strong_count(group) > 1);
        }
        let read_only: Vec<bool> = key.0.iter().map(|(_, read_only)| *read_only).collect();
        let layout = layouts.heaps(device, &read_only);
        let group = Arc::new(device.bind("wgslab heaps", layout, buffers, &key.1));
        self.groups.push((key, group.clone()));
        group
    }

    /// Drops every bind group that binds that heap.
    pub(super) fn forget(&mut self, heap: HeapId) {
        self.groups.retain(|((heaps, _), _)| heaps.iter().all(|(id, _)| *id != heap));
    }
}
