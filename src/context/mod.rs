//! Contexts: which tensor is where.
//!
//! A context is an immutable map from nodes to locations, with a parent. Whatever adds nodes gives a child; children
//! see all that their parents have. A context frees exactly the pools that it minted: when it is finalized, or when its
//! last clone and its last child are gone. A pool with views in other contexts waits for them, and constants stay with
//! the device.

mod alias;
pub(crate) mod allocate;
mod ctx_buffers;
pub mod lineage;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::context::ctx_buffers::CtxBuffers;
use crate::context::lineage::Lineage;
use crate::device::Device;
use crate::device::pools::free_pool;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::node::{MemoryMode, TensorNode};
use crate::slab::loc::{BufferLoc, PoolId};

/// An immutable map from nodes to locations. Cheap to clone; clones are the same context.
pub struct Context<D: Driver> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Driver> {
    device: Device<D>,
    parent: Option<Context<D>>,
    ctx_buffers: CtxBuffers,
    /// The pools that this context keeps: those that it allocated, and those of its views and constants.
    held: Vec<PoolId>,
    finalized: AtomicBool,
    optimize_ctx: D::OptimizeCtx,
    merge_buffer_node: Option<TensorNode>,
    lineage: Arc<Lineage>,
}

/// The optional parts of a context to be made. What is left out is the parent's.
pub struct ContextBuilder<D: Driver> {
    device: Device<D>,
    parent: Option<Context<D>>,
    ctx_buffers: Option<CtxBuffers>,
    optimize_ctx: Option<D::OptimizeCtx>,
    merge_buffer_node: Option<Option<TensorNode>>,
    held: Vec<PoolId>,
    lineage: Option<Arc<Lineage>>,
}

impl<D: Driver> Context<D> {
    /// An empty context without a parent.
    pub fn root(device: &Device<D>) -> Self {
        Self::builder(device).build()
    }

    /// Builds a context without a parent.
    pub fn builder(device: &Device<D>) -> ContextBuilder<D> {
        ContextBuilder {
            device: device.clone(),
            parent: None,
            ctx_buffers: None,
            optimize_ctx: None,
            merge_buffer_node: None,
            held: Vec::new(),
            lineage: None,
        }
    }

    /// Builds a child; what is left out is this context's.
    pub fn child(&self) -> ContextBuilder<D> {
        ContextBuilder { parent: Some(self.clone()), ..Self::builder(self.device()) }
    }

    /// The device.
    pub fn device(&self) -> &Device<D> {
        &self.inner.device
    }

    /// The context that this one extends.
    pub fn parent(&self) -> Option<&Context<D>> {
        self.inner.parent.as_ref()
    }

    /// Every node with its location, the parents' included.
    pub fn ctx_buffers(&self) -> &CtxBuffers {
        &self.inner.ctx_buffers
    }

    /// Every node with its location, in the order in which the nodes were created.
    pub fn locs(&self) -> Vec<(TensorNode, BufferLoc)> {
        let mut locs = Vec::new();
        for (node, loc) in self.ctx_buffers().iter() {
            locs.push((node.clone(), loc));
        }
        locs
    }

    /// Where a node is; `None` if it is not in this context.
    pub fn loc(&self, node: &TensorNode) -> Option<BufferLoc> {
        self.ctx_buffers().get(node)
    }

    /// The computations of virtual nodes that later compilations may inline.
    pub fn optimize_ctx(&self) -> &D::OptimizeCtx {
        &self.inner.optimize_ctx
    }

    /// The node that the merge buffer will hold when the work through this context is done.
    pub fn merge_buffer_node(&self) -> Option<&TensorNode> {
        self.inner.merge_buffer_node.as_ref()
    }

    /// Who touched which node, along the line of contexts to this one.
    pub(crate) fn lineage(&self) -> &Lineage {
        &self.inner.lineage
    }

    /// The pool of the slab with that number, among those that this context minted for working nodes.
    ///
    /// # Errors
    /// A bug, where it minted fewer.
    pub(crate) fn own_pool(&self, segment: u32) -> Result<PoolId> {
        let pool_id = self.inner.held.get(segment as usize).copied();
        pool_id.ok_or_else(|| Error::bug(format!("a context of {} slabs has no slab {segment}", self.inner.held.len())))
    }

    /// Whether this context was finalized.
    pub fn is_finalized(&self) -> bool {
        self.inner.finalized.load(Ordering::Acquire)
    }

    /// Frees the pools that this context minted, and nothing else: constants stay with the device, and pools into which
    /// other contexts have views wait for those. Work that was recorded before still runs. Doing it
    /// again does nothing; using the context, or a child that needs those pools, is a [`ErrorKind::Disposed`] error.
    pub fn finalize(&self) {
        self.inner.finalize();
    }

