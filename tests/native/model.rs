//! Random programs three ways: the oracle of plain bytes, the gpu driver and the host driver must agree on locations,
//! bytes, reports and errors.
//!
//! `WGSLAB_PROGRAMS=10000 cargo test --release --test native model` runs more than the few hundred of every test run;
//! `WGSLAB_SEED=n` begins elsewhere. A program that fails is cut down to the steps that it needs.

use pollster::block_on;
use wgslab::gpu::{Gpu, LimitsChoice};
use wgslab::host::Host;
use wgslab::{gpu, host};

use crate::common::compare::{CAP_BYTES, Count, Program, compare, describe, settled, shrink};
use crate::common::model::Devices;
use crate::open_with;

pub fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn open_gpu() -> Devices<Gpu> {
    let open = || {
        open_with(gpu::OpenOptions {
            limits: LimitsChoice::Default,
            segment_cap_bytes: Some(CAP_BYTES),
            ..gpu::OpenOptions::default()
        })
    };
    Devices { both: [open(), open()], foreign: open_foreign() }
}

fn open_host(memory_budget_bytes: Option<u64>) -> Devices<Host> {
    let open = || {
        host::open(host::OpenOptions { segment_cap_bytes: Some(CAP_BYTES), memory_budget_bytes }).expect("plain memory")
    };
    Devices { both: [open(), open()], foreign: open_foreign() }
}

fn open_foreign() -> wgslab::Device<Host> {
    host::open(host::OpenOptions::default()).expect("plain memory")
}

#[test]
fn random_programs_give_what_the_oracle_says_on_both_drivers() {
    let (programs, first) = (from_env("WGSLAB_PROGRAMS", 300), from_env("WGSLAB_SEED", 1));
    let (gpu, host) = (open_gpu(), open_host(None));
    let mut count = Count::default();
    for seed in first..first + programs {
        let program = Program::random(seed);
        if let Err(said) = block_on(compare(&program, &gpu, &host, None, &mut count)) {
            let nodes = program.nodes.clone();
            let fails = |program: Program| async move {
                compare(&program, &open_gpu(), &open_host(None), None, &mut Count::default()).await.err()
            };
            let (ops, said) = block_on(shrink(program, said, fails));
            panic!("{}", describe(seed, &nodes, &ops, &said));
        }
    }
    block_on(settled(&gpu)).unwrap();
    println!("from seed {first}: {count}");
    count.check().unwrap();
}
