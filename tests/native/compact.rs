//! Slabs move, and nobody notices: locations, bytes and recorded work stay as they are.

use wgslab::{
    Access, Block, BufferLoc, Compaction, Context, DType, Driver, ErrorKind, KernelSpec, MemoryMode, PoolId, Routine,
    Span, TensorNode, alloc_pool, free_pool, gpu, host, resolve_pool,
};

use crate::{increment, ints, open, open_with, slow};

type Device = wgslab::Device<gpu::Gpu>;
type Ctx = Context<gpu::Gpu>;

fn with_heaps_of(heap_bytes: u64) -> Device {
    open_with(gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        heap_bytes: Some(heap_bytes),
        ..gpu::OpenOptions::default()
    })
}

fn read(context: &Ctx, node: &TensorNode) -> Vec<i32> {
    pollster::block_on(context.to_host::<i32>(node)).unwrap()
}

/// So many contexts of one node each, with bytes that tell them apart.
fn filled(device: &Device, count: i32, len: u32) -> Vec<(Ctx, TensorNode)> {
    let one = |index: i32| {
        let node = ints(&format!("n{index}"), len);
        let bytes: Vec<i32> = (0..len as i32).map(|at| index * 1_000_000 + at).collect();
        (Context::root(device).init_from_host(&node, &bytes).unwrap(), node)
    };
    (0..count).map(one).collect()
}

fn check(filled: &[(Ctx, TensorNode)], is_left: impl Fn(usize) -> bool, added: i32) {
    for (index, (context, node)) in filled.iter().enumerate().filter(|(index, _)| is_left(*index)) {
        let got = read(context, node);
        let expected = (0..got.len() as i32).map(|at| index as i32 * 1_000_000 + at + added);
        assert!(got.iter().copied().eq(expected), "node {index}: {:?} ...", &got[..4.min(got.len())]);
    }
}

#[test]
fn compaction_moves_slabs_and_gives_heaps_back_while_everything_stays_as_it_is() {
    let device = with_heaps_of(64 << 10);
    let all = filled(&device, 60, 1500);
    let is_left = |index: usize| index % 3 == 2;
    let routines: Vec<_> =
        all.iter().enumerate().filter(|(index, _)| is_left(*index)).map(|(_, (c, n))| increment(c, n)).collect();
    let view = TensorNode::view("view", &all[5].1, 100, [4]);
    let viewing = all[5].0.alias(&[&view]).unwrap();
    routines.iter().for_each(|routine| drop(routine.run().unwrap()));
    let early = all[8].0.to_host::<i32>(&all[8].1);
    all.iter().enumerate().filter(|(index, _)| !is_left(*index)).for_each(|(_, (context, _))| context.finalize());
    routines.iter().for_each(|routine| drop(routine.run().unwrap()));
    let (before, locs) = (device.report(), all.iter().map(|(context, _)| context.locs()).collect::<Vec<_>>());
    // An upload in the queue goes where the slab was when it was recorded, and moves along.
    all[11].0.from_host_at(&all[11].1, 1, &[-5]).unwrap();

    let Compaction { moved_bytes, freed_bytes } = device.compact().unwrap();
    let after = device.report();
    assert!((12 * 6144..=20 * 6144).contains(&moved_bytes), "{moved_bytes} of {}", 20 * 6144);
    assert_eq!(freed_bytes, before.reserved_bytes - after.reserved_bytes);
    assert_eq!(after.heap_count, 2, "20 slabs of 6,144 bytes fit two heaps of 65,536");
    assert_eq!((after.in_use_bytes, &after.pools), (before.in_use_bytes, &before.pools));
    assert_eq!(all.iter().map(|(context, _)| context.locs()).collect::<Vec<_>>(), locs);

    assert_eq!(pollster::block_on(early).unwrap()[..2], [8_000_001, 8_000_002], "recorded before the move");
    // Linked and run before the move, and nothing was freed since.
    routines.iter().for_each(|routine| drop(routine.run().unwrap()));
    assert_eq!(read(&all[11].0, &all[11].1)[..3], [11_000_003, -4, 11_000_005]);
    all[11].0.from_host_at(&all[11].1, 1, &[11_000_004]).unwrap();
    check(&all, is_left, 3);
    increment(&viewing, &view).run().unwrap();
    assert_eq!(read(&viewing, &view), [5_000_104, 5_000_105, 5_000_106, 5_000_107]);
    assert_eq!(device.compact().unwrap(), Compaction::default(), "nothing is left to do");
}

