//! Random programs on both drivers: locations, bytes, reports and errors must be the same.
//!
//! `WGSLAB_PROGRAMS=10000 cargo test --release --test native model` runs more than the few hundred of every test run;
//! `WGSLAB_SEED=n` begins elsewhere.

use wgslab::slab::report::PoolReport;
use wgslab::{gpu, host};

use crate::common::model::{Random, World, make_nodes, make_op};
use crate::open_with;

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn random_programs_give_the_same_on_both_drivers() {
    let programs = from_env("WGSLAB_PROGRAMS", 300);
    let first = from_env("WGSLAB_SEED", 1);
    let options = gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(1024),
        ..gpu::OpenOptions::default()
    };
    let on_gpu = open_with(options);
    let on_host = host::open(host::OpenOptions { segment_cap_bytes: Some(1024), ..Default::default() }).unwrap();
    let (mut steps, mut refusals) = (0u64, 0u64);
    for seed in first..first + programs {
        let mut random = Random::new(seed);
        let nodes = make_nodes(&mut random);
        let (mut one, mut other) = (World::new(&on_gpu), World::new(&on_host));
        let mut program = Vec::new();
        for _ in 0..10 + random.below(40) {
            let op = make_op(&mut random, &nodes, one.contexts.len(), one.routines.len());
            program.push(op.clone());
            let (got, want) =
                pollster::block_on(async { (one.apply(&op, &nodes).await, other.apply(&op, &nodes).await) });
            assert_eq!(got, want, "seed {seed}: {op:?} after {program:#?}");
            steps += 1;
            refusals += u64::from(got.is_err());
        }
        assert_eq!(one.look(), other.look(), "seed {seed}: {program:#?}");
        let (got, want) = pollster::block_on(async { (one.all_bytes().await, other.all_bytes().await) });
        assert_eq!(got, want, "seed {seed}: {program:#?}");
        drop((one, other));
        for (left, device) in [(on_gpu.report(), "gpu"), (on_host.report(), "host")] {
            let pools: Vec<_> = left.pools.iter().filter(|pool| pool.pool_id.0 != 0).collect();
            let cached = on_gpu.constant_buffer_cache();
            let is_cached = |pool: &&PoolReport| cached.iter().any(|(_, loc)| loc.pool_id == pool.pool_id);
            assert!(pools.iter().all(is_cached), "seed {seed}: {device} keeps {pools:?}");
        }
        assert_eq!(on_gpu.free_unused_constants(), on_host.free_unused_constants());
    }
    on_gpu.sync().unwrap();
    println!("{programs} programs from seed {first}: {steps} steps, {refusals} of them refusals, no difference");
    assert!(refusals < steps * 3 / 4, "most steps are refused: the programs prove little");
}
