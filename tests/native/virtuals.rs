//! Virtual nodes: computed in later programs, from the values that they were left with, or not at all.

use wgslab::{Context, DType, Device, Driver, ErrorKind, MemoryMode, ProgramSpec, Routine, TensorNode, host};

use crate::open;

fn floats(label: &str) -> TensorNode {
    TensorNode::new(label, DType::F32, [4])
}

fn unstored(label: &str, dtype: DType) -> TensorNode {
    TensorNode::with_mode(label, dtype, [4], MemoryMode::Virtual)
}

/// A program over nodes, compiled with what a context knows, and linked into it.
fn linked<D: Driver>(context: &Context<D>, text: &str, nodes: &[&TensorNode]) -> wgslab::Result<Routine<D>> {
    let spec = nodes.iter().fold(ProgramSpec::new(text, text), |spec, node| spec.node(node));
    let code = pollster::block_on(context.device().compile_in(context.optimize_ctx(), spec))?;
    pollster::block_on(context.link(&code))
}

fn values<D: Driver>(routine: &Routine<D>, name: &str) -> Vec<f32> {
    let node = routine.code().unwrap().node(name).unwrap();
    pollster::block_on(routine.context().to_host(node)).unwrap()
}

fn refusal<T>(result: wgslab::Result<T>) -> (ErrorKind, String) {
    let error = result.err().expect("it must be refused");
    (error.kind(), error.to_string())
}

fn a_later_program_computes_it<D: Driver>(device: &Device<D>) {
    let (x, t) = (floats("x"), unstored("t", DType::F16));
    let loaded = Context::root(device).init_from_host(&x, &[1.0f32, 2.0, 3.0, 0.1]).unwrap();
    let first = linked(&loaded, "t[i] = x[i] * 2", &[&x, &t]).unwrap();
    assert_eq!(first.code().unwrap().specs().count(), 0, "there is nothing to store");
    let later = linked(first.context(), "y[i] = t[i] + 1", &[&t]).unwrap();
    let explained = later.code().unwrap().explain();
    assert!(explained.starts_with("\"y[i] = t[i] + 1\": 1 kernel\n"), "{explained}");
    assert!(explained.contains("t: f16[4] virtual: computed where it is read\n"), "{explained}");
    let (kind, message) = refusal(later.run());
    assert_eq!(kind, ErrorKind::NotRun);
    assert!(message.contains("is virtual, and what computes it has not run; run \"t[i] = x[i] * 2\" now"), "{message}");
    first.run().unwrap();
    later.run().unwrap();
    let rounded = half::f16::from_f32(0.2).to_f32();
    assert_eq!(values(&later, "y"), [3.0, 5.0, 7.0, rounded + 1.0], "it rounds as it would if it were stored");
    // Other values than those that it was left with are not taken for it.
    loaded.from_host(&x, &[5.0f32; 4]).unwrap();
    let (kind, message) = refusal(later.run());
    assert_eq!(kind, ErrorKind::NotRun);
    assert!(message.contains("ran before that was written; run \"t[i] = x[i] * 2\" now"), "{message}");
    first.run().unwrap();
    later.run().unwrap();
    assert_eq!(values(&later, "y"), [11.0; 4]);
    // A routine in between that writes what it is made of does not change it unseen either.
    let writer = linked(later.context(), "x[i] = x[i] * 10", &[&x]).unwrap();
    let last = linked(writer.context(), "z[i] = t[i]", &[&t]).unwrap();
    writer.run().unwrap();
    assert_eq!(refusal(last.run()).0, ErrorKind::NotRun);
    first.run().unwrap();
    last.run().unwrap();
    assert_eq!(values(&last, "z"), [100.0; 4]);
}

#[test]
fn a_later_program_computes_a_virtual_node_from_the_values_it_was_left_with() {
    a_later_program_computes_it(&host::open(host::OpenOptions::default()).unwrap());
    a_later_program_computes_it(&open());
}

