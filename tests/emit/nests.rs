//! Nests of every shape: positions, pads, reductions, scatters, schedules, sizes.

use wgslab::loops::lower::lower;
use wgslab::notation::ast::{Accumulate, BinaryOp, Function, ReduceOp};
use wgslab::notation::program::{Affine, Expr, ExprKind, Position, Term, Ty, Write};
use wgslab::schedule::{Spread, Target, candidates};
use wgslab::{DType, Device, gpu};

use super::build::{Lab, affine, at, binary, bitcast, call, cast, conditional, expr, f, i, index, reduce, u};
use super::values::spread;

fn mul(a: Expr, b: Expr) -> Expr {
    binary(BinaryOp::Mul, a, b)
}

fn add(a: Expr, b: Expr) -> Expr {
    binary(BinaryOp::Add, a, b)
}

pub async fn a_matrix_product_sums_over_what_stands_on_the_right(device: &Device<gpu::Gpu>) {
    let (n, k, m) = (13usize, 37usize, 11usize);
    let (a, b) = (spread(-1.0, 1.0, n * k), spread(-1.0, 1.0, k * m));
    let mut lab = Lab::default();
    let x = lab.given(DType::F32, &[n as u32, k as u32], &a);
    let w = lab.given(DType::F32, &[k as u32, m as u32], &b);
    let y = lab.output(DType::F32, &[n as u32, m as u32]);
    let value = mul(lab.load(x, at(&[0, 2])), lab.load(w, at(&[2, 1])));
    let ranges = [(0, n as i64), (0, m as i64), (0, k as i64)];
    lab.say(y, at(&[0, 1]), Write::Fresh(Accumulate::Add), value.clone(), &ranges, &[0, 1], &[2]);
    // Once more onto it: twice the product.
    lab.say(y, at(&[0, 1]), Write::Onto(Accumulate::Add), value, &ranges, &[0, 1], &[2]);
    let got = lab.run(device, &[]).await.of::<f32>(y);
    for row in 0..n {
        for column in 0..m {
            let terms = (0..k).map(|at| f64::from(a[row * k + at]) * f64::from(b[at * m + column]));
            let want: f64 = 2.0 * terms.sum::<f64>();
            assert!((f64::from(got[row * m + column]) - want).abs() < 1e-5, "{row}, {column}");
        }
    }
}

