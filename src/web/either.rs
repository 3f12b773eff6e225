//! A driver that is one of the two. JavaScript opens either at run time, so the shared layer is compiled once, for this
//! one, instead of once for each, and copies between any two devices once instead of for each pair.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::driver::bytes::Bytes;
use crate::driver::event::DriverEvent;
use crate::driver::gpu::{Gpu, GpuBuffer, GpuDev, GpuEvent, GpuReadback, GpuRunner, GpuStaged};
use crate::driver::host::{Host, HostDev, HostReadback, HostRunner};
use crate::driver::limits::{AdapterInfo, Compaction, DeviceLimits, DriverMemory, RunnerStats};
use crate::driver::maybe_send::BoxFuture;
use crate::driver::{Driver, ReadbackBytes, SlabRef};
use crate::error::{Error, Result};
use crate::node::MemoryMode;
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::strided::Strided;
use crate::wgsl::slots::Slots;
use crate::wgsl::spec::KernelSpec;

/// The driver type of all that JavaScript holds.
#[derive(Clone, Copy, Debug)]
pub struct Either;

/// Something of one of the two drivers.
#[derive(Clone, Debug)]
pub enum Of<G, H> {
    /// Of the gpu driver.
    Gpu(G),
    /// Of the host driver.
    Host(H),
}

/// The runner of either.
pub type EitherRunner = Of<Arc<GpuRunner>, Arc<HostRunner>>;
type Kernel = Of<Arc<<Gpu as Driver>::Kernel>, Arc<<Host as Driver>::Kernel>>;
type Linked = Of<<Gpu as Driver>::Linked, <Host as Driver>::Linked>;

/// A point in the order of either runner. It keeps the whole runner, as the drivers' own events do: work that is held
/// until others are done goes on for as long as somebody can see its outcome.
#[derive(Clone)]
pub struct EitherEvent {
    runner: Arc<EitherRunner>,
    seq: u64,
}

impl EitherEvent {
    fn new(runner: &Arc<EitherRunner>, event: &impl DriverEvent) -> Self {
        Self { runner: runner.clone(), seq: event.seq() }
    }
}

impl fmt::Debug for EitherEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EitherEvent({})", self.seq)
    }
}

impl DriverEvent for EitherEvent {
    type Wait = Kept<Of<<GpuEvent as DriverEvent>::Wait, Result<()>>>;

    fn seq(&self) -> u64 {
        self.seq
    }

    fn precedes_all_on(&self, runner: *const ()) -> bool {
        match &*self.runner {
            Of::Gpu(_) => Arc::as_ptr(&self.runner).cast::<()>() == runner,
            Of::Host(_) => true,
        }
    }

    fn is_done(&self) -> bool {
        match &*self.runner {
            Of::Gpu(runner) => Gpu::event(runner, self.seq).is_done(),
            Of::Host(_) => true,
        }
    }

    fn wait(&self) -> Self::Wait {
        let what = match &*self.runner {
            Of::Gpu(runner) => Of::Gpu(Gpu::event(runner, self.seq).wait()),
            Of::Host(_) => Of::Host(Ok(())),
        };
        Kept { _runner: self.runner.clone(), what }
    }
}

/// A future of work that keeps the whole runner: see [`EitherEvent`].
#[derive(Debug)]
pub struct Kept<T> {
    _runner: Arc<EitherRunner>,
    what: T,
}

impl Future for Kept<Of<<GpuEvent as DriverEvent>::Wait, Result<()>>> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.what {
            Of::Gpu(wait) => Pin::new(wait).poll(cx),
            Of::Host(outcome) => Poll::Ready(outcome.clone()),
        }
    }
}

impl Future for Kept<Of<GpuStaged, <Host as Driver>::Staged>> {
    type Output = Result<EitherReadback>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<EitherReadback>> {
        match &mut self.what {
            Of::Gpu(staged) => Pin::new(staged).poll(cx).map_ok(Of::Gpu),
            Of::Host(staged) => Pin::new(staged).poll(cx).map_ok(Of::Host),
        }
    }
}

/// Bytes that arrived from either.
pub type EitherReadback = Of<GpuReadback, HostReadback>;

impl ReadbackBytes for EitherReadback {
    fn with_bytes(&self, part: usize, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self {
            Of::Gpu(arrived) => arrived.with_bytes(part, read),
            Of::Host(arrived) => arrived.with_bytes(part, read),
        }
    }
}

fn two_drivers() -> Error {
    Error::bug("a kernel of the other driver")
}

/// Runs an expression on whichever runner it is.
macro_rules! on {
    ($runner:expr, $driver:ident, $name:ident => $body:expr) => {
        match &**$runner {
            Of::Gpu($name) => {
                type $driver = Gpu;
                $body
            }
            Of::Host($name) => {
                type $driver = Host;
                $body
            }
        }
    };
}