#[test]
fn virtual_nodes_are_made_of_virtual_nodes_and_of_reductions() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let (x, s, t) =
        (floats("x"), TensorNode::with_mode("s", DType::F32, [], MemoryMode::Virtual), unstored("t", DType::F32));
    let loaded = Context::root(&device).init_from_host(&x, &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let first = linked(&loaded, "s +=! x[i]", &[&x, &s]).unwrap();
    let second = linked(first.context(), "t[i] = x[i] * 2\nt[i] = t[i] + 1", &[&x, &t]).unwrap();
    let third = linked(second.context(), "y[i] = t[i] + s", &[&s, &t]).unwrap();
    for routine in [&first, &second, &third] {
        routine.run().unwrap();
    }
    assert_eq!(values(&third, "y"), [13.0, 15.0, 17.0, 19.0]);
    // One that is changed on the way is another from there on.
    let fourth = linked(third.context(), "t[i] += 100", &[&t]).unwrap();
    let fifth = linked(fourth.context(), "z[i] = t[i]", &[&t]).unwrap();
    fourth.run().unwrap();
    fifth.run().unwrap();
    assert_eq!(values(&fifth, "z"), [103.0, 105.0, 107.0, 109.0]);
}

#[test]
fn codes_of_a_batch_know_what_those_before_them_leave() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let (x, t) = (floats("x"), unstored("t", DType::F32));
    let loaded = Context::root(&device).init_from_host(&x, &[1.0f32; 4]).unwrap();
    let first = pollster::block_on(device.compile(ProgramSpec::new("a", "t[i] = -x[i]").node(&x).node(&t))).unwrap();
    let spec = ProgramSpec::new("b", "y[i] = t[i] * 3").node(&t);
    let second = pollster::block_on(device.compile_in(&first.optimize_ctx(), spec)).unwrap();
    let routines = pollster::block_on(loaded.link_batch(&[&first, &second])).unwrap();
    for routine in &routines {
        routine.run().unwrap();
    }
    assert_eq!(values(&routines[1], "y"), [-3.0; 4]);
    let (kind, message) = refusal(pollster::block_on(loaded.link(&second)));
    assert_eq!(kind, ErrorKind::UnknownNode);
    assert!(message.contains("is virtual, and no routine of this line of contexts leaves it"), "{message}");
}

#[test]
fn what_is_known_on_one_device_is_nothing_on_another() {
    let (x, t) = (floats("x"), unstored("t", DType::F32));
    let open = || host::open(host::OpenOptions::default()).unwrap();
    let loaded = [open(), open()].map(|device| Context::root(&device).init_from_host(&x, &[1.0f32; 4]).unwrap());
    let first = linked(&loaded[0], "t[i] = x[i] * 2", &[&x, &t]).unwrap();
    first.run().unwrap();
    let known = first.context().optimize_ctx();
    assert_eq!((known.nodes().collect::<Vec<_>>(), known.len()), (vec![&t], 1));
    // x lies at the same numbers on both.
    assert_eq!(loaded[0].loc(&x), loaded[1].loc(&x));
    let [here, there] = loaded.map(|loaded| loaded.child().optimize_ctx(known.clone()).build());
    let spec = ProgramSpec::new("later", "y[i] = t[i]").node(&t);
    let codes = pollster::block_on(there.device().compile_batch_in(known, vec![spec])).unwrap();
    let (kind, message) = refusal(pollster::block_on(there.link(&codes[0])));
    assert_eq!(kind, ErrorKind::UnknownNode);
    assert!(message.contains("leaves it as it was compiled in"), "{message}");
    let later = linked(&here, "y[i] = t[i]", &[&t]).unwrap();
    later.run().unwrap();
    assert_eq!(values(&later, "y"), [2.0; 4]);
}

#[test]
fn a_virtual_node_that_later_programs_could_not_compute_is_refused() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let (x, t) = (floats("x"), unstored("t", DType::F32));
    let context = Context::root(&device).init_from_host(&x, &[1.0f32; 4]).unwrap();
    let why = |text: &str| refusal(linked(&context, text, &[&x, &t]));
    let (kind, message) = why("y[i] = t[i] + x[i]");
    assert_eq!(kind, ErrorKind::UnknownNode);
    assert!(message.contains("is virtual, and nothing before computes it"), "{message}");
    for (text, reason) in [
        ("t[i] = x[i] * f32(@k)", "it depends on a static"),
        ("t[i] = x[i]\nt[i] = 1 where i in 1:3", "it is set in parts"),
        ("t[i] = x[i]\nx[i] = x[i] + 1", "it is made of \"x\", which is written after it"),
        ("m +=! x[i]\nt[i] = x[i] - m\nx[i] = m", "it is made of \"m\", which does not outlive the program"),
    ] {
        let (kind, message) = why(text);
        assert_eq!(kind, ErrorKind::KernelInterface, "{text}");
        assert!(message.contains(&format!("later programs could not compute it: {reason}; make it")), "{message}");
    }
}
