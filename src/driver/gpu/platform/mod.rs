//! The one seam between native and web in the gpu driver: the few GPU objects that the driver uses, how completion is
//! driven, how bytes reach the queue, how pipelines are warmed. Both sides have the same types and functions. Natively
//! they are wgpu's; a page has WebGPU itself, and whatever stands in between would be a third of the web build.

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(not(target_arch = "wasm32"))]
mod native_objects;
#[cfg(not(target_arch = "wasm32"))]
mod native_uploads;
#[cfg(target_arch = "wasm32")]
mod web;
#[cfg(target_arch = "wasm32")]
mod web_objects;
#[cfg(target_arch = "wasm32")]
pub(crate) mod web_tasks;

use crate::error::{Error, ErrorKind};

#[cfg(target_arch = "wasm32")]
pub(super) use web::*;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use {native::*, native_uploads::*};

#[cfg(not(target_arch = "wasm32"))]
pub use native_objects::Buffer;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use native_objects::*;
#[cfg(target_arch = "wasm32")]
pub use web_objects::Buffer;
#[cfg(target_arch = "wasm32")]
pub(super) use web_objects::*;

/// What buffers are used for, as WebGPU counts it.
pub(super) mod usage {
    pub(in crate::driver::gpu) const MAP_READ: u32 = 1;
    pub(in crate::driver::gpu) const COPY_SRC: u32 = 4;
    pub(in crate::driver::gpu) const COPY_DST: u32 = 8;
    pub(in crate::driver::gpu) const UNIFORM: u32 = 64;
    pub(in crate::driver::gpu) const STORAGE: u32 = 128;
}

/// Heaps are bound whole, as words or as vectors of four; none is smaller.
const VECTOR_BYTES: u64 = 16;

/// The limits and features of an adapter or a device that the driver looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(super) buffer_bytes: u64,
    pub(super) storage_binding_bytes: u64,
    pub(super) uniform_binding_bytes: u64,
    pub(super) storage_buffers: u32,
    pub(super) workgroups_per_dimension: u32,
    pub(super) invocations_per_workgroup: u32,
    pub(super) workgroup_storage_bytes: u32,
    pub(super) has_subgroups: bool,
}

fn no_adapter() -> Error {
    #[cfg(not(target_arch = "wasm32"))]
    let message = "no GPU adapter was found; install a Vulkan, Metal or DX12 driver (a software one will do: \
                   mesa-vulkan-drivers on Debian), or open the host driver";
    #[cfg(target_arch = "wasm32")]
    let message = "no GPU adapter was found; enable WebGPU in the browser, or open the host driver";
    Error::new(ErrorKind::NoAdapter, message)
}

fn no_such_adapter(ordinal: u32, count: usize) -> Error {
    let message = format_args!(
        "there is no GPU adapter of ordinal {ordinal}: the machine has {count}; leave it out for the preferred one"
    );
    Error::say(ErrorKind::NoAdapter, message)
}

fn refused_device(adapter: &str, said: &str) -> Error {
    Error::say(ErrorKind::NoAdapter, format_args!("adapter \"{adapter}\" refused to open a device: {said}"))
}
