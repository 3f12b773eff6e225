//! Compiling and linking many at once.

use wgslab::{Access, Context, KernelSpec, TensorNode};

use crate::{ints, open};

fn add(name: &str, from: &TensorNode, to: &TensorNode, amount: i32) -> KernelSpec {
    let text = format!("@compute @workgroup_size(1) fn main() {{ store_to(0u, load_from(0u) + {amount}); }}");
    KernelSpec::new(name, text).tensor("from", from, Access::Read).tensor("to", to, Access::Write)
}

#[test]
fn a_batch_allocates_shared_nodes_once_and_compiles_each_text_once() {
    let device = open();
    let (x, y, z) = (ints("x", 1), ints("y", 1), ints("z", 1));
    let root = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let before = device.stats().pipelines_created;
    let specs = vec![add("one", &x, &y, 10), add("two", &y, &z, 10), add("three", &x, &y, 100)];
    let codes = pollster::block_on(device.compile_batch(specs)).unwrap();
    assert_eq!(device.stats().pipelines_created - before, 2, "two distinct texts");
    let codes: Vec<_> = codes.iter().collect();
    let routines = pollster::block_on(root.link_batch(&codes)).unwrap();
    assert_eq!(device.report().pools.len(), 2, "one slab holds the delta of the batch");
    assert!(routines.iter().all(|routine| routine.context().loc(&z).is_some()));
    assert!(routines[1].run().unwrap_err().to_string().contains("\"one\" must run first"));
    for routine in &routines {
        routine.run().unwrap();
    }
    let last = routines[2].context();
    assert_eq!(pollster::block_on(last.to_host::<i32>(&z)).unwrap(), [21]);
    assert_eq!(pollster::block_on(last.to_host::<i32>(&y)).unwrap(), [101]);
    drop(routines);
    assert_eq!(device.report().pools.len(), 1);
}

#[test]
fn a_failure_in_a_batch_names_the_member_and_leaves_nothing_behind() {
    let device = open();
    let (x, y, z) = (ints("x", 1), ints("y", 1), ints("z", 1));
    let root = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let good = add("good", &x, &y, 1);
    let bad = KernelSpec::new("bad", "@compute @workgroup_size(1) fn main() { nothing(); }");
    let error = pollster::block_on(device.compile_batch(vec![good.clone(), bad])).unwrap_err();
    assert!(error.to_string().starts_with("compile \"bad\""), "{error}");
    let codes = pollster::block_on(device.compile_batch(vec![good, add("late", &z, &y, 1)])).unwrap();
    let codes: Vec<_> = codes.iter().collect();
    let (report, next) = (device.report(), device.next_pool_id());
    let error = pollster::block_on(root.link_batch(&codes)).unwrap_err();
    assert!(error.to_string().contains("link \"late\": node"), "{error}");
    assert_eq!((device.report(), device.next_pool_id()), (report, next));
    assert!(pollster::block_on(root.link_batch(&[])).unwrap().is_empty());
}

#[test]
fn kernels_of_one_text_that_are_compiled_at_once_share_one_pipeline() {
    let device = open();
    let (x, y) = (ints("x", 1), ints("y", 1));
    let before = device.stats().pipelines_created;
    let compile = |text: &str| pollster::block_on(device.compile(KernelSpec::new("k", text)));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let codes: Vec<_> =
                    (0..25).map(|_| pollster::block_on(device.compile(add("add", &x, &y, 1))).unwrap()).collect();
                assert!(compile("@compute @workgroup_size(1) fn main() { nothing(); }").is_err());
                codes
            });
        }
        let specs = (0..25).map(|_| add("add", &x, &y, 1)).collect();
        let codes = pollster::block_on(device.compile_batch(specs)).unwrap();
        assert_eq!(codes.len(), 25);
        drop(compile("@compute @workgroup_size(1) fn main() {}").unwrap());
    });
    let made = device.stats().pipelines_created - before;
    assert!(made < 30, "{made} pipelines for two texts that are right, and one that is wrong eight times");
}