#[test]
fn slabs_larger_than_the_way_they_move_keep_their_bytes() {
    let device = open();
    // The first slab leaves a gap smaller than the slabs behind it, which slide over their own places in pieces.
    let sizes = [100_000u32, 900_000, 1_000, 800_000];
    let all: Vec<_> = sizes.iter().flat_map(|&len| filled(&device, 1, len)).collect();
    let (mut before, after) = (device.report().heap_count, |device: &Device| device.report().heap_count);
    all[0].0.finalize();
    let compaction = device.compact().unwrap();
    assert!(compaction.moved_bytes >= 4 * 900_000, "{compaction:?}");
    before = before.min(after(&device));
    for (context, node) in &all[1..] {
        assert!(read(context, node).into_iter().eq(0..node.element_len() as i32));
    }
    assert_eq!(after(&device), before);
}

#[test]
fn recycled_memory_stays_zero_and_alignments_hold_through_a_compaction() {
    let device = with_heaps_of(16 << 10);
    let old = filled(&device, 12, 256);
    old.iter().step_by(2).for_each(|(context, _)| context.finalize());
    let x = ints("x", 300);
    let fresh: Vec<_> = (0..4).map(|_| Context::root(&device).init_zeros(&[&x]).unwrap()).collect();
    for (pool, alignment) in [(101, 4096), (102, 1024), (103, 2048)] {
        alloc_pool(&device, PoolId(pool), 512, alignment, None).unwrap();
        wgslab::memset_zero(&device, PoolId(pool), 0, 512).unwrap();
    }
    old.iter().skip(1).step_by(4).for_each(|(context, _)| context.finalize());
    fresh[1].finalize();
    free_pool(&device, PoolId(102)).unwrap();
    device.compact().unwrap();
    for context in [&fresh[0], &fresh[2], &fresh[3]] {
        assert_eq!(read(context, &x), [0; 300]);
    }
    for (pool, alignment) in [(101, 4096), (103, 2048)] {
        let at = BufferLoc { pool_id: PoolId(pool), offset: 0 };
        assert_eq!(resolve_pool(&device, at).unwrap().offset % alignment, 0);
    }
    check(&old, |index| index % 4 == 3, 0);
    let next = Context::root(&device).init_zeros(&[&ints("next", 2000)]).unwrap();
    assert_eq!(pollster::block_on(next.to_host_many(&[&next.locs()[0].0])).unwrap()[0], vec![0u8; 8000]);
}

#[test]
fn work_that_runs_while_slabs_move_keeps_its_meaning() {
    let device = with_heaps_of(8 << 10);
    let all = filled(&device, 12, 400);
    let long = slow(&all[11].0, &all[11].1, 3_000_000);
    let expected = {
        long.run().unwrap();
        let once = read(&all[11].0, &all[11].1);
        all[11].0.from_host(&all[11].1, &(0..400).map(|at| 11_000_000 + at).collect::<Vec<_>>()).unwrap();
        once
    };
    long.run().unwrap();
    device.flush().unwrap();
    all[0].0.finalize();
    all[3].0.finalize();
    assert!(device.compact().unwrap().moved_bytes > 0);
    // Somebody takes the place where the slow kernel's slab was.
    let others = filled(&device, 6, 400);
    assert_eq!(read(&all[11].0, &all[11].1), expected);
    check(&all, |index| ![0, 3, 11].contains(&index), 0);
    check(&others, |_| true, 0);
}

