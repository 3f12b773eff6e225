//! Copies between devices, of one driver or of two: through the host, asynchronously, in pieces, so that staging stays
//! small and one device reads while the other writes.

use crate::backend::merge::{Landing, MERGE_LOC};
use crate::context::Context;
use crate::driver::bytes::Bytes;
use crate::driver::event::DriverEvent;
use crate::driver::{Driver, ReadbackBytes};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::node::TensorNode;
use crate::slab::loc::BufferLoc;

/// Bytes of a piece. Two are on their way at a time.
const PIECE_BYTES: u64 = 4 << 20;

impl<D: Driver> Context<D> {
    /// Copies `node` from the context `src` of any device to this one, or into the merge buffer of this device. What was
    /// recorded on the other device when this is first polled is seen; awaiting gives the event of the last piece's
    /// arrival here. Until then the node here has some pieces and not others.
    ///
    /// # Errors
    /// `UnknownNode`, `Unsupported` for a constant here, `OutOfMemory`, `Disposed`, `DeviceLost` of either device, or the
    /// failure of the work that should have written the node there.
    pub async fn copy_from<S: Driver>(&self, node: &TensorNode, into: Landing, src: &Context<S>) -> Result<Event<D>> {
        let named = |error: Error| error.context(format_args!("copy {node} from {}", src.device().name()));
        let to = match into {
            Landing::Node => self.require_writable(node).map_err(named)?,
            Landing::MergeBuffer => {
                self.check_live().map_err(named)?;
                self.device().reserve_merge_buffer(node.size_bytes()).map_err(named)?;
                MERGE_LOC
            }
        };
        let tenancy = match into {
            Landing::Node => None,
            Landing::MergeBuffer => Some(self.device().begin_tenancy()),
        };
        let event = self.stream(node, to, src, tenancy).await.map_err(named)?;
        match into {
            Landing::Node => self.device().wrote([&node.root().id()], &event),
            Landing::MergeBuffer => self.device().set_merge_buffer(node, event.seq()),
        }
        Ok(event)
    }

    /// A child that has `node` too, with the bytes that it has in the context `src` of any device.
    ///
    /// # Errors
    /// `DuplicateNode` where this context has it; else as [`Context::copy_from`].
    pub async fn init_from_other<S: Driver>(&self, node: &TensorNode, src: &Context<S>) -> Result<Context<D>> {
        src.require(node)?;
        let child = self.extend(&[node], false)?;
        // A constant that the device has already keeps its bytes.
        if !child.is_shared(node) {
            let to = child.require(node)?;
            let event = child.stream(node, to, src, None).await?;
            child.device().wrote([&node.root().id()], &event);
            child.device().share(node, to);
        }
        Ok(child)
    }

    async fn stream<S: Driver>(
        &self,
        node: &TensorNode,
        to: BufferLoc,
        src: &Context<S>,
        tenancy: Option<u64>,
    ) -> Result<Event<D>> {
        let size_bytes = node.size_bytes();
        let piece = |start: u64| (node, start, PIECE_BYTES.min(size_bytes - start));
        let runner = self.device().runner();
        let mut last = D::all_work(runner);
        let mut next = Some(src.stage(&[piece(0)])?);
        let mut start = 0;
        while let Some(staged) = next {
            let following = start + PIECE_BYTES;
            // The next piece is on its way while this one arrives.
            next = if following < size_bytes { Some(src.stage(&[piece(following)])?) } else { None };
            let arrived = staged.await?;
            self.check_live()?;
            tenancy.map_or(Ok(()), |tenancy| self.device().check_tenancy(tenancy, node))?;
            let mut uploaded = Ok(last);
            arrived
                .with_bytes(0, &mut |bytes| uploaded = D::upload(runner, to.offset_by(start), Bytes::Slice(bytes)))?;
            last = uploaded?;
            // Bounded: a piece is taken in before the one after the next is read.
            if next.is_some() {
                last.wait().await?;
            }
            start = following;
        }
        tenancy.map_or(Ok(()), |tenancy| self.device().check_tenancy(tenancy, node))?;
        Ok(Event::new(last))
    }
}
