//! The parameter ring, and the layouts and bind groups that everything shares.
//!
//! Parameter blocks of one batch are gathered here and written to the ring with one write at the flush; since the
//! queue runs in order, each batch may start at the beginning again. Bind groups depend only on the set of heaps, so
//! they are nearly static.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::driver::gpu::heaps::HeapId;

/// The ring: room for a batch of 256-byte blocks, or a quarter of that many kilobyte blocks.
pub(super) const RING_BYTES: u64 = 256 << 10;

/// Layouts by what they depend on.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    heaps: HashMap<Vec<bool>, wgpu::BindGroupLayout>,
    params: HashMap<u64, wgpu::BindGroupLayout>,
}

impl Layouts {
    /// Group 0: one storage binding per heap.
    pub(super) fn heaps(&mut self, device: &wgpu::Device, read_only: &[bool]) -> &wgpu::BindGroupLayout {
        self.heaps.entry(read_only.to_vec()).or_insert_with(|| {
            let entries: Vec<_> = read_only
                .iter()
                .enumerate()
                .map(|(binding, &read_only)| entry(binding, wgpu::BufferBindingType::Storage { read_only }, false, 4))
                .collect();
            let label = format!("wgslab heaps {read_only:?}");
            device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(&label), entries: &entries })
        })
    }

    /// Group 1: the parameter block.
    pub(super) fn params(&mut self, device: &wgpu::Device, slot_bytes: u64) -> &wgpu::BindGroupLayout {
        self.params.entry(slot_bytes).or_insert_with(|| {
            let label = format!("wgslab params of {slot_bytes} bytes");
            device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some(&label),
                entries: &[entry(0, wgpu::BufferBindingType::Uniform, true, slot_bytes)],
            })
        })
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
    groups: HashMap<u64, Arc<wgpu::BindGroup>>,
}

impl ParamRing {
    pub(super) fn new(device: &wgpu::Device) -> Self {
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgslab params"),
            size: RING_BYTES,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Self { buffer, bytes: Vec::with_capacity(RING_BYTES as usize), groups: HashMap::new() }
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
        let Self { buffer, groups, .. } = self;
        let make = || {
            let binding = wgpu::BufferBinding { buffer, offset: 0, size: NonZeroU64::new(slot_bytes) };
            Arc::new(device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("wgslab params"),
                layout: layouts.params(device, slot_bytes),
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(binding) }],
            }))
        };
        groups.entry(slot_bytes).or_insert_with(make).clone()
    }
}

/// Bind groups by the heaps that they bind.
#[derive(Debug, Default)]
pub(super) struct HeapGroups {
    groups: HashMap<Vec<(HeapId, bool)>, Arc<wgpu::BindGroup>>,
}

impl HeapGroups {
    pub(super) fn get(&self, key: &[(HeapId, bool)]) -> Option<Arc<wgpu::BindGroup>> {
        self.groups.get(key).cloned()
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
        let label = format!("wgslab heaps {key:?}");
        let group = Arc::new(device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&label),
            layout: layouts.heaps(device, &read_only),
            entries: &entries,
        }));
        self.groups.insert(key.to_vec(), group.clone());
        group
    }

    /// Drops every bind group that binds that heap.
    pub(super) fn forget(&mut self, heap: HeapId) {
        self.groups.retain(|key, _| key.iter().all(|(id, _)| *id != heap));
    }
}
