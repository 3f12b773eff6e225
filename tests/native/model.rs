//! Random programs three ways: the oracle of plain bytes, the gpu driver and the host driver must agree on locations,
//! bytes, reports and errors.
//!
//! `WGSLAB_PROGRAMS=10000 cargo test --release --test native model` runs more than the few hundred of every test run;
//! `WGSLAB_SEED=n` begins elsewhere. A program that fails is cut down to the steps that it needs.

use std::ops::Range;

use pollster::block_on;
use wgslab::gpu::{Gpu, LimitsChoice};
use wgslab::host::Host;
use wgslab::{gpu, host};

use crate::common::compare::{CAP_BYTES, Count, SMALL_HEAP_BYTES, run};
use crate::common::model::Devices;
use crate::open_with;

pub fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn open_gpu(first: Option<u64>, second: Option<u64>) -> Devices<Gpu> {
    let open = |heap_bytes| {
        open_with(gpu::OpenOptions {
            limits: LimitsChoice::Default,
            segment_cap_bytes: Some(CAP_BYTES),
            heap_bytes,
            ..gpu::OpenOptions::default()
        })
    };
    Devices::new(open(first), open(second))
}

fn open_host(memory_budget_bytes: Option<u64>) -> Devices<Host> {
    let options = host::OpenOptions { segment_cap_bytes: Some(CAP_BYTES), memory_budget_bytes };
    let open = || host::open(options.clone()).unwrap();
    Devices::new(open(), open())
}

fn seeds(default: u64) -> Range<u64> {
    let first = from_env("WGSLAB_SEED", 1);
    first..first + from_env("WGSLAB_PROGRAMS", default)
}

#[test]
fn random_programs_give_what_the_oracle_says_on_both_drivers() {
    let (seeds, mut count) = (seeds(300), Count::default());
    // One heap holds everything on the first, three slabs or so on the second.
    let open = || async { (open_gpu(None, Some(SMALL_HEAP_BYTES)), open_host(None)) };
    block_on(run(open, None, seeds.clone(), &mut count)).unwrap_or_else(|said| panic!("{said}"));
    println!("seeds {seeds:?}: {count}");
    count.check().unwrap();
}

/// Slabs lie in more heaps than a kernel may bind, and move from one to another.
#[test]
fn random_programs_over_many_small_heaps_give_what_the_oracle_says() {
    let (seeds, mut count) = (seeds(150), Count::default());
    let open = || async { (open_gpu(Some(2048), Some(2048)), open_host(None)) };
    block_on(run(open, None, seeds.clone(), &mut count)).unwrap_or_else(|said| panic!("{said}"));
    println!("small heaps, seeds {seeds:?}: {count}");
    count.check().unwrap();
}

/// What the budget of a GPU device bounds are heaps, so only the host driver can be predicted.
#[test]
fn random_programs_over_the_budget_are_refused_and_change_nothing() {
    const BUDGET: u64 = 5 << 10;
    let (seeds, mut count) = (seeds(300), Count::default());
    let open = || async { (open_host(Some(BUDGET)), open_host(Some(BUDGET))) };
    block_on(run(open, Some(BUDGET), seeds.clone(), &mut count)).unwrap_or_else(|said| panic!("{said}"));
    println!("a budget of {BUDGET} bytes, seeds {seeds:?}: {count}");
    count.check().unwrap();
    assert!(count.codes["out-of-memory"] > 0, "the budget is never met");
}
