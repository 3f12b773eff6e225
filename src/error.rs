//! One error type for the whole crate.
//!
//! [`Error`] is opaque, cheap to clone (one lost device fails many events with one cause) and says, on one line,
//! the object, the numbers and the remedy. What a program decides by is [`Error::kind`]; JavaScript sees the same
//! kind as [`ErrorKind::code`].

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;

/// A `Result` whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in the terms that a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No usable GPU adapter, or the adapter refused to open a device.
    NoAdapter,
    /// A request is larger than a limit of the device; no amount of freeing helps.
    LimitExceeded,
    /// The driver or device cannot do this at all.
    Unsupported,
    /// The device, or the budget given to it, has no memory left.
    OutOfMemory,
    /// The device is gone; everything on it is gone with it.
    DeviceLost,
    /// A node is not in the context, or a pool id names no slab.
    UnknownNode,
    /// A node is in the context already, or is named twice.
    DuplicateNode,
    /// Lengths, shapes or byte ranges do not fit each other.
    ShapeMismatch,
    /// Element types do not fit each other.
    DTypeMismatch,
    /// The merge buffer holds another node than the one expected.
    MergeMismatch,
    /// A routine ran before a routine that it depends on.
    NotRun,
    /// The object was finalized.
    Disposed,
    /// Index notation text is not well formed.
    NotationSyntax,
    /// A program in index notation is well formed and has no meaning; see [`Error::diagnostics`].
    NotationMeaning,
    /// WGSL text is not well formed; see [`Error::diagnostics`].
    KernelSyntax,
    /// A kernel's declared tensors, statics or grid do not fit its text or its use.
    KernelInterface,
    /// The driver refused a pipeline whose text is well formed.
    PipelineRejected,
    /// Memory could not be mapped for a readback.
    MapFailed,
    /// A broken invariant of this crate; please report it.
    Bug,
}

impl ErrorKind {
    /// Every kind, in the order of declaration; the test against the TypeScript union reads it.
    pub const ALL: [ErrorKind; 19] = [
        ErrorKind::NoAdapter,
        ErrorKind::LimitExceeded,
        ErrorKind::Unsupported,
        ErrorKind::OutOfMemory,
        ErrorKind::DeviceLost,
        ErrorKind::UnknownNode,
        ErrorKind::DuplicateNode,
        ErrorKind::ShapeMismatch,
        ErrorKind::DTypeMismatch,
        ErrorKind::MergeMismatch,
        ErrorKind::NotRun,
        ErrorKind::Disposed,
        ErrorKind::NotationSyntax,
        ErrorKind::NotationMeaning,
        ErrorKind::KernelSyntax,
        ErrorKind::KernelInterface,
        ErrorKind::PipelineRejected,
        ErrorKind::MapFailed,
        ErrorKind::Bug,
    ];

    /// The fixed code that JavaScript sees as `error.code`.
    pub const fn code(self) -> &'static str {
        match self {
            ErrorKind::NoAdapter => "no-adapter",
            ErrorKind::LimitExceeded => "limit-exceeded",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::OutOfMemory => "out-of-memory",
            ErrorKind::DeviceLost => "device-lost",
            ErrorKind::UnknownNode => "unknown-node",
            ErrorKind::DuplicateNode => "duplicate-node",
            ErrorKind::ShapeMismatch => "shape-mismatch",
            ErrorKind::DTypeMismatch => "dtype-mismatch",
            ErrorKind::MergeMismatch => "merge-mismatch",
            ErrorKind::NotRun => "not-run",
            ErrorKind::Disposed => "disposed",
            ErrorKind::NotationSyntax => "notation-syntax",
            ErrorKind::NotationMeaning => "notation-meaning",
            ErrorKind::KernelSyntax => "kernel-syntax",
            ErrorKind::KernelInterface => "kernel-interface",
            ErrorKind::PipelineRejected => "pipeline-rejected",
            ErrorKind::MapFailed => "map-failed",
            ErrorKind::Bug => "bug",
        }
    }
}

/// The error of every fallible call of this crate.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    diagnostics: Vec<Diagnostic>,
    /// What went wrong one level further in; then the diagnostics are there.
    cause: Option<Error>,
}

impl Error {
    /// An error of that kind with a message of one line: object, numbers, remedy.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_diagnostics(kind, message, Vec::new())
    }

    /// An error that points into a text.
    pub fn with_diagnostics(
        kind: ErrorKind,
        message: impl Into<Cow<'static, str>>,
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        Self::make(Inner { kind, message: message.into(), diagnostics, cause: None })
    }

    /// As [`Error::new`], for a message with numbers in it.
    pub(crate) fn say(kind: ErrorKind, message: fmt::Arguments<'_>) -> Self {
        Self::make(Inner { kind, message: fmt::format(message).into(), diagnostics: Vec::new(), cause: None })
    }

    fn make(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// A broken invariant of this crate.
    pub(crate) fn bug(message: impl fmt::Display) -> Self {
        Self::say(ErrorKind::Bug, format_args!("bug: {message}; please report it"))
    }

    /// The same error, said from one level further out: `link "step": …`.
    #[must_use]
    pub fn context(self, outer: impl fmt::Display) -> Self {
        self.within(format_args!("{outer}"))
    }

    fn within(self, outer: fmt::Arguments<'_>) -> Self {
        let (kind, message) = (self.kind(), fmt::format(outer).into());
        Self::make(Inner { kind, message, diagnostics: Vec::new(), cause: Some(self) })
    }

    /// What went wrong, in the terms that a program can act on.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Places in the author's text, in order; empty for errors that are not about a text.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.inner.cause.as_ref().map_or(self.inner.diagnostics.as_slice(), Error::diagnostics)
    }

    /// Whether the same call can succeed later, after freeing memory or waiting.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), ErrorKind::OutOfMemory | ErrorKind::NotRun)
    }

    /// Whether the cause is the loss of the device.
    pub fn is_device_lost(&self) -> bool {
        self.kind() == ErrorKind::DeviceLost
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        if let Some(cause) = &self.inner.cause {
            return write!(f, ": {cause}");
        }
        for diagnostic in &self.inner.diagnostics {
            write!(f, "\n{diagnostic}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.kind().code())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_said_from_the_outside_in() {
        let error =
            Error::new(ErrorKind::OutOfMemory, "pool p1 is full").context("upload n1\"x\"").context("link \"step\"");
        assert_eq!(error.to_string(), "link \"step\": upload n1\"x\": pool p1 is full");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.is_retryable());
    }

    #[test]
    fn codes_are_distinct() {
        let mut codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }
}
