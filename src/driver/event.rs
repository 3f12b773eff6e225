//! What an event of any driver can do.

use std::fmt::Debug;
use std::future::Future;

use crate::driver::maybe_send::MaybeSend;
use crate::error::Result;

/// "The runner has passed this point", with an outcome.
pub trait DriverEvent: Clone + Debug + MaybeSend {
    /// The future of its outcome.
    type Wait: Future<Output = Result<()>> + Unpin + Debug + MaybeSend;

    /// The position in the runner's order: later work has larger numbers.
    fn seq(&self) -> u64;
    /// Whether work that is recorded on that runner comes after it anyway. The address is that of the runner's `Arc`.
    fn precedes_all_on(&self, runner: *const ()) -> bool;
    /// Whether the runner has passed it, successfully or not. Asking also hands pending work to the device, so that
    /// asking again and again comes to an end.
    fn is_done(&self) -> bool;
    /// Waits for it.
    fn wait(&self) -> Self::Wait;
    /// Waits for it, blocking the thread.
    #[cfg(not(target_arch = "wasm32"))]
    fn sync(&self) -> Result<()>;
}