pub async fn few_points_with_long_reductions_are_shared_by_a_workgroup(device: &Device<gpu::Gpu>) {
    let (rows, len) = (3usize, 1000usize);
    let ints: Vec<i32> = (0..rows * len).map(|at| (at as i32).wrapping_mul(48_271) >> 7).collect();
    let mut floats = spread(-1.0, 1.0, rows * len);
    floats[5] = f32::NAN;
    for (op, on_ints) in [
        (Accumulate::Add, i32::wrapping_add as fn(i32, i32) -> i32),
        (Accumulate::Mul, i32::wrapping_mul),
        (Accumulate::Max, std::cmp::max),
        (Accumulate::Min, std::cmp::min),
    ] {
        let mut lab = Lab::default();
        let x = lab.given(DType::I32, &[rows as u32, len as u32], &ints);
        let z = lab.given(DType::F32, &[rows as u32, len as u32], &floats);
        let (fresh, byte) = (lab.output(DType::I32, &[rows as u32]), lab.output(DType::I8, &[rows as u32]));
        let onto = lab.given(DType::I32, &[rows as u32], &[5, -3, 1]);
        let real = lab.output(DType::F32, &[]);
        let value = lab.load(x, at(&[0, 1]));
        let ranges = [(0, rows as i64), (0, len as i64)];
        lab.say(fresh, at(&[0]), Write::Fresh(op), value.clone(), &ranges, &[0], &[1]);
        lab.say(byte, at(&[0]), Write::Fresh(op), value.clone(), &ranges, &[0], &[1]);
        lab.say(onto, at(&[0]), Write::Onto(op), value, &ranges, &[0], &[1]);
        let value = lab.load(z, at(&[0, 1]));
        lab.say(real, vec![], Write::Fresh(op), value, &ranges, &[], &[0, 1]);
        let loops = lower(&lab.program);
        assert!(
            loops
                .nests
                .iter()
                .all(|nest| candidates(nest, &Target::default())[0].schedule.spread == Spread::PerWorkgroup)
        );
        let outcome = lab.run(device, &[]).await;
        let of = |row: usize| ints[row * len..(row + 1) * len].iter().copied().reduce(on_ints).unwrap();
        assert_eq!(outcome.of::<i32>(fresh), (0..rows).map(of).collect::<Vec<i32>>(), "{op:?}");
        let want: Vec<i32> = [5, -3, 1].into_iter().enumerate().map(|(row, start)| on_ints(start, of(row))).collect();
        assert_eq!(outcome.of::<i32>(onto), want, "{op:?}");
        let start = match op {
            Accumulate::Max => -128,
            Accumulate::Min => 127,
            _ => of(0),
        };
        let first = if matches!(op, Accumulate::Max | Accumulate::Min) { on_ints(start, of(0)) } else { of(0) };
        assert_eq!(outcome.of::<i8>(byte)[0], first as i8, "{op:?}");
        let got = outcome.of::<f32>(real)[0];
        let numbers = floats.iter().copied().filter(|value| !value.is_nan());
        match op {
            Accumulate::Max => assert_eq!(got, numbers.reduce(f32::max).unwrap()),
            Accumulate::Min => assert_eq!(got, numbers.reduce(f32::min).unwrap()),
            _ => assert!(got.is_nan(), "{op:?}: {got}"),
        }
    }
}

pub async fn softmax_by_inline_reductions_leaves_loops_where_they_belong(device: &Device<gpu::Gpu>) {
    let (n, m) = (5usize, 17usize);
    let data = spread(-50.0, 50.0, n * m);
    let mut lab = Lab::default();
    let x = lab.given(DType::F32, &[n as u32, m as u32], &data);
    let y = lab.output(DType::F32, &[n as u32, m as u32]);
    let most = |lab: &Lab, over: usize| reduce(ReduceOp::Max, &[over], lab.load(x, at(&[0, over])));
    let exp = |a: Expr| call(Function::Exp, vec![a]);
    // The maximum stands inside the sum too, and does not depend on its index.
    let above = exp(binary(BinaryOp::Sub, lab.load(x, at(&[0, 1])), most(&lab, 2)));
    let below = reduce(ReduceOp::Sum, &[3], exp(binary(BinaryOp::Sub, lab.load(x, at(&[0, 3])), most(&lab, 4))));
    let value = binary(BinaryOp::Div, above, below);
    let ranges = [(0, n as i64), (0, m as i64), (0, m as i64), (0, m as i64), (0, m as i64)];
    lab.say(y, at(&[0, 1]), Write::Set, value, &ranges, &[0, 1], &[]);
    let got = lab.run(device, &[]).await.of::<f32>(y);
    for row in 0..n {
        let values: Vec<f64> = data[row * m..(row + 1) * m].iter().map(|value| f64::from(*value)).collect();
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        let below: f64 = values.iter().map(|value| (value - most).exp()).sum();
        for (column, value) in values.iter().enumerate() {
            let want = (value - most).exp() / below;
            assert!((f64::from(got[row * m + column]) - want).abs() < 1e-6 * want + 1e-30, "{row}, {column}");
        }
    }
}

