//! Failures of batches, made by hand.

use super::*;
use crate::device::open::open_gpu;
use crate::driver::event::DriverEvent;
use crate::driver::gpu::OpenOptions;
use crate::driver::gpu::platform::usage;
use crate::slab::loc::BufferLoc;

/// Nothing that passes our own checks is refused by wgpu, so the refusal is made by hand.
#[test]
fn a_refused_batch_fails_its_events_and_readbacks_and_all_later_ones() {
    let device = pollster::block_on(open_gpu(OpenOptions::default())).unwrap();
    let runner = device.runner();
    let loc = BufferLoc { pool_id: PoolId(1), offset: 0 };
    runner.alloc_pool(PoolId(1), 1024, 256, None).unwrap();
    let before = runner.zero(loc, 16).unwrap();
    before.sync().unwrap();

    let read_before = runner.stage(&[(loc, 16)]).unwrap();
    runner.flush().unwrap();
    let same_batch = runner.zero(loc, 16).unwrap();
    let heap = runner.lock().pools.get(&PoolId(1)).unwrap().heap;
    runner.lock().tasks.push(Task::Zero { heap, offset: u64::MAX - 7, len: 4 });
    let read = runner.stage(&[(loc, 16)]).unwrap();
    let later = runner.zero(loc, 16).unwrap();

    for outcome in [same_batch.sync(), later.sync(), pollster::block_on(read).map(drop)] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Bug, "{error}");
        assert!(error.to_string().starts_with(device.name()), "{error}");
        assert!(error.to_string().contains("a submitted batch failed"), "{error}");
    }
    before.sync().unwrap();
    pollster::block_on(read_before).unwrap();
    let after = runner.zero(loc, 16).unwrap();
    assert!(after.sync().is_err() && after.is_done(), "failures stick to the device");
    assert!(pollster::block_on(runner.stage(&[(loc, 16)]).unwrap()).is_err());
    assert!(pollster::block_on(device.await_idle()).is_err());
}

#[test]
fn an_error_that_nobody_can_place_fails_everything_unsettled() {
    let device = pollster::block_on(open_gpu(OpenOptions::default())).unwrap();
    let runner = device.runner();
    runner.alloc_pool(PoolId(1), 1024, 256, None).unwrap();
    let loc = BufferLoc { pool_id: PoolId(1), offset: 0 };
    let settled = runner.zero(loc, 16).unwrap();
    settled.sync().unwrap();
    let pending = runner.zero(loc, 16).unwrap();
    // An invalid buffer, outside any scope of ours.
    let _ = runner.dev.device.create_buffer("invalid", 16, usage::MAP_READ | usage::STORAGE | usage::UNIFORM);
    let error = pending.sync().unwrap_err();
    assert!(error.to_string().contains("the GPU reported:"), "{error}");
    settled.sync().unwrap();
}
