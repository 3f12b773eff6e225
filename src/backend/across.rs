//! Copies between devices, of one driver or of two: through the host, asynchronously, in pieces, so that staging stays
//! small and one device reads while the other writes.

use std::sync::{Arc, Weak};

use crate::backend::merge::{Landing, MERGE_LOC};
use crate::context::Context;
use crate::device::Device;
use crate::device::pools::PrivatePool;
use crate::driver::bytes::Bytes;
use crate::driver::event::DriverEvent;
use crate::driver::{Driver, ReadbackBytes};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::node::TensorNode;
use crate::slab::loc::BufferLoc;

/// Bytes of a piece. Two are on their way at a time.
const PIECE_BYTES: u64 = 4 << 20;

/// Bytes on their way off a device, as they are when this is made: what is recorded later does not change them.
struct Outgoing<S: Driver> {
    runner: Arc<S::Runner>,
    from: BufferLoc,
    len_bytes: u64,
    /// Where the next piece to be read starts.
    next: u64,
    staged: Option<S::Staged>,
    /// More than a piece is copied aside, since the pieces are read one by one.
    _aside: Option<PrivatePool<S>>,
}

impl<S: Driver> Outgoing<S> {
    fn new(device: &Device<S>, from: BufferLoc, len_bytes: u64) -> Result<Self> {
        let runner = device.runner().clone();
        let aside = if len_bytes > PIECE_BYTES { Some(PrivatePool::alloc(device, len_bytes, false)?) } else { None };
        let from = match &aside {
            Some(pool) => {
                S::copy(&runner, from, pool.loc(), len_bytes)?;
                pool.loc()
            }
            None => from,
        };
        // An empty node has a piece too: its pool must be there like any other's.
        let next = PIECE_BYTES.min(len_bytes);
        let staged = Some(S::stage(&runner, &[(from, next)])?);
        Ok(Self { runner, from, len_bytes, next, staged, _aside: aside })
    }

    fn stage_next(&mut self) -> Result<()> {
        let len = PIECE_BYTES.min(self.len_bytes - self.next);
        if len > 0 {
            self.staged = Some(S::stage(&self.runner, &[(self.from.offset_by(self.next), len)])?);
            self.next += len;
        }
        Ok(())
    }

    /// The next piece, when it has arrived; the one behind it is on its way then.
    async fn piece(&mut self) -> Result<Option<S::Readback>> {
        let Some(staged) = self.staged.take() else { return Ok(None) };
        self.stage_next()?;
        staged.await.map(Some)
    }
}

/// Records, on the device `to` is on, that bytes of another device come there: what is recorded later waits for them and
/// sees them. The bytes are those that are there now.
pub(crate) fn record_across<D: Driver, S: Driver>(
    device: &Device<D>,
    to: BufferLoc,
    source: &Device<S>,
    from: BufferLoc,
    len_bytes: u64,
) -> Result<D::Event> {
    let mut outgoing = Outgoing::new(source, from, len_bytes)?;
    // They land in memory that no recorded work knows, so it does not matter when.
    let landing = Arc::new(PrivatePool::alloc(device, len_bytes, true)?);
    let (runner, arriving) = (device.runner(), landing.clone());
    let weak: Weak<D::Runner> = Arc::downgrade(runner);
    let name = source.name().to_owned();
    let arrival = async move {
        let named = |error: Error| error.context(format_args!("a copy from {name}"));
        let mut at = arriving.loc();
        while let Some(piece) = outgoing.piece().await.map_err(named)? {
            // Without the device nobody waits for them.
            let Some(runner) = weak.upgrade() else { return Ok(()) };
            let write = &mut |bytes: &[u8]| {
                D::write_ahead(&runner, at, bytes)?;
                at = at.offset_by(bytes.len() as u64);
                Ok(())
            };
            piece.with_bytes(0, write).map_err(named)?;
        }
        Ok(())
    };
    D::hold(runner, Box::pin(arrival))?;
    // On the host driver they have arrived already: the place is kept until it is read.
    D::copy(runner, landing.loc(), to, len_bytes)
}

