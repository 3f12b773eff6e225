//! Readbacks: ranges are copied into a staging buffer in the order of the queue; the buffer is mapped once for all the
//! ranges of a batch, and goes back to the pool when the last reader is done with it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use crate::driver::ReadbackBytes;
use crate::driver::gpu::memory::HeapRange;
use crate::driver::gpu::platform::{self, Buffer, Device, Mapped, usage};
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::task::Task;
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::BufferLoc;
use crate::slab::strided::Strided;

/// The smallest staging buffer: many small readbacks share it.
const MIN_STAGING_BYTES: u64 = 64 << 10;
/// Larger staging buffers are not kept.
const MAX_KEPT_BYTES: u64 = 16 << 20;
/// Idle staging buffers kept per size.
const KEPT_PER_SIZE: usize = 4;

/// Idle staging buffers: a handful.
#[derive(Debug, Default)]
pub(super) struct StagingPool {
    idle: Mutex<Vec<Buffer>>,
    bytes: std::sync::atomic::AtomicU64,
}

impl StagingPool {
    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all staging buffers, idle or not.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Lets go of the idle buffers.
    pub(super) fn trim(&self) {
        for buffer in self.lock().drain(..) {
            self.bytes.fetch_sub(buffer.size(), std::sync::atomic::Ordering::Relaxed);
            platform::discard(&buffer);
        }
    }

    fn take(self: &Arc<Self>, device: &Device, needed_bytes: u64, state: &mut State) -> Arc<Staging> {
        let size = needed_bytes.next_power_of_two().max(MIN_STAGING_BYTES);
        let idle = {
            let mut idle = self.lock();
            idle.iter().position(|buffer| buffer.size() == size).map(|index| idle.swap_remove(index))
        };
        let buffer = idle.unwrap_or_else(|| {
            self.bytes.fetch_add(size, std::sync::atomic::Ordering::Relaxed);
            state.stats.buffers_created += 1;
            device.create_buffer(&format!("wgslab staging of {size} bytes"), size, usage::MAP_READ | usage::COPY_DST)
        });
        let inner = Mutex::new(Inner { used_bytes: 0, map: MapState::Open });
        Arc::new(Staging { buffer, inner: Arc::new(inner), pool: self.clone() })
    }

    fn give(&self, buffer: Buffer, usable: bool) {
        let mut idle = self.lock();
        let kept = idle.iter().filter(|kept| kept.size() == buffer.size()).count();
        if usable && buffer.size() <= MAX_KEPT_BYTES && kept < KEPT_PER_SIZE {
            idle.push(buffer);
        } else {
            self.bytes.fetch_sub(buffer.size(), std::sync::atomic::Ordering::Relaxed);
            platform::discard(&buffer);
        }
    }
}

impl Drop for StagingPool {
    fn drop(&mut self) {
        self.lock().iter().for_each(platform::discard);
    }
}

#[derive(Clone, Debug)]
enum MapState {
    /// Ranges are still added.
    Open,
    Pending,
    Mapped(Mapped),
    Failed(String),
}

#[derive(Debug)]
struct Inner {
    used_bytes: u64,
    map: MapState,
}

/// One staging buffer on its way.
#[derive(Debug)]
pub(super) struct Staging {
    buffer: Buffer,
    inner: Arc<Mutex<Inner>>,
    pool: Arc<StagingPool>,
}

impl Staging {
    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a range of the buffer, if there is room.
    fn reserve(&self, len: u64) -> Option<u64> {
        let mut inner = self.lock();
        let start = inner.used_bytes;
        // Mapped ranges start at multiples of 8.
        let end = start + len.next_multiple_of(8);
        (end <= self.buffer.size()).then(|| {
            inner.used_bytes = end;
            start
        })
    }

