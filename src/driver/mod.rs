//! The seam of the device layer: what a kind of device must be able to do.
//!
//! The shared layer above is generic over [`Driver`]; a driver knows pools and bytes, never contexts. All state lives
//! on the driver's `Runner`, which executes everything in the order in which it was recorded.

pub(crate) mod block;
pub mod bytes;
pub mod event;
pub mod limits;
pub mod maybe_send;
#[cfg(feature = "notation")]
pub(crate) mod optimize_ctx;

pub mod gpu;
pub mod host;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use crate::driver::bytes::Bytes;
use crate::driver::event::DriverEvent;
use crate::driver::limits::{AdapterInfo, Compaction, DeviceLimits, DriverMemory, RunnerStats};
use crate::driver::maybe_send::{BoxFuture, MaybeSend, MaybeSync};
use crate::error::{Error, Result};
use crate::node::MemoryMode;
#[cfg(not(feature = "notation"))]
use crate::node::TensorNode;
use crate::slab::loc::{BufferLoc, PoolId};
use crate::slab::strided::Strided;
use crate::wgsl::slots::Slots;
use crate::wgsl::spec::KernelSpec;

#[cfg(feature = "notation")]
pub use crate::driver::optimize_ctx::OptimizeCtx;

/// Without index notation there are no virtual nodes.
#[cfg(not(feature = "notation"))]
#[derive(Clone, Debug, Default)]
pub struct OptimizeCtx;

#[cfg(not(feature = "notation"))]
impl OptimizeCtx {
    /// The virtual nodes that are known: none.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &TensorNode> {
        [].iter()
    }
}

impl AsRef<OptimizeCtx> for OptimizeCtx {
    fn as_ref(&self) -> &OptimizeCtx {
        self
    }
}

