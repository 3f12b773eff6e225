//! Reductions by the subgroups of a workgroup, against plain arithmetic. Where a device has none they are trees, which is said by
//! their texts, and must come to the same.

use wgslab::loops::lower::lower;
use wgslab::notation::ast::Accumulate;
use wgslab::notation::program::Write;
use wgslab::schedule::{Candidate, Target, candidates};
use wgslab::{Access, Context, DType, Device, Forced, KernelSpec, ProgramSpec, TensorNode, gpu};

use super::build::{Lab, at};
use super::values::spread;

const OPS: [Accumulate; 4] = [Accumulate::Add, Accumulate::Mul, Accumulate::Max, Accumulate::Min];
const ROWS: usize = 3;

/// Reductions by workgroups of so many lanes.
fn grouped(device: &Device<gpu::Gpu>, lanes: u32) -> Lab {
    let has_subgroups = device.limits().has_subgroups;
    // Few are chosen on CPUs alone.
    let is_cpu = lanes < 64;
    let target =
        Target { is_cpu, has_subgroups, most_lanes: 256, forced: Some(Forced::Subgroups), ..Target::default() };
    let mut lab = Lab::default();
    (lab.target, lab.lanes) = (target, Some(lanes));
    lab
}

/// `y[i] op=! x[i, j]`
fn reduced<T: bytemuck::Pod>(lab: &mut Lab, dtype: DType, op: Accumulate, data: &[T]) -> usize {
    let len = data.len() / ROWS;
    let x = lab.given(dtype, &[ROWS as u32, len as u32], data);
    let y = lab.output(dtype, &[ROWS as u32]);
    let value = lab.load(x, at(&[0, 1]));
    lab.say(y, at(&[0]), Write::Fresh(op), value, &[(0, ROWS as i64), (0, len as i64)], &[0], &[1]);
    y
}

fn rows<T: Copy>(data: &[T], start: T, combine: fn(T, T) -> T) -> Vec<T> {
    let len = data.len() / ROWS;
    (0..ROWS).map(|row| data[row * len..(row + 1) * len].iter().copied().fold(start, combine)).collect()
}

pub async fn every_accumulation_of_every_type_by_subgroups(device: &Device<gpu::Gpu>) {
    // Fewer points than lanes, as many, one more, and several turns.
    for (lanes, len) in [
        (16, 5),
        (16, 1000),
        (64, 1),
        (64, 5),
        (64, 64),
        (64, 65),
        (64, 1000),
        (256, 3),
        (256, 255),
        (256, 1000),
        (256, 2077),
    ] {
        for op in OPS {
            let mut lab = grouped(device, lanes);
            let mix = |at: usize| (at as u32 + 1).wrapping_mul(2_654_435_761).rotate_left(at as u32 % 13);
            // Sums and products are exact, and not 0 throughout.
            let number = |at: usize| match op {
                Accumulate::Mul => [1.0, -1.0, 2.0, 0.5][mix(at) as usize >> 7 & 3],
                _ => (mix(at) >> 20) as f32 - 2000.0,
            };
            let count = ROWS * len;
            let floats: Vec<f32> = (0..count).map(number).collect();
            let words: Vec<u32> = (0..count).map(|at| mix(at) | 1).collect();
            let ints: Vec<i32> = words.iter().map(|word| *word as i32).collect();
            // One lane has what makes the difference, in one row another one than in the next.
            let is_rare = matches!(op, Accumulate::Add | Accumulate::Max);
            let bools: Vec<u8> = (0..count).map(|at| u8::from((at == 7 * len / 5) == is_rare)).collect();
            let f = reduced(&mut lab, DType::F32, op, &floats);
            let i = reduced(&mut lab, DType::I32, op, &ints);
            let u = reduced(&mut lab, DType::U32, op, &words);
            let b = reduced(&mut lab, DType::Bool, op, &bools);
            let outcome = lab.run(device, &[]).await;
            let case = format!("{op:?} of {len} by {lanes} lanes");
            let (want_f, want_i, want_u, want_b) = match op {
                Accumulate::Add => (
                    rows(&floats, 0.0, |a, b| a + b),
                    rows(&ints, 0, i32::wrapping_add),
                    rows(&words, 0, u32::wrapping_add),
                    rows(&bools, 0, |a, b| a | b),
                ),
                Accumulate::Mul => (
                    rows(&floats, 1.0, |a, b| a * b),
                    rows(&ints, 1, i32::wrapping_mul),
                    rows(&words, 1, u32::wrapping_mul),
                    rows(&bools, 1, |a, b| a & b),
                ),
                Accumulate::Max => (
                    rows(&floats, f32::MIN, f32::max),
                    rows(&ints, i32::MIN, i32::max),
                    rows(&words, 0, u32::max),
                    rows(&bools, 0, |a, b| a | b),
                ),
                Accumulate::Min => (
                    rows(&floats, f32::MAX, f32::min),
                    rows(&ints, i32::MAX, i32::min),
                    rows(&words, u32::MAX, u32::min),
                    rows(&bools, 1, |a, b| a & b),
                ),
            };
            assert_eq!(outcome.of::<f32>(f), want_f, "f32 {case}");
            assert_eq!(outcome.of::<i32>(i), want_i, "i32 {case}");
            assert_eq!(outcome.of::<u32>(u), want_u, "u32 {case}");
            assert_eq!(outcome.of::<u8>(b), want_b, "bool {case}");
        }
    }
}