    /// Maps what was used, after the batch went to the queue.
    pub(super) fn map(&self, progress: &Arc<Progress>) {
        let used = {
            let mut inner = self.lock();
            inner.map = MapState::Pending;
            inner.used_bytes
        };
        let (shared, progress) = (self.inner.clone(), progress.clone());
        platform::map(&self.buffer, used, move |outcome| {
            let map = outcome.map_or_else(MapState::Failed, MapState::Mapped);
            shared.lock().unwrap_or_else(PoisonError::into_inner).map = map;
            progress.wake_all();
        });
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let map = std::mem::replace(&mut self.lock().map, MapState::Pending);
        // A buffer whose mapping is in flight cannot be used again; destroying it ends the mapping.
        let usable = matches!(map, MapState::Mapped(_) | MapState::Open);
        if let MapState::Mapped(mapped) = map {
            mapped.unmap();
        }
        self.pool.give(self.buffer.clone(), usable);
    }
}

/// One range in a staging buffer. `skip` bytes precede it, because copies start at words.
#[derive(Clone, Debug)]
pub(super) struct Part {
    staging: Option<Arc<Staging>>,
    offset: u64,
    skip: u64,
    len: u64,
}

impl GpuRunner {
    pub(super) fn stage(self: &Arc<Self>, ranges: &[(BufferLoc, u64)]) -> Result<GpuStaged> {
        let mut state = self.begin()?;
        let mut parts = Vec::with_capacity(ranges.len());
        for &(loc, len) in ranges {
            let range = self.resolve(&state, loc, len)?;
            parts.push(self.stage_range(&mut state, range, len)?);
        }
        self.staged(state, parts)
    }

    /// Records the copy of one range to staging memory.
    pub(super) fn stage_range(&self, state: &mut State, range: HeapRange, len: u64) -> Result<Part> {
        if len == 0 {
            return Ok(Part { staging: None, offset: 0, skip: 0, len });
        }
        // Heaps end with a guard, so rounding up to words stays inside.
        let skip = range.offset % 4;
        let words_len = (skip + len).next_multiple_of(4);
        let (staging, staging_offset) = self.reserve_staging(state, words_len)?;
        state.touch(range.heap);
        let offset = range.offset - skip;
        state.tasks.push(Task::Stage { heap: range.heap, offset, len: words_len, staging, staging_offset });
        state.stats.readbacks += 1;
        Ok(Part { staging: Some(state.staging[staging].clone()), offset: staging_offset, skip, len })
    }

    /// Records the copies of runs of whole words to staging memory, where they lie together.
    pub(super) fn stage_runs(&self, state: &mut State, range: HeapRange, from: &Strided) -> Result<Part> {
        let len = from.len_bytes();
        let (staging, start) = self.reserve_staging(state, len)?;
        state.touch(range.heap);
        from.each_run(&mut |src, dst| {
            let (offset, staging_offset) = (range.offset + src, start + dst);
            state.tasks.push(Task::Stage { heap: range.heap, offset, len: from.run_bytes, staging, staging_offset });
            Ok(())
        })?;
        state.stats.readbacks += 1;
        Ok(Part { staging: Some(state.staging[staging].clone()), offset: start, skip: 0, len })
    }

    /// The readback of parts that were just recorded.
    pub(super) fn staged(self: &Arc<Self>, mut state: MutexGuard<'_, State>, parts: Vec<Part>) -> Result<GpuStaged> {
        state.advance();
        let seq = state.seq;
        self.recorded(state)?;
        let waiter = self.progress().waiter();
        Ok(GpuStaged { runner: self.clone(), seq, waiter, parts })
    }

    fn reserve_staging(&self, state: &mut State, len: u64) -> Result<(usize, u64)> {
        if let Some(staging) = state.staging.last()
            && let Some(offset) = staging.reserve(len)
        {
            return Ok((state.staging.len() - 1, offset));
        }
        let staging = self.staging_pool.take(&self.dev.device, len, state);
        let offset = staging.reserve(len).ok_or_else(|| Error::bug("a new staging buffer has no room"))?;
        state.staging.push(staging);
        Ok((state.staging.len() - 1, offset))
    }
}