impl<D: Driver> Context<D> {
    /// Copies `node` from the context `src` of any device to this one, or into the merge buffer of this device. What was
    /// recorded on the other device when this is first polled is seen, and nothing later; awaiting gives the event of the
    /// last piece's arrival here. Until then the node here has some pieces and not others. Staging is a few pieces of
    /// 4 MiB, whatever the size; the other device keeps a larger node aside while it is read.
    ///
    /// # Errors
    /// `UnknownNode`, `Unsupported` for a constant here, `OutOfMemory`, `Disposed`, `DeviceLost` of either device, or the
    /// failure of the work that should have written the node there.
    pub async fn copy_from<S: Driver>(&self, node: &TensorNode, into: Landing, src: &Context<S>) -> Result<Event<D>> {
        let landed = self.landing(node, into);
        let event = self.stream(node, landed, src).await?;
        match into {
            Landing::Node => self.device().wrote(&[node.root().id()], &event),
            Landing::MergeBuffer => self.device().set_merge_buffer(node, event.seq()),
        }
        Ok(event)
    }

    /// Where a node will go, and the tenancy of the merge buffer if it goes there.
    fn landing(&self, node: &TensorNode, into: Landing) -> Result<(BufferLoc, Option<u64>)> {
        if into == Landing::Node {
            return Ok((self.require_writable(node)?, None));
        }
        self.check_live()?;
        self.device().reserve_merge_buffer(node.size_bytes())?;
        Ok((MERGE_LOC, Some(self.device().begin_tenancy())))
    }

    /// A child that has `node` too, with the bytes that it has in the context `src` of any device.
    ///
    /// # Errors
    /// `DuplicateNode` where this context has it; else as [`Context::copy_from`].
    pub async fn init_from_other<S: Driver>(&self, node: &TensorNode, src: &Context<S>) -> Result<Context<D>> {
        let made = src.require(node).and_then(|_| self.extend(&[node], false));
        let child = made.map_err(|error| from(error, node, src))?;
        // A constant that the device has already keeps its bytes.
        if !child.is_shared(node) {
            let event = child.stream(node, child.require(node).map(|to| (to, None)), src).await?;
            child.device().wrote(&[node.root().id()], &event);
            child.device().share(node, child.require(node)?);
        }
        Ok(child)
    }

    /// Copies `node` there piece by piece, as long as the tenancy lasts; gives the event of the last.
    async fn stream<S: Driver>(
        &self,
        node: &TensorNode,
        landed: Result<(BufferLoc, Option<u64>)>,
        src: &Context<S>,
    ) -> Result<Event<D>> {
        let streamed = async {
            let (mut at, tenancy) = landed?;
            let mut outgoing = Outgoing::new(src.device(), src.require(node)?, node.size_bytes())?;
            let runner = self.device().runner();
            let check = || tenancy.map_or(Ok(()), |tenancy| self.device().check_tenancy(tenancy, node));
            let mut last = D::all_work(runner);
            while let Some(piece) = outgoing.piece().await? {
                self.check_live()?;
                check()?;
                piece.with_bytes(0, &mut |bytes| {
                    last = D::upload(runner, at, Bytes::Slice(bytes))?;
                    at = at.offset_by(bytes.len() as u64);
                    Ok(())
                })?;
                drop(piece);
                // Bounded: a piece is taken in before the one after the next is read.
                if outgoing.staged.is_some() {
                    last.wait().await?;
                }
            }
            check()?;
            Ok(Event::new(last))
        };
        streamed.await.map_err(|error: Error| from(error, node, src))
    }
}

fn from<S: Driver>(error: Error, node: &TensorNode, src: &Context<S>) -> Error {
    error.context(format_args!("copy {node} from {}", src.device().name()))
}