pub async fn argmax_takes_the_first_of_equals_and_ignores_nan(device: &Device<gpu::Gpu>) {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [
        [1.0, 3.0, 3.0, 2.0],
        [nan, nan, nan, nan],
        [nan, -inf, -inf, nan],
        [nan, 1.0, nan, 0.0],
        [inf, nan, inf, -inf],
        [-0.0, 0.0, -0.0, 0.0],
    ];
    let mut lab = Lab::default();
    let x = lab.given(DType::F32, &[6, 4], &rows.concat());
    let ranges = [(0, 6), (0, 4)];
    let body = lab.load(x, at(&[0, 1]));
    let (most, least) = (lab.output(DType::I32, &[6]), lab.output(DType::I32, &[6]));
    lab.say(most, at(&[0]), Write::Set, reduce(ReduceOp::ArgMax, &[1], body.clone()), &ranges, &[0], &[]);
    lab.say(least, at(&[0]), Write::Set, reduce(ReduceOp::ArgMin, &[1], body.clone()), &ranges, &[0], &[]);
    // Over integers, over a range that does not begin at 0, and used as a position.
    let ints = lab.given(DType::I32, &[5], &[i32::MIN, 7, 7, i32::MIN, 9]);
    let place = reduce(ReduceOp::ArgMin, &[0], lab.load(ints, at(&[0])));
    let (late, value) = (lab.output(DType::I32, &[]), lab.output(DType::I32, &[]));
    lab.say(late, vec![], Write::Set, place.clone(), &[(1, 5)], &[], &[]);
    let read = lab.load(ints, vec![Position::Computed(add(place, i(1)))]);
    lab.say(value, vec![], Write::Set, read, &[(0, 3)], &[], &[]);
    let sums = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min].map(|op| {
        let node = lab.output(DType::F32, &[6]);
        lab.say(node, at(&[0]), Write::Set, reduce(op, &[1], body.clone()), &[(0, 6), (2, 2)], &[0], &[]);
        node
    });
    let outcome = lab.run(device, &[]).await;
    assert_eq!(outcome.of::<i32>(most), [1, 0, 1, 1, 0, 0]);
    assert_eq!(outcome.of::<i32>(least), [0, 0, 1, 3, 3, 0]);
    assert_eq!((outcome.of::<i32>(late)[0], outcome.of::<i32>(value)[0]), (3, 7));
    let over_nothing = sums.map(|node| outcome.of::<f32>(node)[0]);
    assert_eq!(over_nothing, [0.0, 1.0, -inf, inf]);
}

pub async fn gathers_clamp_as_the_value_that_their_type_has(device: &Device<gpu::Gpu>) {
    let table: Vec<i32> = (100..110).collect();
    let ids = [0, 3, -1, i32::MIN, 9, 10, i32::MAX];
    let words: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
    let mut lab = Lab::default();
    let t = lab.given(DType::I32, &[10], &table);
    let (signed, unsigned) = (lab.given(DType::I32, &[7], &ids), lab.given(DType::U32, &[7], &words));
    let (p, q) = (lab.load(signed, at(&[0])), lab.load(unsigned, at(&[0])));
    let by_int = lab.map(DType::I32, 7, lab.load(t, vec![Position::Computed(p.clone())]));
    let by_word = lab.map(DType::I32, 7, lab.load(t, vec![Position::Computed(q.clone())]));
    let wrapped = lab.map(DType::I32, 7, lab.load(t, vec![Position::Computed(add(p.clone(), i(1)))]));
    let padded = lab.map(DType::I32, 7, lab.padded(t, vec![Position::Computed(p)], i(-5)));
    let padded_word = lab.map(DType::I32, 7, lab.padded(t, vec![Position::Computed(q)], i(-5)));
    let fixed = lab.map(DType::I32, 1, lab.load(t, vec![Position::Computed(u(u32::MAX))]));
    let outcome = lab.run(device, &[]).await;
    assert_eq!(outcome.of::<i32>(by_int), [100, 103, 100, 100, 109, 109, 109]);
    assert_eq!(outcome.of::<i32>(by_word), [100, 103, 109, 109, 109, 109, 109]);
    assert_eq!(outcome.of::<i32>(wrapped), [101, 104, 100, 100, 109, 109, 100]);
    assert_eq!(outcome.of::<i32>(padded), [100, 103, -5, -5, 109, -5, -5]);
    assert_eq!(outcome.of::<i32>(padded_word), [100, 103, -5, -5, 109, -5, -5]);
    assert_eq!(outcome.of::<i32>(fixed), [109]);
}

