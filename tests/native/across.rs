//! Two devices: work that waits for the other's, and copies that are recorded like any other work.

use wgslab::{Access, Context, DType, Device, ErrorKind, KernelSpec, Landing, TensorNode, gpu, host};

use crate::{increment, ints, open, slow};

/// Some ten milliseconds on a software adapter.
const ROUNDS: u32 = 4_000_000;

fn read(context: &Context<gpu::Gpu>, node: &TensorNode) -> Vec<i32> {
    pollster::block_on(context.to_host(node)).unwrap()
}

/// Work of `device` that takes a while.
fn slow_event(device: &Device<gpu::Gpu>, node: &TensorNode) -> wgslab::Event<gpu::Gpu> {
    slow_events(device, node, 1)
}

fn slow_events(device: &Device<gpu::Gpu>, node: &TensorNode, count: u32) -> wgslab::Event<gpu::Gpu> {
    let context = Context::root(device).init_from_host(node, &[1]).unwrap();
    let routine = slow(&context, node, ROUNDS);
    for _ in 1..count {
        routine.run().unwrap();
    }
    let event = routine.run().unwrap();
    device.flush().unwrap();
    event
}

#[test]
fn work_behind_a_wait_starts_after_the_event_of_the_other_device() {
    let (one, other) = (open(), open());
    let (s, x) = (ints("s", 1), ints("x", 64));
    let context = Context::root(&other).init_from_host(&x, &[0; 64]).unwrap();
    let routine = increment(&context, &x);
    routine.run().unwrap().sync().unwrap();
    let slow = slow_events(&one, &s, 20);
    context.will_wait_for(&slow).unwrap();
    let behind = routine.run().unwrap();
    behind.sync().unwrap();
    assert!(slow.is_done(), "it ran before what it must wait for");
    assert_eq!(read(&context, &x), [2; 64]);
}

#[test]
fn an_event_of_the_same_device_and_one_that_is_done_hold_nothing() {
    let (one, other) = (open(), open());
    let x = ints("x", 64);
    let context = Context::root(&one).init_from_host(&x, &[0; 64]).unwrap();
    let event = increment(&context, &x).run().unwrap();
    context.will_wait_for(&event).unwrap();
    event.sync().unwrap();
    Context::root(&other).will_wait_for(&event).unwrap();
    assert_eq!(read(&context, &x), [1; 64]);
}

#[test]
fn everything_that_can_be_recorded_can_be_recorded_behind_a_wait() {
    let (one, other) = (open(), open());
    let (s, x, y, large) = (ints("s", 1), ints("x", 64), ints("y", 64), ints("large", 1 << 20));
    let context = Context::root(&other).init_from_host(&x, &[0; 64]).unwrap();
    let with_large = context.init_from_host(&large, &vec![1; 1 << 20]).unwrap();
    let spec = KernelSpec::new(
        "add",
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            store_x(id.x, load_x(id.x) + static_amount()); }",
    );
    let code = pollster::block_on(other.compile(spec.tensor("x", &x, Access::ReadWrite).statics(["amount"]))).unwrap();
    let routine = pollster::block_on(context.link(&code)).unwrap();
    context.will_wait_for(&slow_event(&one, &s)).unwrap();
    // More parameter blocks than fit the ring, and more batches than are in flight otherwise.
    for amount in 0..3000 {
        routine.run_with(&[("amount", amount)]).unwrap();
    }
    let sum: i32 = (0..3000).sum();
    let early = context.to_host::<i32>(&x);
    // Uploads: small and large, onto what waiting work reads, and onto memory that was just freed.
    context.from_host(&x, &[7; 64]).unwrap();
    with_large.from_host(&large, &vec![2; 1 << 20]).unwrap();
    let copied = with_large.copy_bytes(&large, 0, &x, 0, 128).unwrap();
    with_large.from_host(&large, &vec![3; 1 << 20]).unwrap();
    let late = with_large.to_host_many(&[&x, &large]);
    with_large.finalize();
    let next = context.init_zeros(&[&y]).unwrap();
    next.from_host_at(&y, 1, &[5]).unwrap();
    other.trim().unwrap();
    assert_eq!(pollster::block_on(early).unwrap(), [sum; 64]);
    copied.sync().unwrap();
    let late = pollster::block_on(late).unwrap();
    let want: Vec<i32> = [[2; 32], [7; 32]].concat();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, i32>(&late[0]), want);
    assert!(bytemuck::pod_collect_to_vec::<u8, i32>(&late[1]).iter().all(|value| *value == 3));
    let mut fresh = vec![0; 64];
    fresh[1] = 5;
    assert_eq!(read(&next, &y), fresh);
    other.sync().unwrap();
    drop((context, with_large, next, routine));
    other.trim().unwrap();
    assert_eq!(other.report().reserved_bytes, 0, "heaps that were given back meanwhile are gone");
}

