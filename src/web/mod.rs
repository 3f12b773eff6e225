//! The wasm-bindgen skin: it translates between JavaScript and the crate, and holds no logic. The npm package's
//! TypeScript (`www/lib`) is what users see.
//!
//! Exports take `&self`, clone what they need, then await: no borrow is held across an await. Structured values cross as
//! plain objects; bytes cross as `Uint8Array` and go to the queue without passing through wasm memory.

mod context;
mod device;
mod either;
mod error;
mod node;
mod plain;
mod routine;

pub use either::Either;

/// A third of the code of the standard library's, and for the package alone: a crate does not choose for others.
#[cfg(feature = "npm")]
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();