pub async fn extremes_by_subgroups_ignore_nan_and_reach_infinity(device: &Device<gpu::Gpu>) {
    let (nan, inf, len) = (f32::NAN, f32::INFINITY, 300);
    for lanes in [16, 64, 256] {
        for (op, worst) in [(Accumulate::Max, -inf), (Accumulate::Min, inf)] {
            let sign = if op == Accumulate::Max { 1.0 } else { -1.0 };
            // A number among NaN, nothing but NaN, infinities of both signs.
            let mut data = vec![nan; ROWS * len];
            data[123] = 5.0 * sign;
            data[2 * len..].fill(-inf * sign);
            data[2 * len + 200] = inf * sign;
            data[2 * len + 77] = nan;
            let mut lab = grouped(device, lanes);
            let fresh = reduced(&mut lab, DType::F32, op, &data);
            let x = lab.given(DType::F32, &[ROWS as u32, len as u32], &data);
            let onto = lab.given(DType::F32, &[ROWS as u32], &[nan, nan, 1.0]);
            let value = lab.load(x, at(&[0, 1]));
            lab.say(onto, at(&[0]), Write::Onto(op), value, &[(0, 3), (0, len as i64)], &[0], &[1]);
            let least = reduced(&mut lab, DType::F32, op, &[-inf * sign; 3 * 70]);
            let outcome = lab.run(device, &[]).await;
            let case = format!("{op:?} by {lanes} lanes");
            assert_eq!(outcome.of::<f32>(fresh), [5.0 * sign, worst, inf * sign], "{case}");
            let onto = outcome.of::<f32>(onto);
            assert!(onto[0] == 5.0 * sign && onto[1].is_nan() && onto[2] == inf * sign, "{case}: {onto:?}");
            assert_eq!(outcome.of::<f32>(least), [worst; 3], "{case}");
        }
    }
    // Sums and products go by IEEE 754.
    let mut data = vec![1.0f32; 3 * 300];
    (data[100], data[400], data[450], data[700]) = (nan, inf, -inf, inf);
    let mut lab = grouped(device, 64);
    let (sum, product) =
        (reduced(&mut lab, DType::F32, Accumulate::Add, &data), reduced(&mut lab, DType::F32, Accumulate::Mul, &data));
    let outcome = lab.run(device, &[]).await;
    let (sum, product) = (outcome.of::<f32>(sum), outcome.of::<f32>(product));
    assert!(sum[0].is_nan() && sum[1].is_nan() && sum[2] == inf, "{sum:?}");
    assert!(product[0].is_nan() && product[1] == -inf && product[2] == inf, "{product:?}");
}

/// Three stages that accumulate, what each row's lanes store on the way, and what they read of it.
const ROW_PROGRAMS: [&str; 2] = [
    "m[i] max=! x[i, j]\ns[i] +=! exp(x[i, j] - m[i])\ny[i, j] = exp(x[i, j] - m[i]) / s[i]",
    "m[i] +=! x[i, j] / WIDTH\nv[i] +=! (x[i, j] - m[i]) * (x[i, j] - m[i]) / WIDTH\ny[i, j] = (x[i, j] - m[i]) * rsqrt(v[i] + 0.00001)",
];

