//! Error scopes: push, create, pop at once, await afterwards.
//!
//! Scopes are never held open across an await: interleaved users would swap blame (measured in Chromium). There is no
//! `From<wgpu::Error>`: turning one into ours means saying what we were doing.

use crate::driver::maybe_send::BoxFuture;
use crate::error::{Error, ErrorKind};

type Popped = BoxFuture<Option<wgpu::Error>>;

/// The outcome of a scope, in flight.
pub(super) struct Verdict {
    out_of_memory: Popped,
    validation: Popped,
}

impl std::fmt::Debug for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verdict")
    }
}

/// What an error scope caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caught {
    OutOfMemory(String),
    Validation(String),
}

impl Caught {
    /// As an error of ours; a validation error is of that kind.
    pub(super) fn into_error(self, doing: &str, validation: ErrorKind) -> Error {
        match self {
            Caught::OutOfMemory(text) => Error::say(
                ErrorKind::OutOfMemory,
                format_args!(
                    "{doing}: the device is out of memory ({}); finalize contexts and try again",
                    one_line(&text)
                ),
            ),
            Caught::Validation(text) => Error::say(validation, format_args!("{doing}: {}", one_line(&text))),
        }
    }
}

/// A driver's message on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs `create` inside scopes for validation and memory.
pub(super) fn scoped<T>(device: &wgpu::Device, create: impl FnOnce() -> T) -> (T, Verdict) {
    let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let out_of_memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let made = create();
    let out_of_memory = Box::pin(out_of_memory.pop());
    let validation = Box::pin(validation.pop());
    (made, Verdict { out_of_memory, validation })
}

impl Verdict {
    /// Waits for both scopes.
    pub(super) async fn caught(self) -> Option<Caught> {
        let out_of_memory = self.out_of_memory.await;
        let validation = self.validation.await;
        out_of_memory
            .map(|error| Caught::OutOfMemory(error.to_string()))
            .or_else(|| validation.map(|error| Caught::Validation(error.to_string())))
    }
}