    /// Work that is recorded on this context's device from here on starts after that event, of any device. It returns at
    /// once, and the page does not wait; on the host driver, where every task is done when its call returns, the thread
    /// does. Whether the other work succeeded does not matter: only the order does.
    ///
    /// # Errors
    /// `Disposed`, `DeviceLost`; `Unsupported` on the host driver in a page, where the event is to be awaited instead.
    pub fn will_wait_for<S: Driver>(&self, event: &Event<S>) -> Result<()> {
        self.check_live()?;
        let runner = self.device().runner();
        if event.precedes_all_on(Arc::as_ptr(runner).cast()) || event.is_done() {
            return Ok(());
        }
        let passed = event.clone().into_future();
        let held = D::hold(
            runner,
            Box::pin(async move {
                let _ = passed.await;
                Ok(())
            }),
        );
        held.map(drop)
    }

    /// Refuses a context that was finalized.
    pub(crate) fn check_live(&self) -> Result<()> {
        if !self.is_finalized() {
            return Ok(());
        }
        let message = format_args!("a context of {} was finalized; make another from its parent", self.device().name());
        Err(Error::say(ErrorKind::Disposed, message))
    }

    /// Where a node is, or an error that names it.
    pub(crate) fn require(&self, node: &TensorNode) -> Result<BufferLoc> {
        self.check_live()?;
        locate(self.ctx_buffers(), node)
    }
}

/// Where a node is, or an error that names it.
pub(crate) fn locate(buffers: &CtxBuffers, node: &TensorNode) -> Result<BufferLoc> {
    buffers.get(node).ok_or_else(|| {
        if node.mode() == MemoryMode::Local {
            let message =
                format_args!("node {node} is local: only the routines of its batch see it; make it on_device");
            return Error::say(ErrorKind::UnknownNode, message);
        }
        let message = format_args!(
            "node {node} is not in the context, which has {} nodes; upload it or link a routine that creates it",
            buffers.len()
        );
        Error::say(ErrorKind::UnknownNode, message)
    })
}

impl<D: Driver> ContextBuilder<D> {
    /// The locations of all nodes, in place of the parent's. The pools behind them stay whose they are.
    #[must_use]
    pub fn ctx_buffers(mut self, ctx_buffers: CtxBuffers) -> Self {
        self.ctx_buffers = Some(ctx_buffers);
        self
    }

    /// The computations of virtual nodes, in place of the parent's.
    #[must_use]
    pub fn optimize_ctx(mut self, optimize_ctx: D::OptimizeCtx) -> Self {
        self.optimize_ctx = Some(optimize_ctx);
        self
    }

    /// The node of the merge buffer, in place of the parent's.
    #[must_use]
    pub fn merge_buffer_node(mut self, node: Option<TensorNode>) -> Self {
        self.merge_buffer_node = Some(node);
        self
    }

    pub(crate) fn lineage(mut self, lineage: Lineage) -> Self {
        self.lineage = Some(Arc::new(lineage));
        self
    }

    /// The pools that the context lets go of when it is finalized; somebody held them on its behalf.
    fn holding(mut self, pools: Vec<PoolId>) -> Self {
        self.held = pools;
        self
    }

    /// Makes the context.
    pub fn build(self) -> Context<D> {
        let parent = self.parent.as_ref().map(|parent| &parent.inner);
        let inner = Inner {
            ctx_buffers: self
                .ctx_buffers
                .or_else(|| parent.map(|parent| parent.ctx_buffers.clone()))
                .unwrap_or_default(),
            optimize_ctx: self
                .optimize_ctx
                .or_else(|| parent.map(|parent| parent.optimize_ctx.clone()))
                .unwrap_or_default(),
            merge_buffer_node: self
                .merge_buffer_node
                .or_else(|| parent.map(|parent| parent.merge_buffer_node.clone()))
                .flatten(),
            lineage: self.lineage.or_else(|| parent.map(|parent| parent.lineage.clone())).unwrap_or_default(),
            device: self.device,
            parent: self.parent,
            held: self.held,
            finalized: AtomicBool::new(false),
        };
        let inner = Arc::new(inner);
        Context { inner }
    }
}

impl<D: Driver> Inner<D> {
    fn finalize(&self) {
        if self.finalized.swap(true, Ordering::AcqRel) {
            return;
        }
        for &pool_id in &self.held {
            let last = self.device.record().release(pool_id);
            if last {
                // A pool that is gone already was freed by hand; either way it is free.
                let _ = free_pool(&self.device, pool_id);
            }
        }
    }
}

impl<D: Driver> Drop for Inner<D> {
    fn drop(&mut self) {
        self.finalize();
        // A long chain of parents would drop recursively, as deep as it is long.
        let mut parent = self.parent.take();
        while let Some(context) = parent {
            parent = Arc::into_inner(context.inner).and_then(|mut inner| inner.parent.take());
        }
    }
}

impl<D: Driver> Clone for Context<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: Driver> fmt::Debug for Context<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locs: Vec<_> = self.ctx_buffers().iter().map(|(node, loc)| format!("{node}@{loc}")).collect();
        let state = if self.is_finalized() { "finalized " } else { "" };
        write!(f, "{state}Context({}, [{}])", self.device().name(), locs.join(", "))
    }
}

impl<D: Driver> fmt::Debug for ContextBuilder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContextBuilder({}, parent: {:?})", self.device.name(), self.parent)
    }
}
