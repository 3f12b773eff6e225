//! However the points of a program are spread over a device, it computes the same.

use wgslab::schedule::{Candidate, SPLITTINGS};
use wgslab::{Binding, Context, DType, Device, Driver, Forced, MemoryMode, ProgramSpec, TensorNode, host};

use crate::{open, open_wide};

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
        let mut counts = Vec::new();
        for splitting in 0..SPLITTINGS {
            let mut spec = spec();
            spec.splitting = splitting;
            let (kernels, got) = pollster::block_on(contents(&open(), spec, "z"));
            assert_eq!(got, want, "{len}, gpu, splitting {splitting}");
            counts.push(kernels);
        }
        assert!(counts[0] >= 2, "{counts:?} kernels");
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
        let device = open_wide();
        for schedule in [None].into_iter().chain(Forced::ALL.map(Some)) {
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

/// Programs whose kernels are of all kinds. The values of `x` are stored, so that `y` has something to read. Sums
/// of floats are exact, in whatever order.
const KINDS: [&str; 10] = [
    "x[i, k] = f32((i * 7 + k * 3) % 11) where i in 0:37, k in 0:24\nb[k, j] = f32((k * 5 + j) % 13) where k in 0:24, j in 0:52\n\
     c[i, j] +=! x[i, k] * b[k, j]\ny[i, j] = i32(c[i, j])",
    "x[i, j] = (i * 31 + j * 7) % 101 where i in 0:40, j in 0:600\nm[i] max=! x[i, j]\ny[i, j] = x[i, j] - m[i]",
    // Rows, with what is summed in the place of the result, with two passes alone, in place, and of another dtype.
    "x[i, j] = f32((i * 31 + j * 7) % 5) where i in 0:70, j in 0:300\nm[i] max=! x[i, j]\ns[i] +=! exp2(x[i, j] - m[i])\n\
     z[i, j] = exp2(x[i, j] - m[i]) * 512 - s[i]\ny[i] = i32(sum[j](z[i, j] * f32(j % 7)))",
    "x[i, j] = f32((i * 31 + j * 7) % 11) where i in 0:65, j in 0:257\nm[i] max=! x[i, j]\ny[i, j] = i32(x[i, j] - m[i])",
    "x[i, j] = f32((i * 31 + j * 7) % 5) where i in 0:65, j in 0:260\nm[i] max=! x[i, j]\ns[i] +=! exp2(x[i, j] - m[i])\n\
     x[i, j] = exp2(x[i, j] - m[i]) + s[i] * x[i, j]\ny[i] = i32(sum[j](x[i, j] * f32(j % 7)))",
    "x[i, h, j] = f32((i * 31 + j * 7 + h) % 3) where i in 0:13, h in 0:6, j in 0:259\nm[h, i] max=! x[i, h, j]\n\
     e[i, h, j] = exp2(x[i, h, j] - m[h, i])\ns[h, i] +=! e[i, h, j]\ny[i, k] = i32(sum[h, j](e[i, h, j] * s[h, i] * f32(j * k % 3))) where k in 0:3",
    "x[i] = i % 1009 - 500 where i in 0:70001\ny +=! x[i]",
    "x[i] = i % 17 where i in 0:5003\ny[j] = 0 where j in 0:17\ny[x[i]] += 1",
    "x: u8[33, 64]\nx[i, j] = u8(i * 3 + j) where i in 0:33, j in 0:64\ny[j, i] = i32(x[i, j]) + i32(u8(i))",
    "x[i] = i == 2 ? 7.0 : nan where i in 0:3\nm[i] = x[i]\nm[i] min= x[0] + f32(j) where j in 0:600\ny[i] = isnan(m[i]) ? 1 : i32(m[i])",
];

#[test]
fn rows_are_one_kernel_and_products_have_eight_by_eight_tiles() {
    let device = open();
    let compiled = |text: &str, outputs: [&str; 1]| {
        let code = pollster::block_on(device.compile(ProgramSpec::new("p", text).outputs(outputs))).unwrap();
        let names = |(_, all): (_, &[Candidate])| all.iter().map(|candidate| candidate.schedule.to_string()).collect();
        let candidates: Vec<Vec<String>> = code.candidates().map(names).collect();
        (code.explain(), candidates)
    };
    let softmax = |rows: u32| {
        format!(
            "x: f32[{rows}, 1024]\nm[i] max=! x[i, j]\ne[i, j] = exp(x[i, j] - m[i])\ns[i] +=! e[i, j]\ny[i, j] = e[i, j] / s[i]"
        )
    };
    for (rows, kernels) in [(4096, 1), (8, 2)] {
        let (explained, candidates) = compiled(&softmax(rows), ["y"]);
        assert_eq!(candidates.len(), kernels, "{rows} rows: {explained}");
    }
    let attention = "q: f32[8, 512, 64]\nk: f32[8, 512, 64]\nv: f32[8, 512, 64]\nscore[h, i, j] +=! q[h, i, d] * k[h, j, d]\n\
         m[h, i] max=! score[h, i, j] / 8\ne[h, i, j] = exp(score[h, i, j] / 8 - m[h, i])\nz[h, i] +=! e[h, i, j]\n\
         y[h, i, d] +=! e[h, i, j] / z[h, i] * v[h, j, d]";
    let (explained, candidates) = compiled(attention, ["y"]);
    assert_eq!(candidates.len(), 3, "{explained}");
    let (explained, candidates) = compiled("a: f32[512, 512]\nb: f32[512, 512]\nc[i, j] +=! a[i, k] * b[k, j]", ["c"]);
    assert!(candidates[0].iter().any(|name| name.starts_with("tile 8x8 ")), "{explained}");
}

#[test]
fn every_candidate_computes_the_same() {
    let (device, output) = (open_wide(), "y");
    let (mut direct, mut grouped) = (0, 0);
    for text in KINDS {
        let spec = || ProgramSpec::new("p", text).outputs(["x", output]);
        let on_host = host::open(host::OpenOptions::default()).unwrap();
        let (_, want) = pollster::block_on(contents(&on_host, spec(), output));
        let code = pollster::block_on(device.compile(spec())).unwrap();
        let counts: Vec<usize> = code.candidates().map(|(_, candidates)| candidates.len()).collect();
        for (_, candidates) in code.candidates() {
            assert!(candidates.is_sorted_by_key(|candidate| candidate.cost), "{candidates:?}");
            let names: Vec<String> = candidates.iter().map(|candidate| candidate.schedule.to_string()).collect();
            assert!((1..names.len()).all(|at| !names[..at].contains(&names[at])), "each once: {names:?}");
        }
        for round in 0..*counts.iter().max().unwrap() {
            let chosen: Vec<usize> = counts.iter().map(|count| round % count).collect();
            let code = pollster::block_on(device.reschedule(&code, &chosen)).unwrap_or_else(|error| panic!("{error}"));
            let routine = pollster::block_on(Context::root(&device).link(&code)).unwrap();
            routine.run().unwrap();
            direct += routine.explain().matches("direct: ").count();
            grouped += code.explain().matches("schedule workgroup by subgroups").count();
            let got: Vec<i32> = pollster::block_on(routine.context().to_host(code.node(output).unwrap())).unwrap();
            assert_eq!(got, want, "{}", code.explain());
        }
        assert!(pollster::block_on(device.reschedule(&code, &[])).is_err());
    }
    assert!(direct >= KINDS.len(), "{direct} kernels were bound directly");
    assert_eq!(grouped > 0, device.limits().has_subgroups, "{grouped} kernels had subgroups");
}

async fn floats<D: Driver>(device: &Device<D>, spec: ProgramSpec, x: (&TensorNode, &[f32])) -> Vec<(String, Vec<f32>)> {
    let root = Context::root(device).init_from_host(x.0, x.1).unwrap();
    let code = device.compile(spec).await.unwrap();
    let counts: Vec<usize> = code.candidates().map(|(_, candidates)| candidates.len()).collect();
    let mut all = Vec::new();
    for round in 0..*counts.iter().max().unwrap() {
        let chosen: Vec<usize> = counts.iter().map(|count| round % count).collect();
        let code = device.reschedule(&code, &chosen).await.unwrap();
        let routine = root.link(&code).await.unwrap();
        routine.run().unwrap();
        all.push((code.explain(), routine.context().to_host(code.node("y").unwrap()).await.unwrap()));
    }
    all
}

#[test]
fn a_softmax_in_one_turn_for_maximum_and_sum_is_the_same_for_infinities_and_nan() {
    let [inf, nan] = [f32::INFINITY, f32::NAN];
    let specials =
        [&[-inf, 1.0, -inf][..], &[-inf, -inf], &[inf, 3.0], &[nan, 2.0], &[-inf, nan], &[-3e38, 3e38], &[88.0]];
    for (width, forced) in [
        (1u32, None),
        (7, None),
        (130, None),
        (1024, None),
        (130, Some(Forced::PerWorkgroup)),
        (130, Some(Forced::Subgroups)),
    ] {
        let rows = 2 * specials.len() as u32;
        let x = TensorNode::new("x", DType::F32, [rows, width]);
        let value = |at: u32| {
            let (row, place) = ((at / width) as usize, (at % width) as usize);
            // Greater ones come late, and early.
            let usual = |place: usize| (place * 37 % 101) as f32 * 0.25 + if row % 3 == 0 { place as f32 } else { 0.0 };
            let special = specials[row % specials.len()];
            let from = if row < specials.len() { 0 } else { (width as usize).saturating_sub(special.len()) };
            let is_special = place >= from && place - from < special.len();
            // Some rows have nothing else.
            match special {
                [first, second] if first == second => *first,
                _ if is_special => special[place - from],
                _ => usual(place),
            }
        };
        let values: Vec<f32> = (0..rows * width).map(value).collect();
        let text = "m[i] max=! x[i, j]\ns[i] +=! exp(x[i, j] - m[i])\ny[i, j] = exp(x[i, j] - m[i]) / s[i] + m[i] * 0";
        let mut spec = ProgramSpec::new("p", text).node(&x);
        spec.schedule = forced;
        let on_host = host::open(host::OpenOptions::default()).unwrap();
        let (_, want) = pollster::block_on(floats(&on_host, spec.clone(), (&x, &values))).remove(0);
        let mut online = 0;
        for (explained, got) in pollster::block_on(floats(&open(), spec, (&x, &values))) {
            online += usize::from(explained.contains(" online"));
            for (at, (got, want)) in got.iter().zip(&want).enumerate() {
                let is_close =
                    if want.is_nan() { got.is_nan() } else { (got - want).abs() <= 1e-5 * want.abs() + 1e-9 };
                assert!(is_close, "width {width}, element {at}: got {got}, want {want}: {explained}");
            }
        }
        assert!(online > 0, "width {width}: none was done in one turn");
    }
}

#[test]
fn bindings_are_direct_where_that_is_legal_and_else_say_why_not() {
    let device = open();
    let spec = |text: &str| ProgramSpec::new("p", text).binding(Binding::Direct);
    let run = |spec, context: &Context<_>| {
        let code = pollster::block_on(device.compile(spec)).unwrap_or_else(|error| panic!("{error}"));
        let routine = pollster::block_on(context.link(&code)).unwrap_or_else(|error| panic!("{error}"));
        routine.run().unwrap();
        (routine.explain(), pollster::block_on(routine.context().to_host::<f32>(code.node("y").unwrap())).unwrap())
    };
    let x = TensorNode::new("x", DType::F32, [4099]);
    let c = TensorNode::with_mode("c", DType::F32, [4099], MemoryMode::Constant);
    let values: Vec<f32> = (0..4099u16).map(f32::from).collect();
    let root = Context::root(&device).init_from_host(&x, &values).unwrap().init_from_host(&c, &values).unwrap();
    let (plan, y) = run(spec("y[i] = x[i] * 2 + c[i]").node(&x).node(&c), &root);
    assert!(plan.contains("direct: 3 tensors through 3 bindings") && plan.contains("(read)"), "{plan}");
    assert_eq!(y, values.iter().map(|value| value * 3.0).collect::<Vec<f32>>());

    let (plan, _) = run(spec("x[i] = x[i] + 1\ny[i] = x[i]").node(&x), &root);
    assert!(plan.contains("direct: 2 tensors through 2 bindings"), "in place: {plan}");

    let (one, other) = (TensorNode::view("x", &x, 64, [64]), TensorNode::view("z", &x, 64, [64]));
    let views = root.alias(&[&one, &other]).unwrap();
    let (plan, y) = run(spec("y[i] = x[i] + z[i]").node(&one).node(&other), &views);
    assert!(plan.contains("pooled, not direct, since two tensors have bytes in common"), "{plan}");
    assert_eq!(y[..2], [130.0, 132.0]);

    let odd = TensorNode::view("x", &x, 3, [64]);
    let (plan, _) = run(spec("y[i] = x[i]").node(&odd), &root.alias(&[&odd]).unwrap());
    assert!(plan.contains("since a tensor starts where no binding can"), "{plan}");

    let many: Vec<TensorNode> = (0..40).map(|at| TensorNode::new(format!("n{at}"), DType::F32, [8])).collect();
    let text = (0..40).map(|at| format!("n{at}[i]")).collect::<Vec<_>>().join(" + ");
    let all = many.iter().fold(spec(&format!("y[i] = {text}")), |spec, node| spec.node(node));
    let loaded = many.iter().fold(root, |context, node| context.init_from_host(node, &[1.0f32; 8]).unwrap());
    let (plan, y) = run(all, &loaded);
    assert!(plan.contains("since the device has fewer bindings"), "{plan}");
    assert_eq!(y, [40.0; 8]);
}

#[test]
fn links_that_bind_the_same_ranges_share_a_bind_group_and_many_links_do_not_add_up() {
    let device = open();
    let (x, y) = (TensorNode::new("x", DType::F32, [300]), TensorNode::new("y", DType::F32, [300]));
    let root = Context::root(&device).init_from_host(&x, &[3.0f32; 300]).unwrap();
    let root = root.init_from_host(&y, &[0.0f32; 300]).unwrap();
    let spec = ProgramSpec::new("p", "y[i] = x[i] * 2").node(&x).binding(Binding::Direct);
    let code = pollster::block_on(device.compile(spec.clone().node(&y))).unwrap();
    let first = pollster::block_on(root.link(&code)).unwrap();
    let before = device.stats();
    for _ in 0..100 {
        let next = pollster::block_on(root.link(&code)).unwrap();
        assert!(next.explain().contains("direct: "), "{}", next.explain());
        next.run().unwrap();
    }
    let counts = device.stats().since(&before);
    assert_eq!((counts.bind_groups_created, counts.pipelines_created), (0, 0), "{counts:?}");
    // More than are kept, each where no other is.
    let creates = pollster::block_on(device.compile(spec)).unwrap();
    let routines: Vec<_> = (0..100).map(|_| pollster::block_on(root.link(&creates)).unwrap()).collect();
    assert_eq!(device.stats().since(&before).bind_groups_created, 100);
    for routine in routines.iter().chain([&first]) {
        routine.run().unwrap();
    }
    let last = routines.last().unwrap();
    let got = pollster::block_on(last.context().to_host::<f32>(creates.node("y").unwrap())).unwrap();
    assert_eq!(got, [6.0; 300]);
    assert_eq!(pollster::block_on(root.to_host::<f32>(&y)).unwrap(), [6.0; 300]);
}

#[test]
fn direct_bindings_follow_slabs_that_move() {
    let device = open();
    let spec =
        ProgramSpec::new("p", "x: f32[4096]\ny: u8[4096]\nx[i] = x[i] + 1\ny[i] = u8(x[i])").binding(Binding::Direct);
    let code = pollster::block_on(device.compile(spec)).unwrap();
    let hole = TensorNode::new("hole", DType::F32, [100_000]);
    let first = Context::root(&device).init_from_host(&hole, &vec![1.0f32; 100_000]).unwrap();
    let routine = pollster::block_on(Context::root(&device).link(&code)).unwrap();
    routine.run().unwrap();
    drop(first);
    assert!(device.compact().unwrap().moved_bytes > 0);
    routine.run().unwrap();
    assert!(routine.explain().contains("direct: "), "{}", routine.explain());
    assert_eq!(pollster::block_on(routine.context().to_host::<u8>(code.node("y").unwrap())).unwrap(), [2; 4096]);
}
