//! Where bytes will live: addresses, the segment planner and the memory report. Pure integers; nothing here knows
//! a driver.

pub(crate) mod layout;
pub mod loc;
pub mod plan;
pub mod report;
