//! The one seam between native and web in the gpu driver: how completion is driven, how bytes reach the queue, how
//! pipelines are warmed. Both sides have the same functions.

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(not(target_arch = "wasm32"))]
mod native_uploads;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(target_arch = "wasm32")]
pub(super) use web::*;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use {native::*, native_uploads::*};
