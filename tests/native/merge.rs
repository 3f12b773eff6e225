//! Copies between contexts, and the merge buffer, on both drivers.

use wgslab::{
    Access, Context, Device, Driver, ErrorKind, KernelSpec, Landing, PoolId, ProgramSpec, Source, TensorNode, host,
};

use crate::{ints, open};

fn add_merged(to: &TensorNode, from: &TensorNode) -> KernelSpec {
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_to(id.x, load_to(id.x) + load_from(id.x)); }";
    KernelSpec::new("merge", text).tensor("to", to, Access::ReadWrite).merge_tensor("from", from).grid([7, 1, 1]).twin(
        |args| {
            let sums: Vec<i32> =
                args.load::<i32>("to")?.iter().zip(args.load::<i32>("from")?).map(|(to, from)| to + from).collect();
            args.store("to", &sums)
        },
    )
}

fn add_merged_in_notation(to: &TensorNode, from: &TensorNode) -> ProgramSpec {
    ProgramSpec::new("merge", "to[i] += from[i]").node_as("to", to).merge_node("from", from)
}

async fn merge_gradients<D: Driver, S: Into<Source>>(
    device: &Device<D>,
    add_merged: fn(&TensorNode, &TensorNode) -> S,
) -> wgslab::Result<Vec<i32>> {
    let gradient = ints("gradient", 10);
    let mine = Context::root(device).init_from_host(&gradient, &[1; 10])?;
    let theirs = Context::root(device).init_from_host(&gradient, &[20; 10])?;
    let copy = mine.device_to_device(&gradient, Landing::MergeBuffer, &theirs)?.expect("there is something to move");
    assert_eq!(copy.context().merge_buffer_node(), Some(&gradient));
    let code = device.compile(add_merged(&gradient, &gradient)).await?;
    let merge = copy.context().link(&code).await?;
    assert_eq!(merge.merge_buffer_input(), Some(&gradient));
    let early = merge.run().expect_err("nothing was copied yet");
    assert_eq!(early.kind(), ErrorKind::MergeMismatch, "{early}");
    assert!(early.to_string().contains("holds nothing, but node"), "{early}");
    copy.run()?;
    merge.run()?;
    theirs.from_host(&gradient, &[300; 10])?;
    copy.run()?;
    merge.run()?;
    let (node, loc) = device.merge_buffer().expect("a tenant");
    assert_eq!((node, loc.pool_id, device.merge_buffer_capacity()), (gradient.clone(), PoolId::MERGE, 256));
    device.updating_for_merge_buffer().expect("a writer").await?;
    mine.to_host(&gradient).await
}

#[test]
fn gradients_are_merged_on_both_drivers() {
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    assert_eq!(pollster::block_on(merge_gradients(&on_host, add_merged)).unwrap(), [321; 10]);
    assert_eq!(pollster::block_on(merge_gradients(&open(), add_merged)).unwrap(), [321; 10]);
}

#[test]
fn programs_merge_as_kernels_do() {
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    assert_eq!(pollster::block_on(merge_gradients(&on_host, add_merged_in_notation)).unwrap(), [321; 10]);
    assert_eq!(pollster::block_on(merge_gradients(&open(), add_merged_in_notation)).unwrap(), [321; 10]);
}

#[test]
fn a_program_only_reads_what_it_merges_and_merges_one_node() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let (x, y) = (ints("x", 4), ints("y", 4));
    let refused = |spec: ProgramSpec| pollster::block_on(device.compile(spec)).unwrap_err();
    let error = refused(ProgramSpec::new("p", "m[i] += 1").merge_node("m", &x));
    assert_eq!(error.kind(), ErrorKind::NotationMeaning, "{error}");
    assert!(error.to_string().contains("\"m\" can only be read, as a constant or from the merge buffer"), "{error}");
    let error = refused(ProgramSpec::new("p", "z[i] = a[i] + b[i]").merge_node("a", &x).merge_node("b", &y));
    assert_eq!(error.kind(), ErrorKind::KernelInterface, "{error}");
    assert!(error.to_string().contains("a program merges one node"), "{error}");
}

#[test]
fn a_mismatch_names_both_nodes_and_the_device_at_link_and_at_run() {
    let device = open();
    let (x, y) = (ints("x", 4), ints("y", 400));
    let mine = Context::root(&device).init_from_host(&x, &[1; 4]).unwrap().init_from_host(&y, &[1; 400]).unwrap();
    let theirs = Context::root(&device).init_from_host(&x, &[2; 4]).unwrap().init_from_host(&y, &[2; 400]).unwrap();
    let copy_x = mine.device_to_device(&x, Landing::MergeBuffer, &theirs).unwrap().unwrap();
    let code = pollster::block_on(device.compile(add_merged(&y, &y))).unwrap();
    let error = pollster::block_on(copy_x.context().link(&code)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MergeMismatch);
    let said = error.to_string();
    let wanted = format!("link \"merge\": the merge buffer of {} holds node {x}, but node {y}", device.name());
    assert!(said.starts_with(&wanted), "{said}");

    let copy_y = mine.device_to_device(&y, Landing::MergeBuffer, &theirs).unwrap().unwrap();
    let merge = pollster::block_on(copy_y.context().link(&code)).unwrap();
    copy_y.run().unwrap();
    copy_x.run().unwrap();
    let error = merge.run().unwrap_err();
    assert!(error.to_string().contains(&format!("holds node {x}, but node {y}")), "{error}");
    copy_y.run().unwrap();
    merge.run().unwrap();
    assert_eq!(pollster::block_on(mine.to_host::<i32>(&y)).unwrap(), [3; 400]);
    let twice = KernelSpec::new("twice", "@compute @workgroup_size(1) fn main() {}");
    let error = pollster::block_on(device.compile(twice.merge_tensor("a", &x).merge_tensor("b", &y))).unwrap_err();
    assert!(error.to_string().contains("merges one node"), "{error}");
}

