//! Host twins: one program, both drivers, the same bytes.

use wgslab::{Access, Context, Device, Driver, ErrorKind, KernelSpec, host};

use crate::{ints, open};

fn scale() -> (KernelSpec, wgslab::TensorNode, wgslab::TensorNode) {
    let (x, y) = (ints("x", 100), ints("y", 100));
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_y(id.x, load_x(id.x) * static_factor()); }";
    let spec = KernelSpec::new("scale", text)
        .tensor("x", &x, Access::Read)
        .tensor("y", &y, Access::Write)
        .statics(["factor"])
        .grid([2, 1, 1])
        .twin(|args| {
            let factor = args.static_value("factor")?;
            let y: Vec<i32> = args.load::<i32>("x")?.iter().map(|x| x.wrapping_mul(factor)).collect();
            args.store("y", &y)
        });
    (spec, x, y)
}

async fn run<D: Driver>(device: &Device<D>) -> wgslab::Result<Vec<i32>> {
    let (spec, x, y) = scale();
    let data: Vec<i32> = (0..100).map(|index| index * 1_000_003).collect();
    let loaded = Context::root(device).init_from_host(&x, &data)?;
    let routine = loaded.link(&device.compile(spec).await?).await?;
    routine.run_with(&[("factor", -7)])?.await?;
    routine.context().to_host(&y).await
}

#[test]
fn a_kernel_with_a_twin_gives_the_same_on_both_drivers() {
    let on_host = pollster::block_on(run(&host::open(host::OpenOptions::default()).unwrap())).unwrap();
    assert_eq!(on_host[1], -7_000_021);
    assert_eq!(pollster::block_on(run(&open())).unwrap(), on_host);
}

#[test]
fn a_twin_that_fails_writes_nothing_and_says_why() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let (spec, x, y) = scale();
    let loaded = Context::root(&device).init_from_host(&x, &[1; 100]).unwrap();
    let failing = spec.clone().twin(|args| {
        args.store("y", &[9; 100])?;
        args.store("y", &[9; 99])
    });
    let routine = pollster::block_on(async { loaded.link(&device.compile(failing).await?).await }).unwrap();
    let error = routine.run_with(&[("factor", 1)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KernelInterface);
    let wanted = "run \"scale\": the host twin of \"scale\": tensor \"y\" has 100 elements, not 99";
    assert_eq!(error.to_string(), wanted);
    assert_eq!(pollster::block_on(routine.context().to_host::<i32>(&y)).unwrap(), [0; 100]);
    for (twin, part) in [
        (spec.clone().twin(|args| args.store("x", &[0; 100])), "is declared read"),
        (spec.clone().twin(|args| args.load::<f32>("x").map(drop)), "is i32, not f32"),
        (spec.clone().twin(|args| args.load::<i32>("z").map(drop)), "no tensor \"z\""),
        (spec.clone().twin(|args| args.static_value("step").map(drop)), "no static \"step\""),
    ] {
        let code = pollster::block_on(device.compile(twin)).unwrap();
        let routine = pollster::block_on(Context::root(&device).init_from_host(&x, &[1; 100]).unwrap().link(&code));
        let error = routine.unwrap().run_with(&[("factor", 1)]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}
