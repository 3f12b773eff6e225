//! As `tests/native/cycles.rs` and `tests/native/volume.rs`, in the browser; how much is set when the suite is built.

use wasm_bindgen_test::{console_log, wasm_bindgen_test};
use wgslab::gpu;

use crate::common::cycles::Cycles;
use crate::common::volume::move_across;
use crate::open;

/// What a device stages at most, whatever goes through it: the upload ring and readback buffers of a piece or a node.
const MAX_STAGING_BYTES: u64 = 128 << 20;

fn from_env(value: Option<&str>, default: u64) -> u64 {
    value.and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[wasm_bindgen_test]
async fn cycles_of_random_deltas_leave_no_growth() {
    let device = open(gpu::LimitsChoice::Default).await;
    let mut cycles = Cycles::new(&device, 1 << 15).await;
    let figures = cycles.run(from_env(option_env!("WGSLAB_CYCLES"), 300)).await;
    console_log!("{figures:#?}");
    assert_eq!(figures.end, figures.warm);
    assert_eq!(figures.end.pools, 1, "only the uploaded node is left");
}

#[wasm_bindgen_test]
async fn much_data_crosses_two_devices_with_little_staging() {
    let total = from_env(option_env!("WGSLAB_VOLUME_MIB"), 48) << 20;
    let options = gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(32 << 20),
        ..gpu::OpenOptions::default()
    };
    let (first, second) = (gpu::open(options.clone()).await.unwrap(), gpu::open(options).await.unwrap());
    let moved = move_across(&first, &second, total, 12 << 20).await;
    console_log!("{moved:?}");
    assert!(moved.pools as u64 >= total / (32 << 20), "{} pools", moved.pools);
    assert!(moved.staging_bytes.iter().all(|&bytes| bytes <= MAX_STAGING_BYTES), "{:?}", moved.staging_bytes);
}