pub async fn pads_hold_wherever_a_position_leaves_the_tensor(device: &Device<gpu::Gpu>) {
    let (rows, columns) = (4usize, 5usize);
    let data: Vec<i32> = (1..=20).collect();
    let mut lab = Lab::default();
    let x = lab.given(DType::I32, &[rows as u32, columns as u32], &data);
    // A window of 3 by 3, and a pad that is an expression.
    let y = lab.output(DType::I32, &[4, 5]);
    let window = vec![affine(-1, &[(0, 1), (2, 1)]), affine(-1, &[(1, 1), (3, 1)])];
    let value = lab.padded(x, window, mul(index(2), i(1000)));
    lab.say(y, at(&[0, 1]), Write::Fresh(Accumulate::Add), value, &[(0, 4), (0, 5), (0, 3), (0, 3)], &[0, 1], &[2, 3]);
    // Factors that 32 bits do not hold: what wraps must not come back in.
    let far = lab.output(DType::I32, &[7]);
    let place = vec![affine(0, &[]), affine(-3 * (1 << 32), &[(0, 1 << 32)])];
    let value = lab.padded(x, place, i(-1));
    lab.say(far, at(&[0]), Write::Set, value, &[(0, 7)], &[0], &[]);
    let near = lab.output(DType::I32, &[7]);
    let value = lab.padded(x, vec![affine(1, &[]), affine(-(1 << 31), &[(0, 1 << 30)])], i(-1));
    lab.say(near, at(&[0]), Write::Set, value, &[(0, 7)], &[0], &[]);
    let outcome = lab.run(device, &[]).await;
    let mut want = Vec::new();
    for row in 0..4i32 {
        for column in 0..5i32 {
            let mut sum = 0;
            for (p, q) in (0..9).map(|at| (at / 3, at % 3)) {
                let (a, b) = (row + p - 1, column + q - 1);
                let inside = (0..4).contains(&a) && (0..5).contains(&b);
                sum += if inside { data[(a * 5 + b) as usize] } else { p * 1000 };
            }
            want.push(sum);
        }
    }
    assert_eq!(outcome.of::<i32>(y), want);
    assert_eq!(outcome.of::<i32>(far), [-1, -1, -1, 1, -1, -1, -1]);
    assert_eq!(outcome.of::<i32>(near), [-1, -1, 6, -1, -1, -1, -1]);
}

pub async fn statics_move_positions_and_are_values(device: &Device<gpu::Gpu>) {
    let data: Vec<i32> = (0..100).collect();
    let mut lab = Lab::default();
    lab.program.statics = vec!["unused".to_owned(), "batch".to_owned()];
    let x = lab.given(DType::I32, &[100], &data);
    let (y, z) = (lab.output(DType::I32, &[10]), lab.output(DType::I32, &[10]));
    let batch = expr(ExprKind::Static(1), Ty::I32);
    let place = |factor: i64| {
        Position::Affine(Affine { constant: 0, terms: vec![(Term::Static(1), factor), (Term::Index(0), 1)] })
    };
    let value = add(mul(lab.load(x, vec![place(10)]), i(1000)), batch);
    lab.say(y, at(&[0]), Write::Set, value, &[(0, 10)], &[0], &[]);
    // Outside for every static but those near 0, however it wraps.
    let value = lab.padded(x, vec![place(1 << 30)], i(-1));
    lab.say(z, at(&[0]), Write::Set, value, &[(0, 10)], &[0], &[]);
    let outcome = lab.run(device, &[0, 4]).await;
    assert_eq!(outcome.of::<i32>(y), (40..50).map(|value| value * 1000 + 4).collect::<Vec<i32>>());
    assert_eq!(outcome.of::<i32>(z), [-1; 10], "4 * 2^30 is no 0");
    let outcome = lab.run(device, &[0, 0]).await;
    assert_eq!(outcome.of::<i32>(z), (0..10).collect::<Vec<i32>>());
}

