//! How far the device has come, and what went wrong.
//!
//! Plain data behind one lock, so that wgpu's callbacks may touch it from any thread. A batch settles when its work is
//! done *and* its error scope came back clean; events are numbers compared with that. The lock is never held while
//! calling wgpu.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::{Error, ErrorKind, Result};
use crate::sorted_map::SortedMap;

/// A submitted batch that has not settled.
#[derive(Debug)]
struct Batch {
    first_seq: u64,
    last_seq: u64,
    work_done: bool,
    verified: bool,
}

#[derive(Debug, Default)]
struct State {
    name: String,
    done_seq: u64,
    verified_seq: u64,
    batches: VecDeque<Batch>,
    /// The first sequence number that failed, with the cause; everything from it on fails with it.
    failure: Option<(u64, Error)>,
    lost: Option<Error>,
    /// Who waits, with the sequence number that they wait for.
    wakers: SortedMap<u64, (u64, Waker)>,
    /// Who waits for the loss of the device; they need nobody to drive completion.
    lost_wakers: SortedMap<u64, (u64, Waker)>,
    /// Whether something (a thread, a promise, a pump) is driving completion for the waiters.
    driving: bool,
    /// Whether the queue is being watched.
    #[cfg(target_arch = "wasm32")]
    armed: bool,
}

