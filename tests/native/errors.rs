//! Each kind of error that exists so far is provoked, and says object, numbers and remedy.

use wgslab::{Access, Context, DType, ErrorKind, KernelSpec, MemoryMode, PoolId, TensorNode, gpu, host};

use crate::{increment, ints, open, open_with};

const MAIN: &str = "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u) + static_step()); }";

#[track_caller]
fn says<T: std::fmt::Debug>(outcome: wgslab::Result<T>, kind: ErrorKind, parts: &[&str]) {
    let error = outcome.expect_err("it must fail");
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "\"{part}\" is not in: {error}");
    }
}

#[test]
fn arrays_that_do_not_fit_their_nodes() {
    let device = open();
    let root = Context::root(&device);
    let x = TensorNode::new("x", DType::F32, [2, 3]);
    says(
        root.init_from_host(&x, &[1.0f32; 5]),
        ErrorKind::ShapeMismatch,
        &["\"x\" of shape [2, 3] has 6 elements", "has 5"],
    );
    says(root.init_from_host(&x, &[1i32; 6]), ErrorKind::DTypeMismatch, &["is f32, but the array is i32", "convert"]);
    let h = TensorNode::new("h", DType::BF16, [2]);
    says(root.init_from_host(&h, &[1.0f32; 2]), ErrorKind::DTypeMismatch, &["give its bits as u16"]);
    let flags = TensorNode::new("flags", DType::Bool, [2]);
    assert!(root.init_from_host(&flags, &[1u8, 0]).is_ok());
    let loaded = root.init_from_host(&x, &[1.0f32; 6]).unwrap();
    says(loaded.from_host(&x, &[1.0f32; 7]), ErrorKind::ShapeMismatch, &["has 7"]);
    says(pollster::block_on(loaded.to_host::<i32>(&x)), ErrorKind::DTypeMismatch, &["is f32"]);
    says(
        pollster::block_on(loaded.to_host_at::<f32>(&x, 4, 3)),
        ErrorKind::ShapeMismatch,
        &["bytes 16 to 28 leave node"],
    );
    says(loaded.init_from_host(&x, &[1.0f32; 6]), ErrorKind::DuplicateNode, &["at p2+0", "write to it instead"]);
}

#[test]
fn statics_that_do_not_fit() {
    let device = open();
    let (x, y) = (ints("x", 1), ints("y", 1));
    let loaded = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let spec = KernelSpec::new("step", MAIN).tensor("x", &x, Access::Read).tensor("y", &y, Access::Write);
    let code = pollster::block_on(device.compile(spec.statics(["step"]))).unwrap();
    let routine = pollster::block_on(loaded.link(&code)).unwrap();
    let kind = ErrorKind::KernelInterface;
    says(routine.run(), kind, &["run \"step\": 0 values were given; it wants step"]);
    says(routine.run_with(&[]), kind, &["static \"step\" is missing"]);
    says(routine.run_with(&[("stop", 1)]), kind, &["there is no static \"stop\""]);
    says(routine.run_with(&[("step", 1), ("step", 2)]), kind, &["given twice"]);
    routine.run_with(&[("step", 5)]).unwrap();
    assert_eq!(pollster::block_on(routine.context().to_host::<i32>(&y)).unwrap(), [6]);
    routine.run_values(&[-2]).unwrap();
    assert_eq!(pollster::block_on(routine.context().to_host::<i32>(&y)).unwrap(), [-1]);
    assert_eq!(routine.bindings(), ["step"]);
    assert_eq!((routine.inputs(), routine.outputs()), (&[x][..], &[y.clone()][..]));
    says(code.node("z").cloned(), ErrorKind::UnknownNode, &["has no tensor \"z\"; it has x, y"]);
}

#[test]
fn memory_that_is_too_large_and_memory_that_is_not_there() {
    let device = open();
    let huge = TensorNode::new("huge", DType::F32, [1 << 20, 1 << 10]);
    let parts = ["\"huge\" needs 4294967296 bytes", "over the 134217216-byte segment limit", "split the node"];
    says(Context::root(&device).init_zeros(&[&huge]), ErrorKind::LimitExceeded, &parts);
    let absurd = TensorNode::new("absurd", DType::F32, [u32::MAX; 8]);
    says(Context::root(&device).init_zeros(&[&absurd]), ErrorKind::LimitExceeded, &["\"absurd\""]);
    says(
        wgslab::alloc_pool(&device, PoolId(3), 1 << 40, 256, None),
        ErrorKind::LimitExceeded,
        &["gpu:0:", "p3", "1099511627776"],
    );
    let host = host::open(host::OpenOptions::default()).unwrap();
    let outcome = wgslab::alloc_pool(&host, PoolId(3), 1 << 60, 256, None);
    says(outcome, ErrorKind::OutOfMemory, &["host:0:", "the host has no 1152921504606846976 bytes left"]);
    let options = gpu::OpenOptions { segment_cap_bytes: Some(255), ..gpu::OpenOptions::default() };
    says(pollster::block_on(gpu::open(options)), ErrorKind::LimitExceeded, &["at least 256"]);
    assert_eq!(device.report().reserved_bytes, 0, "refusals reserve nothing");
}

