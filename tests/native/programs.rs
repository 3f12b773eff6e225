//! Programs in index notation, on both drivers.

use wgslab::{Context, DType, Device, Driver, ProgramSpec, TensorNode, host};

use crate::open;

fn floats(label: &str, shape: &[u32]) -> TensorNode {
    TensorNode::new(label, DType::F32, shape)
}

async fn product<D: Driver>(device: &Device<D>) -> wgslab::Result<Vec<f32>> {
    let (a, b) = (floats("a", &[3, 4]), floats("b", &[4, 5]));
    let values = |count: u32| (0..count).map(|value| value as f32 * 0.5 - 2.0).collect::<Vec<f32>>();
    let loaded = Context::root(device).init_from_host(&a, &values(12))?.init_from_host(&b, &values(20))?;
    let spec = ProgramSpec::new("product", "c[i, j] +=! a[i, k] * b[k, j]\nd[i, j] = max(c[i, j] - 1, 0)");
    let code = device.compile(spec.node(&a).node(&b)).await?;
    let routine = loaded.link(&code).await?;
    routine.run()?;
    routine.context().to_host(code.node("d")?).await
}

#[test]
fn a_product_and_what_follows_it_are_the_same_on_both_drivers() {
    let values = |count: u32| (0..count).map(|value| value as f32 * 0.5 - 2.0).collect::<Vec<f32>>();
    let (a, b) = (values(12), values(20));
    let mut want = Vec::new();
    for i in 0..3 {
        for j in 0..5 {
            let sum: f32 = (0..4).map(|k| a[i * 4 + k] * b[k * 5 + j]).sum();
            want.push((sum - 1.0).max(0.0));
        }
    }
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    assert_eq!(pollster::block_on(product(&on_host)).unwrap(), want);
    assert_eq!(pollster::block_on(product(&open())).unwrap(), want);
}

async fn contents<D: Driver>(device: &Device<D>, text: &str, name: &str) -> wgslab::Result<Vec<u8>> {
    let code = device.compile(ProgramSpec::new("p", text)).await?;
    let routine = Context::root(device).link(&code).await?;
    routine.run()?;
    Ok(routine.context().to_host_many(&[code.node(name)?]).await?.remove(0))
}

/// What a text alone makes of a node, the same on both drivers.
fn on_both(text: &str, name: &str) -> Vec<u8> {
    let on_host = pollster::block_on(contents(&host::open(host::OpenOptions::default()).unwrap(), text, name)).unwrap();
    assert_eq!(pollster::block_on(contents(&open(), text, name)).unwrap(), on_host, "{text}");
    on_host
}

#[test]
fn declared_nodes_and_outputs_that_no_kernel_touches_are_in_the_context() {
    assert_eq!(on_both("t: i32[3]\ny[i] = 1 where i in 0:2", "t"), [0; 12]);
    assert_eq!(on_both("t: u8[3]\nt[i] = 1 where i in 1:1", "t"), [0; 3]);
    assert!(on_both("y[i] = 1 where i in 0:0", "y").is_empty());
}

async fn refusals<D: Driver>(device: &Device<D>) -> [String; 3] {
    let pi = floats("pi", &[2]);
    let text = "y[i] = pi[i]";
    let reserved = device.compile(ProgramSpec::new("p", text).node(&pi)).await.unwrap_err().to_string();
    let named = device.compile(ProgramSpec::new("p", text).node_as("layer 1", &pi)).await.unwrap_err().to_string();
    let code = device.compile(ProgramSpec::new("p", "y[i] = w[i]").node_as("w", &pi)).await.unwrap();
    [reserved, named, Context::root(device).link(&code).await.unwrap_err().to_string()]
}

#[test]
fn errors_call_nodes_what_their_author_calls_them() {
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    for [reserved, named, absent] in [pollster::block_on(refusals(&on_host)), pollster::block_on(refusals(&open()))] {
        assert!(reserved.contains("\"pi\" is given as \"pi\", which is reserved or no name "), "{reserved}");
        assert!(named.contains("as \"layer 1\", which is reserved or no name (letters, "), "{named}");
        assert!(absent.contains("but tensor \"pi\" is declared read; "), "{absent}");
    }
}

