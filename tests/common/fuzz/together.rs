//! Waiting for several futures at once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A future, and its output when it is done.
type Waiting<F> = (Pin<Box<F>>, Option<<F as Future>::Output>);

/// The outputs of futures that go on beside one another.
pub async fn together<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<Waiting<F>> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(move |cx| {
        for (future, output) in all.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                *output = Some(ready);
            }
        }
        if all.iter().any(|(_, output)| output.is_none()) {
            return Poll::Pending;
        }
        Poll::Ready(all.iter_mut().filter_map(|(_, output)| output.take()).collect())
    })
    .await
}
