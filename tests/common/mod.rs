//! The case runner that the native suite, the browser suite and the `cases` example share.

pub mod blocks;
pub mod builtins;
pub mod case;
pub mod compare;
pub mod cycles;
pub mod model;
pub mod oracle;
pub mod run_case;
pub mod values;
pub mod volume;
