//! The wasm-bindgen skin: it translates between JavaScript and the crate, and holds no logic. The npm package's
//! TypeScript (`www/lib`) is what users see.
//!
//! Exports are plain functions, whose things are numbers (`held`): they clone what they need, then await, so that no borrow is
//! held across an await. `www/lib/handles.ts` makes classes of them. Structured values cross as plain objects; bytes cross as
//! `Uint8Array` and go to the queue without passing through wasm memory.

mod context;
mod device;
mod either;
mod error;
mod held;
mod node;
mod plain;
mod routine;

pub use either::Either;

/// A third of the code of the standard library's, and for the package alone: a crate does not choose for others.
#[cfg(feature = "npm")]
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();