#[test]
fn nodes_are_copied_between_contexts() {
    let (device, other) = (open(), open());
    let x = ints("x", 5);
    let theirs = Context::root(&device).init_from_host(&x, &[1, 2, 3, 4, 5]).unwrap();
    let mine = Context::root(&device).init_from_device(&x, &theirs).unwrap();
    theirs.from_host(&x, &[9; 5]).unwrap();
    assert_eq!(pollster::block_on(mine.to_host::<i32>(&x)).unwrap(), [1, 2, 3, 4, 5]);
    let copy = mine.device_to_device(&x, Landing::Node, &theirs).unwrap().unwrap();
    copy.run().unwrap();
    assert_eq!(pollster::block_on(mine.to_host::<i32>(&x)).unwrap(), [9; 5]);
    assert!(mine.device_to_device(&x, Landing::Node, &mine.child().build()).unwrap().is_none(), "nothing to move");
    assert!(mine.init_from_device(&x, &theirs).unwrap_err().to_string().contains("in the context already"));
    let missing = Context::root(&device).device_to_device(&x, Landing::Node, &theirs).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::UnknownNode);
    let elsewhere = Context::root(&other).init_from_host(&x, &[0; 5]).unwrap();
    elsewhere.device_to_device(&x, Landing::Node, &theirs).unwrap().unwrap().run().unwrap();
    assert_eq!(pollster::block_on(elsewhere.to_host::<i32>(&x)).unwrap(), [9; 5]);
    theirs.finalize();
    assert_eq!(copy.run().unwrap_err().kind(), ErrorKind::Disposed);
    let kept = mine.clone();
    mine.finalize();
    assert_eq!(copy.run().unwrap_err().kind(), ErrorKind::Disposed);
    assert_eq!(kept.device().report().pools.len(), 0);
}

#[test]
fn nodes_travel_between_devices_and_drivers_in_pieces() {
    let (one, two) = (open(), open());
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    // Nine pieces and a bit, an odd number of bytes.
    let x = TensorNode::new("x", wgslab::DType::U8, [9 * (4 << 20) + 4321]);
    let data: Vec<u8> = (0..x.element_len()).map(|index| ((index * 2_654_435_761) >> 13) as u8).collect();
    let start = Context::root(&one).init_from_host(&x, &data).unwrap();
    let there = pollster::block_on(Context::root(&two).init_from_other(&x, &start)).unwrap();
    let home = pollster::block_on(Context::root(&on_host).init_from_other(&x, &there)).unwrap();
    assert!(pollster::block_on(home.to_host::<u8>(&x)).unwrap() == data, "bytes changed on the way");
    start.zero(&x, 0, x.size_bytes()).unwrap();
    pollster::block_on(start.copy_from(&x, Landing::Node, &home)).unwrap();
    assert!(pollster::block_on(start.to_host::<u8>(&x)).unwrap() == data, "bytes changed on the way back");
    let staging = one.report().staging_bytes.max(two.report().staging_bytes);
    println!("{} bytes moved with at most {staging} bytes of staging", x.size_bytes());
    assert!(staging <= 100 << 20);
    assert!(pollster::block_on(there.init_from_other(&x, &start)).is_err(), "it is there already");
}

