//! New nodes are zero, whatever was in their memory, and clearing waits until something uses it.

use wgslab::driver::ReadbackBytes;
use wgslab::{
    Access, BufferLoc, Context, Driver, KernelSpec, PoolId, TensorNode, alloc_pool, free_pool, gpu, memset_zero,
};

use crate::{increment, ints, open};

type Device = wgslab::Device<gpu::Gpu>;

const LEN: u32 = 64;

/// A device whose first slabs were all written before, and freed.
fn dirty() -> Device {
    let device = open();
    let old: Vec<_> = (0..16).map(|index| ints(&format!("old{index}"), LEN)).collect();
    let ones = [0xffu8; LEN as usize * 4];
    let pairs: Vec<_> = old.iter().map(|node| (node, &ones[..])).collect();
    let context = Context::root(&device).init_from_host_many(&pairs).unwrap();
    device.sync().unwrap();
    context.finalize();
    device
}

fn read(context: &Context<gpu::Gpu>, node: &TensorNode) -> Vec<i32> {
    pollster::block_on(context.to_host::<i32>(node)).unwrap()
}

fn zeros(device: &Device) -> u64 {
    device.stats().zeros
}

#[test]
fn a_context_that_is_not_used_clears_nothing() {
    let device = dirty();
    let before = device.stats();
    for _ in 0..100 {
        let context = Context::root(&device).init_zeros(&[&ints("x", LEN), &ints("y", LEN)]).unwrap();
        device.flush().unwrap();
        context.finalize();
    }
    device.sync().unwrap();
    let after = device.stats();
    assert_eq!((after.zeros, after.submissions), (before.zeros, before.submissions));
    let x = ints("x", LEN);
    let context = Context::root(&device).init_from_host(&x, &[1; LEN as usize]).unwrap();
    increment(&context, &x).run().unwrap();
    assert_eq!(zeros(&device), before.zeros, "what is gone is not cleared later either");
}

#[test]
fn neighbours_are_cleared_together_when_one_of_them_is_used() {
    let device = dirty();
    let nodes: Vec<_> = (0..8).map(|index| ints(&format!("n{index}"), LEN)).collect();
    let contexts: Vec<_> = nodes.iter().map(|node| Context::root(&device).init_zeros(&[node]).unwrap()).collect();
    let before = zeros(&device);
    assert_eq!(read(&contexts[5], &nodes[5]), [0; LEN as usize]);
    assert_eq!(zeros(&device) - before, 1);
    for (context, node) in contexts.iter().zip(&nodes) {
        assert_eq!(read(context, node), [0; LEN as usize]);
    }
    assert_eq!(zeros(&device) - before, 1, "what is cleared is cleared once");
    contexts[0].zero(&nodes[0], 3, 9).unwrap();
    assert_eq!(zeros(&device) - before, 2, "zeroing by hand counts");
}

#[test]
fn a_kernel_finds_zeros_in_what_it_only_writes() {
    let device = dirty();
    let (x, y) = (ints("x", LEN), ints("y", LEN));
    let root = Context::root(&device).init_from_host(&x, &[3; LEN as usize]).unwrap();
    let spec = KernelSpec::new("first", "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u)); }")
        .tensor("x", &x, Access::Read)
        .tensor("y", &y, Access::Write);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let routine = pollster::block_on(root.link(&code)).unwrap();
    routine.run().unwrap();
    let mut expected = vec![0; LEN as usize];
    expected[0] = 3;
    assert_eq!(read(routine.context(), &y), expected);
}

