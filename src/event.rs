//! Events: "the runner has passed this point", with an outcome.

use std::fmt;
use std::future::IntoFuture;

use crate::driver::Driver;
use crate::driver::event::DriverEvent;
use crate::error::Result;

/// A point in a device's order of work. Awaiting it gives the outcome of everything through it; a failure of earlier
/// work is a failure of it. Dropping it does nothing.
pub struct Event<D: Driver> {
    inner: D::Event,
}

impl<D: Driver> Event<D> {
    pub(crate) fn new(inner: D::Event) -> Self {
        Self { inner }
    }

    /// Whether everything recorded on that runner comes after it anyway.
    pub(crate) fn precedes_all_on(&self, runner: *const ()) -> bool {
        self.inner.precedes_all_on(runner)
    }

    /// The position in the device's order: later work has larger numbers.
    pub fn seq(&self) -> u64 {
        self.inner.seq()
    }

    /// Whether the runner has passed the point, successfully or not.
    pub fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    /// Waits for the outcome, blocking the thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
}

impl<D: Driver> IntoFuture for Event<D> {
    type Output = Result<()>;
    type IntoFuture = <D::Event as DriverEvent>::Wait;

    fn into_future(self) -> Self::IntoFuture {
        self.inner.wait()
    }
}

impl<D: Driver> Clone for Event<D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: Driver> fmt::Debug for Event<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
