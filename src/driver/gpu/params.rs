//! The parameter ring, and the layouts and bind groups that everything shares.
//!
//! Parameter blocks of one batch are gathered here and written to the ring with one write at the flush; since the
//! queue runs in order, each batch may start at the beginning again. Bind groups depend only on the set of heaps, so
//! they are nearly static.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::driver::gpu::heaps::HeapId;

/// The ring: room for a batch of 1,024 blocks of 256 bytes, or fewer of larger ones.
pub(super) const RING_BYTES: u64 = 256 << 10;

/// Layouts by what they depend on. There are a handful of each, so they are searched, not hashed.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    heaps: Vec<(Vec<bool>, wgpu::BindGroupLayout)>,
    params: Vec<(u64, wgpu::BindGroupLayout)>,
}

/// Heaps are bound whole, as words or as vectors of four; none is smaller.
const VECTOR_BYTES: u64 = 16;

impl Layouts {
    /// Group 0: one storage binding per heap.
    pub(super) fn heaps(&mut self, device: &wgpu::Device, read_only: &[bool]) -> &wgpu::BindGroupLayout {
        let known = self.heaps.iter().position(|(key, _)| key == read_only);
        let index = known.unwrap_or_else(|| {
            let entries: Vec<_> = read_only
                .iter()
                .enumerate()
                .map(|(binding, &read_only)| {
                    entry(binding, wgpu::BufferBindingType::Storage { read_only }, false, VECTOR_BYTES)
                })
                .collect();
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some("wgslab heaps"), entries: &entries };
            self.heaps.push((read_only.to_vec(), device.create_bind_group_layout(&descriptor)));
            self.heaps.len() - 1
        });
        &self.heaps[index].1
    }

    /// Group 1: the parameter block.
    pub(super) fn params(&mut self, device: &wgpu::Device, slot_bytes: u64) -> &wgpu::BindGroupLayout {
        let known = self.params.iter().position(|(key, _)| *key == slot_bytes);
        let index = known.unwrap_or_else(|| {
            let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some("wgslab params"),
                entries: &[entry(0, wgpu::BufferBindingType::Uniform, true, slot_bytes)],
            });
            self.params.push((slot_bytes, layout));
            self.params.len() - 1
        });
        &self.params[index].1
    }

    /// The layout of a pipeline.
    pub(super) fn pipeline(
        &mut self,
        device: &wgpu::Device,
        read_only: &[bool],
        slot_bytes: u64,
    ) -> wgpu::PipelineLayout {
        let heaps = self.heaps(device, read_only).clone();
        let params = self.params(device, slot_bytes);
        device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("wgslab pipeline"),
            bind_group_layouts: &[Some(&heaps), Some(params)],
            immediate_size: 0,
        })
    }
}

fn entry(
    binding: usize,
    ty: wgpu::BufferBindingType,
    has_dynamic_offset: bool,
    min_bytes: u64,
) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: NonZeroU64::new(min_bytes) },
        count: None,
    }
}

/// The parameter blocks of the open batch.
#[derive(Debug)]
pub(super) struct ParamRing {
    pub(super) buffer: wgpu::Buffer,
    /// The blocks, as they will be written.
    pub(super) bytes: Vec<u8>,
    groups: Vec<(u64, Arc<wgpu::BindGroup>)>,
}

impl ParamRing {
    pub(super) fn new(device: &wgpu::Device) -> Self {
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgslab params"),
            size: RING_BYTES,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
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
    pub(super) fn group(
        &mut self,
        device: &wgpu::Device,
        layouts: &mut Layouts,
        slot_bytes: u64,
    ) -> Arc<wgpu::BindGroup> {
        if let Some((_, group)) = self.groups.iter().find(|(key, _)| *key == slot_bytes) {
            return group.clone();
        }
        let binding = wgpu::BufferBinding { buffer: &self.buffer, offset: 0, size: NonZeroU64::new(slot_bytes) };
        let group = Arc::new(device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("wgslab params"),
            layout: layouts.params(device, slot_bytes),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(binding) }],
        }));
        self.groups.push((slot_bytes, group.clone()));
        group
    }
}

/// The heaps of a bind group, in binding order, and whether each is read-only.
type GroupKey = Vec<(HeapId, bool)>;

/// Bind groups by the heaps that they bind. Looked up when a routine is linked or resolved, never when it is run.
#[derive(Debug, Default)]
pub(super) struct HeapGroups {
    groups: Vec<(GroupKey, Arc<wgpu::BindGroup>)>,
}

impl HeapGroups {
    pub(super) fn get(&self, key: &[(HeapId, bool)]) -> Option<Arc<wgpu::BindGroup>> {
        self.groups.iter().find(|(known, _)| known == key).map(|(_, group)| group.clone())
    }

    /// Makes the bind group of those heaps, each whole.
    pub(super) fn make(
        &mut self,
        device: &wgpu::Device,
        layouts: &mut Layouts,
        key: &[(HeapId, bool)],
        buffers: &[&wgpu::Buffer],
    ) -> Arc<wgpu::BindGroup> {
        let read_only: Vec<bool> = key.iter().map(|(_, read_only)| *read_only).collect();
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = Arc::new(device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("wgslab heaps"),
            layout: layouts.heaps(device, &read_only),
            entries: &entries,
        }));
        self.groups.push((key.to_vec(), group.clone()));
        group
    }

    /// Drops every bind group that binds that heap.
    pub(super) fn forget(&mut self, heap: HeapId) {
        self.groups.retain(|(key, _)| key.iter().all(|(id, _)| *id != heap));
    }
}
