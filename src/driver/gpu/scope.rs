//! Error scopes: push, create, pop at once, await afterwards.
//!
//! Scopes are never held open across an await: interleaved users would swap blame (measured in Chromium). There is no
//! `From<wgpu::Error>`: turning one into ours means saying what we were doing.

use crate::driver::gpu::platform::{Device, Scopes, Verdict};
use crate::error::{Error, ErrorKind};
use crate::node::{joined, words};

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

/// What a driver says about a module, and where in its text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) message: String,
    pub(super) offset: Option<usize>,
}

/// A driver's message on one line.
pub(super) fn one_line(text: &str) -> String {
    joined(words(text), " ")
}

/// Runs `create` inside scopes for validation and memory.
pub(super) fn scoped<T>(device: &Device, create: impl FnOnce() -> T) -> (T, Verdict) {
    let scopes = Scopes::push(device);
    let made = create();
    (made, scopes.pop())
}
