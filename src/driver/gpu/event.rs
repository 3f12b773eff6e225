//! Events of the gpu driver: a sequence number on a runner.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::driver::event::DriverEvent;
use crate::driver::gpu::platform;
use crate::driver::gpu::runner::GpuRunner;
use crate::error::Result;

/// "The runner has passed this point".
#[derive(Clone)]
pub struct GpuEvent {
    runner: Arc<GpuRunner>,
    seq: u64,
}

impl GpuEvent {
    pub(super) fn new(runner: Arc<GpuRunner>, seq: u64) -> Self {
        Self { runner, seq }
    }

    /// The outcome, once more after handing pending work to the queue and letting callbacks run.
    fn outcome(&self) -> Option<Result<()>> {
        let progress = self.runner.progress();
        progress.outcome(self.seq).or_else(|| {
            if let Err(error) = self.runner.flush_through(self.seq) {
                return Some(Err(error));
            }
            platform::poll(&self.runner.dev.device);
            platform::try_release(&self.runner);
            progress.outcome(self.seq)
        })
    }
}

impl fmt::Debug for GpuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuEvent({})", self.seq)
    }
}

impl DriverEvent for GpuEvent {
    type Wait = GpuWait;

    fn seq(&self) -> u64 {
        self.seq
    }

    fn precedes_all_on(&self, runner: *const ()) -> bool {
        Arc::as_ptr(&self.runner).cast::<()>() == runner
    }

    fn is_done(&self) -> bool {
        self.outcome().is_some()
    }

    fn wait(&self) -> GpuWait {
        let waiter = self.runner.progress().waiter();
        GpuWait { event: self.clone(), waiter }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn sync(&self) -> Result<()> {
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            self.runner.wait_for(self.seq);
        }
    }
}

/// The future of an event's outcome.
#[derive(Debug)]
pub struct GpuWait {
    event: GpuEvent,
    waiter: u64,
}

impl Future for GpuWait {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(outcome) = self.event.outcome() {
            return Poll::Ready(outcome);
        }
        let GpuEvent { runner, seq } = &self.event;
        let progress = runner.progress();
        if progress.wait(*seq, self.waiter, cx.waker()) {
            platform::drive(runner);
        }
        // It may have settled between the question and the registration.
        match progress.outcome(*seq) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

impl Drop for GpuWait {
    fn drop(&mut self) {
        self.event.runner.progress().forget(self.waiter);
    }
}
