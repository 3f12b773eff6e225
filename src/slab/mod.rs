//! Where bytes will live: addresses, the segment planner, blocks and the memory report. Pure integers; nothing here knows
//! a driver.

pub mod block;
pub(crate) mod layout;
pub mod loc;
pub mod plan;
pub mod report;
pub mod strided;
