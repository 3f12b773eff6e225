//! How far the device has come, and what went wrong.
//!
//! Plain data behind one lock, so that wgpu's callbacks may touch it from any thread. A batch settles when its work is
//! done *and* its error scope came back clean; events are numbers compared with that. The lock is never held while
//! calling wgpu.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// Batches of so many units of work tell how long one takes.
const TELLING_UNITS: u64 = 512;
/// Batches that are remembered for it.
const OBSERVATIONS: usize = 4;

/// A submitted batch that has not settled.
#[derive(Debug)]
struct Batch {
    first_seq: u64,
    last_seq: u64,
    /// What was recorded, in units of work, and when it was submitted, in milliseconds.
    cost: u64,
    submitted_ms: f64,
    work_done: bool,
    verified: bool,
}

/// Who waits: a key of their own, the sequence number that they wait for, and how they are woken.
#[derive(Debug, Default)]
struct Waiters(Vec<(u64, u64, Waker)>);

impl Waiters {
    /// Notes how a waiter is woken now.
    fn note(&mut self, waiter: u64, seq: u64, waker: &Waker) {
        self.forget(waiter);
        self.0.push((waiter, seq, waker.clone()));
    }

    fn forget(&mut self, waiter: u64) {
        if let Some(at) = self.0.iter().position(|(known, ..)| *known == waiter) {
            self.0.swap_remove(at);
        }
    }

    /// Takes out those who wait for something through `seq`.
    fn take_through(&mut self, seq: u64) -> Vec<Waker> {
        let mut taken = Vec::new();
        for waiter in std::mem::take(&mut self.0) {
            if waiter.1 <= seq { taken.push(waiter.2) } else { self.0.push(waiter) }
        }
        taken
    }
}

#[derive(Debug, Default)]
struct State {
    name: String,
    done_seq: u64,
    verified_seq: u64,
    /// When the device was last known to be done with something, in milliseconds.
    last_done_ms: f64,
    /// Milliseconds that a unit of work took, in the last batches that say something.
    unit_ms: VecDeque<f64>,
    batches: VecDeque<Batch>,
    /// The first sequence number that failed, with the cause; everything from it on fails with it.
    failure: Option<(u64, Error)>,
    lost: Option<Error>,
    wakers: Waiters,
    /// Who waits for the loss of the device; they need nobody to drive completion.
    lost_wakers: Waiters,
    /// What drives completion for the waiters: a thread, or on Firefox a pump.
    driver: Driving,
    /// Whether something changed since whoever drives last looked, and whether it rests until something does.
    stirred: bool,
    resting: bool,
    /// Whether the queue is being watched.
    #[cfg(target_arch = "wasm32")]
    armed: bool,
}

/// What whoever drives completion is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Driving {
    #[default]
    Off,
    /// Waiting for someone who waits.
    Parked,
    On,
}

