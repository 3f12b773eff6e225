//! Pipelines that are alive, by their whole text: codes with one text share one pipeline, however many are compiled at
//! the same time.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

use crate::driver::gpu::platform;

/// A pipeline, shared by the kernels that have its text.
pub(super) type Pipeline = Arc<platform::Pipeline>;

#[derive(Debug, Default)]
struct Inner {
    made: Vec<(String, Weak<platform::Pipeline>)>,
    /// Texts whose pipeline somebody is making, with those who wait for it.
    making: Vec<(String, Vec<Waker>)>,
}

/// The pipelines of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct PipelineCache {
    inner: Arc<Mutex<Inner>>,
}

/// What there is of a text.
pub(super) enum Claim {
    /// Its pipeline.
    Made(Pipeline),
    /// Nothing: whoever asked is to make it.
    Ours(Making),
}

impl PipelineCache {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pipeline of a text, or the task of making it. Waits while somebody else is making it; if that fails, the
    /// next one tries.
    pub(super) async fn claim(&self, text: &str) -> Claim {
        poll_fn(|cx| {
            let mut inner = self.lock();
            let made = inner.made.iter().find(|(known, _)| known == text);
            if let Some(pipeline) = made.and_then(|(_, pipeline)| pipeline.upgrade()) {
                return Poll::Ready(Claim::Made(pipeline));
            }
            if let Some((_, waiting)) = inner.making.iter_mut().find(|(known, _)| known == text) {
                waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            inner.making.push((text.to_owned(), Vec::new()));
            Poll::Ready(Claim::Ours(Making { cache: self.clone(), text: text.to_owned() }))
        })
        .await
    }
}

/// The task of making the pipeline of a text. Those who wait for it go on when this goes.
#[derive(Debug)]
pub(super) struct Making {
    cache: PipelineCache,
    text: String,
}

impl Making {
    /// It is made.
    pub(super) fn done(self, pipeline: &Pipeline) {
        let mut inner = self.cache.lock();
        inner.made.retain(|(_, pipeline)| pipeline.strong_count() > 0);
        inner.made.push((self.text.clone(), Arc::downgrade(pipeline)));
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let mut inner = self.cache.lock();
        let index = inner.making.iter().position(|(text, _)| *text == self.text);
        let waiting = index.map(|index| inner.making.swap_remove(index).1).unwrap_or_default();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
    }
}