pub async fn rows_by_subgroups_are_the_same_on_every_lane(device: &Device<gpu::Gpu>) {
    for (rows, width) in [(5usize, 7usize), (70, 300), (3, 2050)] {
        let data = spread(-4.0, 4.0, rows * width);
        for (which, text) in ROW_PROGRAMS.iter().enumerate() {
            let x = TensorNode::new("x", DType::F32, [rows as u32, width as u32]);
            let context = Context::root(device).init_from_host(&x, &data).unwrap();
            let text = text.replace("WIDTH", &format!("{width}.0"));
            let spec = ProgramSpec::new("rows", text).node(&x).outputs(["y"]).schedule(Forced::Subgroups);
            let code = device.compile(spec).await.unwrap_or_else(|error| panic!("{error}: {:?}", error.diagnostics()));
            let is_grouped = code.explain().contains("schedule workgroup by subgroups");
            assert_eq!(is_grouped, device.limits().has_subgroups, "{}", code.explain());
            // A second time into another context: the same bits.
            let mut all = Vec::new();
            for _ in 0..2 {
                let routine = context.link(&code).await.unwrap();
                routine.run().unwrap();
                all.push(routine.context().to_host::<f32>(code.node("y").unwrap()).await.unwrap());
            }
            assert_eq!(all[0], all[1]);
            for (row, got) in data.chunks(width).zip(all[0].chunks(width)) {
                let row: Vec<f64> = row.iter().map(|value| f64::from(*value)).collect();
                let mean = row.iter().sum::<f64>() / width as f64;
                let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / width as f64;
                let most = row.iter().copied().fold(f64::MIN, f64::max);
                let below: f64 = row.iter().map(|value| (value - most).exp()).sum();
                for (value, got) in row.iter().zip(got) {
                    let want = match which {
                        0 => (value - most).exp() / below,
                        _ => (value - mean) / (variance + 0.00001).sqrt(),
                    };
                    let error = (f64::from(*got) - want).abs();
                    assert!(error < 2e-6 * want.abs() + 2e-6, "{which}, {rows} by {width}: {got}, not {want}");
                }
            }
        }
    }
}

pub async fn a_raw_kernel_may_use_subgroups_under_their_directive(device: &Device<gpu::Gpu>) {
    let text = "enable subgroups;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(subgroup_id) id: u32, @builtin(num_subgroups) count: u32) {
  store_y(2u * lane, subgroupAdd(load_x(lane)));
  store_y(2u * lane + 1u, count * 64u + id);
}";
    let (x, y) = (TensorNode::new("x", DType::U32, [64]), TensorNode::new("y", DType::U32, [128]));
    let context = Context::root(device).init_from_host(&x, &[1u32; 64]).unwrap();
    let spec = |text: &str| KernelSpec::new("k", text).tensor("x", &x, Access::Read).tensor("y", &y, Access::Write);
    let code = device.compile(spec(text)).await;
    if !device.limits().has_subgroups {
        assert!(code.is_err(), "a device without subgroups takes them");
        return;
    }
    let routine = context.link(&code.unwrap()).await.unwrap();
    routine.run().unwrap();
    let got = routine.context().to_host::<u32>(&y).await.unwrap();
    let count = got[1] / 64;
    let mut seen = vec![0; count as usize];
    for pair in got.chunks(2) {
        assert_eq!(pair[1] / 64, count);
        seen[pair[1] as usize % 64] += 1;
    }
    for pair in got.chunks(2) {
        assert_eq!(pair[0], seen[pair[1] as usize % 64], "the lanes of a subgroup");
    }
    // What is wrong is said where it stands.
    let wrong = text.replace("count * 64u + id", "count * 64u + ids");
    let error = device.compile(spec(&wrong)).await.unwrap_err();
    assert_eq!((error.diagnostics()[0].line, error.diagnostics()[0].column), (5, 41), "{error}");
}

/// On a device with WebGPU's default limits.
pub async fn without_subgroups_they_are_trees(device: &Device<gpu::Gpu>) {
    assert!(!device.limits().has_subgroups, "asked for without limits");
    every_accumulation_of_every_type_by_subgroups(device).await;
    rows_by_subgroups_are_the_same_on_every_lane(device).await;
    a_raw_kernel_may_use_subgroups_under_their_directive(device).await;
    // What is chosen where there are some.
    let mut lab = Lab::default();
    reduced(&mut lab, DType::F32, Accumulate::Add, &[0f32; 3 * 1000]);
    let loops = lower(&lab.program);
    let names = |has_subgroups, is_cpu| -> Vec<String> {
        let target = Target { has_subgroups, is_cpu, most_lanes: 256, ..Target::default() };
        let name = |candidate: &Candidate| candidate.schedule.to_string();
        candidates(&loops.nests[0], &target).iter().map(name).collect()
    };
    let of = |name: &str, names: &[String]| names.iter().position(|known| known == name);
    for (is_cpu, lanes) in [(false, 64), (true, 16)] {
        let (tree, grouped) =
            (&*format!("workgroup of {lanes} lanes"), &*format!("workgroup by subgroups of {lanes} lanes"));
        let all = names(true, is_cpu);
        assert!(of(grouped, &all) == Some(0) && of(tree, &all).is_some_and(|at| at > 0), "{all:?}");
        let all = names(false, is_cpu);
        assert!(of(tree, &all) == Some(0) && !all.iter().any(|name| name.contains("subgroups")), "{all:?}");
    }
}
