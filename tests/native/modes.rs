//! Memory modes: what is decided once, and local nodes in memory that they share.

use wgslab::{
    Access, Code, Context, DType, Device, Driver, ErrorKind, KernelSpec, MemoryMode, Routine, TensorNode, host,
};

use crate::{ints, open};

fn local(label: &str, len: u32) -> TensorNode {
    TensorNode::with_mode(label, DType::I32, [len], MemoryMode::Local)
}

/// `to[i] = from[i] + 1`.
fn add_one(name: &str, from: &TensorNode, to: &TensorNode) -> KernelSpec {
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_to(id.x, load_from(id.x) + 1); }";
    let groups = from.element_len().div_ceil(64) as u32;
    KernelSpec::new(name, text)
        .tensor("from", from, Access::Read)
        .tensor("to", to, Access::Write)
        .grid([groups, 1, 1])
        .twin(|args| {
            let more: Vec<i32> = args.load::<i32>("from")?.iter().map(|value| value + 1).collect();
            args.store("to", &more)
        })
}

/// `x` → five local nodes, one from the other → `y`.
async fn chain<D: Driver>(device: &Device<D>) -> wgslab::Result<(Context<D>, Vec<Routine<D>>, Vec<TensorNode>)> {
    let mut nodes = vec![ints("x", 1000)];
    nodes.extend((0..5).map(|index| local(&format!("l{index}"), 1000)));
    nodes.push(ints("y", 1000));
    let root = Context::root(device).init_from_host(&nodes[0], &[10; 1000])?;
    let specs = nodes.windows(2).map(|pair| add_one("step", &pair[0], &pair[1])).collect();
    let codes = device.compile_batch(specs).await?;
    let routines = root.link_batch(&codes.iter().collect::<Vec<&Code<D>>>()).await?;
    Ok((root, routines, nodes))
}

async fn run_chain<D: Driver>(device: &Device<D>) -> wgslab::Result<()> {
    let (_root, routines, nodes) = chain(device).await?;
    let report = device.report();
    // x, y, and the scratch of two nodes that are needed at a time, of 4,096 bytes each with padding.
    let sizes: Vec<_> = report.pools.iter().map(|pool| pool.size_bytes).collect();
    assert_eq!(sizes, [4096, 4096, 8192]);
    let scratch: Vec<_> = report.pools[2].nodes.iter().map(|node| (node.label.as_str(), node.offset)).collect();
    assert_eq!(scratch.len(), 5, "{scratch:?}");
    let early = routines[2].run().expect_err("two before it have not run");
    assert_eq!(early.kind(), ErrorKind::NotRun);
    for _ in 0..3 {
        for routine in &routines {
            routine.run()?;
        }
    }
    let last = routines[5].context();
    assert_eq!(last.to_host::<i32>(&nodes[6]).await?, [16; 1000]);
    assert_eq!(last.loc(&nodes[1]), None, "no context has a local node");
    let unseen = last.to_host::<i32>(&nodes[1]).await.expect_err("it is local");
    assert_eq!(unseen.kind(), ErrorKind::UnknownNode);
    assert!(unseen.to_string().contains("is local: only the routines of its batch see it"), "{unseen}");
    Ok(())
}

#[test]
fn local_nodes_share_scratch_memory_on_both_drivers() {
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    pollster::block_on(run_chain(&on_host)).unwrap();
    assert_eq!(on_host.report().in_use_bytes, 0);
    let device = open();
    pollster::block_on(run_chain(&device)).unwrap();
    assert_eq!(device.report().in_use_bytes, 0);
}