/// Nothing moves between the two calls where contexts allocate, but another thread may compact.
#[test]
fn a_new_slab_that_moves_before_it_is_to_be_zero_is_cleared_where_it_is() {
    let device = dirty();
    for pool in [100, 101] {
        alloc_pool(&device, PoolId(pool), 1024, 256, None).unwrap();
    }
    free_pool(&device, PoolId(100)).unwrap();
    assert_eq!(device.compact().unwrap().moved_bytes, 1024);
    gpu::Gpu::clear_recycled(device.runner(), PoolId(101)).unwrap();
    let loc = BufferLoc { pool_id: PoolId(101), offset: 0 };
    let arrived = pollster::block_on(gpu::Gpu::stage(device.runner(), &[(loc, 1024)]).unwrap()).unwrap();
    let mut bytes = Vec::new();
    arrived
        .with_bytes(0, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .unwrap();
    assert_eq!(bytes, [0; 1024]);
    free_pool(&device, PoolId(101)).unwrap();
}

/// Writes that go straight to the queue run ahead of what is recorded, so they must find their memory cleared already.
#[test]
fn an_upload_into_a_part_keeps_its_bytes_and_finds_zeros_around_them() {
    for (start, len) in [(0, 64), (0, 4), (60, 4), (1, 2), (17, 30)] {
        for flush in [false, true] {
            let device = dirty();
            let x = TensorNode::new("x", wgslab::DType::U8, [64]);
            let context = Context::root(&device).init_zeros(&[&x]).unwrap();
            if flush {
                device.flush().unwrap();
            }
            context.from_host_at(&x, start, &vec![9u8; len as usize]).unwrap();
            let mut expected = vec![0u8; 64];
            expected[start as usize..(start + len) as usize].fill(9);
            let got = pollster::block_on(context.to_host::<u8>(&x)).unwrap();
            assert_eq!(got, expected, "{len} bytes at {start}");
        }
    }
}

#[test]
fn a_large_upload_into_a_part_keeps_its_bytes() {
    let device = open();
    let len = 400_000;
    let (old, x) = (ints("old", len), ints("x", len));
    Context::root(&device).init_from_host(&old, &vec![-1; len as usize]).unwrap().finalize();
    for upload_len in [100_000usize, 200_000, 300_000] {
        let context = Context::root(&device).init_zeros(&[&x]).unwrap();
        context.from_host_at(&x, 1000, &vec![5; upload_len]).unwrap();
        let got = read(&context, &x);
        assert!(got[..1000].iter().chain(&got[1000 + upload_len..]).all(|value| *value == 0));
        assert!(got[1000..1000 + upload_len].iter().all(|value| *value == 5));
        context.finalize();
    }
}

#[test]
fn a_node_that_was_never_written_is_copied_as_zeros() {
    let device = dirty();
    let (x, y) = (ints("x", LEN), ints("y", LEN));
    let filled = Context::root(&device).init_from_host(&y, &[7; LEN as usize]).unwrap();
    let context = filled.init_zeros(&[&x]).unwrap();
    context.copy_bytes(&x, 0, &y, 4, 8).unwrap();
    assert_eq!(read(&context, &y)[..4], [7, 0, 0, 7]);
    context.copy_bytes(&y, 0, &x, 2, 5).unwrap();
    assert_eq!(read(&context, &x)[..3], [7 << 16, 0, 0]);
}

#[test]
fn a_pool_that_is_freed_takes_along_what_was_to_be_cleared() {
    let device = dirty();
    let x = ints("x", LEN);
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    let loc = context.loc(&x).unwrap();
    let place = wgslab::resolve_pool(&device, loc).unwrap().offset;
    device.sync().unwrap();
    context.finalize();
    let again = Context::root(&device).init_zeros(&[&x]).unwrap();
    again.finalize();
    // The range goes to a pool with bytes of its own.
    let y = ints("y", LEN);
    let other = Context::root(&device).init_from_host(&y, &[6; LEN as usize]).unwrap();
    assert_eq!(wgslab::resolve_pool(&device, other.loc(&y).unwrap()).unwrap().offset, place, "the memory is taken up");
    increment(&other, &y).run().unwrap();
    assert_eq!(read(&other, &y), [7; LEN as usize]);
    other.finalize();
    // And to one that is to be zero again.
    let last = Context::root(&device).init_zeros(&[&x]).unwrap();
    increment(&last, &x).run().unwrap();
    assert_eq!(read(&last, &x), [1; LEN as usize]);
}

#[test]
fn a_pool_with_unspecified_contents_is_not_cleared() {
    let device = dirty();
    let before = zeros(&device);
    alloc_pool(&device, PoolId(100), 1024, 256, None).unwrap();
    memset_zero(&device, PoolId(100), 0, 512).unwrap();
    device.sync().unwrap();
    assert_eq!(zeros(&device) - before, 1);
    free_pool(&device, PoolId(100)).unwrap();
}

#[test]
fn the_merge_buffer_takes_memory_that_was_to_be_cleared() {
    let device = dirty();
    let (x, y) = (ints("x", LEN), ints("y", LEN));
    Context::root(&device).init_zeros(&[&x]).unwrap().finalize();
    let source = Context::root(&device).init_from_host(&x, &[4; LEN as usize]).unwrap();
    let target = Context::root(&device).init_zeros(&[&x, &y]).unwrap();
    let copy = target.device_to_device(&x, wgslab::Landing::MergeBuffer, &source).unwrap().unwrap();
    copy.run().unwrap();
    let spec = KernelSpec::new(
        "merge",
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u)
        { store_y(id.x, load_y(id.x) + load_x(id.x)); }",
    )
    .merge_tensor("x", &x)
    .tensor("y", &y, Access::ReadWrite);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let routine = pollster::block_on(copy.context().link(&code)).unwrap();
    routine.run().unwrap();
    assert_eq!(read(routine.context(), &y), [4; LEN as usize]);
    assert_eq!(read(routine.context(), &x), [0; LEN as usize]);
}