/// A readback in flight.
pub struct GpuStaged {
    runner: Arc<GpuRunner>,
    seq: u64,
    waiter: u64,
    parts: Vec<Part>,
}

impl fmt::Debug for GpuStaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuStaged({}, {} parts)", self.seq, self.parts.len())
    }
}

impl GpuStaged {
    /// The outcome, once it is known: the batch was not refused, and every part is mapped.
    fn outcome(&self) -> Option<Result<()>> {
        let progress = self.runner.progress();
        if let Err(error) = progress.verified_outcome(self.seq)? {
            return Some(Err(error));
        }
        for staging in self.parts.iter().filter_map(|part| part.staging.as_ref()) {
            match &staging.lock().map {
                MapState::Mapped(_) => {}
                MapState::Open | MapState::Pending => return None,
                MapState::Failed(text) => {
                    let message = format_args!("a staging buffer could not be mapped: {text}; read again");
                    return Some(Err(Error::say(ErrorKind::MapFailed, message)));
                }
            }
        }
        Some(Ok(()))
    }
}

impl Future for GpuStaged {
    type Output = Result<GpuReadback>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<GpuReadback>> {
        let ready =
            |outcome: Result<()>, parts: &[Part]| Poll::Ready(outcome.map(|()| GpuReadback { parts: parts.to_vec() }));
        if let Err(error) = self.runner.flush_through(self.seq) {
            return Poll::Ready(Err(error));
        }
        platform::poll(&self.runner.dev.device);
        if let Some(outcome) = self.outcome() {
            return ready(outcome, &self.parts);
        }
        let progress = self.runner.progress();
        if progress.wait(self.seq, self.waiter, cx.waker()) {
            platform::drive(&self.runner);
        }
        match self.outcome() {
            Some(outcome) => ready(outcome, &self.parts),
            None => Poll::Pending,
        }
    }
}

impl Drop for GpuStaged {
    fn drop(&mut self) {
        self.runner.progress().forget(self.waiter);
    }
}

/// Bytes that have arrived. They stay in the staging buffer, which is taken up again when this is dropped.
#[derive(Debug)]
pub struct GpuReadback {
    parts: Vec<Part>,
}

impl GpuReadback {
    /// Where the bytes of one part are: in which mapped buffer, from where on, and how many. `None` if there are none.
    pub(crate) fn part(&self, part: usize) -> Result<Option<(Mapped, u64, u64)>> {
        let Some(part) = self.parts.get(part) else {
            return Err(Error::bug(format!("part {part} of a readback of {}", self.parts.len())));
        };
        let Some(staging) = &part.staging else { return Ok(None) };
        match &staging.lock().map {
            MapState::Mapped(mapped) => Ok(Some((mapped.clone(), part.offset + part.skip, part.len))),
            _ => Err(Error::bug("a readback is read that has not arrived")),
        }
    }
}

impl ReadbackBytes for GpuReadback {
    fn with_bytes(&self, part: usize, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self.part(part)? {
            Some((mapped, start, len)) => mapped.with_bytes(start, len, read),
            None => read(&[]),
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::device::open::open_gpu;
    use crate::driver::gpu::OpenOptions;
    use crate::slab::loc::PoolId;

    /// Nobody but the device's end takes a mapping away, so it is taken away by hand.
    #[test]
    fn a_mapping_that_fails_is_an_error_and_never_bytes() {
        let device = pollster::block_on(open_gpu(OpenOptions::default())).unwrap();
        let runner = device.runner();
        runner.alloc_pool(PoolId(1), 1024, 256, None).unwrap();
        let staged = runner.stage(&[(BufferLoc { pool_id: PoolId(1), offset: 0 }, 16)]).unwrap();
        runner.flush().unwrap();
        staged.parts[0].staging.as_ref().unwrap().buffer.unmap();
        let read = pollster::block_on(staged).and_then(|arrived| arrived.with_bytes(0, &mut |_| Ok(())));
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MapFailed, "{error}");
        assert!(error.to_string().contains("mapped"), "{error}");
    }
}