/// Shared between the runner, its events and wgpu's callbacks.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    next_waiter: AtomicU64,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_name(&self, name: &str) {
        name.clone_into(&mut self.lock().name);
    }

    /// A key for a waiter of its own.
    pub(super) fn waiter(&self) -> u64 {
        self.next_waiter.fetch_add(1, Ordering::Relaxed)
    }

    /// A batch went to the queue.
    pub(super) fn submitted(&self, first_seq: u64, last_seq: u64) {
        self.lock().batches.push_back(Batch { first_seq, last_seq, work_done: false, verified: false });
    }

    /// Every batch through `seq` has been executed.
    pub(super) fn work_done(&self, seq: u64) {
        self.settle(|state| {
            state.batches.iter_mut().filter(|batch| batch.last_seq <= seq).for_each(|batch| batch.work_done = true);
        });
    }

    /// The error scope of the batch that ends at `seq` came back.
    pub(super) fn verified(&self, seq: u64, outcome: Result<()>) {
        let first = self.lock().batches.iter().find(|batch| batch.last_seq == seq).map(|batch| batch.first_seq);
        if let (Some(first), Err(error)) = (first, outcome) {
            self.fail(first, error);
        }
        self.settle(|state| {
            state.batches.iter_mut().filter(|batch| batch.last_seq == seq).for_each(|batch| batch.verified = true);
        });
    }

    fn settle(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        if state.lost.is_some() {
            // After loss every promise of the queue resolves, whether the work was done or not.
            return;
        }
        change(&mut state);
        while let Some(batch) = state.batches.front() {
            if !(batch.work_done && batch.verified) {
                break;
            }
            state.done_seq = state.done_seq.max(batch.last_seq);
            state.batches.pop_front();
        }
        let verified = state.batches.iter().take_while(|batch| batch.verified).last().map(|batch| batch.last_seq);
        state.verified_seq = verified.unwrap_or(0).max(state.done_seq).max(state.verified_seq);
        let through = state.verified_seq;
        wake_through(state, through);
    }

    /// Everything from `seq` on fails with that cause. The earliest failure stays.
    pub(super) fn fail(&self, seq: u64, error: Error) {
        let mut state = self.lock();
        if state.failure.as_ref().is_none_or(|(first, _)| seq < *first) {
            let error = if state.name.is_empty() { error } else { error.context(&state.name) };
            state.failure = Some((seq, error));
        }
        wake_through(state, u64::MAX);
    }

    /// An error that nobody can place: everything unsettled fails with it.
    pub(super) fn fail_unsettled(&self, error: Error) {
        let seq = self.lock().done_seq + 1;
        self.fail(seq, error);
    }

    /// The device is gone. The first cause stays.
    pub(super) fn lose(&self, reason: &str) {
        let mut state = self.lock();
        if state.lost.is_none() {
            let message = format!(
                "device {} is lost ({reason}); what was on it is gone: open a new device and upload again",
                state.name
            );
            state.lost = Some(Error::new(ErrorKind::DeviceLost, message));
        }
        let waiting_for_loss = state.lost_wakers.take_if(|_| true);
        wake_through(state, u64::MAX);
        waiting_for_loss.into_iter().for_each(|(_, (_, waker))| waker.wake());
    }

    /// Wakes everyone, for a change that is not in this state (a mapped buffer).
    pub(super) fn wake_all(&self) {
        wake_through(self.lock(), u64::MAX);
    }

    /// Whether work can be recorded at all.
    pub(super) fn check_alive(&self) -> Result<()> {
        self.lock().lost.clone().map_or(Ok(()), Err)
    }

    /// The cause of loss.
    pub(super) fn lost(&self) -> Option<Error> {
        self.lock().lost.clone()
    }

    /// The outcome of the work through `seq`; `None` while it is not known.
    pub(super) fn outcome(&self, seq: u64) -> Option<Result<()>> {
        let state = self.lock();
        if seq <= state.done_seq { Some(Ok(())) } else { known_failure(&state, seq) }
    }

    /// As [`Progress::outcome`], for a readback: its bytes have arrived, so only the scope must have come back.
    pub(super) fn verified_outcome(&self, seq: u64) -> Option<Result<()>> {
        let state = self.lock();
        known_failure(&state, seq).or_else(|| (seq <= state.verified_seq).then_some(Ok(())))
    }

    pub(super) fn done_seq(&self) -> u64 {
        self.lock().done_seq
    }

    /// The last sequence number of the batch that must settle before more than `bound` are in flight no longer.
    pub(super) fn bound_seq(&self, bound: usize) -> Option<u64> {
        let state = self.lock();
        state.batches.len().checked_sub(bound).and_then(|index| state.batches.get(index)).map(|batch| batch.last_seq)
    }

    /// Registers a waiter. Returns true when the caller must start to drive completion.
    pub(super) fn wait(&self, seq: u64, waiter: u64, waker: &Waker) -> bool {
        let mut state = self.lock();
        state.wakers.insert(waiter, (seq, waker.clone()));
        !std::mem::replace(&mut state.driving, true)
    }

    pub(super) fn forget(&self, waiter: u64) {
        self.lock().wakers.remove(&waiter);
    }

    /// For whoever drives: whether to go on. When nobody waits any more, driving ends, and the next waiter starts it
    /// again.
    pub(super) fn keep_driving(&self) -> bool {
        let mut state = self.lock();
        state.driving = !state.wakers.is_empty() && state.lost.is_none();
        state.driving
    }

    /// Claims the right to watch the queue; false while someone does.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn arm(&self) -> bool {
        !std::mem::replace(&mut self.lock().armed, true)
    }

    /// The last submitted sequence number whose work is not done; `None` ends the watch.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn next_undone(&self) -> Option<u64> {
        let mut state = self.lock();
        let seq = state.batches.iter().rev().find(|batch| !batch.work_done).map(|batch| batch.last_seq);
        let seq = seq.filter(|_| state.lost.is_none());
        state.armed = seq.is_some();
        seq
    }
}

fn known_failure(state: &State, seq: u64) -> Option<Result<()>> {
    if let Some((first, error)) = &state.failure
        && seq >= *first
    {
        return Some(Err(error.clone()));
    }
    state.lost.clone().map(Err)
}

/// Wakes those who wait for something through `seq`, after the lock is released: a waker may run at once.
fn wake_through(mut state: MutexGuard<'_, State>, seq: u64) {
    let woken = state.wakers.take_if(|(waits_for, _)| *waits_for <= seq);
    drop(state);
    woken.into_iter().for_each(|(_, (_, waker))| waker.wake());
}

/// Resolves with the cause when the device is lost.
#[derive(Debug)]
pub(super) struct Lost {
    progress: Arc<Progress>,
    waiter: u64,
}

impl Lost {
    pub(super) fn new(progress: Arc<Progress>) -> Self {
        let waiter = progress.waiter();
        Self { progress, waiter }
    }
}

impl Future for Lost {
    type Output = Error;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        let mut state = self.progress.lock();
        if let Some(error) = &state.lost {
            return Poll::Ready(error.clone());
        }
        state.lost_wakers.insert(self.waiter, (0, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.progress.lock().lost_wakers.remove(&self.waiter);
    }
}
