//! The runner: batches, order, events, readbacks.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

use wgslab::{Access, Context, DType, Device, Event, KernelSpec, Routine, TensorNode, gpu};

use crate::{increment, ints, open, slow};

#[test]
fn a_thousand_runs_make_at_most_ten_submissions() {
    let device = open();
    let x = ints("x", 64);
    let context = Context::root(&device).init_from_host(&x, &[0; 64]).unwrap();
    let routine = increment(&context, &x);
    // The first run compiles and clears; how long it took must not make the batches small.
    routine.run().unwrap().sync().unwrap();
    let before = device.stats();
    for _ in 0..1000 {
        routine.run().unwrap();
    }
    device.sync().unwrap();
    let after = device.stats();
    assert_eq!(pollster::block_on(routine.context().to_host::<i32>(&x)).unwrap(), [1001; 64]);
    let submissions = after.submissions - before.submissions;
    println!("1,000 runs: {submissions} submissions, {} passes", after.passes - before.passes);
    assert!(submissions <= 10, "{submissions} submissions");
    assert_eq!(after.dispatches - before.dispatches, 1000);
    assert_eq!(after.bind_groups_created, before.bind_groups_created);
    assert!(after.passes - before.passes <= submissions, "dispatches of a batch share a pass");
}

#[test]
fn many_readbacks_recorded_together_share_one_transfer() {
    let device = open();
    let nodes: Vec<_> = (0..50).map(|index| ints(&format!("n{index}"), 100 + index)).collect();
    let mut context = Context::root(&device);
    for (index, node) in nodes.iter().enumerate() {
        context = context.init_from_host(node, &vec![index as i32; 100 + index]).unwrap();
    }
    device.sync().unwrap();
    let before = device.stats();
    let reads: Vec<_> = nodes.iter().map(|node| context.to_host::<i32>(node)).collect();
    for (index, read) in reads.into_iter().enumerate() {
        assert_eq!(pollster::block_on(read).unwrap(), vec![index as i32; 100 + index]);
    }
    let after = device.stats();
    assert_eq!((after.maps - before.maps, after.submissions - before.submissions), (1, 1));
    let refs: Vec<_> = nodes.iter().collect();
    assert_eq!(pollster::block_on(context.to_host_many(&refs)).unwrap().len(), 50);
    assert_eq!(device.stats().maps - after.maps, 1);
    assert_eq!(device.stats().buffers_created, after.buffers_created, "staging buffers are taken up again");
}

#[test]
fn readbacks_see_what_was_recorded_before_them_and_nothing_after() {
    let device = open();
    let x = ints("x", 1);
    let context = Context::root(&device).init_from_host(&x, &[0]).unwrap();
    let routine = increment(&context, &x);
    let mut reads = Vec::new();
    for round in 0..600 {
        if round % 3 == 0 {
            context.from_host(&x, &[round * 10]).unwrap();
        }
        routine.run().unwrap();
        reads.push(context.to_host::<i32>(&x));
    }
    for (round, read) in reads.into_iter().enumerate() {
        let round = round as i32;
        assert_eq!(pollster::block_on(read).unwrap(), [round / 3 * 30 + round % 3 + 1]);
    }
}

#[test]
fn large_uploads_between_dispatches_keep_their_order() {
    let device = open();
    let len = 600_000;
    let x = ints("x", len);
    let y = ints("y", len);
    let context = Context::root(&device).init_from_host(&x, &vec![1; len as usize]).unwrap();
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_y(id.x, load_x(id.x)); }";
    let spec = KernelSpec::new("keep", text).tensor("x", &x, Access::Read).tensor("y", &y, Access::Write);
    let code = pollster::block_on(device.compile(spec.grid([len.div_ceil(64), 1, 1]))).unwrap();
    let routine = pollster::block_on(context.link(&code)).unwrap();
    routine.run().unwrap();
    context.from_host(&x, &vec![2; len as usize]).unwrap();
    let first = routine.context().to_host::<i32>(&y);
    routine.run().unwrap();
    let second = routine.context().to_host::<i32>(&y);
    assert_eq!(pollster::block_on(first).unwrap(), vec![1; len as usize]);
    assert_eq!(pollster::block_on(second).unwrap(), vec![2; len as usize]);
}

