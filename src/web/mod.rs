//! The wasm-bindgen skin: it translates between JavaScript and the crate, and holds no logic. The npm package's
//! TypeScript (`www/lib`) is what users see.
//!
//! Exports take `&self`, clone what they need, then await: no borrow is held across an await. Structured values cross
//! with serde-wasm-bindgen; bytes cross as `Uint8Array` and go to the queue without passing through wasm memory.

mod borrow;
mod context;
mod device;
mod error;
mod node;
mod routine;

/// Something of one of the two drivers.
#[derive(Clone, Debug)]
pub(crate) enum On<G, H> {
    Gpu(G),
    Host(H),
}

/// Runs an expression on whichever driver it is.
macro_rules! on {
    ($value:expr, $name:ident => $body:expr) => {
        match $value {
            $crate::web::On::Gpu($name) => $body,
            $crate::web::On::Host($name) => $body,
        }
    };
}

/// Runs an expression on whichever driver it is, and keeps the driver.
macro_rules! map_on {
    ($value:expr, $name:ident => $body:expr) => {
        match $value {
            $crate::web::On::Gpu($name) => $crate::web::On::Gpu($body),
            $crate::web::On::Host($name) => $crate::web::On::Host($body),
        }
    };
}

pub(crate) use {map_on, on};
