//! From a program to work: compile → code, link → routine, run → event.

mod across;
mod batch;
pub mod compile;
pub mod forecast;
mod join;
mod link;
pub mod merge;
#[cfg(feature = "notation")]
mod nest;
mod nodes;
#[cfg(feature = "notation")]
mod program;
pub mod routine;
pub mod sequence;
#[cfg(feature = "notation")]
mod tune;
#[cfg(feature = "notation")]
mod virtuals;
