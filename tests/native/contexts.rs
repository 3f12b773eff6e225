//! Contexts free what they own, addresses are deterministic, and nothing grows.

use wgslab::{Access, Context, DType, ErrorKind, KernelSpec, MemoryMode, PoolId, TensorNode, alloc_pool, gpu, host};

use crate::{increment, ints, open, open_with};

#[test]
fn ten_thousand_links_and_finalizes_leave_no_growth() {
    let device = open();
    let (x, y) = (ints("x", 100), ints("y", 300));
    let root = Context::root(&device).init_from_host(&x, &[1i32; 100]).unwrap();
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_y(id.x, load_y_old(id.x) + load_x(id.x)); }";
    let spec = KernelSpec::new("fill", text.replace("load_y_old(id.x)", "7"))
        .tensor("x", &x, Access::Read)
        .tensor("y", &y, Access::Write)
        .grid([5, 1, 1]);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let mut warm = None;
    for cycle in 0..10_000 {
        let routine = pollster::block_on(root.link(&code)).unwrap();
        if cycle % 100 == 0 {
            routine.run().unwrap();
        }
        routine.context().finalize();
        if cycle == 100 {
            warm = Some((device.report(), device.stats()));
        }
    }
    device.sync().unwrap();
    let (warm, warm_stats) = warm.unwrap();
    let (report, stats) = (device.report(), device.stats());
    println!(
        "10,000 cycles: {} -> {} bytes reserved, {} -> {} buffers created, {} -> {} bind groups",
        warm.reserved_bytes,
        report.reserved_bytes,
        warm_stats.buffers_created,
        stats.buffers_created,
        warm_stats.bind_groups_created,
        stats.bind_groups_created
    );
    assert_eq!(report.reserved_bytes, warm.reserved_bytes);
    assert_eq!(report.heap_count, warm.heap_count);
    assert_eq!(report.pools.len(), 1, "only the uploaded node is left");
    assert_eq!(stats.buffers_created, warm_stats.buffers_created);
    assert_eq!(stats.bind_groups_created, warm_stats.bind_groups_created);
    assert_eq!(stats.pipelines_created, warm_stats.pipelines_created);
}

#[test]
fn dropping_everything_frees_everything_in_any_order() {
    let device = open();
    let (x, y) = (ints("x", 10), ints("y", 10));
    let parent = Context::root(&device).init_from_host(&x, &[0; 10]).unwrap();
    let child = parent.init_zeros(&[&y]).unwrap();
    let routine = increment(&child, &x);
    drop(parent);
    assert_eq!(device.report().pools.len(), 2, "a child keeps what its parents own");
    drop(child);
    routine.run().unwrap();
    assert_eq!(pollster::block_on(routine.context().to_host::<i32>(&x)).unwrap(), [1; 10]);
    drop(routine);
    assert_eq!(device.report().in_use_bytes, 0);
}

#[test]
fn a_long_chain_of_contexts_drops_without_recursion() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let mut context = Context::root(&device);
    for _ in 0..200_000 {
        context = context.child().build();
    }
    drop(context);
}

#[test]
fn locations_are_the_same_on_both_drivers_and_every_time() {
    let nodes: Vec<_> = (0..20).map(|index| TensorNode::new(format!("n{index}"), DType::U8, [index * 37])).collect();
    let refs: Vec<_> = nodes.iter().collect();
    let (on_gpu, again, on_host) = (open(), open(), host::open(host::OpenOptions::default()).unwrap());
    let locs = |context: &Context<gpu::Gpu>| context.locs().into_iter().map(|(_, loc)| loc).collect::<Vec<_>>();
    let first = Context::root(&on_gpu).init_zeros(&refs).unwrap();
    let second = Context::root(&again).init_zeros(&refs).unwrap();
    let third = Context::root(&on_host).init_zeros(&refs).unwrap();
    assert_eq!(locs(&first), locs(&second));
    assert_eq!(locs(&first), third.locs().into_iter().map(|(_, loc)| loc).collect::<Vec<_>>());
}

