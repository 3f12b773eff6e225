//! Thousands of links, runs and finalizes of random deltas: `WGSLAB_CYCLES=100000 cargo test --release --test native
//! cycles -- --nocapture` runs more.

use crate::common::cycles::Cycles;
use crate::model::from_env;
use crate::open;

/// Bytes of this process in memory, where the system says.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}

#[test]
fn cycles_of_random_deltas_leave_no_growth() {
    let device = open();
    let mut cycles = pollster::block_on(Cycles::new(&device, 1 << 15));
    let count = from_env("WGSLAB_CYCLES", 3000);
    // The memory of the process counts from where the device has what it needs.
    pollster::block_on(cycles.run(count.div_ceil(10)));
    let before = resident_bytes();
    let figures = pollster::block_on(cycles.run(count));
    println!("{figures:#?}");
    println!("resident bytes of the process: {before:?} -> {:?}", resident_bytes());
    assert_eq!(figures.end, figures.warm);
    assert_eq!(figures.end.pools, 1, "only the uploaded node is left");
}

/// With more alive than one heap holds, heaps come and go; what is reserved still follows what is in use.
#[test]
fn cycles_over_several_heaps_keep_what_is_reserved_bounded() {
    let device = open();
    let mut cycles = pollster::block_on(Cycles::new(&device, 1 << 20));
    let figures = pollster::block_on(cycles.run(from_env("WGSLAB_CYCLES", 3000).div_ceil(10)));
    let peak = device.report().peak_bytes;
    println!("peak of {peak} bytes in use: {figures:#?}");
    assert!(figures.largest_reserved_bytes <= 4 * peak, "{} reserved", figures.largest_reserved_bytes);
    assert_eq!((figures.end.in_use_bytes, figures.end.pools), (figures.warm.in_use_bytes, 1));
}