/// Shared between the runner, its events and wgpu's callbacks.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    unpark: Condvar,
    /// Told when whoever drives lets go of the runner.
    quiet: Condvar,
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
    pub(super) fn submitted(&self, first_seq: u64, last_seq: u64, cost: u64, submitted_ms: f64) {
        let batch = Batch { first_seq, last_seq, cost, submitted_ms, work_done: false, verified: false };
        let mut state = self.lock();
        state.batches.push_back(batch);
        self.stir_state(&mut state);
    }

    /// Milliseconds that a unit of work takes, as observed. The least of several observations: whatever disturbs one
    /// (a pipeline compiled on first use, memory cleared on first use, a busy machine) makes it longer.
    pub(super) fn unit_ms(&self) -> Option<f64> {
        let state = self.lock();
        let is_enough = state.unit_ms.len() > 1;
        state.unit_ms.iter().copied().reduce(f64::min).filter(|_| is_enough)
    }

    /// Every batch through `seq` has been executed.
    pub(super) fn work_done(&self, seq: u64, now_ms: f64) {
        self.settle(|state| {
            let (mut cost, mut start) = (0, f64::INFINITY);
            for batch in state.batches.iter_mut().filter(|batch| batch.last_seq <= seq && !batch.work_done) {
                batch.work_done = true;
                cost += batch.cost;
                start = start.min(batch.submitted_ms);
            }
            // A small batch says how long a submission takes, not a unit.
            if cost >= TELLING_UNITS {
                state.unit_ms.push_back((now_ms - start.max(state.last_done_ms)) / cost as f64);
                if state.unit_ms.len() > OBSERVATIONS {
                    state.unit_ms.pop_front();
                }
            }
            state.last_done_ms = now_ms;
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
        self.wake_through(state, through);
    }

    /// Everything from `seq` on fails with that cause. The earliest failure stays.
    pub(super) fn fail(&self, seq: u64, error: Error) {
        let mut state = self.lock();
        if state.lost.is_some() {
            // Whatever a lost device reports is a consequence of the loss.
            return;
        }
        if state.failure.as_ref().is_none_or(|(first, _)| seq < *first) {
            let error = if state.name.is_empty() { error } else { error.context(&state.name) };
            state.failure = Some((seq, error));
        }
        self.wake_through(state, u64::MAX);
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
            let message = format_args!(
                "device {} is lost ({reason}); what was on it is gone: open a new device and upload again",
                state.name
            );
            state.lost = Some(Error::say(ErrorKind::DeviceLost, message));
        }
        let waiting_for_loss = state.lost_wakers.take_through(u64::MAX);
        self.wake_through(state, u64::MAX);
        waiting_for_loss.into_iter().for_each(Waker::wake);
    }

    /// Wakes everyone, for a change that is not in this state (a mapped buffer).
    pub(super) fn wake_all(&self) {
        self.wake_through(self.lock(), u64::MAX);
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
        // A failed batch comes to an end too: the failure is asked for first.
        failure_of(&state, seq)
            .or_else(|| (seq <= state.done_seq).then_some(Ok(())))
            .or_else(|| state.lost.clone().map(Err))
    }

    /// As [`Progress::outcome`], for a readback: its bytes have arrived, so only the scope must have come back.
    pub(super) fn verified_outcome(&self, seq: u64) -> Option<Result<()>> {
        let state = self.lock();
        failure_of(&state, seq)
            .or_else(|| state.lost.clone().map(Err))
            .or_else(|| (seq <= state.verified_seq).then_some(Ok(())))
    }

    /// Wakes those who wait for something through `seq`, after the lock is released: a waker may run at once.
    fn wake_through(&self, mut state: MutexGuard<'_, State>, seq: u64) {
        let woken = state.wakers.take_through(seq);
        self.stir_state(&mut state);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
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
        state.wakers.note(waiter, seq, waker);
        match std::mem::replace(&mut state.driver, Driving::On) {
            Driving::Off => true,
            Driving::Parked => {
                self.unpark.notify_one();
                false
            }
            Driving::On => {
                self.stir_state(&mut state);
                false
            }
        }
    }

    pub(super) fn forget(&self, waiter: u64) {
        let mut state = self.lock();
        state.wakers.forget(waiter);
        self.stir_state(&mut state);
    }

    /// Tells whoever drives to look again.
    pub(super) fn stir(&self) {
        self.stir_state(&mut self.lock());
    }

    fn stir_state(&self, state: &mut State) {
        state.stirred = true;
        if state.resting {
            self.unpark.notify_all();
        }
    }

    /// For whoever drives and can do nothing now: blocks until something has changed since it last looked.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn rest(&self) {
        let mut state = self.lock();
        state.resting = true;
        self.quiet.notify_all();
        let mut state = self.unpark.wait_while(state, |state| !state.stirred).unwrap_or_else(PoisonError::into_inner);
        (state.resting, state.stirred) = (false, false);
    }

    /// Blocks until whoever drives has let go of the runner: when nobody waits any more, that is soon.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn quiesce(&self) {
        let holds_runner = |state: &mut State| state.driver == Driving::On && !state.resting;
        drop(self.quiet.wait_while(self.lock(), holds_runner));
    }

    /// The first sequence number that somebody waits for.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn first_waited(&self) -> Option<u64> {
        self.lock().wakers.0.iter().map(|(_, seq, _)| *seq).min()
    }

    /// For whoever drives: whether to go on. When nobody waits any more it has `patience` for the next to come; then
    /// driving ends, and the next waiter starts it again.
    pub(super) fn keep_driving(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        if !state.wakers.0.is_empty() && state.lost.is_none() {
            return true;
        }
        if !patience.is_zero() {
            state.driver = Driving::Parked;
            self.quiet.notify_all();
            let parked = |state: &mut State| state.driver == Driving::Parked;
            state = self.unpark.wait_timeout_while(state, patience, parked).unwrap_or_else(PoisonError::into_inner).0;
        }
        let resumed = state.driver == Driving::On && !state.wakers.0.is_empty() && state.lost.is_none();
        if !resumed {
            state.driver = Driving::Off;
            self.quiet.notify_all();
        }
        resumed
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

fn failure_of(state: &State, seq: u64) -> Option<Result<()>> {
    state.failure.as_ref().filter(|(first, _)| seq >= *first).map(|(_, error)| Err(error.clone()))
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
        state.lost_wakers.note(self.waiter, 0, cx.waker());
        Poll::Pending
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.progress.lock().lost_wakers.forget(self.waiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_takes_as_long_as_in_the_quietest_of_the_last_telling_batches() {
        let progress = Progress::default();
        let mut now = 0.0;
        let mut batch = |seq: u64, cost: u64, took_ms: f64| {
            progress.submitted(seq, seq, cost, now);
            now += took_ms;
            progress.work_done(seq, now);
            progress.verified(seq, Ok(()));
            progress.unit_ms()
        };
        assert_eq!(batch(1, 17, 100.0), None, "one dispatch with a pipeline to compile");
        assert_eq!(batch(2, 1000, 300.0), None, "one observation is none");
        assert_eq!(batch(3, 1000, 10.0), Some(0.01));
        for seq in 4..8 {
            batch(seq, 1000, 20.0);
        }
        assert_eq!(progress.unit_ms(), Some(0.02), "what was long ago is forgotten");
    }
}