pub async fn scatters_accumulate_and_drop_what_is_outside(device: &Device<gpu::Gpu>) {
    let ids = [0, 2, 2, -1, 5, 4, 2, i32::MIN, 0, 1000];
    let values: Vec<f32> = [1.5, 2.0, -3.25, 100.0, 100.0, 0.5, 4.0, 100.0, f32::NAN, 100.0].to_vec();
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U8] {
        for op in [Accumulate::Add, Accumulate::Mul, Accumulate::Max, Accumulate::Min] {
            let mut lab = Lab::default();
            let t = lab.given(DType::I32, &[10], &ids);
            let v = lab.given(DType::F32, &[10], &values);
            let h = lab.output(dtype, &[5]);
            let value = cast(dtype, lab.load(v, at(&[0])));
            let place = vec![Position::Computed(lab.load(t, at(&[0])))];
            lab.say(h, place, Write::Fresh(op), value, &[(0, 10)], &[], &[0]);
            let wide = lab.map(DType::F32, 5, cast(DType::F32, lab.load(h, at(&[0]))));
            let got = lab.run(device, &[]).await.of::<f32>(wide);
            let as_dtype = |value: f32| match dtype {
                DType::I32 | DType::I8 => f64::from(value as i32),
                DType::U32 | DType::U8 => f64::from(value as u32),
                _ => f64::from(value),
            };
            let (least, most) = match dtype {
                DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
                DType::I8 => (-128.0, 127.0),
                DType::U32 => (0.0, f64::from(u32::MAX)),
                DType::U8 => (0.0, 255.0),
                _ => (f64::NEG_INFINITY, f64::INFINITY),
            };
            let (start, combine): (f64, fn(f64, f64) -> f64) = match op {
                Accumulate::Add => (0.0, |a, b| a + b),
                Accumulate::Mul => (1.0, |a, b| a * b),
                Accumulate::Max => (least, f64::max),
                Accumulate::Min => (most, f64::min),
            };
            let mut want = [start; 5];
            for (id, value) in ids.iter().zip(&values) {
                if (0..5).contains(id) {
                    let slot = &mut want[*id as usize];
                    *slot = combine(*slot, as_dtype(*value));
                }
            }
            for (slot, (got, want)) in got.iter().zip(want).enumerate() {
                let equal = f64::from(*got) == f64::from(want as f32) || (got.is_nan() && want.is_nan());
                assert!(equal, "{dtype} {op:?}: element {slot} is {got}, not {want}");
            }
        }
    }
}

pub async fn a_scatter_into_part_of_a_narrow_tensor_leaves_the_rest_alone(device: &Device<gpu::Gpu>) {
    let mut lab = Lab::default();
    let ids = lab.given(DType::I32, &[4], &[1, 1, 3, 7]);
    let h = lab.given(DType::U8, &[3, 5], &[9u8; 15]);
    // h[1, ids[t]] +=! 2
    let place = vec![affine(1, &[]), Position::Computed(lab.load(ids, at(&[0])))];
    lab.say(h, place.clone(), Write::Fresh(Accumulate::Add), u(2), &[(0, 4)], &[], &[0]);
    lab.say(h, place, Write::Onto(Accumulate::Add), u(254), &[(0, 4)], &[], &[0]);
    let got = lab.run(device, &[]).await.of::<u8>(h);
    assert_eq!(got, [9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9]);
}