#[test]
fn a_failed_link_leaves_nothing_behind_and_changes_no_address() {
    let device = open_with(gpu::OpenOptions { segment_cap_bytes: Some(1024), ..gpu::OpenOptions::default() });
    let (x, y, z) = (ints("x", 8), ints("y", 8), ints("z", 1000));
    let root = Context::root(&device).init_from_host(&x, &[0; 8]).unwrap();
    let spec = KernelSpec::new("big", "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u)); }")
        .tensor("x", &x, Access::Read)
        .tensor("y", &y, Access::Write)
        .tensor("z", &z, Access::Write);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let (before, next) = (device.report(), device.next_pool_id());
    let error = pollster::block_on(root.link(&code)).unwrap_err();
    assert!(error.to_string().starts_with("link \"big\": gpu:0:"), "{error}");
    assert!(error.to_string().contains("needs 4000 bytes"), "{error}");
    assert_eq!(device.report(), before);
    assert_eq!(device.next_pool_id(), next);
}

#[test]
fn the_record_and_its_optional_parts_are_there() {
    let device = open();
    assert_eq!(device.name(), format!("gpu:0:{}", device.device_id()));
    assert_eq!((device.next_pool_id().0, device.merge_buffer_capacity()), (1, 0));
    assert!(device.merge_buffer().is_none() && device.updating_for_merge_buffer().is_none());
    assert!(device.constant_buffer_cache().is_empty());
    let x = ints("x", 4);
    assert!(device.updating_for(x.id()).is_none());
    let context = Context::root(&device).init_from_host(&x, &[1, 2, 3, 4]).unwrap();
    let writer = device.updating_for(x.id()).unwrap();
    writer.sync().unwrap();
    assert!(writer.is_done());
    let child = context.child().merge_buffer_node(Some(x.clone())).build();
    assert_eq!(child.merge_buffer_node(), Some(&x));
    assert_eq!(child.child().build().merge_buffer_node(), Some(&x), "omitted parts are the parent's");
    assert_eq!(child.child().merge_buffer_node(None).build().merge_buffer_node(), None);
    let empty = context.child().ctx_buffers(Default::default()).build();
    assert!(empty.loc(&x).is_none());
    context.finalize();
    assert!(device.updating_for(x.id()).is_none(), "the last writer goes with the node");
    let other = host::open(host::OpenOptions::default()).unwrap();
    assert_ne!(other.device_id(), device.device_id());
}

#[test]
fn the_report_names_nodes_and_counts_padding() {
    let device = open();
    let (x, y) = (TensorNode::new("weights", DType::F16, [3]), TensorNode::new("bias", DType::F32, [65]));
    let context = Context::root(&device).init_zeros(&[&x, &y]).unwrap();
    let report = device.report();
    assert_eq!(report.pools[0].nodes[0].label, "weights");
    assert_eq!((report.pools[0].nodes[1].offset, report.pools[0].nodes[1].size_bytes), (256, 260));
    assert_eq!((report.in_use_bytes, report.padding_bytes), (768, 768 - 6 - 260));
    assert!(report.reserved_bytes >= report.in_use_bytes);
    context.finalize();
    let after = device.report();
    assert_eq!((after.in_use_bytes, after.padding_bytes, after.peak_bytes), (0, 0, 768));
}

