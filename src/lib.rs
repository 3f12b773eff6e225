//! A GPU compute device for array programs.
//!
//! Tensors live in **slab pools**, ranges of a few large storage buffers. A [`Context`] says which tensor is where; a
//! kernel is compiled once and linked into a context as a [`Routine`]; every piece of queued work has an [`Event`] that
//! can be awaited. The same API runs natively (Vulkan, Metal, DX12) and in browsers (WebGPU), and where there is no
//! GPU, plain host memory stands in for the device layer.
//!
//! # A whole program
//!
//! ```ignore-wasm32
//! use wgslab::{Access, Context, DType, KernelSpec, TensorNode, gpu};
//!
//! # fn main() -> wgslab::Result<()> { pollster::block_on(run()) }
//! # async fn run() -> wgslab::Result<()> {
//! let device = gpu::open(gpu::OpenOptions::default()).await?;
//!
//! // A node is a name for a tensor; a context says where it is. Uploading gives a child context that has it.
//! let x = TensorNode::new("x", DType::F32, [1024]);
//! let loaded = Context::root(&device).init_from_host(&x, &[2.0f32; 1024])?;
//! assert_eq!(loaded.loc(&x).map(|loc| loc.to_string()).as_deref(), Some("p1+0"));
//!
//! // A kernel declares its tensors, and reads and writes them by generated accessors: no bindings, no limits on them.
//! let y = TensorNode::new("y", DType::F32, [1024]);
//! let scale = KernelSpec::new(
//!     "scale",
//!     "@compute @workgroup_size(64)
//!      fn main(@builtin(global_invocation_id) id: vec3u) {
//!        store_y(id.x, f32(static_factor()) * load_x(id.x));
//!      }",
//! )
//! .tensor("x", &x, Access::Read)
//! .tensor("y", &y, Access::Write)
//! .statics(["factor"])
//! .grid([1024 / 64, 1, 1]);
//!
//! let code = device.compile(scale).await?; // errors carry line, column and excerpt
//! let step = loaded.link(&code).await?; // the routine's context is a child that has y
//! let done = step.run_with(&[("factor", 3)])?; // recorded; returns at once
//! done.await?;
//!
//! let y: Vec<f32> = step.context().to_host(&y).await?;
//! assert_eq!(y, [6.0; 1024]);
//! # Ok(())
//! # }
//! ```
//!
//! # The path of an array
//!
//! The modules stand in the order in which an array passes through them: host array → slab → kernel declarations →
//! driver → device and context → transfer → compile, link, run → readback. Dependencies point upward only.

// A page's GPU objects live on its one thread, where `Arc` is as good as `Rc`.
#![cfg_attr(target_arch = "wasm32", allow(clippy::arc_with_non_send_sync))]

// What the caller holds.
pub mod diagnostic;
pub mod dtype;
pub mod error;
pub mod host_array;
pub mod node;
pub mod sorted_map;

// What a program in index notation means, and how it is computed.
#[cfg(feature = "notation")]
pub mod loops;
#[cfg(feature = "notation")]
pub mod notation;
#[cfg(feature = "notation")]
pub mod schedule;
#[cfg(feature = "notation")]
pub(crate) mod steps;

// Where its bytes will live.
pub mod slab;

// What raw kernels declare.
pub mod wgsl;

// The seam to a kind of device, and the two drivers behind it.
pub mod driver;

// Kernels that come with the crate.
pub mod kernels;

// The device, its events, and which tensor is where.
pub mod context;
pub mod device;
pub mod event;

// Moving bytes.
pub mod transfer;

// From a program to work.
pub mod backend;

// The browser.
#[cfg(target_arch = "wasm32")]
pub mod web;

pub use backend::compile::{Code, Source};
pub use backend::forecast::Forecast;
pub use backend::merge::Landing;
pub use backend::routine::Routine;
pub use backend::sequence::Sequence;
pub use context::lineage::RoutineId;
pub use context::{Context, ContextBuilder, CtxBuffers};
pub use device::pools::{alloc_pool, free_pool, memset_zero, resolve_pool};
pub use device::registry::{DebugInfo, StaticProperties, global_debug_info};
pub use device::{Device, DeviceId};
pub use diagnostic::Diagnostic;
pub use driver::Driver;
pub use driver::limits::{AdapterInfo, Compaction, DeviceLimits, RunnerStats};
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use host_array::Element;
pub use node::{MemoryMode, NodeId, TensorNode};
#[cfg(feature = "notation")]
pub use notation::spec::{Binding, Forced, ProgramSpec, Tune};
pub use slab::block::{Block, Span};
pub use slab::loc::{BufferLoc, PoolId};
pub use slab::report::MemoryReport;
pub use wgsl::spec::{Access, KernelSpec};
pub use wgsl::twin::{HostTwin, TwinArgs};

/// The `gpu` driver: WebGPU in browsers; Vulkan, Metal and DX12 natively.
pub mod gpu {
    pub use crate::device::open::{
        gpu_device as get_device, gpu_num_devices as num_devices, gpu_static_properties as static_properties,
        open_gpu as open,
    };
    pub use crate::driver::gpu::{Gpu, GpuDev, GpuRunner, LimitsChoice, OpenOptions, PowerPreference};
}

/// The `host` driver: plain memory, everywhere.
pub mod host {
    pub use crate::device::open::{
        host_device as get_device, host_num_devices as num_devices, host_static_properties as static_properties,
        open_host as open,
    };
    pub use crate::driver::host::{Host, HostDev, HostRunner, OpenOptions};
}

/// The README's programs run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
