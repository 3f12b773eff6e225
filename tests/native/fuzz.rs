//! Random programs in index notation: both drivers do what a naive evaluator says.

use std::io::Write;
use std::time::Instant;

use crate::common::fuzz::{Count, check_seed};
use crate::open;
use wgslab::host;

/// Programs per pair of devices.
const BATCH: u64 = 250;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}

#[test]
fn random_programs_mean_the_same_on_both_drivers() {
    let programs = number("WGSLAB_PROGRAM_FUZZ").unwrap_or(200);
    let first = number("WGSLAB_SEED").unwrap_or(0);
    let (start, mut count, mut failures) = (Instant::now(), Count::default(), Vec::new());
    for batch in (first..first + programs).step_by(BATCH as usize) {
        let devices = (host::open(host::OpenOptions::default()).unwrap(), open());
        for seed in batch..(batch + BATCH).min(first + programs) {
            if let Err(text) = pollster::block_on(check_seed(seed, &devices.0, &devices.1, &mut count)) {
                failures.push(text);
            }
            if failures.len() >= 10 {
                break;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f32();
    // Past the test harness, which keeps what a passing test prints.
    let _ = writeln!(std::io::stderr(), "fuzz: {count}; {} failures, {seconds:.1} s", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    count.check().unwrap();
}