#[test]
fn a_kernel_has_a_local_node_to_itself() {
    let device = open();
    let (x, scratch) = (ints("x", 64), local("scratch", 64));
    let context = Context::root(&device).init_from_host(&x, &(0..64).collect::<Vec<_>>()).unwrap();
    let text = "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        store_scratch(i, load_x(63u - i));
        storageBarrier();
        store_x(i, load_scratch(i)); }";
    let spec = |name: &str| {
        KernelSpec::new(name, text).tensor("x", &x, Access::ReadWrite).tensor("scratch", &scratch, Access::ReadWrite)
    };
    let code = pollster::block_on(device.compile(spec("reverse"))).unwrap();
    let forecast = context.forecast(&code).unwrap();
    assert_eq!(forecast.slab_sizes_bytes, [256]);
    let one = pollster::block_on(context.link(&code)).unwrap();
    let other = pollster::block_on(context.link(&code)).unwrap();
    assert!(other.can_run(), "the local nodes of two links are not the same memory");
    one.run().unwrap();
    assert_eq!(pollster::block_on(one.context().to_host::<i32>(&x)).unwrap(), (0..64).rev().collect::<Vec<_>>());
    assert_eq!(device.report().pools.len(), 3);
    drop((one, other, context));
    assert_eq!(device.report().pools.len(), 0);
}

#[test]
fn what_has_no_place_in_a_context_is_refused_with_the_remedy() {
    let device = open();
    let (x, y) = (ints("x", 4), ints("y", 4));
    let (l, v) = (local("l", 4), TensorNode::with_mode("v", DType::I32, [4], MemoryMode::Virtual));
    let root = Context::root(&device).init_from_host(&x, &[1; 4]).unwrap();
    let refused = |error: wgslab::Error, kind: ErrorKind, part: &str| {
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(root.init_from_host(&l, &[1; 4]).unwrap_err(), ErrorKind::Unsupported, "make it on_device to keep it");
    refused(root.init_zeros(&[&v]).unwrap_err(), ErrorKind::Unsupported, "is computed where it is used");
    let link = |spec: KernelSpec| {
        let code = pollster::block_on(device.compile(spec)).unwrap();
        pollster::block_on(root.link(&code)).unwrap_err()
    };
    refused(
        link(add_one("k", &l, &y)),
        ErrorKind::UnknownNode,
        "nothing before tensor \"from\", declared read, writes it",
    );
    refused(link(add_one("k", &x, &v)), ErrorKind::KernelInterface, "is virtual: it has no bytes");
    let view = TensorNode::view("part", &l, 0, [2]);
    refused(link(add_one("k", &x, &view)), ErrorKind::KernelInterface, "is a view of a local node");
    refused(root.alias(&[&view]).unwrap_err(), ErrorKind::UnknownNode, "is local");
    x.refine_mode(MemoryMode::OnDevice).unwrap();
    refused(x.refine_mode(MemoryMode::Local).unwrap_err(), ErrorKind::Unsupported, "is on_device already");
    y.refine_mode(MemoryMode::Local).unwrap();
    drop(root);
    assert_eq!(device.report().pools.len(), 0, "refusals leave nothing behind");
}

#[test]
fn a_link_has_local_nodes_of_its_own_also_where_a_context_was_made_with_one_by_hand() {
    let device = open();
    let (x, l, y) = (ints("x", 4), local("l", 4), ints("y", 4));
    let root = Context::root(&device).init_from_host(&x, &[1; 4]).unwrap();
    let mut buffers = root.ctx_buffers().clone();
    buffers.insert(l.clone(), root.loc(&x).unwrap());
    let by_hand = root.child().ctx_buffers(buffers).build();
    let compile = |spec: KernelSpec| pollster::block_on(device.compile(spec)).unwrap();
    let (first, second) = (compile(add_one("first", &x, &l)), compile(add_one("second", &l, &y)));
    assert_eq!(pollster::block_on(by_hand.link(&second)).unwrap_err().kind(), ErrorKind::UnknownNode);
    assert_eq!(pollster::block_on(by_hand.link_batch(&[&second])).unwrap_err().kind(), ErrorKind::UnknownNode);
    let routines = pollster::block_on(by_hand.link_batch(&[&first, &second])).unwrap();
    routines.iter().for_each(|routine| drop(routine.run().unwrap()));
    let last = routines[1].context();
    assert_eq!(
        pollster::block_on(last.to_host::<i32>(&x)).unwrap(),
        [1; 4],
        "what the context calls local is not written"
    );
    assert_eq!(pollster::block_on(last.to_host::<i32>(&y)).unwrap(), [3; 4]);
}