#[test]
fn constants_are_shared_by_unrelated_contexts_and_uploaded_once() {
    let device = open();
    let c = TensorNode::with_mode("c", DType::I32, [64], MemoryMode::Constant);
    let one = Context::root(&device).init_from_host(&c, &[7i32; 64]).unwrap();
    let uploads = device.stats().uploads;
    let other = Context::root(&device).init_from_host(&c, &[0i32; 64]).unwrap();
    assert_eq!(device.stats().uploads, uploads, "the device has it already");
    assert_eq!(one.loc(&c), other.loc(&c));
    assert_eq!(device.constant_buffer_cache(), [(c.id(), one.loc(&c).unwrap())]);
    one.finalize();
    assert_eq!(device.free_unused_constants(), 0, "another context uses it");
    assert_eq!(pollster::block_on(other.to_host::<i32>(&c)).unwrap(), [7; 64]);
    drop(other);
    assert_eq!(device.report().in_use_bytes, 256, "it stays with the device");
    let again = Context::root(&device).init_from_host(&c, &[0i32; 64]).unwrap();
    assert_eq!(pollster::block_on(again.to_host::<i32>(&c)).unwrap(), [7; 64]);
    drop(again);
    assert_eq!(device.free_unused_constants(), 256);
    assert_eq!((device.report().in_use_bytes, device.constant_buffer_cache().len()), (0, 0));
}

#[test]
fn a_pool_waits_for_the_views_into_it() {
    let device = open();
    let x = ints("x", 100);
    let middle = TensorNode::view("middle", &x, 10, [2, 5]);
    let inner = TensorNode::view("inner", &middle, 3, [4]);
    let owner = Context::root(&device).init_from_host(&x, &(0..100).collect::<Vec<i32>>()).unwrap();
    let viewing = owner.alias(&[&middle, &inner]).unwrap();
    assert_eq!(viewing.loc(&inner), owner.loc(&x).map(|loc| loc.offset_by(52)));
    assert_eq!(pollster::block_on(viewing.to_host::<i32>(&inner)).unwrap(), [13, 14, 15, 16]);
    increment(&viewing, &inner).run().unwrap();
    assert_eq!(pollster::block_on(owner.to_host_at::<i32>(&x, 12, 6)).unwrap(), [12, 14, 15, 16, 17, 17]);
    owner.finalize();
    assert_eq!(device.report().pools.len(), 1, "the views keep it");
    assert_eq!(pollster::block_on(viewing.to_host::<i32>(&middle)).unwrap(), [10, 11, 12, 14, 15, 16, 17, 17, 18, 19]);
    viewing.finalize();
    assert_eq!(device.report().pools.len(), 0);
}

#[test]
fn views_that_do_not_fit_are_refused() {
    let device = open();
    let x = ints("x", 10);
    let owner = Context::root(&device).init_from_host(&x, &[0; 10]).unwrap();
    let long = TensorNode::view("long", &x, 8, [3]);
    let error = owner.alias(&[&long]).unwrap_err();
    assert!(error.to_string().contains("has elements 8 to 11 of node"), "{error}");
    assert!(owner.alias(&[&ints("plain", 1)]).unwrap_err().to_string().contains("is no view"));
    let foreign = TensorNode::view("foreign", &ints("elsewhere", 4), 0, [1]);
    assert_eq!(owner.alias(&[&foreign]).unwrap_err().kind(), ErrorKind::UnknownNode);
    drop(owner);
    assert_eq!(device.report().pools.len(), 0, "a refused view keeps nothing");
}

