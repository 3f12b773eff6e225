//! From a program to work: compile → code, link → routine, run → event.

pub mod compile;
mod link;
pub mod routine;
