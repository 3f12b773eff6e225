//! A lost device settles everything, and says why.

use std::future::IntoFuture;

use wgslab::{Context, ErrorKind, host};

use crate::{increment, ints, open, slow};

#[test]
fn a_device_destroyed_in_flight_settles_every_promise() {
    let device = open();
    let (x, y) = (ints("x", 16), ints("y", 1));
    let context = Context::root(&device).init_from_host(&x, &[1; 16]).unwrap().init_from_host(&y, &[1]).unwrap();
    let routine = increment(&context, &x);
    let long = slow(&context, &y, 50_000_000);
    device.sync().unwrap();
    long.run().unwrap();
    device.flush().unwrap();
    let submitted = long.run().unwrap();
    device.flush().unwrap();
    let recorded = routine.run().unwrap();
    let read = context.to_host::<i32>(&x);
    let lost = device.lost();
    let waiting = std::thread::spawn({
        let submitted = submitted.clone();
        move || pollster::block_on(submitted.into_future())
    });
    device.destroy();
    let is_lost = |error: wgslab::Error| {
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
        assert!(error.is_device_lost());
        assert!(error.to_string().contains("is lost (destroyed by the program)"), "{error}");
    };
    // A software adapter may have executed it before `destroy` was called; then it stays done.
    if let Err(error) = waiting.join().unwrap() {
        is_lost(error);
    }
    is_lost(recorded.sync().unwrap_err());
    is_lost(pollster::block_on(recorded.into_future()).unwrap_err());
    is_lost(pollster::block_on(read).unwrap_err());
    is_lost(pollster::block_on(lost));
    is_lost(routine.run().unwrap_err());
    is_lost(context.from_host(&x, &[0; 16]).unwrap_err());
    is_lost(context.init_zeros(&[&ints("z", 1)]).unwrap_err());
    is_lost(pollster::block_on(context.link(routine.code().unwrap())).unwrap_err());
    is_lost(device.sync().unwrap_err());
    is_lost(pollster::block_on(context.to_host::<i32>(&x)).unwrap_err());
    context.finalize();
    device.destroy();
}

#[test]
fn work_done_before_the_loss_stays_done() {
    let device = open();
    let x = ints("x", 1);
    let context = Context::root(&device).init_from_host(&x, &[0]).unwrap();
    let done = increment(&context, &x).run().unwrap();
    done.sync().unwrap();
    device.destroy();
    assert!(done.is_done());
    done.sync().unwrap();
}

#[test]
fn the_host_driver_is_lost_in_the_same_way() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let x = ints("x", 1);
    let context = Context::root(&device).init_from_host(&x, &[3]).unwrap();
    device.destroy();
    assert_eq!(pollster::block_on(device.lost()).kind(), ErrorKind::DeviceLost);
    let error = pollster::block_on(context.to_host::<i32>(&x)).unwrap_err();
    assert!(error.to_string().contains("host:0:"), "{error}");
    assert_eq!(context.from_host(&x, &[1]).unwrap_err().kind(), ErrorKind::DeviceLost);
}
