//! Contexts free what they own, addresses are deterministic, and nothing grows.

use wgslab::{Access, Context, DType, KernelSpec, TensorNode, gpu, host};

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
