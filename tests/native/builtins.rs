//! The kernels that come with the crate: both drivers against what Rust says.

use wgslab::{Block, Context, DType, Device, Driver, ErrorKind, Span, TensorNode, host, kernels};

use crate::common::builtins::{check_casts, check_copies, check_fills};
use crate::open;

fn on_host() -> Device<host::Host> {
    host::open(host::OpenOptions::default()).unwrap()
}

fn nothing(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn casts_between_all_dtypes_are_what_rust_says() {
    nothing(pollster::block_on(check_casts(&open())));
    nothing(pollster::block_on(check_casts(&on_host())));
}

#[test]
fn fills_are_exact_and_leave_the_neighbours() {
    nothing(pollster::block_on(check_fills(&open())));
    nothing(pollster::block_on(check_fills(&on_host())));
}

#[test]
fn strided_copies_are_what_plain_loops_say() {
    nothing(pollster::block_on(check_copies(&open(), 150)));
    nothing(pollster::block_on(check_copies(&on_host(), 300)));
}

#[test]
fn more_workgroups_than_one_dimension_has_are_folded() {
    let device = open();
    let len = 65535 * 256 + 1000;
    let x = TensorNode::new("x", DType::I8, [len]);
    let code = pollster::block_on(device.compile(kernels::fill(&x))).unwrap();
    let routine = pollster::block_on(Context::root(&device).link(&code)).unwrap();
    routine.run_with(&[("bits", kernels::fill_bits(DType::I8, -7.0))]).unwrap();
    let read = pollster::block_on(routine.context().to_host::<i8>(&x)).unwrap();
    assert_eq!(read.iter().position(|&element| element != -7), None);
    let wide = TensorNode::new("wide", DType::I32, [len]);
    let code = pollster::block_on(device.compile(kernels::cast(&x, &wide).unwrap())).unwrap();
    let routine = pollster::block_on(routine.context().link(&code)).unwrap();
    routine.run().unwrap();
    let read = pollster::block_on(routine.context().to_host::<i32>(&wide)).unwrap();
    assert_eq!(read.iter().position(|&element| element != -7), None);
}

/// `y` is cast to `z` in a block of `w`: one sequence, replayed with other statics.
async fn replay<D: Driver>(device: &Device<D>) -> wgslab::Result<Vec<f32>> {
    let y = TensorNode::new("y", DType::I32, [3, 2]);
    let z = TensorNode::new("z", DType::F32, [3, 2]);
    let w = TensorNode::new("w", DType::F32, [4, 4]);
    let whole = Block::whole(&z);
    let corner = Block::new(&w, &[Span::from(1..4), Span::stepped(0..4, 3)])?;
    let specs = [kernels::fill(&y), kernels::cast(&y, &z)?, kernels::strided_copy(&z, &whole, &w, &corner)?];
    let codes = device.compile_batch(specs.into_iter().collect::<Vec<_>>()).await?;
    let routines = Context::root(device).link_batch(&codes.iter().collect::<Vec<_>>()).await?;
    for bits in [5, -9] {
        routines[0].run_with(&[("bits", bits)])?;
        routines[1].run()?;
        routines[2].run()?;
    }
    routines[2].context().to_host(&w).await
}

#[test]
fn they_are_linked_together_and_batched_like_any_other_kernel() {
    let want = [0.0, 0.0, 0.0, 0.0, -9.0, 0.0, 0.0, -9.0, -9.0, 0.0, 0.0, -9.0, -9.0, 0.0, 0.0, -9.0];
    assert_eq!(pollster::block_on(replay(&open())).unwrap(), want);
    assert_eq!(pollster::block_on(replay(&on_host())).unwrap(), want);
}

#[test]
fn what_cannot_be_a_kernel_is_refused() {
    let expect = |spec: wgslab::Result<wgslab::KernelSpec>, kind, part: &str| {
        let error = spec.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let x = TensorNode::new("x", DType::F32, [8, 4]);
    let y = TensorNode::new("y", DType::F32, [4, 8]);
    let n = TensorNode::new("n", DType::I32, [8, 4]);
    expect(kernels::cast(&x, &y), ErrorKind::ShapeMismatch, "make the shapes the same");
    let (a, b) = (TensorNode::view("a", &x, 0, [8]), TensorNode::view("b", &x, 4, [8]));
    expect(kernels::cast(&a, &b), ErrorKind::KernelInterface, "overlaps");
    let c = TensorNode::view("c", &x, 8, [8]);
    assert!(kernels::cast(&a, &c).is_ok() && kernels::cast(&a, &a).is_ok());
    let even = Block::new(&x, &[Span::stepped(0..8, 2), Span::from(0..4)]).unwrap();
    let odd = Block::new(&x, &[Span::stepped(1..8, 2), Span::from(0..4)]).unwrap();
    let low = Block::new(&x, &[Span::from(0..4), Span::from(0..4)]).unwrap();
    assert!(kernels::strided_copy(&x, &even, &x, &odd).is_ok());
    expect(kernels::strided_copy(&x, &even, &x, &low), ErrorKind::KernelInterface, "use Context::copy_block");
    expect(kernels::strided_copy(&x, &even, &n, &odd), ErrorKind::DTypeMismatch, "(i32)");
    expect(kernels::strided_copy(&x, &even, &y, &odd), ErrorKind::ShapeMismatch, "make one for it");
    let large = TensorNode::new("large", DType::U8, [65536, 65536]);
    let corner = Block::new(&large, &[Span::from(0..4), Span::from(0..4)]).unwrap();
    expect(kernels::strided_copy(&large, &corner, &large, &corner), ErrorKind::LimitExceeded, "4294967296 elements");
    let views = [TensorNode::view("p", &x, 0, [4, 4]), TensorNode::view("q", &x, 8, [4, 4])];
    let part = Block::new(&views[0], &[Span::from(0..2), Span::from(0..4)]).unwrap();
    assert!(kernels::strided_copy(&views[0], &part, &views[1], &part).is_ok());
    let more = Block::new(&views[0], &[Span::from(1..3), Span::from(0..4)]).unwrap();
    expect(kernels::strided_copy(&views[0], &more, &views[1], &part), ErrorKind::KernelInterface, "overlaps");
}
