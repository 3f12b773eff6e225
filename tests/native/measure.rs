//! Measurements, for whoever changes the driver: `cargo test --release --test native measure -- --ignored --nocapture`.

use std::sync::Arc;
use std::time::Instant;

use wgslab::{Access, BufferLoc, DType, Driver, KernelSpec, PoolId, TensorNode, alloc_pool, gpu};

use crate::open;

/// What the driver's part of a link costs, with the pipeline there.
#[test]
#[ignore = "a measurement"]
fn linking_a_thousand_tensors() {
    let device = open();
    let nodes: Vec<_> = (0..1000).map(|index| TensorNode::new(format!("t{index}"), DType::F32, [3])).collect();
    let mut spec = KernelSpec::new("wide", "@compute @workgroup_size(1) fn main() { store_t0(0u, load_t999(1u)); }");
    for node in &nodes {
        spec = spec.tensor(node.label(), node, Access::ReadWrite);
    }
    for pool in 1..=3 {
        alloc_pool(&device, PoolId(pool), 256_000, 256, None).unwrap();
    }
    let kernel = pollster::block_on(gpu::Gpu::compile(device.runner(), device.dev(), Arc::new(spec))).unwrap();
    let kernel = Arc::new(kernel);
    let of_pool = |pool: &dyn Fn(u32) -> u32| {
        let locs = (0..1000).map(|index| BufferLoc { pool_id: PoolId(pool(index)), offset: u64::from(index) * 256 });
        locs.collect::<Vec<_>>()
    };
    let cases = [
        ("in one pool", of_pool(&|_| 1)),
        ("in two pools, one after the other", of_pool(&|index| 1 + index / 500)),
        ("in two pools, by turns", of_pool(&|index| 1 + index % 2)),
        ("in three pools, by turns", of_pool(&|index| 1 + index % 3)),
    ];
    for (name, locs) in cases {
        let rounds = 200;
        let mut least = f64::INFINITY;
        for _ in 0..rounds {
            let locs = locs.clone();
            let start = Instant::now();
            let linked = pollster::block_on(gpu::Gpu::link(device.runner(), &kernel, locs)).unwrap();
            least = least.min(start.elapsed().as_secs_f64() * 1e6);
            drop(linked);
        }
        println!("1,000 tensors {name}: {least:.1} µs, the least of {rounds}");
    }
}