async fn with_infinities<D: Driver>(device: &Device<D>) -> wgslab::Result<Vec<Vec<f32>>> {
    let x = floats("x", &[2]);
    let loaded = Context::root(device).init_from_host(&x, &[f32::INFINITY, f32::NAN])?;
    let spec = ProgramSpec::new("infinities", "a[i] = x[i] * 0\nb[i] = x[i] - x[i]\nc[i] = x[i] / x[i]").node(&x);
    let code = device.compile(spec).await?;
    let routine = loaded.link(&code).await?;
    routine.run()?;
    let mut values = Vec::new();
    for name in ["a", "b", "c"] {
        values.push(routine.context().to_host(code.node(name)?).await?);
    }
    Ok(values)
}

/// WGSL lets a driver assume that there are no infinities and NaN. docs/notation.md names the driver that does.
#[test]
fn llvmpipe_takes_products_with_zero_and_differences_of_equals_for_zero() {
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    for values in pollster::block_on(with_infinities(&on_host)).unwrap() {
        assert!(values.iter().all(|value| value.is_nan()), "{values:?}");
    }
    let on_gpu = open();
    let found = pollster::block_on(with_infinities(&on_gpu)).unwrap();
    let is_llvmpipe = on_gpu.adapter().name.contains("llvmpipe");
    for (values, deviates) in found.iter().zip([is_llvmpipe, is_llvmpipe, false]) {
        let wanted = |value: &f32| if deviates { *value == 0.0 } else { value.is_nan() };
        assert!(values.iter().all(wanted), "on {}: {found:?}", on_gpu.adapter().name);
    }
}

#[test]
fn temporaries_without_elements_may_be_read() {
    let want = 7.5f32.to_le_bytes().repeat(2);
    assert_eq!(
        on_both("c[i, j] = 1.0 where i in 0:6, j in 0:0\ny[i] = 7.5 + sum[l](c[2, l]) where i in 0:2", "y"),
        want
    );
}

/// Two threads run one routine of two kernels at the same time: what is in scratch between the kernels is each run's own.
fn two_threads<D: Driver>(device: &Device<D>)
where
    wgslab::Routine<D>: Sync,
{
    let (x, y) = (floats("x", &[64, 3]), floats("y", &[2, 64, 3]));
    let values: Vec<f32> = (0..192).map(|at| at as f32).collect();
    let loaded = Context::root(device).init_from_host(&x, &values).unwrap().init_from_host(&y, &[0.0; 384]).unwrap();
    let text = "s[i] +=! x[i, j] * f32(@k)\ny[@k, i, j] = x[i, j] + s[63 - i]";
    let code = pollster::block_on(device.compile(ProgramSpec::new("p", text).node(&x).node(&y))).unwrap();
    assert_eq!(code.specs().count(), 2, "{}", code.explain());
    let routine = pollster::block_on(loaded.link(&code)).unwrap();
    std::thread::scope(|scope| {
        for k in 0..2 {
            let routine = &routine;
            scope.spawn(move || (0..300).for_each(|_| drop(routine.run_values(&[k]).unwrap())));
        }
    });
    let got: Vec<f32> = pollster::block_on(routine.context().to_host(&y)).unwrap();
    for (at, got) in got.iter().enumerate() {
        // Rows read each other's sums, so that these stand in a kernel of their own.
        let (k, i) = (at / 192, 63 - at % 192 / 3);
        let sum: f32 = values[3 * i..3 * i + 3].iter().sum();
        assert_eq!(*got, values[at % 192] + sum * k as f32, "element {at}");
    }
}

#[test]
fn kernels_of_one_run_are_recorded_together() {
    two_threads(&host::open(host::OpenOptions::default()).unwrap());
    two_threads(&open());
}

#[test]
fn nodes_on_the_same_bytes_are_refused_where_one_is_written() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let x = floats("x", &[8]);
    let (low, high) = (TensorNode::view("low", &x, 0, [4]), TensorNode::view("high", &x, 4, [4]));
    let compile = |text: &str, nodes: &[&TensorNode]| {
        let spec = nodes.iter().fold(ProgramSpec::new("p", text), |spec, node| spec.node(node));
        pollster::block_on(device.compile(spec)).map(drop).map_err(|error| error.to_string())
    };
    let message = "compile \"p\": \"low\" is written, and \"x\" lies on the same bytes; use one name for them, or copy \"x\" first";
    assert_eq!(compile("low[i] = x[i + 4] + 1", &[&low, &x]), Err(message.to_owned()));
    assert_eq!(compile("low[i] = high[i] + 1", &[&low, &high]), Ok(()));
    assert_eq!(compile("y[i] = low[i] + x[i + 4]", &[&low, &x]), Ok(()), "read only");
}