/// As `on`, for what gives an event.
macro_rules! event_on {
    ($runner:expr, $driver:ident, $name:ident => $body:expr) => {
        on!($runner, $driver, $name => $body.map(|event| EitherEvent::new($runner, &event)))
    };
}

/// As `on`, for what gives a readback.
macro_rules! staged_on {
    ($runner:expr, $driver:ident, $name:ident => $body:expr) => {{
        let _runner = $runner.clone();
        Ok(match &**$runner {
            Of::Gpu($name) => {
                type $driver = Gpu;
                Kept { _runner, what: Of::Gpu($body?) }
            }
            Of::Host($name) => {
                type $driver = Host;
                Kept { _runner, what: Of::Host($body?) }
            }
        })
    }};
}

impl Driver for Either {
    const NAME: &'static str = "either";
    const FREES_EXPLICITLY: bool = Gpu::FREES_EXPLICITLY && Host::FREES_EXPLICITLY;
    type Dev = Of<GpuDev, HostDev>;
    type Runner = EitherRunner;
    type Event = EitherEvent;
    type Slab = Of<GpuBuffer, PoolId>;
    type OptimizeCtx = crate::driver::OptimizeCtx;
    type Kernel = Kernel;
    type Linked = Linked;
    type Staged = Kept<Of<GpuStaged, <Host as Driver>::Staged>>;
    type Readback = EitherReadback;

