//! The `gpu` driver: one device with its queue, through wgpu natively and the browser's WebGPU on the web.
//!
//! Slabs are ranges of a few large buffers, the heaps. Work is recorded as plain tasks and handed to the
//! queue in batches; a batch settles when its work is done and its error scope came back clean.

mod builtin;
mod compact;
mod encode;
pub mod event;
mod heap_gate;
mod heaps;
mod hold;
mod kernel;
mod linked;
mod memory;
pub mod open;
mod pack;
mod params;
mod pipelines;
pub(crate) mod platform;
mod progress;
pub mod readback;
mod runner;
mod scope;
mod strided;
mod task;
mod upload;
mod zeros;

use std::future::Future;
use std::sync::Arc;

pub use event::GpuEvent;
pub use open::{GpuDev, LimitsChoice, OpenOptions, PowerPreference};
pub use platform::Buffer as GpuBuffer;
pub use readback::{GpuReadback, GpuStaged};
pub use runner::GpuRunner;

use crate::driver::bytes::Bytes;
use crate::driver::limits::{AdapterInfo, Compaction, DeviceLimits, DriverMemory, RunnerStats};
use crate::driver::maybe_send::BoxFuture;
use crate::driver::{Driver, SlabRef};
use crate::error::{Error, Result};
use crate::node::MemoryMode;
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::strided::Strided;
use crate::wgsl::slots::Slots;
use crate::wgsl::spec::KernelSpec;

/// The driver type: `Device<Gpu>`, `Context<Gpu>`.
#[derive(Clone, Copy, Debug)]
pub struct Gpu;

impl Driver for Gpu {
    const NAME: &'static str = "gpu";
    const FREES_EXPLICITLY: bool = true;
    type Dev = GpuDev;
    type Runner = GpuRunner;
    type Event = GpuEvent;
    type Slab = GpuBuffer;
    type OptimizeCtx = crate::driver::OptimizeCtx;
    type Kernel = kernel::GpuKernel;
    type Linked = linked::GpuLinked;
    type Staged = GpuStaged;
    type Readback = GpuReadback;

    fn set_name(runner: &GpuRunner, name: &str) {
        runner.progress().set_name(name);
    }

    fn limits(dev: &GpuDev) -> &DeviceLimits {
        &dev.limits
    }

    fn adapter(dev: &GpuDev) -> &AdapterInfo {
        &dev.adapter
    }

    fn stats(runner: &GpuRunner) -> RunnerStats {
        runner.stats()
    }

    fn memory(runner: &GpuRunner) -> DriverMemory {
        runner.memory()
    }

    fn alloc_pool(
        runner: &Arc<GpuRunner>,
        pool_id: PoolId,
        size_bytes: u64,
        alignment: u64,
        mode: Option<MemoryMode>,
    ) -> Result<()> {
        runner.alloc_pool(pool_id, size_bytes, alignment, mode)
    }

    fn alloc_fresh(runner: &Arc<GpuRunner>, pool_id: PoolId, size_bytes: u64) -> Result<()> {
        runner.alloc_fresh(pool_id, size_bytes)
    }

    fn write_ahead(runner: &Arc<GpuRunner>, loc: BufferLoc, bytes: &[u8]) -> Result<()> {
        runner.write_ahead(loc, bytes)
    }

    fn clear_recycled(runner: &Arc<GpuRunner>, pool_id: PoolId) -> Result<()> {
        runner.clear_recycled(pool_id)
    }

    fn free_pool(runner: &Arc<GpuRunner>, pool_id: PoolId) -> Result<()> {
        runner.free_pool(pool_id)
    }

    fn trim(runner: &Arc<GpuRunner>) -> Result<u64> {
        runner.trim()
    }

    fn compact(runner: &Arc<GpuRunner>) -> Result<Compaction> {
        runner.compact()
    }

    fn budget_bytes(dev: &GpuDev) -> Option<u64> {
        dev.budget_bytes
    }

    fn memset_zero(runner: &Arc<GpuRunner>, loc: BufferLoc, len_bytes: u64) -> Result<GpuEvent> {
        runner.zero(loc, len_bytes)
    }

    fn resolve_pool(runner: &Arc<GpuRunner>, loc: BufferLoc) -> Result<SlabRef<GpuBuffer>> {
        runner.resolve_pool(loc)
    }

    fn pool_size_bytes(runner: &GpuRunner, pool_id: PoolId) -> Option<u64> {
        runner.pool_size_bytes(pool_id)
    }

    fn upload(runner: &Arc<GpuRunner>, loc: BufferLoc, bytes: Bytes<'_>) -> Result<GpuEvent> {
        runner.upload(loc, bytes)
    }

    fn copy(runner: &Arc<GpuRunner>, src: BufferLoc, dst: BufferLoc, len_bytes: u64) -> Result<GpuEvent> {
        runner.copy(src, dst, len_bytes)
    }

    fn stage(runner: &Arc<GpuRunner>, ranges: &[(BufferLoc, u64)]) -> Result<GpuStaged> {
        runner.stage(ranges)
    }

    fn upload_strided(runner: &Arc<GpuRunner>, loc: BufferLoc, to: &Strided, bytes: Bytes<'_>) -> Result<GpuEvent> {
        runner.upload_strided(loc, to, bytes)
    }

    fn copy_strided(runner: &Arc<GpuRunner>, src: BufferLoc, dst: BufferLoc, moved: &Strided) -> Result<GpuEvent> {
        runner.copy_strided(src, dst, moved)
    }

    fn stage_strided(runner: &Arc<GpuRunner>, loc: BufferLoc, from: &Strided) -> Result<GpuStaged> {
        runner.stage_strided(loc, from)
    }

    fn compile(
        runner: &Arc<GpuRunner>,
        dev: &GpuDev,
        spec: Arc<KernelSpec>,
    ) -> impl Future<Output = Result<kernel::GpuKernel>> {
        kernel::compile(runner.clone(), dev.clone(), spec)
    }

    fn link(
        runner: &Arc<GpuRunner>,
        kernel: &Arc<kernel::GpuKernel>,
        slots: Slots,
    ) -> impl Future<Output = Result<linked::GpuLinked>> {
        linked::link(runner.clone(), kernel.clone(), slots)
    }

    fn explain(linked: &linked::GpuLinked) -> String {
        linked.explain()
    }

    fn run<'l>(
        runner: &Arc<GpuRunner>,
        linked: impl Iterator<Item = &'l linked::GpuLinked>,
        statics: &[i32],
    ) -> Result<GpuEvent> {
        runner.run(linked, statics)
    }

    fn all_work(runner: &Arc<GpuRunner>) -> GpuEvent {
        runner.all_work()
    }

    fn event(runner: &Arc<GpuRunner>, seq: u64) -> GpuEvent {
        GpuEvent::new(runner.clone(), seq)
    }

    fn flush(runner: &Arc<GpuRunner>) -> Result<()> {
        runner.flush()
    }

    fn hold(runner: &Arc<GpuRunner>, until: BoxFuture<Result<()>>) -> Result<GpuEvent> {
        runner.hold(until)
    }

    fn ready(runner: &Arc<GpuRunner>) -> GpuEvent {
        runner.ready()
    }

    fn let_go(runner: &GpuRunner) {
        platform::let_go(runner);
    }

    fn destroy(runner: &Arc<GpuRunner>) {
        runner.destroy();
    }

    fn is_lost(runner: &GpuRunner) -> bool {
        runner.progress().lost().is_some()
    }

    fn lost(runner: &Arc<GpuRunner>) -> BoxFuture<Error> {
        Box::pin(progress::Lost::new(runner.progress().clone()))
    }
}