#[test]
fn constants_move_among_constants_and_the_merge_buffer_moves_too() {
    let device = with_heaps_of(4096);
    let constant = |index: i32| {
        let node = TensorNode::with_mode(format!("c{index}"), DType::I32, [200], MemoryMode::Constant);
        (Context::root(&device).init_from_host(&node, &[index; 200]).unwrap(), node)
    };
    let all = filled(&device, 6, 200);
    let constants: Vec<_> = (0..8).map(constant).collect();
    let spec =
        KernelSpec::new("add", "@compute @workgroup_size(1) fn main() { store_x(0u, load_x(0u) + load_c(1u)); }")
            .tensor("x", &all[5].1, Access::ReadWrite)
            .tensor("c", &constants[7].1, Access::Read);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let both = all[5].0.init_from_host(&constants[7].1, &[0; 200]).unwrap();
    let routine = pollster::block_on(both.link(&code)).unwrap();
    let copy = all[4].0.child().build();
    let to_merge = Context::root(&device).init_from_host(&all[4].1, &[0; 200]).unwrap();
    let merge = to_merge.device_to_device(&all[4].1, wgslab::Landing::MergeBuffer, &copy).unwrap().unwrap();
    merge.run().unwrap();
    constants[..5].iter().for_each(|(context, _)| context.finalize());
    [0, 1, 3].iter().for_each(|index: &usize| all[*index].0.finalize());
    device.free_unused_constants();
    let before = device.report().heap_count;
    assert!(device.compact().unwrap().moved_bytes > 0);
    assert!(device.report().heap_count < before);
    routine.run().unwrap();
    assert_eq!(read(&all[5].0, &all[5].1)[..2], [5_000_007, 5_000_001]);
    assert_eq!(read(&constants[6].0, &constants[6].1), [6; 200]);
    let spec = KernelSpec::new("merge", "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(3u)); }")
        .merge_tensor("x", &all[4].1)
        .tensor("y", &all[5].1, Access::Write);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let target = merge.context().child().build();
    let holder = target.init_from_host(&all[5].1, &[0; 200]).unwrap();
    pollster::block_on(holder.link(&code)).unwrap().run().unwrap();
    assert_eq!(read(&holder, &all[5].1)[0], 4_000_003);
}

#[test]
fn fragmentation_that_would_refuse_an_allocation_is_resolved() {
    let device = open_with(gpu::OpenOptions { memory_budget_bytes: Some(1 << 20), ..gpu::OpenOptions::default() });
    let all = filled(&device, 30, 8192);
    let reserved = device.report().reserved_bytes;
    assert!(reserved <= 1 << 20);
    all.iter().step_by(2).for_each(|(context, _)| context.finalize());
    // 15 gaps of 32 KiB, and what is at the end: nothing takes 300 KiB as it is.
    let large = ints("large", 75 << 10);
    let context = Context::root(&device).init_zeros(&[&large]).unwrap();
    assert!(device.report().reserved_bytes <= 1 << 20);
    check(&all, |index| index % 2 == 1, 0);
    assert_eq!(read(&context, &large), vec![0; 75 << 10]);

    // What compaction cannot help is refused, and nothing moves.
    let places =
        || all.iter().skip(1).step_by(2).map(|(c, n)| resolve_pool(&device, c.loc(n).unwrap()).unwrap().offset);
    let (before, report, next) = (places().collect::<Vec<_>>(), device.report(), device.next_pool_id());
    let error = Context::root(&device).init_zeros(&[&ints("too-large", 150 << 10)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("its budget of 1048576"), "{error}");
    assert_eq!((device.report(), device.next_pool_id()), (report, next));
    assert_eq!(places().collect::<Vec<_>>(), before);
    check(&all, |index| index % 2 == 1, 0);
}

#[test]
fn half_empty_heaps_make_room_for_a_larger_one() {
    let device = open_with(gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        heap_bytes: Some(64 << 10),
        memory_budget_bytes: Some(512 << 10),
        ..gpu::OpenOptions::default()
    });
    let all = filled(&device, 48, 2500);
    assert_eq!(device.report().heap_count, 8);
    all.iter().enumerate().filter(|(index, _)| index % 6 > 1).for_each(|(_, (context, _))| context.finalize());
    let large = ints("large", 64 << 10);
    let context = Context::root(&device).init_from_host(&large, &vec![3; 64 << 10]).unwrap();
    assert!(device.report().reserved_bytes <= 512 << 10);
    check(&all, |index| index % 6 <= 1, 0);
    assert_eq!(read(&context, &large), vec![3; 64 << 10]);
}