    fn name(dev: &Self::Dev) -> &'static str {
        match dev {
            Of::Gpu(_) => Gpu::NAME,
            Of::Host(_) => Host::NAME,
        }
    }

    fn set_name(runner: &EitherRunner, name: &str) {
        on!(&runner, D, runner => D::set_name(runner, name));
    }

    fn let_go(runner: &EitherRunner) {
        on!(&runner, D, runner => D::let_go(runner));
    }

    fn limits(dev: &Self::Dev) -> &DeviceLimits {
        match dev {
            Of::Gpu(dev) => Gpu::limits(dev),
            Of::Host(dev) => Host::limits(dev),
        }
    }

    fn adapter(dev: &Self::Dev) -> &AdapterInfo {
        match dev {
            Of::Gpu(dev) => Gpu::adapter(dev),
            Of::Host(dev) => Host::adapter(dev),
        }
    }

    fn stats(runner: &EitherRunner) -> RunnerStats {
        on!(&runner, D, runner => D::stats(runner))
    }

    fn memory(runner: &EitherRunner) -> DriverMemory {
        on!(&runner, D, runner => D::memory(runner))
    }

    fn alloc_pool(
        runner: &Arc<EitherRunner>,
        pool_id: PoolId,
        size_bytes: u64,
        alignment: u64,
        mode: Option<MemoryMode>,
    ) -> Result<()> {
        on!(runner, D, runner => D::alloc_pool(runner, pool_id, size_bytes, alignment, mode))
    }

    fn alloc_fresh(runner: &Arc<EitherRunner>, pool_id: PoolId, size_bytes: u64) -> Result<()> {
        on!(runner, D, runner => D::alloc_fresh(runner, pool_id, size_bytes))
    }

    fn write_ahead(runner: &Arc<EitherRunner>, loc: BufferLoc, bytes: &[u8]) -> Result<()> {
        on!(runner, D, runner => D::write_ahead(runner, loc, bytes))
    }

    fn clear_recycled(runner: &Arc<EitherRunner>, pool_id: PoolId) -> Result<()> {
        on!(runner, D, runner => D::clear_recycled(runner, pool_id))
    }

    fn free_pool(runner: &Arc<EitherRunner>, pool_id: PoolId) -> Result<()> {
        on!(runner, D, runner => D::free_pool(runner, pool_id))
    }

    fn trim(runner: &Arc<EitherRunner>) -> Result<u64> {
        on!(runner, D, runner => D::trim(runner))
    }

    fn compact(runner: &Arc<EitherRunner>) -> Result<Compaction> {
        on!(runner, D, runner => D::compact(runner))
    }

    fn budget_bytes(dev: &Self::Dev) -> Option<u64> {
        match dev {
            Of::Gpu(dev) => Gpu::budget_bytes(dev),
            Of::Host(dev) => Host::budget_bytes(dev),
        }
    }

    fn memset_zero(runner: &Arc<EitherRunner>, loc: BufferLoc, len_bytes: u64) -> Result<EitherEvent> {
        event_on!(runner, D, own => D::memset_zero(own, loc, len_bytes))
    }

    fn resolve_pool(runner: &Arc<EitherRunner>, loc: BufferLoc) -> Result<SlabRef<Self::Slab>> {
        Ok(match &**runner {
            Of::Gpu(runner) => {
                let SlabRef { slab, offset } = Gpu::resolve_pool(runner, loc)?;
                SlabRef { slab: Of::Gpu(slab), offset }
            }
            Of::Host(runner) => {
                let SlabRef { slab, offset } = Host::resolve_pool(runner, loc)?;
                SlabRef { slab: Of::Host(slab), offset }
            }
        })
    }

    fn pool_size_bytes(runner: &EitherRunner, pool_id: PoolId) -> Option<u64> {
        on!(&runner, D, runner => D::pool_size_bytes(runner, pool_id))
    }

    fn upload(runner: &Arc<EitherRunner>, loc: BufferLoc, bytes: Bytes<'_>) -> Result<EitherEvent> {
        event_on!(runner, D, own => D::upload(own, loc, bytes))
    }

    fn copy(runner: &Arc<EitherRunner>, src: BufferLoc, dst: BufferLoc, len_bytes: u64) -> Result<EitherEvent> {
        event_on!(runner, D, own => D::copy(own, src, dst, len_bytes))
    }

    fn stage(runner: &Arc<EitherRunner>, ranges: &[(BufferLoc, u64)]) -> Result<Self::Staged> {
        staged_on!(runner, D, own => D::stage(own, ranges))
    }

    fn upload_strided(
        runner: &Arc<EitherRunner>,
        loc: BufferLoc,
        to: &Strided,
        bytes: Bytes<'_>,
    ) -> Result<EitherEvent> {
        event_on!(runner, D, own => D::upload_strided(own, loc, to, bytes))
    }

    fn copy_strided(
        runner: &Arc<EitherRunner>,
        src: BufferLoc,
        dst: BufferLoc,
        moved: &Strided,
    ) -> Result<EitherEvent> {
        event_on!(runner, D, own => D::copy_strided(own, src, dst, moved))
    }

    fn stage_strided(runner: &Arc<EitherRunner>, loc: BufferLoc, from: &Strided) -> Result<Self::Staged> {
        staged_on!(runner, D, own => D::stage_strided(own, loc, from))
    }

    async fn compile(runner: &Arc<EitherRunner>, dev: &Self::Dev, spec: Arc<KernelSpec>) -> Result<Kernel> {
        match (&**runner, dev) {
            (Of::Gpu(runner), Of::Gpu(dev)) => Gpu::compile(runner, dev, spec).await.map(Arc::new).map(Of::Gpu),
            (Of::Host(runner), Of::Host(dev)) => Host::compile(runner, dev, spec).await.map(Arc::new).map(Of::Host),
            _ => Err(two_drivers()),
        }
    }

    async fn link(runner: &Arc<EitherRunner>, kernel: &Arc<Kernel>, slots: Slots) -> Result<Linked> {
        match (&**runner, &**kernel) {
            (Of::Gpu(runner), Of::Gpu(kernel)) => Gpu::link(runner, kernel, slots).await.map(Of::Gpu),
            (Of::Host(runner), Of::Host(kernel)) => Host::link(runner, kernel, slots).await.map(Of::Host),
            _ => Err(two_drivers()),
        }
    }

    fn explain(linked: &Linked) -> String {
        match linked {
            Of::Gpu(linked) => Gpu::explain(linked),
            Of::Host(linked) => Host::explain(linked),
        }
    }

    fn run<'l>(
        runner: &Arc<EitherRunner>,
        linked: impl Iterator<Item = &'l Linked>,
        statics: &[i32],
    ) -> Result<EitherEvent> {
        // Only kernels of the device's own driver are linked on it.
        Ok(match &**runner {
            Of::Gpu(own) => {
                let linked = linked.filter_map(|linked| if let Of::Gpu(linked) = linked { Some(linked) } else { None });
                EitherEvent::new(runner, &Gpu::run(own, linked, statics)?)
            }
            Of::Host(own) => {
                let linked =
                    linked.filter_map(|linked| if let Of::Host(linked) = linked { Some(linked) } else { None });
                EitherEvent::new(runner, &Host::run(own, linked, statics)?)
            }
        })
    }

    fn all_work(runner: &Arc<EitherRunner>) -> EitherEvent {
        on!(runner, D, own => EitherEvent::new(runner, &D::all_work(own)))
    }

    fn event(runner: &Arc<EitherRunner>, seq: u64) -> EitherEvent {
        EitherEvent { runner: runner.clone(), seq }
    }

    fn flush(runner: &Arc<EitherRunner>) -> Result<()> {
        on!(runner, D, runner => D::flush(runner))
    }

    fn hold(runner: &Arc<EitherRunner>, until: BoxFuture<Result<()>>) -> Result<EitherEvent> {
        event_on!(runner, D, own => D::hold(own, until))
    }

    fn ready(runner: &Arc<EitherRunner>) -> EitherEvent {
        on!(runner, D, own => EitherEvent::new(runner, &D::ready(own)))
    }

    fn destroy(runner: &Arc<EitherRunner>) {
        on!(runner, D, runner => D::destroy(runner));
    }

    fn is_lost(runner: &EitherRunner) -> bool {
        on!(&runner, D, runner => D::is_lost(runner))
    }

    fn lost(runner: &Arc<EitherRunner>) -> BoxFuture<Error> {
        on!(runner, D, runner => D::lost(runner))
    }
}
