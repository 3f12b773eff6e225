//! Much data over two devices: `WGSLAB_VOLUME_MIB=512 cargo test --release --test native volume -- --nocapture`.

use wgslab::gpu;

use crate::common::volume::move_across;
use crate::model::from_env;
use crate::open_with;

/// What a device stages at most, whatever goes through it: 16 upload buffers of 4 MiB, the upload ring of 1 MiB, and the
/// readback buffers of the pieces on their way and of one node.
const MAX_STAGING_BYTES: u64 = 128 << 20;

#[test]
fn much_data_crosses_two_devices_with_little_staging() {
    let total = from_env("WGSLAB_VOLUME_MIB", 48) << 20;
    let open = || {
        open_with(gpu::OpenOptions {
            limits: gpu::LimitsChoice::Default,
            segment_cap_bytes: Some(32 << 20),
            ..gpu::OpenOptions::default()
        })
    };
    let moved = pollster::block_on(move_across(&open(), &open(), total, 12 << 20));
    println!("{moved:?}");
    assert!(moved.pools as u64 >= total / (32 << 20), "{} pools", moved.pools);
    assert!(moved.staging_bytes.iter().all(|&bytes| bytes <= MAX_STAGING_BYTES), "{:?}", moved.staging_bytes);
}