#[test]
fn more_heaps_than_bindings() {
    let device = open_with(gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(1024),
        heap_bytes: Some(1536),
        // No room to bring them together.
        memory_budget_bytes: Some(9 * 1536),
        ..gpu::OpenOptions::default()
    });
    let nodes: Vec<_> = (0..9).map(|index| ints(&format!("n{index}"), 256)).collect();
    let refs: Vec<_> = nodes.iter().collect();
    let loaded = Context::root(&device).init_zeros(&refs).unwrap();
    let sum: Vec<_> = (0..9).map(|index| format!("load_n{index}(0u)")).collect();
    let text = format!("@compute @workgroup_size(1) fn main() {{ store_n0(0u, {}); }}", sum.join(" + "));
    let mut spec = KernelSpec::new("wide", text);
    for (index, node) in nodes.iter().enumerate() {
        spec = spec.tensor(node.label(), node, if index == 0 { Access::ReadWrite } else { Access::Read });
    }
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let parts = ["link \"wide\"", "in 9 heaps", "limit of 8 storage bindings"];
    says(pollster::block_on(loaded.link(&code)), ErrorKind::LimitExceeded, &parts);
}

#[test]
fn what_belongs_to_another_device_or_driver() {
    let (one, other) = (open(), open());
    let x = ints("x", 1);
    let here = Context::root(&one).init_from_host(&x, &[1]).unwrap();
    let there = Context::root(&other).init_from_host(&x, &[1]).unwrap();
    let routine = increment(&here, &x);
    let parts = ["compiled for another device than gpu:0:", "compile it there"];
    says(pollster::block_on(there.link(routine.code().unwrap())), ErrorKind::KernelInterface, &parts);
    let host = host::open(host::OpenOptions::default()).unwrap();
    let spec = routine.code().unwrap().specs().next().unwrap().clone();
    let parts = ["compile \"increment\"", "host driver cannot execute raw WGSL", "open the gpu driver"];
    says(pollster::block_on(host.compile(spec)), ErrorKind::Unsupported, &parts);
}

#[test]
fn finalized_contexts_and_constants() {
    let device = open();
    let x = ints("x", 1);
    let c = TensorNode::with_mode("c", DType::I32, [1], MemoryMode::Constant);
    let loaded = Context::root(&device).init_from_host(&x, &[1]).unwrap().init_from_host(&c, &[2]).unwrap();
    says(loaded.from_host(&c, &[3]), ErrorKind::Unsupported, &["\"c\" is a constant", "OnDevice"]);
    says(loaded.zero(&c, 0, 4), ErrorKind::Unsupported, &["is a constant"]);
    says(loaded.copy_bytes(&x, 0, &c, 0, 4), ErrorKind::Unsupported, &["is a constant"]);
    let routine = increment(&loaded, &x);
    loaded.finalize();
    says(loaded.from_host(&x, &[1]), ErrorKind::Disposed, &["a context of gpu:0:", "was finalized"]);
    says(loaded.init_zeros(&[&ints("z", 1)]), ErrorKind::Disposed, &["was finalized"]);
    says(pollster::block_on(loaded.link(routine.code().unwrap())), ErrorKind::Disposed, &["link \"increment\""]);
    routine.context().finalize();
    says(routine.run(), ErrorKind::Disposed, &["run \"increment\": a context of gpu:0:"]);
}

#[test]
fn a_slab_of_exactly_the_limit_is_allocated_and_one_byte_more_is_not() {
    let device = open();
    let limit = device.limits().segment_cap_bytes;
    let largest = TensorNode::new("largest", DType::U8, [limit as u32]);
    let context = Context::root(&device).init_zeros(&[&largest]).unwrap();
    context.from_host_at(&largest, limit - 3, &[7u8, 8, 9]).unwrap();
    assert_eq!(pollster::block_on(context.to_host_at::<u8>(&largest, limit - 4, 4)).unwrap(), [0, 7, 8, 9]);
    let larger = TensorNode::new("larger", DType::U8, [limit as u32 + 1]);
    says(Context::root(&device).init_zeros(&[&larger]), ErrorKind::LimitExceeded, &["\"larger\" needs"]);
}

#[test]
fn workgroup_variables_are_counted_where_the_kernel_uses_them() {
    let device = open_with(gpu::OpenOptions { limits: gpu::LimitsChoice::Default, ..gpu::OpenOptions::default() });
    let x = ints("x", 4);
    let compile = |len: u32, used: &str| {
        let text = format!(
            "const LEN = {len}u; struct Tile {{ a: array<f32, LEN>, b: vec3f }}
            var<workgroup> tile: Tile; var<workgroup> flags: array<atomic<u32>, 2>; var<workgroup> idle: array<f32, 9000>;
            @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
                {used}
                tile.a[i] = 1.0; atomicStore(&flags[0], i); store_x(i, i32(tile.a[0])); }}"
        );
        let spec = KernelSpec::new("tiled", text).tensor("x", &x, Access::Write);
        pollster::block_on(device.compile(spec)).map(drop)
    };
    // Of 16,384: 16 for the flags, 16 for the vector, and the rest of the tile.
    compile(4088, "").unwrap();
    let error = compile(4089, "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PipelineRejected);
    assert!(
        error.to_string().contains("take 16400 bytes, over the device's limit of 16384; make them smaller"),
        "{error}"
    );
    assert!(compile(4, "idle[i] = 0.0;").unwrap_err().to_string().contains("take 36048 bytes"));
}