#[test]
fn pool_ids_are_never_given_out_twice_not_even_the_last() {
    let device = open();
    // The ids from there on are the crate's own.
    let end = 0xfff0_0000;
    for refused in [end, u32::MAX] {
        let error = alloc_pool(&device, PoolId(refused), 100, 256, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    }
    alloc_pool(&device, PoolId(end - 1), 100, 256, None).unwrap();
    let (x, before) = (ints("x", 1), device.report());
    let error = Context::root(&device).init_from_host(&x, &[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("pool ids, which are never reused"), "{error}");
    assert_eq!(device.report(), before);
}

#[test]
fn absurd_sizes_are_refused_and_keep_the_pool_that_was_there() {
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    fn refuse<D: wgslab::Driver>(device: &wgslab::Device<D>) {
        alloc_pool(device, PoolId(3), 1000, 256, None).unwrap();
        for size in [u64::MAX, u64::MAX - 255, u64::MAX - 300, 1 << 63] {
            assert!(alloc_pool(device, PoolId(3), size, 256, None).is_err(), "{size} bytes");
        }
        assert_eq!(device.report().in_use_bytes, 1024);
        wgslab::memset_zero(device, PoolId(3), 0, 1024).unwrap();
    }
    refuse(&open());
    refuse(&on_host);
}

/// A pool that is allocated anew by hand may lie in another heap: the kernel finds it there.
#[test]
fn a_kernel_never_writes_where_its_pool_was() {
    let device = open_with(gpu::OpenOptions { heap_bytes: Some(4096), ..gpu::OpenOptions::default() });
    let (x, y) = (ints("x", 1), ints("y", 1));
    let context = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let routine = increment(&context, &x);
    alloc_pool(&device, PoolId(1), 10_000, 256, None).unwrap();
    wgslab::memset_zero(&device, PoolId(1), 0, 10_000).unwrap();
    let other = Context::root(&device).init_from_host(&y, &[10]).unwrap();
    routine.run().unwrap();
    assert_eq!(pollster::block_on(other.to_host::<i32>(&y)).unwrap(), [10]);
    assert_eq!(pollster::block_on(context.to_host::<i32>(&x)).unwrap(), [1]);

    let pair = Context::root(&device).init_zeros(&[&ints("a", 1), &ints("b", 1)]).unwrap();
    let [(a, _), (b, at)] = pair.locs().try_into().unwrap();
    let (c, d) = (ints("c", 1), ints("d", 1));
    let apart = pair.init_from_host(&c, &[5]).unwrap();
    let text = "@compute @workgroup_size(1) fn main() { store_a(0u, load_c(0u)); }";
    let spec = KernelSpec::new("pair", text).tensor("a", &a, Access::ReadWrite).tensor("c", &c, Access::Read);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let linked = pollster::block_on(apart.link(&code)).unwrap();
    alloc_pool(&device, at.pool_id, 20_000, 256, None).unwrap();
    linked.run().unwrap();
    assert_eq!(pollster::block_on(apart.to_host::<i32>(&a)).unwrap(), [5], "the kernel follows its slabs");
    drop((b, d));
}

#[test]
fn an_overlapping_copy_leaves_no_heap_behind() {
    let device = open();
    let x = ints("x", 4_000_000);
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    let before = device.report();
    context.copy_bytes(&x, 0, &x, 64, 15_000_000).unwrap();
    device.sync().unwrap();
    let after = device.report();
    assert!(after.heap_count <= before.heap_count + 1, "{before:?} {after:?}");
    context.finalize();
    device.trim().unwrap();
    assert_eq!(device.report().reserved_bytes, 0);
}

#[test]
fn a_link_that_would_create_a_constant_is_refused_and_leaves_none_behind() {
    let device = open();
    let (x, c) = (ints("x", 4), TensorNode::with_mode("c", DType::I32, [4], MemoryMode::Constant));
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    let text = "@compute @workgroup_size(1) fn main() { store_c(0u, load_x(0u)); }";
    let spec = KernelSpec::new("fill", text).tensor("x", &x, Access::Read).tensor("c", &c, Access::Write);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let next = device.next_pool_id();
    assert_eq!(context.forecast(&code).unwrap_err().kind(), ErrorKind::KernelInterface);
    let error = pollster::block_on(context.link(&code)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KernelInterface);
    assert!(error.to_string().contains("\"c\" as write, but it is a constant"), "{error}");
    assert_eq!((device.next_pool_id(), device.constant_buffer_cache().len()), (next, 0));
    let loaded = context.init_from_host(&c, &[1, 2, 3, 4]).unwrap();
    assert_eq!(pollster::block_on(loaded.to_host::<i32>(&c)).unwrap(), [1, 2, 3, 4], "its bytes are the first ones");
}