pub async fn statements_write_all_at_once(device: &Device<gpu::Gpu>) {
    let mut lab = Lab::default();
    let x = lab.given(DType::I32, &[10], &(0..10).collect::<Vec<i32>>());
    let shifted = lab.load(x, vec![affine(1, &[(0, 1)])]);
    lab.say(x, at(&[0]), Write::Set, shifted, &[(0, 9)], &[0], &[]);
    let before = lab.load(x, vec![affine(-1, &[(0, 1)])]);
    lab.say(x, at(&[0]), Write::Onto(Accumulate::Add), before, &[(1, 10)], &[0], &[]);
    // In place, backwards into another, with a stride.
    let y = lab.given(DType::I8, &[9], &[1i8; 9]);
    let value = add(lab.load(x, vec![affine(9, &[(0, -2)])]), lab.load(y, vec![affine(0, &[(0, 2)])]));
    lab.say(y, vec![affine(0, &[(0, 2)])], Write::Set, value, &[(0, 5)], &[0], &[]);
    let outcome = lab.run(device, &[]).await;
    assert_eq!(outcome.of::<i32>(x), [1, 3, 5, 7, 9, 11, 13, 15, 17, 18]);
    assert_eq!(outcome.of::<i8>(y), [19, 1, 16, 1, 12, 1, 8, 1, 4]);
}

pub async fn indices_are_values_also_below_zero(device: &Device<gpu::Gpu>) {
    let mut lab = Lab::default();
    let y = lab.output(DType::I32, &[4, 3]);
    let value = add(mul(index(0), i(10)), index(1));
    let place = vec![affine(2, &[(0, 1)]), affine(0, &[(1, 1)])];
    lab.say(y, place, Write::Set, value, &[(-2, 2), (0, 3)], &[0, 1], &[]);
    let total = lab.output(DType::I32, &[]);
    lab.say(total, vec![], Write::Fresh(Accumulate::Add), index(0), &[(-5, 3)], &[], &[0]);
    let first = lab.output(DType::I32, &[3]);
    let body = conditional(binary(BinaryOp::Gt, index(1), index(0)), index(1), i(0));
    lab.say(first, at(&[0]), Write::Set, reduce(ReduceOp::Sum, &[1], body), &[(0, 3), (-1, 4)], &[0], &[]);
    let outcome = lab.run(device, &[]).await;
    assert_eq!(outcome.of::<i32>(y), [-20, -19, -18, -10, -9, -8, 0, 1, 2, 10, 11, 12]);
    assert_eq!((outcome.of::<i32>(total)[0], outcome.of::<i32>(first)), (-12, vec![6, 5, 3]));
}

pub async fn rank_0_rank_8_and_empty_ranges(device: &Device<gpu::Gpu>) {
    let shape = [2u32, 3, 1, 2, 2, 1, 3, 2];
    let len: u32 = shape.iter().product();
    let data: Vec<f32> = (0..len).map(|at| at as f32).collect();
    let mut lab = Lab::default();
    let x = lab.given(DType::F32, &shape, &data);
    let reversed: Vec<u32> = shape.iter().rev().copied().collect();
    let y = lab.output(DType::F32, &reversed);
    let ranges: Vec<(i64, i64)> = shape.iter().map(|extent| (0, i64::from(*extent))).collect();
    let all: Vec<usize> = (0..8).collect();
    let back: Vec<usize> = (0..8).rev().collect();
    let value = lab.load(x, at(&all));
    lab.say(y, at(&back), Write::Set, value, &ranges, &back, &[]);
    let scalar = lab.given(DType::BF16, &[], &[half::bf16::from_f32(2.5).to_bits()]);
    let other = lab.output(DType::Bool, &[]);
    let value = binary(BinaryOp::Gt, lab.load(scalar, vec![]), f(2.0));
    lab.say(other, vec![], Write::Set, value, &[], &[], &[]);
    let kept = lab.given(DType::F32, &[4], &[7.0f32; 4]);
    let value = lab.load(kept, vec![affine(1000, &[(0, 1)])]);
    lab.say(kept, at(&[0]), Write::Set, value, &[(2, 2)], &[0], &[]);
    let nothing = lab.output(DType::F32, &[0, 3]);
    lab.say(nothing, at(&[0, 1]), Write::Set, f(1.0), &[(0, 0), (0, 3)], &[0, 1], &[]);
    let sum = lab.output(DType::F32, &[3]);
    let value = lab.load(nothing, at(&[1, 0]));
    lab.say(sum, at(&[0]), Write::Fresh(Accumulate::Max), value, &[(0, 3), (0, 0)], &[0], &[1]);
    let outcome = lab.run(device, &[]).await;
    let got = outcome.of::<f32>(y);
    for at in 0..len {
        let (mut rest, mut place) = (at, 0);
        let mut digits = Vec::new();
        for extent in shape.iter().rev() {
            digits.push(rest % extent);
            rest /= extent;
        }
        for (digit, extent) in digits.iter().zip(&reversed) {
            place = place * extent + digit;
        }
        assert_eq!(got[place as usize], at as f32);
    }
    assert_eq!(outcome.of::<u8>(other), [1]);
    assert_eq!(outcome.of::<f32>(kept), [7.0; 4]);
    assert_eq!(outcome.of::<f32>(sum), [f32::NEG_INFINITY; 3]);
    assert!(outcome.of::<f32>(nothing).is_empty());
}

