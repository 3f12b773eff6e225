//! Waiting for several futures at once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Futures that are waited for together.
pub(crate) struct Joined<F: Future> {
    all: Vec<Waiting<F>>,
}

/// A future, and its output when it is done.
type Waiting<F> = (Pin<Box<F>>, Option<<F as Future>::Output>);

impl<F: Future> Joined<F> {
    pub(crate) const fn new() -> Self {
        Self { all: Vec::new() }
    }

    pub(crate) fn add(&mut self, future: F) {
        self.all.push((Box::pin(future), None));
    }

    /// Polls every future until all are done; gives their outputs in order.
    pub(crate) async fn outputs(mut self) -> Vec<F::Output> {
        poll_fn(move |cx| {
            let mut is_done = true;
            for (future, output) in &mut self.all {
                if output.is_none() {
                    match future.as_mut().poll(cx) {
                        Poll::Ready(ready) => *output = Some(ready),
                        Poll::Pending => is_done = false,
                    }
                }
            }
            if !is_done {
                return Poll::Pending;
            }
            let mut outputs = Vec::new();
            for (_, output) in &mut self.all {
                outputs.extend(output.take());
            }
            Poll::Ready(outputs)
        })
        .await
    }
}