#[test]
fn devices_wait_for_each_other_in_turn() {
    let (one, other) = (open(), open());
    let (s, x) = (ints("s", 1), ints("x", 1));
    let first = slow_event(&one, &s);
    let (on_one, on_other) = (Context::root(&one), Context::root(&other));
    let on_one = on_one.init_from_host(&x, &[0]).unwrap();
    let on_other = on_other.init_from_host(&x, &[0]).unwrap();
    let (mine, theirs) = (increment(&on_one, &x), increment(&on_other, &x));
    on_other.will_wait_for(&first).unwrap();
    for _ in 0..5 {
        let event = theirs.run().unwrap();
        on_one.will_wait_for(&event).unwrap();
        let event = mine.run().unwrap();
        on_other.will_wait_for(&event).unwrap();
    }
    theirs.run().unwrap().sync().unwrap();
    assert!(first.is_done());
    assert_eq!((read(&on_one, &x), read(&on_other, &x)), (vec![5], vec![6]));
}

#[test]
fn devices_that_copy_from_each_other_in_turn_are_awaited() {
    let (one, other) = (open(), open());
    let x = ints("x", 64);
    let on_one = Context::root(&one).init_from_host(&x, &[0; 64]).unwrap();
    let on_other = Context::root(&other).init_from_host(&x, &[0; 64]).unwrap();
    let (here, there) = (increment(&on_one, &x), increment(&on_other, &x));
    let to_other = on_other.device_to_device(&x, Landing::Node, &on_one).unwrap().unwrap();
    let to_one = on_one.device_to_device(&x, Landing::Node, &on_other).unwrap().unwrap();
    for _ in 0..10 {
        for routine in [&here, &to_other, &there, &to_one] {
            routine.run().unwrap();
        }
    }
    let reserved = one.report().reserved_bytes;
    assert!(reserved < 8 << 20, "ten copies of 256 bytes are on their way, in {reserved} bytes");
    // While one device waits for the other, earlier work of its own must come to an end.
    assert_eq!((read(&on_one, &x), read(&on_other, &x)), (vec![20; 64], vec![20; 64]));
}

#[test]
fn threads_that_wait_for_held_work_all_go_on() {
    let (one, other) = (open(), open());
    let (s, x) = (ints("s", 1), ints("x", 64));
    let context = Context::root(&other).init_from_host(&x, &[0; 64]).unwrap();
    let routine = increment(&context, &x);
    let slow = slow_event(&one, &s);
    context.will_wait_for(&slow).unwrap();
    let events: Vec<_> = (0..8).map(|_| routine.run().unwrap()).collect();
    std::thread::scope(|scope| {
        for (index, event) in events.iter().enumerate() {
            scope.spawn(move || {
                if index % 2 == 0 { event.sync() } else { pollster::block_on(async { event.clone().await }) }.unwrap();
            });
        }
        scope.spawn(|| while !events[7].is_done() {});
    });
    assert_eq!(read(&context, &x), [8; 64]);
}

#[test]
fn a_wait_for_a_device_that_is_lost_is_over() {
    let (one, other) = (open(), open());
    let (s, x) = (ints("s", 1), ints("x", 64));
    let context = Context::root(&other).init_from_host(&x, &[0; 64]).unwrap();
    let slow = slow_event(&one, &s);
    context.will_wait_for(&slow).unwrap();
    let event = increment(&context, &x).run().unwrap();
    one.destroy();
    event.sync().unwrap();
    assert_eq!(read(&context, &x), [1; 64]);
}

