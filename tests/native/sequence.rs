//! Recorded sequences.

use wgslab::{Access, Context, ErrorKind, KernelSpec, Sequence};

use crate::{increment, ints, open};

#[test]
fn a_sequence_is_replayed_with_new_statics() {
    let device = open();
    let (x, y) = (ints("x", 1), ints("y", 1));
    let root = Context::root(&device).init_from_host(&x, &[0]).unwrap().init_from_host(&y, &[0]).unwrap();
    let text = "@compute @workgroup_size(1) fn main() { store_y(0u, load_y(0u) * 10 + load_x(0u) + static_step()); }";
    let spec = KernelSpec::new("shift", text).tensor("x", &x, Access::Read).tensor("y", &y, Access::ReadWrite);
    let code = pollster::block_on(device.compile(spec.statics(["step"]))).unwrap();
    let bump = increment(&root, &x);
    let shift = pollster::block_on(bump.context().link(&code)).unwrap();
    let sequence = Sequence::record([(&bump, &[][..]), (&shift, &[("step", 5)][..])]).unwrap();
    assert_eq!(sequence.len(), 2);
    sequence.run(2).unwrap().sync().unwrap();
    assert_eq!(pollster::block_on(root.to_host::<i32>(&y)).unwrap(), [67], "1 + 5, then 2 + 5");
    let step = |replay, name: &str, recorded| {
        assert_eq!((name, recorded), ("step", 5));
        replay as i32
    };
    sequence.run_with(3, step).unwrap();
    assert_eq!(pollster::block_on(root.to_host::<i32>(&y)).unwrap(), [67_357], "3 + 0, 4 + 1, 5 + 2");
    assert!(sequence.run(0).unwrap().seq() > 0, "no replay is the event of what was there");
}

#[test]
fn a_sequence_is_refused_before_it_runs_anything() {
    let (device, other) = (open(), open());
    let x = ints("x", 1);
    let root = Context::root(&device).init_from_host(&x, &[0]).unwrap();
    let first = increment(&root, &x);
    let second = increment(first.context(), &x);
    let none: &[(&str, i32)] = &[];
    let backwards = Sequence::record([(&second, none), (&first, none)]).unwrap();
    let error = backwards.run(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRun);
    assert_eq!(pollster::block_on(root.to_host::<i32>(&x)).unwrap(), [0]);
    Sequence::record([(&first, none), (&second, none)]).unwrap().run(5).unwrap();
    assert_eq!(pollster::block_on(root.to_host::<i32>(&x)).unwrap(), [10]);
    let elsewhere = increment(&Context::root(&other).init_from_host(&x, &[0]).unwrap(), &x);
    let error = Sequence::record([(&first, none), (&elsewhere, none)]).unwrap_err();
    assert!(error.to_string().contains("a sequence runs on one device"), "{error}");
    assert!(Sequence::record([(&first, &[("step", 1)][..])]).is_err());
    let empty: [(&wgslab::Routine<_>, &[(&str, i32)]); 0] = [];
    assert!(Sequence::<wgslab::gpu::Gpu>::record(empty).is_err());
}
