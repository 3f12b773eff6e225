//! However the points of a program are spread over a device, it computes the same.

use wgslab::{Context, DType, Device, Driver, Forced, ProgramSpec, TensorNode, host};

use crate::open;

async fn contents<D: Driver>(device: &Device<D>, spec: ProgramSpec, name: &str) -> (usize, Vec<i32>) {
    let code = device.compile(spec).await.unwrap();
    let routine = Context::root(device).link(&code).await.unwrap();
    routine.run().unwrap();
    (code.specs().count(), routine.context().to_host(code.node(name).unwrap()).await.unwrap())
}

#[test]
fn long_reductions_of_few_points_are_split_whatever_is_left_over() {
    for len in [1_200_007i32, 1 << 21, 1_048_583] {
        let x = |at: i32| at % 1009 - 500;
        let text = format!(
            "x[i] = i % 1009 - 500 where i in 0:{len}\ny[r] = 7 where r in 0:2\ny[r] += x[i] * (r + 1)\n\
             z[r] = max[i](x[i] + r) - y[r]"
        );
        let sum = (0..len).map(x).fold(0i32, i32::wrapping_add);
        let want: Vec<i32> = (0..2).map(|r| 508 + r - 7 - sum.wrapping_mul(r + 1)).collect();
        let spec = || ProgramSpec::new("p", text.clone()).outputs(["z"]);
        let on_host = host::open(host::OpenOptions::default()).unwrap();
        assert_eq!(pollster::block_on(contents(&on_host, spec(), "z")).1, want, "{len}, host");
        let (kernels, got) = pollster::block_on(contents(&open(), spec(), "z"));
        assert_eq!(got, want, "{len}, gpu");
        assert!(kernels >= 2, "{kernels} kernels");
    }
}

#[test]
fn products_of_odd_sizes_are_exact_in_every_schedule() {
    for [m, k, n] in [[13, 17, 19], [64, 32, 48], [8, 4, 260], [1, 7, 33]] {
        let text = format!(
            "a[i, k] = f32((i * 7 + k * 3) % 11) where i in 0:{m}, k in 0:{k}\n\
             b[k, j] = f32((k * 5 + j) % 13) where k in 0:{k}, j in 0:{n}\n\
             c[i, j] +=! a[i, k] * b[k, j]\nd[i, j] = i32(max(c[i, j] - 9, 0)) + j"
        );
        let point = |i: i32, j: i32| {
            let sum: i32 = (0..k).map(|k| (i * 7 + k * 3) % 11 * ((k * 5 + j) % 13)).sum();
            (sum - 9).max(0) + j
        };
        let want: Vec<i32> = (0..m * n).map(|at| point(at / n, at % n)).collect();
        let device = open();
        for schedule in [None, Some(Forced::PerPoint), Some(Forced::Tiled), Some(Forced::PerWorkgroup)] {
            let mut spec = ProgramSpec::new("p", text.clone()).outputs(["a", "b", "d"]);
            spec.schedule = schedule;
            assert_eq!(pollster::block_on(contents(&device, spec, "d")).1, want, "{m} by {k} by {n}, {schedule:?}");
        }
    }
}

#[test]
fn a_view_that_does_not_start_at_a_multiple_of_four_is_read_right() {
    let device = open();
    let base = TensorNode::new("base", DType::F32, [4099]);
    let values: Vec<f32> = (0..4099u16).map(f32::from).collect();
    let view = TensorNode::view("x", &base, 3, [4096]);
    let loaded = Context::root(&device).init_from_host(&base, &values).unwrap().alias(&[&view]).unwrap();
    let code = pollster::block_on(device.compile(ProgramSpec::new("p", "y[i] = x[i] * 2").node(&view))).unwrap();
    let routine = pollster::block_on(loaded.link(&code)).unwrap();
    routine.run().unwrap();
    let y = pollster::block_on(routine.context().to_host::<f32>(code.node("y").unwrap())).unwrap();
    assert_eq!(y, values[3..].iter().map(|value| value * 2.0).collect::<Vec<f32>>());
}