#[test]
fn a_device_that_is_destroyed_while_it_waits_settles_everything() {
    let (one, other) = (open(), open());
    let (s, x) = (ints("s", 1), ints("x", 64));
    let context = Context::root(&other).init_from_host(&x, &[0; 64]).unwrap();
    context.will_wait_for(&slow_event(&one, &s)).unwrap();
    let event = increment(&context, &x).run().unwrap();
    let readback = context.to_host::<i32>(&x);
    other.destroy();
    assert_eq!(event.sync().unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(pollster::block_on(readback).unwrap_err().kind(), ErrorKind::DeviceLost);
}

#[test]
fn the_host_driver_waits_for_the_gpu() {
    let device = open();
    let on_host = Context::root(&host::open(host::OpenOptions::default()).unwrap());
    let slow = slow_event(&device, &ints("s", 1));
    on_host.will_wait_for(&slow).unwrap();
    assert!(slow.is_done());
}

#[test]
fn a_copy_between_two_host_devices_is_recorded_too() {
    let open = || host::open(host::OpenOptions::default()).unwrap();
    let (one, other) = (open(), open());
    let x = TensorNode::new("x", DType::U8, [LEN]);
    let theirs = Context::root(&one).init_from_host(&x, &bytes_of(3)).unwrap();
    let mine = Context::root(&other).init_from_device(&x, &theirs).unwrap();
    theirs.from_host(&x, &bytes_of(5)).unwrap();
    assert_eq!(pollster::block_on(mine.to_host::<u8>(&x)).unwrap(), bytes_of(3));
    mine.device_to_device(&x, Landing::Node, &theirs).unwrap().expect("two devices").run().unwrap();
    assert_eq!(pollster::block_on(mine.to_host::<u8>(&x)).unwrap(), bytes_of(5));
    drop((mine, theirs));
    assert_eq!([one, other].map(|device| device.report().in_use_bytes), [0, 0], "nothing is left aside");
}

/// Three bytes over four pieces: the pieces come one by one, and the end is in the middle of a word.
const LEN: u32 = (16 << 20) + 3;

fn bytes_of(seed: u32) -> Vec<u8> {
    (0..LEN).map(|index| ((index ^ (index >> 8)).wrapping_mul(seed) >> 5) as u8).collect()
}

#[test]
fn a_copy_between_devices_is_recorded_like_any_other_work() {
    let (one, other) = (open(), open());
    let (x, next) = (TensorNode::new("x", DType::U8, [LEN]), TensorNode::new("next", DType::U8, [5]));
    let theirs = Context::root(&one).init_from_host(&x, &bytes_of(3)).unwrap();
    let mine = Context::root(&other).init_zeros(&[&x, &next]).unwrap();
    mine.from_host(&next, &[9u8; 5]).unwrap();
    let copy = mine.device_to_device(&x, Landing::Node, &theirs).unwrap().expect("two devices");
    let arrived = copy.run().unwrap();
    // What comes later on the other device is not seen; what comes later here is seen later.
    theirs.from_host(&x, &bytes_of(5)).unwrap();
    let before = mine.to_host::<u8>(&x);
    mine.from_host_at(&x, 1, &[77u8; 2]).unwrap();
    let after = mine.to_host_many(&[&x, &next]);
    arrived.sync().unwrap();
    let mut want = bytes_of(3);
    assert!(pollster::block_on(before).unwrap() == want);
    want[1..3].fill(77);
    let after = pollster::block_on(after).unwrap();
    assert!(after[0] == want && after[1] == [9; 5], "neighbours keep their bytes");
    assert!(pollster::block_on(theirs.to_host::<u8>(&x)).unwrap() == bytes_of(5));
    other.sync().unwrap();
    drop((mine, theirs, copy));
    assert_eq!((one.report().in_use_bytes, other.report().in_use_bytes), (0, 0), "what was kept aside is free");
}

#[test]
fn a_large_copy_from_another_device_is_not_torn_by_what_is_recorded_there_meanwhile() {
    let (one, other) = (open(), open());
    let x = TensorNode::new("x", DType::U8, [LEN]);
    let theirs = Context::root(&one).init_from_host(&x, &bytes_of(3)).unwrap();
    let mine = Context::root(&other).init_zeros(&[&x]).unwrap();
    pollster::block_on(async {
        let mut copy = Box::pin(mine.copy_from(&x, Landing::Node, &theirs));
        let first = std::future::poll_fn(|cx| std::task::Poll::Ready(copy.as_mut().poll(cx).is_ready())).await;
        assert!(!first, "16 MiB come in pieces");
        theirs.from_host(&x, &bytes_of(5)).unwrap();
        copy.await.unwrap().await.unwrap();
    });
    assert!(pollster::block_on(mine.to_host::<u8>(&x)).unwrap() == bytes_of(3));
}

#[test]
fn a_copy_from_a_device_that_is_lost_fails_what_depends_on_it_and_nothing_before() {
    let (one, other) = (open(), open());
    let (s, x) = (ints("s", 1), ints("x", 64));
    slow_event(&one, &s);
    let theirs = Context::root(&one).init_from_host(&x, &[1; 64]).unwrap();
    let mine = Context::root(&other).init_from_host(&x, &[2; 64]).unwrap();
    let before = mine.to_host::<i32>(&x);
    let copy = mine.device_to_device(&x, Landing::Node, &theirs).unwrap().unwrap();
    let arrived = copy.run().unwrap();
    let after = mine.to_host::<i32>(&x);
    one.destroy();
    let error = arrived.sync().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    assert!(error.to_string().contains(&format!("a copy from {}", one.name())), "{error}");
    assert_eq!(pollster::block_on(after).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(pollster::block_on(before).unwrap(), [2; 64]);
}

#[test]
fn gradients_of_another_device_are_merged_by_recorded_work() {
    let (one, other) = (open(), open());
    let gradient = ints("gradient", 64);
    let theirs = Context::root(&one).init_from_host(&gradient, &[0; 64]).unwrap();
    let mine = Context::root(&other).init_from_host(&gradient, &[100; 64]).unwrap();
    let compute = increment(&theirs, &gradient);
    let copy = mine.device_to_device(&gradient, Landing::MergeBuffer, &theirs).unwrap().unwrap();
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_to(id.x, load_to(id.x) + load_from(id.x)); }";
    let spec = KernelSpec::new("merge", text).tensor("to", &gradient, Access::ReadWrite);
    let code = pollster::block_on(other.compile(spec.merge_tensor("from", &gradient))).unwrap();
    let merge = pollster::block_on(copy.context().link(&code)).unwrap();
    for _ in 0..10 {
        compute.run().unwrap();
        copy.run().unwrap();
        merge.run().unwrap();
    }
    assert_eq!(read(&mine, &gradient), [100 + 55; 64]);
}

#[test]
fn a_copy_between_devices_of_the_host_driver_arrives_at_once() {
    let open = || host::open(host::OpenOptions::default()).unwrap();
    let (one, other, x) = (open(), open(), ints("x", 3));
    let source = Context::root(&one).init_from_host(&x, &[1, 2, 3]).unwrap();
    let target = Context::root(&other).init_zeros(&[&x]).unwrap();
    let copy = target.device_to_device(&x, Landing::Node, &source).unwrap().unwrap();
    copy.run().unwrap();
    assert_eq!(pollster::block_on(target.to_host::<i32>(&x)).unwrap(), [1, 2, 3]);
    let child = Context::root(&other).init_from_device(&x, &source).unwrap();
    assert_eq!(pollster::block_on(child.to_host::<i32>(&x)).unwrap(), [1, 2, 3]);
    assert_eq!(other.report().in_use_bytes, 2 * 256, "what it passed through is gone");
}

#[test]
fn an_empty_node_is_not_copied_from_a_pool_that_is_gone() {
    let (one, other, x) = (open(), open(), ints("x", 0));
    let source = Context::root(&one).init_zeros(&[&x]).unwrap();
    let view = source.child().build();
    source.finalize();
    let copied = pollster::block_on(Context::root(&other).init_from_other(&x, &view));
    assert_eq!(copied.unwrap_err().kind(), ErrorKind::Disposed);
}
