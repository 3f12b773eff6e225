//! The budget, the forecast, and trimming.

use wgslab::{Access, Context, DType, ErrorKind, KernelSpec, Landing, MemoryMode, TensorNode, gpu, host};

use crate::{ints, open, open_with};

fn kibibytes(label: &str, count: u32) -> TensorNode {
    TensorNode::new(label, DType::F32, [count * 256])
}

#[test]
fn an_allocation_over_the_budget_is_refused_and_nothing_is_changed() {
    let device = open_with(gpu::OpenOptions { memory_budget_bytes: Some(1 << 20), ..gpu::OpenOptions::default() });
    let (large, small) = (kibibytes("large", 700), kibibytes("small", 400));
    let context = Context::root(&device).init_zeros(&[&large]).unwrap();
    assert!(device.report().reserved_bytes <= 1 << 20);
    let (report, next) = (device.report(), device.next_pool_id());
    let error = context.init_zeros(&[&small]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.is_retryable() && error.to_string().contains("its budget of 1048576"), "{error}");
    assert_eq!((device.report(), device.next_pool_id()), (report, next));
    context.finalize();
    assert!(Context::root(&device).init_zeros(&[&small]).is_ok());

    let on_host = host::open(host::OpenOptions { memory_budget_bytes: Some(1 << 20), ..Default::default() }).unwrap();
    let context = Context::root(&on_host).init_zeros(&[&large]).unwrap();
    let error = context.init_zeros(&[&small]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("beside the 716800 in use would exceed the budget of 1048576"), "{error}");
}

#[test]
fn a_forecast_says_what_a_link_would_allocate() {
    let device = open_with(gpu::OpenOptions {
        memory_budget_bytes: Some(8 << 20),
        segment_cap_bytes: Some(1 << 20),
        ..gpu::OpenOptions::default()
    });
    let x = ints("x", 1);
    let outs: Vec<_> = (0..3).map(|index| kibibytes(&format!("y{index}"), 500)).collect();
    let root = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let mut spec = KernelSpec::new("wide", "@compute @workgroup_size(1) fn main() { store_y0(0u, f32(load_x(0u))); }")
        .tensor("x", &x, Access::Read);
    for node in &outs {
        spec = spec.tensor(node.label(), node, Access::Write);
    }
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let before = device.report();
    let forecast = root.forecast(&code).unwrap();
    assert_eq!(device.report(), before, "nothing was allocated");
    assert_eq!(forecast.nodes, ["y0", "y1", "y2"]);
    assert_eq!(forecast.slab_sizes_bytes, [1000 << 10, 500 << 10]);
    assert!(forecast.is_within_budget());
    let routine = pollster::block_on(root.link(&code)).unwrap();
    assert_eq!(device.report().in_use_bytes, forecast.in_use_after_bytes);
    assert_eq!(routine.context().forecast(&code).unwrap().size_bytes(), 0, "nothing is new behind it");
    let missing = Context::root(&device).forecast(&code).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::UnknownNode);
}

#[test]
fn trimming_gives_back_what_holds_no_slab() {
    let device = open();
    let x = kibibytes("x", 100);
    let context = Context::root(&device).init_zeros(&[&x]).unwrap();
    pollster::block_on(context.to_host::<f32>(&x)).unwrap();
    let taken = device.report();
    assert!(taken.staging_bytes > 0);
    assert_eq!(device.trim().unwrap(), taken.staging_bytes, "the heap holds a slab");
    context.finalize();
    assert_eq!(device.trim().unwrap(), taken.reserved_bytes);
    assert_eq!((device.report().reserved_bytes, device.report().staging_bytes), (0, 0));
    let again = Context::root(&device).init_zeros(&[&x]).unwrap();
    assert_eq!(pollster::block_on(again.to_host::<f32>(&x)).unwrap()[0], 0.0);
}

#[test]
fn empty_heaps_do_not_stand_in_the_way_of_the_budget() {
    let device = open_with(gpu::OpenOptions { memory_budget_bytes: Some(1 << 20), ..gpu::OpenOptions::default() });
    let working = kibibytes("working", 780);
    let constant = TensorNode::with_mode("constant", DType::F32, [780 * 256], MemoryMode::Constant);
    Context::root(&device).init_zeros(&[&working]).unwrap().finalize();
    let context = Context::root(&device).init_zeros(&[&constant]).unwrap();
    assert!(device.report().reserved_bytes <= 1 << 20);
    context.finalize();
    device.free_unused_constants();
    assert!(Context::root(&device).init_zeros(&[&working]).is_ok());
}

#[test]
fn a_copy_between_devices_that_finds_no_memory_is_named_by_what_it_copies() {
    let budget = host::OpenOptions { memory_budget_bytes: Some(1 << 10), ..Default::default() };
    let (device, other) = (host::open(budget).unwrap(), host::open(host::OpenOptions::default()).unwrap());
    let x = kibibytes("x", 1);
    let there = Context::root(&other).init_zeros(&[&x]).unwrap();
    let here = Context::root(&device).init_zeros(&[&x]).unwrap();
    let copy = here.device_to_device(&x, Landing::Node, &there).unwrap().unwrap();
    let error = copy.run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let said = format!(
        "run \"copy x\": {}: pool for bytes on their way: a slab of 1024 bytes beside the 1024 in use would exceed the \
         budget of 1024; finalize contexts, or raise memory_budget_bytes",
        device.name()
    );
    assert_eq!(error.to_string(), said);
}
