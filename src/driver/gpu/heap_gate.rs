//! Heaps whose creation is not known to have succeeded. Natively it is known at once; on the web a link waits here.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::driver::gpu::heaps::HeapId;
use crate::error::Error;

#[derive(Debug, Default)]
struct Inner {
    pending: Vec<HeapId>,
    failed: Vec<(HeapId, Error)>,
    wakers: Vec<Waker>,
}

#[derive(Debug, Default)]
struct Gate {
    /// What `inner` says, so that nobody takes the lock while all is well.
    is_pending: AtomicBool,
    has_failed: AtomicBool,
    inner: Mutex<Inner>,
}

/// The outcomes of heap creation. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub(super) struct HeapGate {
    gate: Arc<Gate>,
}

impl HeapGate {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.gate.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A heap is being created.
    pub(super) fn begin(&self, heap: HeapId) {
        self.lock().pending.push(heap);
        self.gate.is_pending.store(true, Ordering::Release);
    }

    /// Its outcome is known.
    pub(super) fn end(&self, heap: HeapId, error: Option<Error>) {
        let mut inner = self.lock();
        inner.pending.retain(|pending| *pending != heap);
        inner.failed.extend(error.map(|error| (heap, error)));
        self.gate.is_pending.store(!inner.pending.is_empty(), Ordering::Release);
        self.gate.has_failed.store(!inner.failed.is_empty(), Ordering::Release);
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The heaps that could not be created.
    pub(super) fn failed(&self) -> Vec<HeapId> {
        if !self.gate.has_failed.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut failed = Vec::new();
        for (heap, _) in &self.lock().failed {
            failed.push(*heap);
        }
        failed
    }

    /// Why that heap cannot be used.
    pub(super) fn failure_of(&self, heap: HeapId) -> Option<Error> {
        if !self.gate.has_failed.load(Ordering::Acquire) {
            return None;
        }
        self.lock().failed.iter().find(|(failed, _)| *failed == heap).map(|(_, error)| error.clone())
    }
    /// Whether the heap is known to be there.
    pub(super) fn is_sound(&self, heap: HeapId) -> bool {
        self.failure_of(heap).is_none() && !(self.is_pending() && self.lock().pending.contains(&heap))
    }

    /// Whether some outcome is not known yet.
    pub(super) fn is_pending(&self) -> bool {
        self.gate.is_pending.load(Ordering::Acquire)
    }

    /// Waits until every outcome is known.
    pub(super) fn settled(&self) -> Settled {
        Settled { gate: self.clone() }
    }
}

/// Ready when no heap is being created.
#[derive(Debug)]
pub(super) struct Settled {
    gate: HeapGate,
}

impl Future for Settled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.gate.is_pending() {
            return Poll::Ready(());
        }
        let mut inner = self.gate.lock();
        if inner.pending.is_empty() {
            return Poll::Ready(());
        }
        inner.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}