#[test]
fn a_copy_that_needs_room_on_the_way_finds_its_slabs_where_they_moved() {
    let device = open_with(gpu::OpenOptions { memory_budget_bytes: Some(1 << 20), ..gpu::OpenOptions::default() });
    let all = filled(&device, 30, 8192);
    all[..28].iter().step_by(2).for_each(|(context, _)| context.finalize());
    let large = ints("large", 64 << 10);
    let bytes: Vec<i32> = (0..64 << 10).collect();
    let context = Context::root(&device).init_from_host(&large, &bytes).unwrap();
    all[1..20].iter().step_by(4).for_each(|(context, _)| context.finalize());
    let place = || resolve_pool(&device, context.loc(&large).unwrap()).unwrap().offset;
    let before = place();
    context.copy_bytes(&large, 0, &large, 4, (64 << 12) - 4).unwrap();
    assert_ne!(place(), before, "the copy needed 256 KiB in one piece");
    let got = read(&context, &large);
    assert_eq!((got[0], &got[1..]), (0, &bytes[..bytes.len() - 1]));
    check(&all, |index| index % 4 == 3 || index > 20 && index % 2 == 1, 0);
}

/// Bytes for it are written ahead of everything recorded, so no recorded copy may bring it elsewhere.
#[test]
fn a_slab_that_is_written_ahead_stays_where_it_is() {
    let device = open();
    let all = filled(&device, 4, 1000);
    gpu::Gpu::alloc_fresh(device.runner(), PoolId(300), 1024).unwrap();
    all[0].0.finalize();
    let loc = BufferLoc { pool_id: PoolId(300), offset: 0 };
    let before = gpu::Gpu::resolve_pool(device.runner(), loc).unwrap();
    assert!(device.compact().unwrap().moved_bytes > 0, "the others move");
    let after = gpu::Gpu::resolve_pool(device.runner(), loc).unwrap();
    assert_eq!((&after.slab, after.offset), (&before.slab, before.offset));
    gpu::Gpu::free_pool(device.runner(), PoolId(300)).unwrap();
    check(&all, |index| index > 0, 0);
}

#[test]
fn a_stepped_part_that_needs_room_on_the_way_finds_its_slab_where_it_moved() {
    const LEN: i32 = 130 << 10;
    let odd_values = |values: &[i32]| values.iter().skip(1).step_by(2).copied().collect::<Vec<_>>();
    for writes in [false, true] {
        let device = open_with(gpu::OpenOptions { memory_budget_bytes: Some(1 << 20), ..gpu::OpenOptions::default() });
        let all = filled(&device, 12, 8192);
        let (x, mut values) = (ints("x", LEN as u32), (0..LEN).collect::<Vec<i32>>());
        let context = Context::root(&device).init_from_host(&x, &values).unwrap();
        let odd = Block::new(&x, &[Span::stepped(1..LEN as u32, 2)]).unwrap();
        all[..10].iter().step_by(2).for_each(|(context, _)| context.finalize());
        let place = || resolve_pool(&device, context.loc(&x).unwrap()).unwrap().offset;
        let before = place();
        if writes {
            context.from_host_block(&x, &odd, &vec![-1; LEN as usize / 2]).unwrap();
            values.iter_mut().skip(1).step_by(2).for_each(|value| *value = -1);
        } else {
            let got = pollster::block_on(context.to_host_block::<i32>(&x, &odd)).unwrap();
            assert!(got == odd_values(&values));
        }
        assert_ne!(place(), before, "the row of 260 KiB found room as it was");
        assert!(read(&context, &x) == values);
        check(&all, |index| index > 9 || index % 2 == 1, 0);
    }
}

/// A kernel that adds up the first elements of all nodes but the last, into the last.
fn sum(device: &Device, nodes: &[TensorNode]) -> wgslab::Code<gpu::Gpu> {
    let (last, first) = nodes.split_last().unwrap();
    let loads: Vec<_> = first.iter().map(|node| format!("load_{}(0u)", node.label())).collect();
    let text =
        format!("@compute @workgroup_size(1) fn main() {{ store_{}(0u, {}); }}", last.label(), loads.join(" + "));
    let mut spec = KernelSpec::new("sum", text);
    for node in first {
        spec = spec.tensor(node.label(), node, Access::Read);
    }
    let code = device.compile(spec.tensor(last.label(), last, Access::ReadWrite));
    pollster::block_on(code).unwrap()
}

