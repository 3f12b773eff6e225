//! Waiting for a future where that is possible: natively the thread blocks; a page has one thread, which must not. One
//! of the files that know the target.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The output of a future: at once if it is ready, after blocking natively, and never (`None`) in a page that would have
/// to wait.
pub(crate) fn wait_for<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => blocked(future),
    }
}

#[cfg(target_arch = "wasm32")]
fn blocked<F: Future>(_future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    None
}

#[cfg(not(target_arch = "wasm32"))]
fn blocked<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let waker = this_thread();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        std::thread::park();
    }
}

/// A waker that unparks this thread.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn this_thread() -> Waker {
    struct Thread(std::thread::Thread);
    impl std::task::Wake for Thread {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    std::sync::Arc::new(Thread(std::thread::current())).into()
}
