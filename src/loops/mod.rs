//! Programs as loop nests. Pure; nothing here knows a driver.

pub mod ir;
pub mod lower;
pub mod optimise;
mod print;
pub(crate) mod rewrite;
pub mod virtuals;