pub async fn forty_tensors_of_all_dtypes_in_one_statement(device: &Device<gpu::Gpu>) {
    let mut lab = Lab::default();
    let mut sum = f(0.0);
    for at_node in 0..40usize {
        let dtype = DType::ALL[at_node % 8];
        let len = 50u32;
        let data: Vec<u8> = match dtype {
            DType::F32 => (0..len).flat_map(|at| (at as f32).to_le_bytes()).collect(),
            DType::F16 => (0..len).flat_map(|at| half::f16::from_f32(at as f32).to_le_bytes()).collect(),
            DType::BF16 => (0..len).flat_map(|at| half::bf16::from_f32(at as f32).to_le_bytes()).collect(),
            DType::I32 | DType::U32 => (0..len).flat_map(u32::to_le_bytes).collect(),
            DType::I8 | DType::U8 => (0..len).map(|at| at as u8).collect(),
            DType::Bool => (0..len).map(|at| (at % 2) as u8).collect(),
        };
        let node = lab.given(dtype, &[len], &data);
        sum = add(sum, cast(DType::F32, lab.load(node, at(&[0]))));
    }
    let y = lab.map(DType::F32, 50, sum);
    let want: Vec<f32> = (0..50).map(|at| (35 * at + 5 * (at % 2)) as f32).collect();
    assert_eq!(lab.run(device, &[]).await.of::<f32>(y), want);
}

pub async fn a_deep_expression_compiles(device: &Device<gpu::Gpu>) {
    let mut lab = Lab::default();
    let x = lab.given(DType::I32, &[3], &[1, 2, 3]);
    let value = (0..400).fold(lab.load(x, at(&[0])), |sum, turn| binary(BinaryOp::BitXor, add(sum, i(turn)), index(0)));
    let y = lab.map(DType::I32, 3, value);
    let want: Vec<i32> =
        [1, 2, 3].iter().enumerate().map(|(at, x)| (0..400).fold(*x, |sum, turn| (sum + turn) ^ at as i32)).collect();
    assert_eq!(lab.run(device, &[]).await.of::<i32>(y), want);
}

pub async fn grids_fold_beyond_one_dimension(device: &Device<gpu::Gpu>) {
    let len = 65_536 * 64 + 77u32;
    let mut lab = Lab::default();
    let y = lab.output(DType::U8, &[len]);
    let value = cast(DType::U8, bitcast(Ty::U32, mul(index(0), i(37))));
    lab.say(y, at(&[0]), Write::Set, value, &[(0, i64::from(len))], &[0], &[]);
    let got = lab.run(device, &[]).await.of::<u8>(y);
    assert!((0..len).all(|at| got[at as usize] == (at * 37) as u8));
}