#[test]
fn gradients_of_another_device_are_merged() {
    let (one, two) = (open(), open());
    let gradient = ints("gradient", 10);
    let mine = Context::root(&one).init_from_host(&gradient, &[1; 10]).unwrap();
    let theirs = Context::root(&two).init_from_host(&gradient, &[20; 10]).unwrap();
    let code = pollster::block_on(one.compile(add_merged(&gradient, &gradient))).unwrap();
    let carrying = mine.child().merge_buffer_node(Some(gradient.clone())).build();
    for round in 1..=3 {
        pollster::block_on(mine.copy_from(&gradient, Landing::MergeBuffer, &theirs)).unwrap();
        let merge = pollster::block_on(carrying.link(&code)).unwrap();
        merge.run().unwrap();
        assert_eq!(pollster::block_on(mine.to_host::<i32>(&gradient)).unwrap(), [1 + round * 20; 10]);
    }
    two.destroy();
    let error = pollster::block_on(mine.copy_from(&gradient, Landing::Node, &theirs)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
    assert!(error.to_string().starts_with(&format!("copy {gradient} from gpu:0:")), "{error}");
}

/// Polls a future once, and gives it up.
fn give_up<F: std::future::Future>(future: F) {
    let mut future = std::pin::pin!(future);
    let _ = future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
}

#[test]
fn a_copy_into_the_merge_buffer_that_was_given_up_leaves_no_tenant() {
    let (one, two) = (open(), open());
    let (x, y) = (ints("x", 10), ints("y", 3_000_000));
    let mine = Context::root(&one).init_from_host(&x, &[1; 10]).unwrap();
    let theirs = Context::root(&one).init_from_host(&x, &[20; 10]).unwrap();
    let far = Context::root(&two).init_from_host(&y, &vec![7; 3_000_000]).unwrap();
    let copy = mine.device_to_device(&x, Landing::MergeBuffer, &theirs).unwrap().unwrap();
    let code = pollster::block_on(one.compile(add_merged(&x, &x))).unwrap();
    let merge = pollster::block_on(copy.context().link(&code)).unwrap();
    copy.run().unwrap();
    give_up(mine.copy_from(&y, Landing::MergeBuffer, &far));
    assert!(one.merge_buffer().is_none());
    assert_eq!(merge.run().unwrap_err().kind(), ErrorKind::MergeMismatch);
    // Somebody else comes between: the slow copy must not claim the buffer.
    let slow = mine.copy_from(&y, Landing::MergeBuffer, &far);
    let mut slow = std::pin::pin!(slow);
    let _ = slow.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    copy.run().unwrap();
    let error = pollster::block_on(slow).unwrap_err();
    assert!(error.to_string().contains("was used by somebody else while node"), "{error}");
    merge.run().unwrap();
    assert_eq!(pollster::block_on(mine.to_host::<i32>(&x)).unwrap(), [21; 10]);
    wgslab::free_pool(&one, PoolId::MERGE).unwrap();
    assert_eq!((one.merge_buffer(), one.merge_buffer_capacity()), (None, 0));
    let empty = ints("empty", 0);
    let from = Context::root(&one).init_zeros(&[&empty]).unwrap();
    mine.device_to_device(&empty, Landing::MergeBuffer, &from).unwrap().unwrap().run().unwrap();
}

#[test]
fn constants_are_shared_only_when_they_have_their_bytes() {
    let (device, other) = (open(), open());
    let c = TensorNode::with_mode("c", wgslab::DType::I32, [3_000_000], wgslab::MemoryMode::Constant);
    let far = Context::root(&other).init_from_host(&c, &vec![9i32; 3_000_000]).unwrap();
    give_up(Context::root(&device).init_from_other(&c, &far));
    let mine = Context::root(&device).init_from_host(&c, &vec![7i32; 3_000_000]).unwrap();
    assert_eq!(pollster::block_on(mine.to_host_at::<i32>(&c, 2_999_990, 10)).unwrap(), [7; 10]);
    let again = pollster::block_on(Context::root(&device).init_from_other(&c, &far)).unwrap();
    assert_eq!(again.loc(&c), mine.loc(&c), "the device has it");
    assert_eq!(pollster::block_on(mine.to_host_at::<i32>(&c, 0, 10)).unwrap(), [7; 10]);
    assert_eq!(Context::root(&device).init_from_device(&c, &mine).unwrap().loc(&c), mine.loc(&c));
    drop((mine, again));
    device.free_unused_constants();
    assert_eq!(device.report().in_use_bytes, 0);
}

#[test]
fn threads_that_share_constants_see_their_bytes_and_leave_none() {
    let device = open();
    for round in 0..30 {
        let c = TensorNode::with_mode("c", wgslab::DType::I32, [5000], wgslab::MemoryMode::Constant);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (device, c) = (device.clone(), c.clone());
                std::thread::spawn(move || {
                    let mine = Context::root(&device).init_from_host(&c, &[round; 5000]).unwrap();
                    assert_eq!(pollster::block_on(mine.to_host::<i32>(&c)).unwrap(), [round; 5000]);
                    drop(mine);
                    device.free_unused_constants();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    device.free_unused_constants();
    assert_eq!((device.report().pools.len(), device.report().in_use_bytes), (0, 0));
}

#[test]
fn a_twin_may_look_at_its_own_device() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let x = ints("x", 4);
    let context = Context::root(&device).init_from_host(&x, &[1, 2, 3, 4]).unwrap();
    let (seen, node) = (context.clone(), x.clone());
    let spec = KernelSpec::new("look", "@compute @workgroup_size(1) fn main() {}").tensor("x", &x, Access::ReadWrite);
    let spec = spec.twin(move |args| {
        assert!(seen.device().report().in_use_bytes > 0);
        let now: Vec<i32> = pollster::block_on(seen.to_host(&node))?;
        args.store("x", &now.iter().map(|x| x * 10).collect::<Vec<_>>())
    });
    let routine = pollster::block_on(async { context.link(&device.compile(spec).await?).await }).unwrap();
    routine.run().unwrap();
    assert_eq!(pollster::block_on(context.to_host::<i32>(&x)).unwrap(), [10, 20, 30, 40]);
}
