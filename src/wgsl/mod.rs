//! Raw kernels: what their author declares, the accessors made from that, and how tensors are bound. Pure text and
//! integers.

pub mod accessors;
pub mod bind_plan;
pub mod check;
#[cfg(feature = "notation")]
pub mod emit;
#[cfg(feature = "notation")]
pub mod math;
pub mod slots;
pub mod spec;
pub mod twin;
