//! Recorded sequences.

use wgslab::{Access, Binding, Context, DType, ErrorKind, KernelSpec, ProgramSpec, Sequence, TensorNode};

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

#[test]
fn a_steady_training_loop_makes_nothing_anew() {
    for binding in [Binding::Pooled, Binding::Direct] {
        let device = open();
        let node = |label: &str, shape: &[u32]| TensorNode::new(label, DType::F32, shape);
        let (x, y, w) = (node("x", &[4, 16, 8]), node("y", &[4, 16]), node("w", &[8]));
        let values = |len: usize| (0..len).map(|at| (at * 7 % 11) as f32 / 11.0).collect::<Vec<f32>>();
        let root = Context::root(&device).init_from_host(&x, &values(512)).unwrap();
        let root = root.init_from_host(&y, &values(64)).unwrap().init_from_host(&w, &[0.0f32; 8]).unwrap();
        let text = "e[n] = y[@batch, n] - sum[p](x[@batch, n, p] * w[p])\nloss = sum[n](e[n] * e[n])";
        let gradient = ProgramSpec::new("gradient", text).outputs(["e", "loss"]);
        let spec = gradient.node(&x).node(&y).node(&w).binding(binding);
        let gradient = pollster::block_on(device.compile(spec)).unwrap();
        let gradient = pollster::block_on(root.link(&gradient)).unwrap();
        let e = gradient.code().unwrap().node("e").unwrap().clone();
        let spec = ProgramSpec::new("update", "w[p] += sum[n](x[@batch, n, p] * e[n]) * 0.01");
        let spec = spec.node(&x).node(&w).node(&e).binding(binding);
        let update = pollster::block_on(device.compile(spec)).unwrap();
        let update = pollster::block_on(gradient.context().link(&update)).unwrap();
        let step = Sequence::record([(&gradient, &[("batch", 0)][..]), (&update, &[("batch", 0)][..])]).unwrap();
        let epochs = |count: u32| step.run_with(count * 4, |replay, _, _| (replay % 4) as i32).unwrap().sync().unwrap();
        let loss = || {
            let loss = gradient.code().unwrap().node("loss").unwrap().clone();
            pollster::block_on(gradient.context().to_host::<f32>(&loss)).unwrap()[0]
        };
        epochs(1);
        let (first, before) = (loss(), device.stats());
        epochs(25);
        let counts = device.stats().since(&before);
        let kernels = (gradient.code().unwrap().specs().count() + update.code().unwrap().specs().count()) as u64;
        assert_eq!(counts.dispatches, 100 * kernels, "{counts:?}");
        assert_eq!(
            (counts.pipelines_created, counts.bind_groups_created, counts.buffers_created),
            (0, 0, 0),
            "{counts:?}"
        );
        assert_eq!((counts.uploads, counts.zeros, counts.copies), (0, 0, 0), "{counts:?}");
        assert!(counts.passes == counts.submissions && counts.submissions <= 4, "{counts:?}");
        assert!(loss() < first, "it learns");
    }
}

#[test]
fn a_steady_inference_loop_of_upload_run_and_readback_makes_nothing_anew() {
    for binding in [Binding::Pooled, Binding::Direct] {
        let device = open();
        let (x, w) = (TensorNode::new("x", DType::F32, [64]), TensorNode::new("w", DType::F32, [64, 10]));
        let values: Vec<f32> = (0..640).map(|at| (at * 7 % 11) as f32 / 11.0).collect();
        let root = Context::root(&device).init_from_host(&x, &[0.0f32; 64]).unwrap();
        let root = root.init_from_host(&w, &values).unwrap();
        let spec = ProgramSpec::new("layer", "y[j] +=! x[i] * w[i, j]\nz[j] = max(y[j], 0)").node(&x).node(&w);
        let code = pollster::block_on(device.compile(spec.binding(binding))).unwrap();
        let routine = pollster::block_on(root.link(&code)).unwrap();
        let z = code.node("z").unwrap();
        let infer = |step: u8| {
            root.from_host(&x, &[f32::from(step); 64]).unwrap();
            routine.run().unwrap();
            pollster::block_on(routine.context().to_host::<f32>(z)).unwrap()[3]
        };
        for step in 0..4 {
            infer(step);
        }
        let before = device.stats();
        let outputs: Vec<f32> = (0..50).map(infer).collect();
        let counts = device.stats().since(&before);
        assert_eq!(
            (counts.pipelines_created, counts.bind_groups_created, counts.buffers_created),
            (0, 0, 0),
            "{counts:?}"
        );
        assert_eq!(
            (counts.dispatches, counts.passes, counts.uploads, counts.readbacks),
            (50, 50, 50, 50),
            "{counts:?}"
        );
        assert!(counts.submissions <= 100, "{counts:?}");
        for (step, output) in outputs.iter().enumerate() {
            let want = outputs[1] * step as f32;
            assert!((output - want).abs() <= want.abs() * 1e-5, "{step}: {output}, not {want}");
        }
    }
}