/// Every node in a slab, and a heap, of its own.
fn apart(device: &Device, count: i32) -> (Ctx, Vec<TensorNode>) {
    let nodes: Vec<_> = (0..count).map(|index| ints(&format!("n{index}"), 64)).collect();
    let mut context = Context::root(device);
    for (index, node) in nodes.iter().enumerate() {
        context = context.init_from_host(node, &[1 << index; 64]).unwrap();
    }
    (context, nodes)
}

#[test]
fn a_kernel_over_twelve_heaps_has_its_slabs_gathered() {
    let device = with_heaps_of(768);
    let (context, nodes) = apart(&device, 12);
    assert_eq!(device.report().heap_count, 12);
    let locs = context.locs();
    let routine = pollster::block_on(context.link(&sum(&device, &nodes))).unwrap();
    assert!(routine.explain().contains("through 1 bindings"), "{}", routine.explain());
    assert!(device.report().heap_count <= 2, "what they left goes back: {:?}", device.report());
    routine.run().unwrap();
    assert_eq!(read(&context, &nodes[11])[..2], [(1 << 11) - 1, 1 << 11]);
    assert_eq!(context.locs(), locs);
    for (index, node) in nodes[..11].iter().enumerate() {
        assert_eq!(read(&context, node), [1 << index; 64]);
    }
}

#[test]
fn a_kernel_whose_slabs_came_apart_is_gathered_when_it_runs() {
    let device = with_heaps_of(4096);
    let (context, nodes) = apart(&device, 12);
    let routine = pollster::block_on(context.link(&sum(&device, &nodes))).unwrap();
    assert!(routine.explain().contains("through 1 bindings"), "{}", routine.explain());
    // Pools allocated anew by hand, so large that each takes a heap of its own.
    for node in &nodes[..10] {
        alloc_pool(&device, context.loc(node).unwrap().pool_id, 3500, 256, None).unwrap();
        context.from_host(node, &[2; 64]).unwrap();
    }
    assert_eq!(device.report().heap_count, 11);
    routine.run().unwrap();
    assert!(routine.explain().contains("through 1 bindings"), "{}", routine.explain());
    assert!(device.report().heap_count <= 2, "{:?}", device.report());
    assert_eq!(read(&context, &nodes[11])[..2], [20 + (1 << 10), 1 << 11]);
    assert_eq!(read(&context, &nodes[9]), [2; 64]);
}

#[test]
fn constants_are_gathered_among_themselves() {
    let device = with_heaps_of(768);
    let (context, mut nodes) = apart(&device, 6);
    let mut context: Ctx = context;
    for index in 0..6 {
        let node = TensorNode::with_mode(format!("c{index}"), DType::I32, [64], MemoryMode::Constant);
        context = context.init_from_host(&node, &[100; 64]).unwrap();
        nodes.insert(0, node);
    }
    let routine: Routine<gpu::Gpu> = pollster::block_on(context.link(&sum(&device, &nodes))).unwrap();
    routine.run().unwrap();
    assert_eq!(read(&context, &nodes[11])[0], 600 + 31);
    assert!(routine.explain().contains("(read): heap"), "{}", routine.explain());
    assert_eq!(read(&context, &nodes[0]), [100; 64]);
}

#[test]
fn slabs_that_do_not_fit_together_are_refused_with_the_heaps_and_the_limit() {
    let budget = |heaps: u64| gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        heap_bytes: Some(768),
        memory_budget_bytes: Some(heaps * 768),
        ..gpu::OpenOptions::default()
    };
    let device = open_with(budget(13));
    let (context, nodes) = apart(&device, 12);
    let report = device.report();
    let error = pollster::block_on(context.link(&sum(&device, &nodes))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("its tensors lie in 12 heaps ([0, 1, 2,"), "{error}");
    assert!(error.to_string().contains("limit of 8 storage bindings"), "{error}");
    assert_eq!(device.report(), report);
    let routine = pollster::block_on(context.link(&sum(&device, &nodes[..8]))).unwrap();
    routine.run().unwrap();
    assert_eq!(read(&context, &nodes[7])[0], 127);
}

#[test]
fn the_host_driver_has_nothing_to_move() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    assert_eq!(device.compact().unwrap(), Compaction::default());
    device.destroy();
    assert_eq!(device.compact().unwrap_err().kind(), ErrorKind::DeviceLost);
    let device = open();
    device.destroy();
    assert_eq!(device.compact().unwrap_err().kind(), ErrorKind::DeviceLost);
}