/// A software adapter may execute a submission before `submit` returns; then there is nothing to observe, and the
/// attempt does not count.
#[test]
fn events_settle_in_order_and_an_early_event_does_not_wait_for_later_work() {
    let observed = (0..20).any(|_| {
        let device = open();
        let (x, y) = (ints("x", 1), ints("y", 1));
        let context = Context::root(&device).init_from_host(&x, &[0]).unwrap().init_from_host(&y, &[1]).unwrap();
        let quick = increment(&context, &x);
        let long = slow(&context, &y, 30_000_000);
        device.sync().unwrap();
        let early = quick.run().unwrap();
        device.flush().unwrap();
        let late = long.run().unwrap();
        assert!(early.seq() < late.seq());
        early.sync().unwrap();
        let overlapped = early.is_done() && !late.is_done() && !device.is_idle();
        late.sync().unwrap();
        assert!(early.is_done() && late.is_done() && device.is_idle());
        overlapped
    });
    assert!(observed, "in 20 attempts no event was done while later work was not");
}

#[test]
fn ten_thousand_awaited_events_cost_a_handful_of_submissions() {
    let device = open();
    let x = ints("x", 1);
    let context = Context::root(&device).init_from_host(&x, &[0]).unwrap();
    let routine = increment(&context, &x);
    device.sync().unwrap();
    let before = device.stats().submissions;
    let events: Vec<Event<gpu::Gpu>> = (0..10_000).map(|_| routine.run().unwrap()).collect();
    for event in events {
        pollster::block_on(event.into_future()).unwrap();
    }
    assert!(device.stats().submissions - before <= 50);
}

#[test]
fn dropping_a_future_loses_nothing() {
    let device = open();
    let x = ints("x", 1);
    let context = Context::root(&device).init_from_host(&x, &[5]).unwrap();
    let routine = increment(&context, &x);
    for _ in 0..100 {
        let event = routine.run().unwrap();
        let mut wait = pin!(event.into_future());
        let polled = wait.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        assert!(!matches!(polled, Poll::Ready(Err(_))));
        drop(context.to_host::<i32>(&x));
    }
    assert_eq!(pollster::block_on(context.to_host::<i32>(&x)).unwrap(), [105]);
}

#[test]
fn a_slab_freed_while_its_last_use_is_queued_keeps_its_meaning() {
    let device = open();
    let (x, y, out) = (ints("x", 1), ints("y", 1), ints("out", 1));
    let kept = Context::root(&device).init_zeros(&[&out]).unwrap();
    let doomed = kept.init_from_host(&x, &[41]).unwrap();
    let long = slow(&doomed, &x, 5_000_000);
    long.run().unwrap();
    doomed.copy_bytes(&x, 0, &out, 0, 4).unwrap();
    let expected = pollster::block_on(doomed.to_host::<i32>(&x)).unwrap();
    doomed.from_host(&x, &[41]).unwrap();
    long.run().unwrap();
    doomed.copy_bytes(&x, 0, &out, 0, 4).unwrap();
    doomed.finalize();
    // The new node takes the place of the old one while the slow kernel has not run.
    let next = kept.init_from_host(&y, &[7]).unwrap();
    assert_eq!(pollster::block_on(kept.to_host::<i32>(&out)).unwrap(), expected);
    assert_eq!(pollster::block_on(next.to_host::<i32>(&y)).unwrap(), [7]);
}

#[test]
fn devices_contexts_and_futures_may_cross_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    fn sendable<T: Send>(_: &T) {}
    shared::<Device<gpu::Gpu>>();
    shared::<Context<gpu::Gpu>>();
    shared::<Routine<gpu::Gpu>>();
    shared::<Event<gpu::Gpu>>();
    let device = open();
    let x = TensorNode::new("x", DType::F32, [256]);
    let context = Context::root(&device).init_from_host(&x, &[0.5f32; 256]).unwrap();
    sendable(&context.to_host::<f32>(&x));
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let context = context.clone();
            std::thread::spawn(move || {
                let y = TensorNode::new("y", DType::I32, [64]);
                let mine = context.init_from_host(&y, &[index; 64]).unwrap();
                let routine = increment(&mine, &y);
                for _ in 0..50 {
                    routine.run().unwrap().sync().unwrap();
                }
                assert_eq!(pollster::block_on(mine.to_host::<i32>(&y)).unwrap(), [index + 50; 64]);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
