//! Staging buffers for large uploads, kept mapped between uses: wgpu's own staging is new memory for each write, and
//! spends most of its time on page faults (16 MiB: 9 ms of 11).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::platform::Device;

/// Uploads from this size on go through staging buffers.
pub(in crate::driver::gpu) const STAGED_UPLOAD_BYTES: Option<u64> = Some(512 << 10);
/// The size of a staging buffer, and the largest piece of an upload.
pub(in crate::driver::gpu) const UPLOAD_PIECE_BYTES: u64 = 4 << 20;
/// Staging buffers of a device.
const MAX_BUFFERS: u64 = 16;

/// The staging buffers of a device.
#[derive(Debug, Default)]
pub(in crate::driver::gpu) struct UploadStaging {
    count: AtomicU64,
    /// Mapped, to be filled.
    idle: Arc<Mutex<Vec<Arc<wgpu::Buffer>>>>,
    /// Filled, in the open batch.
    filled: Mutex<Vec<Arc<wgpu::Buffer>>>,
}

impl UploadStaging {
    /// A buffer that holds `bytes[start..start + len]`; `None` while all are in use.
    pub(in crate::driver::gpu) fn fill(
        &self,
        device: &Device,
        bytes: Bytes<'_>,
        start: u64,
        len: u64,
    ) -> Option<Arc<wgpu::Buffer>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = idle.or_else(|| self.make(device))?;
        let Bytes::Slice(slice) = bytes;
        let mut view = buffer.get_mapped_range_mut(..len).ok()?;
        view.copy_from_slice(&slice[start as usize..(start + len) as usize]);
        drop(view);
        buffer.unmap();
        self.filled.lock().unwrap_or_else(PoisonError::into_inner).push(buffer.clone());
        Some(buffer)
    }

    fn make(&self, device: &Device) -> Option<Arc<wgpu::Buffer>> {
        if self.count.load(Ordering::Relaxed) >= MAX_BUFFERS {
            return None;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgslab upload staging"),
            size: UPLOAD_PIECE_BYTES,
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        })))
    }

    /// Maps the buffers of the batch that just went to the queue again, when it is done.
    pub(in crate::driver::gpu) fn recycle(&self) {
        let filled = std::mem::take(&mut *self.filled.lock().unwrap_or_else(PoisonError::into_inner));
        for buffer in filled {
            let (idle, mapped) = (self.idle.clone(), buffer.clone());
            buffer.map_async(wgpu::MapMode::Write, .., move |outcome| {
                // A failure is a lost device; then nobody fills buffers any more.
                if outcome.is_ok() {
                    idle.lock().unwrap_or_else(PoisonError::into_inner).push(mapped);
                }
            });
        }
    }

    /// Lets go of the idle buffers.
    pub(in crate::driver::gpu) fn trim(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        self.count.fetch_sub(idle.len() as u64, Ordering::Relaxed);
    }

    /// Bytes of all staging buffers.
    pub(in crate::driver::gpu) fn bytes(&self) -> u64 {
        self.count.load(Ordering::Relaxed) * UPLOAD_PIECE_BYTES
    }
}