/// One kind of device: `gpu` or `host`.
pub trait Driver: Sized + Debug + 'static {
    /// The driver's name, the first part of a device's name.
    const NAME: &'static str;
    /// Whether [`Driver::free_pool`] gives memory back at once, rather than leaving it to a collector.
    const FREES_EXPLICITLY: bool;
    /// What was opened: identity and limits.
    type Dev: Debug + MaybeSend + MaybeSync;
    /// The FIFO of tasks, with the pool table.
    type Runner: Debug + MaybeSend + MaybeSync;
    /// "The runner has passed this point", with an outcome.
    type Event: DriverEvent;
    /// What backs a pool; private to the driver layer.
    type Slab: Debug + Clone;
    /// The computations of virtual nodes that later compilations may inline.
    type OptimizeCtx: Debug + Clone + Default + From<OptimizeCtx> + AsRef<OptimizeCtx>;
    /// A compiled kernel, free of any context.
    type Kernel: Debug;
    /// A kernel linked to locations.
    type Linked: Debug;
    /// A readback in flight.
    type Staged: Future<Output = Result<Self::Readback>> + Debug + MaybeSend;
    /// Bytes that arrived from slabs.
    type Readback: ReadbackBytes;

    /// The name of the driver of that device, where one type stands for several.
    fn name(_dev: &Self::Dev) -> &'static str {
        Self::NAME
    }
    /// Tells the runner the name of the device that it belongs to, for its messages.
    fn set_name(runner: &Self::Runner, name: &str);
    /// The limits that planning and linking respect.
    fn limits(dev: &Self::Dev) -> &DeviceLimits;
    /// What the device runs on.
    fn adapter(dev: &Self::Dev) -> &AdapterInfo;
    /// Counters since the device was opened.
    fn stats(runner: &Self::Runner) -> RunnerStats;
    /// What the driver has taken from the system.
    fn memory(runner: &Self::Runner) -> DriverMemory;

    /// Allocates the slab of `pool_id`; an existing slab under the id is freed first. The contents are unspecified:
    /// see [`Driver::clear_recycled`].
    fn alloc_pool(
        runner: &Arc<Self::Runner>,
        pool_id: PoolId,
        size_bytes: u64,
        alignment: u64,
        mode: Option<MemoryMode>,
    ) -> Result<()>;
    /// Allocates the slab of `pool_id` in memory that no work has touched, recorded or done: what
    /// [`Driver::write_ahead`] can write to. It never moves.
    fn alloc_fresh(runner: &Arc<Self::Runner>, pool_id: PoolId, size_bytes: u64) -> Result<()>;
    /// Writes bytes to such a slab, ahead of all work that is recorded and not started. `loc` is at a multiple of 4;
    /// the bytes up to the next multiple of 4 behind the end are zeroed.
    fn write_ahead(runner: &Arc<Self::Runner>, loc: BufferLoc, bytes: &[u8]) -> Result<()>;
    /// Zeroes what is not known to be zero of a pool that was just allocated and not yet written; a driver may put that
    /// off until the pool's memory is used.
    fn clear_recycled(runner: &Arc<Self::Runner>, pool_id: PoolId) -> Result<()>;
    /// Frees the slab and drops its table entry.
    fn free_pool(runner: &Arc<Self::Runner>, pool_id: PoolId) -> Result<()>;
    /// Gives everything back to the system that holds no slab; gives the bytes.
    fn trim(runner: &Arc<Self::Runner>) -> Result<u64>;
    /// Moves slabs together, so that fewer buffers hold them; every location stays as it is.
    fn compact(runner: &Arc<Self::Runner>) -> Result<Compaction>;
    /// What all slabs together may take, in bytes, if there is a bound.
    fn budget_bytes(dev: &Self::Dev) -> Option<u64>;
    /// Zeroes exactly those bytes.
    fn memset_zero(runner: &Arc<Self::Runner>, loc: BufferLoc, len_bytes: u64) -> Result<Self::Event>;
    /// The slab of a location, and the offset in it.
    fn resolve_pool(runner: &Arc<Self::Runner>, loc: BufferLoc) -> Result<SlabRef<Self::Slab>>;
    /// The size of a pool's slab, in bytes; `None` if there is no such pool.
    fn pool_size_bytes(runner: &Self::Runner, pool_id: PoolId) -> Option<u64>;

    /// Writes exactly those bytes, seen by what is recorded later and by nothing recorded before.
    fn upload(runner: &Arc<Self::Runner>, loc: BufferLoc, bytes: Bytes<'_>) -> Result<Self::Event>;
    /// Copies exactly those bytes; the ranges may overlap.
    fn copy(runner: &Arc<Self::Runner>, src: BufferLoc, dst: BufferLoc, len_bytes: u64) -> Result<Self::Event>;
    /// Starts reading ranges back; they arrive together.
    fn stage(runner: &Arc<Self::Runner>, ranges: &[(BufferLoc, u64)]) -> Result<Self::Staged>;
    /// Writes a row of as many bytes as `to` moves to its places from `loc` on, ordered as [`Driver::upload`].
    fn upload_strided(
        runner: &Arc<Self::Runner>,
        loc: BufferLoc,
        to: &Strided,
        bytes: Bytes<'_>,
    ) -> Result<Self::Event>;
    /// Moves bytes from places to places as if at once. No byte may have two sources.
    fn copy_strided(runner: &Arc<Self::Runner>, src: BufferLoc, dst: BufferLoc, moved: &Strided)
    -> Result<Self::Event>;
    /// Starts reading the places that `from` moves, from `loc` on; they arrive as one part, in the order of a row.
    fn stage_strided(runner: &Arc<Self::Runner>, loc: BufferLoc, from: &Strided) -> Result<Self::Staged>;

    /// Compiles a raw kernel.
    fn compile(
        runner: &Arc<Self::Runner>,
        dev: &Self::Dev,
        spec: Arc<KernelSpec>,
    ) -> impl Future<Output = Result<Self::Kernel>>;
    /// Links a kernel to where the tensors of its spec are. What was linked before with the same table costs nothing for
    /// each of them.
    fn link(
        runner: &Arc<Self::Runner>,
        kernel: &Arc<Self::Kernel>,
        slots: Slots,
    ) -> impl Future<Output = Result<Self::Linked>>;
    /// How a linked kernel binds its memory, and why.
    fn explain(linked: &Self::Linked) -> String;
    /// Records one run of kernels, one after the other, with nothing else in between.
    fn run<'l>(
        runner: &Arc<Self::Runner>,
        linked: impl Iterator<Item = &'l Self::Linked>,
        statics: &[i32],
    ) -> Result<Self::Event>;

    /// The event of everything recorded so far.
    fn all_work(runner: &Arc<Self::Runner>) -> Self::Event;
    /// The event with that sequence number, as [`DriverEvent::seq`] gave it.
    fn event(runner: &Arc<Self::Runner>, seq: u64) -> Self::Event;
    /// Hands everything recorded so far to the device.
    fn flush(runner: &Arc<Self::Runner>) -> Result<()>;
    /// Nothing recorded from here on starts before `until` is ready; if it fails, everything from here on does. What it
    /// waits for must not be recorded later on this runner. Gives the event of the point itself.
    fn hold(runner: &Arc<Self::Runner>, until: BoxFuture<Result<()>>) -> Result<Self::Event>;
    /// An event before which it is unwise to record more work, so that queued work stays bounded.
    fn ready(runner: &Arc<Self::Runner>) -> Self::Event;
    /// The device's last handle goes: the runner must not be kept by threads of its own.
    fn let_go(_runner: &Self::Runner) {}
    /// Destroys the device: whatever is pending settles with an error.
    fn destroy(runner: &Arc<Self::Runner>);
    /// Whether the device is lost.
    fn is_lost(runner: &Self::Runner) -> bool;
    /// Resolves with the cause when the device is lost.
    fn lost(runner: &Arc<Self::Runner>) -> BoxFuture<Error>;
}

/// Bytes that arrived from slabs, one part per range asked for.
pub trait ReadbackBytes: Debug + MaybeSend {
    /// Shows the bytes of one part to `read`, and gives what that gives. On the web this copies the part into wasm memory.
    fn with_bytes(&self, part: usize, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// A pool's slab, and where in it a location lies.
#[derive(Clone, Debug)]
pub struct SlabRef<S> {
    /// The driver's slab.
    pub slab: S,
    /// Bytes from the start of the driver's slab object.
    pub offset: u64,
}
