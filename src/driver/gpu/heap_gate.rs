//! Heaps whose creation is not known to have succeeded. Natively it is known at once; on the web a link waits here.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::driver::gpu::heaps::HeapId;
use crate::error::Error;

#[derive(Debug, Default)]
struct Inner {
    pending: usize,
    failed: Vec<(HeapId, Error)>,
    wakers: Vec<Waker>,
}

/// The outcomes of heap creation. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub(super) struct HeapGate {
    inner: Arc<Mutex<Inner>>,
}

impl HeapGate {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A heap is being created.
    pub(super) fn begin(&self) {
        self.lock().pending += 1;
    }

    /// Its outcome is known.
    pub(super) fn end(&self, heap: HeapId, error: Option<Error>) {
        let mut inner = self.lock();
        inner.pending -= 1;
        inner.failed.extend(error.map(|error| (heap, error)));
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The heaps that could not be created.
    pub(super) fn failed(&self) -> Vec<HeapId> {
        self.lock().failed.iter().map(|(heap, _)| *heap).collect()
    }

    /// Why that heap cannot be used.
    pub(super) fn failure_of(&self, heap: HeapId) -> Option<Error> {
        self.lock().failed.iter().find(|(failed, _)| *failed == heap).map(|(_, error)| error.clone())
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
        let mut inner = self.gate.lock();
        if inner.pending == 0 {
            return Poll::Ready(());
        }
        inner.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}
