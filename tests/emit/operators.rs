//! Every operator on every type, and every cast, over values at the edges.

use half::{bf16, f16};
use wgslab::notation::ast::{BinaryOp, Function, UnaryOp};
use wgslab::notation::program::{Expr, NodeIndex, Ty, Value};
use wgslab::{DType, Device, gpu};

use super::build::{Lab, at, binary, bitcast, call, cast, conditional, constant, f, i, u, unary};
use super::values::{floats, ints, is_subnormal, pairs, ulps};

fn check<T: PartialEq + std::fmt::Debug + Copy, A: std::fmt::Debug>(what: &str, got: &[T], want: &[T], of: &[A]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for ((got, want), of) in got.iter().zip(want).zip(of) {
        assert!(got == want, "{what} of {of:?} is {got:?}, not {want:?}");
    }
}

fn pow_i(base: i32, exponent: i32) -> i32 {
    match (base, exponent) {
        (_, 0..) => base.wrapping_pow(exponent as u32),
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        _ => 0,
    }
}

type OnInts = fn(i32, i32) -> i32;
type OnWords = fn(u32, u32) -> u32;

pub async fn integer_operators_wrap_and_are_defined_everywhere(device: &Device<gpu::Gpu>) {
    use BinaryOp::*;
    let (a, b) = pairs(&ints());
    let len = a.len();
    let mut lab = Lab::default();
    let (x, y) = (lab.given(DType::I32, &[len as u32], &a), lab.given(DType::I32, &[len as u32], &b));
    let word = |values: &[i32]| values.iter().map(|value| *value as u32).collect::<Vec<u32>>();
    let (p, q) = (lab.given(DType::U32, &[len as u32], &word(&a)), lab.given(DType::U32, &[len as u32], &word(&b)));
    let signed: Vec<(BinaryOp, OnInts)> = vec![
        (Add, i32::wrapping_add),
        (Sub, i32::wrapping_sub),
        (Mul, i32::wrapping_mul),
        (Div, |a, b| if b == 0 { a } else { a.wrapping_div(b) }),
        (Rem, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        (Shl, |a, b| a.wrapping_shl(b as u32)),
        (Shr, |a, b| a.wrapping_shr(b as u32)),
        (BitAnd, |a, b| a & b),
        (BitOr, |a, b| a | b),
        (BitXor, |a, b| a ^ b),
        (Pow, pow_i),
    ];
    let unsigned: Vec<(BinaryOp, OnWords)> = vec![
        (Add, u32::wrapping_add),
        (Sub, u32::wrapping_sub),
        (Mul, u32::wrapping_mul),
        (Div, |a, b| a.checked_div(b).unwrap_or(a)),
        (Rem, |a, b| a.checked_rem(b).unwrap_or(0)),
        (Shl, u32::wrapping_shl),
        (Shr, u32::wrapping_shr),
        (BitAnd, |a, b| a & b),
        (BitOr, |a, b| a | b),
        (BitXor, |a, b| a ^ b),
        (Pow, u32::wrapping_pow),
    ];
    let load = |lab: &Lab, node: NodeIndex| lab.load(node, at(&[0]));
    let mut made = Vec::new();
    for (op, of) in &signed {
        let value = binary(*op, load(&lab, x), load(&lab, y));
        made.push((
            format!("i32 {op:?}"),
            lab.map(DType::I32, len, value),
            a.iter().zip(&b).map(|(a, b)| of(*a, *b)).collect::<Vec<i32>>(),
        ));
        // Constants on either side: the front end must not refuse what it could compute.
        for edge in [0, -1, 33, i32::MIN] {
            let value = binary(*op, load(&lab, x), i(edge));
            made.push((
                format!("i32 {op:?} {edge}"),
                lab.map(DType::I32, len, value),
                a.iter().map(|a| of(*a, edge)).collect(),
            ));
        }
        let value = binary(*op, i(i32::MIN), i(-1));
        made.push((format!("constant {op:?}"), lab.map(DType::I32, len, value), vec![of(i32::MIN, -1); len]));
    }
    for (op, of) in &unsigned {
        let value = binary(*op, load(&lab, p), load(&lab, q));
        let want = a.iter().zip(&b).map(|(a, b)| of(*a as u32, *b as u32) as i32).collect();
        made.push((format!("u32 {op:?}"), lab.map(DType::U32, len, value), want));
        let value = binary(*op, load(&lab, p), u(0));
        made.push((
            format!("u32 {op:?} 0"),
            lab.map(DType::U32, len, value),
            a.iter().map(|a| of(*a as u32, 0) as i32).collect(),
        ));
        let value = binary(*op, u(1), u(u32::MAX));
        made.push((format!("constant u32 {op:?}"), lab.map(DType::U32, len, value), vec![of(1, u32::MAX) as i32; len]));
    }
    let mixed: Vec<(&str, Expr, DType, OnInts)> = vec![
        ("i32 << u32", binary(Shl, load(&lab, x), load(&lab, q)), DType::I32, |a, b| a.wrapping_shl(b as u32)),
        ("u32 >> i32", binary(Shr, load(&lab, p), load(&lab, y)), DType::U32, |a, b| {
            (a as u32).wrapping_shr(b as u32) as i32
        }),
        ("i32 ** u32", binary(Pow, load(&lab, x), load(&lab, q)), DType::I32, |a, b| a.wrapping_pow(b as u32)),
        ("u32 ** i32", binary(Pow, load(&lab, p), load(&lab, y)), DType::U32, |a, b| match (a, b) {
            (_, 0..) => a.wrapping_pow(b as u32),
            (1, _) => 1,
            _ => 0,
        }),
        ("- i32", unary(UnaryOp::Neg, load(&lab, x)), DType::I32, |a, _| a.wrapping_neg()),
        ("- u32", unary(UnaryOp::Neg, load(&lab, p)), DType::U32, |a, _| a.wrapping_neg()),
        ("~ i32", unary(UnaryOp::BitNot, load(&lab, x)), DType::I32, |a, _| !a),
        ("~ u32", unary(UnaryOp::BitNot, load(&lab, p)), DType::U32, |a, _| !a),
        ("abs", call(Function::Abs, vec![load(&lab, x)]), DType::I32, |a, _| a.wrapping_abs()),
        ("abs of a constant", call(Function::Abs, vec![i(i32::MIN)]), DType::I32, |_, _| i32::MIN),
        ("sign", call(Function::Sign, vec![load(&lab, x)]), DType::I32, |a, _| a.signum()),
        ("u32 sign", call(Function::Sign, vec![load(&lab, p)]), DType::U32, |a, _| i32::from(a != 0)),
        ("u32 abs", call(Function::Abs, vec![load(&lab, p)]), DType::U32, |a, _| a),
        ("relu", call(Function::Relu, vec![load(&lab, x)]), DType::I32, |a, _| a.max(0)),
        ("u32 relu", call(Function::Relu, vec![load(&lab, p)]), DType::U32, |a, _| a),
        ("max", call(Function::Max, vec![load(&lab, x), load(&lab, y)]), DType::I32, |a, b| a.max(b)),
        ("u32 max", call(Function::Max, vec![load(&lab, p), load(&lab, q)]), DType::U32, |a, b| {
            (a as u32).max(b as u32) as i32
        }),
        ("u32 min", call(Function::Min, vec![load(&lab, p), load(&lab, q)]), DType::U32, |a, b| {
            (a as u32).min(b as u32) as i32
        }),
        ("clamp", call(Function::Clamp, vec![load(&lab, x), i(5), i(-5)]), DType::I32, |_, _| -5),
        ("clamp to bytes", call(Function::Clamp, vec![load(&lab, x), i(-128), i(127)]), DType::I32, |a, _| {
            a.clamp(-128, 127)
        }),
        ("pow", call(Function::Pow, vec![load(&lab, x), i(3)]), DType::I32, |a, _| a.wrapping_pow(3)),
    ];
    for (what, value, dtype, of) in mixed {
        let want = a.iter().zip(&b).map(|(a, b)| of(*a, *b)).collect();
        made.push((what.to_owned(), lab.map(dtype, len, value), want));
    }
    type Compare = (BinaryOp, fn(i32, i32) -> bool, fn(u32, u32) -> bool);
    let comparisons: Vec<Compare> = vec![
        (Lt, |a, b| a < b, |a, b| a < b),
        (Le, |a, b| a <= b, |a, b| a <= b),
        (Gt, |a, b| a > b, |a, b| a > b),
        (Ge, |a, b| a >= b, |a, b| a >= b),
        (Eq, |a, b| a == b, |a, b| a == b),
        (Ne, |a, b| a != b, |a, b| a != b),
    ];
    let mut bools = Vec::new();
    for (op, ints, words) in &comparisons {
        let value = binary(*op, load(&lab, x), load(&lab, y));
        let want: Vec<u8> = a.iter().zip(&b).map(|(a, b)| u8::from(ints(*a, *b))).collect();
        bools.push((format!("{op:?}"), lab.map(DType::Bool, len, value), want));
        let value = binary(*op, load(&lab, p), load(&lab, q));
        let want: Vec<u8> = a.iter().zip(&b).map(|(a, b)| u8::from(words(*a as u32, *b as u32))).collect();
        bools.push((format!("u32 {op:?}"), lab.map(DType::Bool, len, value), want));
    }
    let outcome = lab.run(device, &[]).await;
    let of: Vec<(i32, i32)> = a.into_iter().zip(b).collect();
    for (what, node, want) in made {
        check(&what, &outcome.of::<i32>(node), &want, &of);
    }
    for (what, node, want) in bools {
        check(&what, &outcome.of::<u8>(node), &want, &of);
    }
}

pub async fn float_operators_follow_ieee_754_at_the_edges(device: &Device<gpu::Gpu>) {
    use BinaryOp::*;
    let (a, b) = pairs(&floats());
    let len = a.len();
    let mut lab = Lab::default();
    let (x, y) = (lab.given(DType::F32, &[len as u32], &a), lab.given(DType::F32, &[len as u32], &b));
    let (left, right) = (lab.load(x, at(&[0])), lab.load(y, at(&[0])));
    let other = |a: f32, b: f32, choice: fn(f32, f32) -> f32| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => choice(a, b),
    };
    type OnFloats<'a> = (&'a str, Expr, f64, Box<dyn Fn(f32, f32) -> f64>);
    let cases: Vec<OnFloats> = vec![
        ("+", binary(Add, left.clone(), right.clone()), 0.5, Box::new(|a, b| f64::from(a + b))),
        ("-", binary(Sub, left.clone(), right.clone()), 0.5, Box::new(|a, b| f64::from(a - b))),
        ("*", binary(Mul, left.clone(), right.clone()), 0.5, Box::new(|a, b| f64::from(a * b))),
        ("/", binary(Div, left.clone(), right.clone()), 2.5, Box::new(|a, b| f64::from(a / b))),
        ("/ 0", binary(Div, left.clone(), f(0.0)), 0.0, Box::new(|a, _| f64::from(a / 0.0))),
        ("1 / 0", binary(Div, f(1.0), f(0.0)), 0.0, Box::new(|_, _| f64::INFINITY)),
        ("MAX * MAX", binary(Mul, f(f32::MAX), f(f32::MAX)), 0.0, Box::new(|_, _| f64::INFINITY)),
        ("inf - inf", binary(Sub, f(f32::INFINITY), f(f32::INFINITY)), 0.0, Box::new(|_, _| f64::NAN)),
        ("%", binary(Rem, left.clone(), right.clone()), 0.0, Box::new(|a, b| f64::from(a % b))),
        ("**", binary(Pow, left.clone(), right.clone()), 4.0, Box::new(|a, b| f64::from(a).powf(f64::from(b)))),
        ("** 2", binary(Pow, left.clone(), f(2.0)), 0.0, Box::new(|a, _| f64::from(a * a))),
        ("** 3", binary(Pow, left.clone(), f(3.0)), 1.5, Box::new(|a, _| f64::from(a).powi(3))),
        ("** -1", binary(Pow, left.clone(), f(-1.0)), 4.0, Box::new(|a, _| f64::from(a).powi(-1))),
        ("-a", unary(UnaryOp::Neg, left.clone()), 0.0, Box::new(|a, _| f64::from(-a))),
        (
            "max",
            call(Function::Max, vec![left.clone(), right.clone()]),
            0.0,
            Box::new(move |a, b| f64::from(other(a, b, f32::max))),
        ),
        (
            "min",
            call(Function::Min, vec![left.clone(), right.clone()]),
            0.0,
            Box::new(move |a, b| f64::from(other(a, b, f32::min))),
        ),
        ("relu", call(Function::Relu, vec![left.clone()]), 0.0, Box::new(|a, _| f64::from(a.max(0.0)))),
        (
            "clamp",
            call(Function::Clamp, vec![left.clone(), f(-1.0), right.clone()]),
            0.0,
            Box::new(|a, b| f64::from(a.max(-1.0).min(b))),
        ),
        (
            "a ? :",
            conditional(binary(Ge, left.clone(), right.clone()), f(f32::NAN), f(f32::NEG_INFINITY)),
            0.0,
            Box::new(|a, b| if a >= b { f64::NAN } else { f64::NEG_INFINITY }),
        ),
        (
            "fma",
            call(Function::Fma, vec![left.clone(), right.clone(), f(1.0)]),
            4.0,
            Box::new(|a, b| f64::from(a.mul_add(b, 1.0))),
        ),
    ];
    let made: Vec<_> =
        cases.into_iter().map(|(what, value, most, of)| (what, lab.map(DType::F32, len, value), most, of)).collect();
    type Compare = (&'static str, Expr, fn(f32, f32) -> bool);
    let comparisons: Vec<Compare> = vec![
        ("<", binary(Lt, left.clone(), right.clone()), |a, b| a < b),
        ("<=", binary(Le, left.clone(), right.clone()), |a, b| a <= b),
        (">", binary(Gt, left.clone(), right.clone()), |a, b| a > b),
        (">=", binary(Ge, left.clone(), right.clone()), |a, b| a >= b),
        ("==", binary(Eq, left.clone(), right.clone()), |a, b| a == b),
        ("!=", binary(Ne, left.clone(), right.clone()), |a, b| a != b),
        ("!(<)", unary(UnaryOp::Not, binary(Lt, left.clone(), right.clone())), |a, b| {
            a >= b || a.is_nan() || b.is_nan()
        }),
        ("a != a", binary(Ne, left.clone(), left.clone()), |a, _| a.is_nan()),
        ("a == a", binary(Eq, left.clone(), left.clone()), |a, _| !a.is_nan()),
        ("isnan", call(Function::IsNan, vec![left.clone()]), |a, _| a.is_nan()),
        ("isinf", call(Function::IsInf, vec![left.clone()]), |a, _| a.is_infinite()),
        ("isnan of a - b", call(Function::IsNan, vec![binary(Sub, left.clone(), right.clone())]), |a, b| {
            (a - b).is_nan()
        }),
        (
            "&&",
            binary(And, binary(Lt, left.clone(), right.clone()), call(Function::IsInf, vec![right.clone()])),
            |a, b| a < b && b.is_infinite(),
        ),
        ("||", binary(Or, binary(Lt, left.clone(), right.clone()), constant(Value::Bool(false))), |a, b| a < b),
        ("== of bools", binary(Eq, binary(Lt, left.clone(), right.clone()), constant(Value::Bool(true))), |a, b| a < b),
    ];
    let bools: Vec<_> =
        comparisons.into_iter().map(|(what, value, of)| (what, lab.map(DType::Bool, len, value), of)).collect();
    let outcome = lab.run(device, &[]).await;
    let mut failures = Vec::new();
    for (what, node, most, of) in made {
        for ((got, a), b) in outcome.of::<f32>(node).iter().zip(&a).zip(&b) {
            let want = of(*a, *b);
            let mut error = ulps(*got, want);
            if what == "fma" {
                // WGSL leaves it to the driver whether it rounds once.
                error = error.min(ulps(*got, f64::from(*a * *b + 1.0)));
            }
            if error > most {
                failures.push(format!("{a:e} {what} {b:e} is {got:e}, not {want:e}: {error} ulp"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures, such as {:#?}", failures.len(), &failures[..failures.len().min(40)]);
    let pairs: Vec<(f32, f32)> = a.iter().copied().zip(b.iter().copied()).collect();
    for (what, node, of) in bools {
        let want: Vec<u8> = pairs.iter().map(|(a, b)| u8::from(of(*a, *b))).collect();
        check(what, &outcome.of::<u8>(node), &want, &pairs);
    }
}

pub async fn casts_round_wrap_and_saturate_exactly(device: &Device<gpu::Gpu>) {
    let mut floats = floats();
    floats.extend((0..40).map(|k| f32::from_bits(0x3380_0000 - 9 + k)));
    floats.extend([
        1e-40,
        -1e-40,
        5.9e-8,
        2.0f32.powi(-25),
        3.0 * 2.0f32.powi(-25),
        6.1e-5,
        1.000_488_3,
        1.001_464_8,
        2049.0,
        2051.0,
    ]);
    floats.extend([0x7f80_0001u32, 0x7f7f_8000, 0x7f7f_7fff, 0x3f80_8000, 0x3f81_8000].map(f32::from_bits));
    let ints = ints();
    let words: Vec<u32> = ints.iter().map(|value| *value as u32).chain([u32::MAX, 0x8000_0080, 0xffff_ff7f]).collect();
    let mut lab = Lab::default();
    let x = lab.given(DType::F32, &[floats.len() as u32], &floats);
    let n = lab.given(DType::I32, &[ints.len() as u32], &ints);
    let w = lab.given(DType::U32, &[words.len() as u32], &words);
    let load = |lab: &Lab, node| lab.load(node, at(&[0]));
    let mut made = Vec::new();
    // From each type to each dtype, as 32 bits of the wide type.
    for dtype in DType::ALL {
        let wide = |lab: &mut Lab, from: NodeIndex, len: usize| {
            let value = cast(dtype, load(lab, from));
            let value = match value.ty {
                Ty::F32 => bitcast(Ty::U32, value),
                Ty::Bool => cast(DType::U32, value),
                Ty::I32 => bitcast(Ty::U32, value),
                Ty::U32 => value,
            };
            lab.map(DType::U32, len, value)
        };
        made.push((
            dtype,
            wide(&mut lab, x, floats.len()),
            wide(&mut lab, n, ints.len()),
            wide(&mut lab, w, words.len()),
        ));
    }
    let flags = lab.given(DType::Bool, &[2], &[0u8, 1]);
    let from_bool: Vec<NodeIndex> = [DType::F32, DType::I32, DType::U8, DType::F16]
        .into_iter()
        .map(|dtype| {
            let value = cast(dtype, load(&lab, flags));
            let value = cast(DType::U32, value);
            lab.map(DType::U32, 2, value)
        })
        .collect();
    // Constants that WGSL would refuse to convert.
    let constants =
        [f32::NAN, f32::INFINITY, -1.0, 1e20].map(|value| lab.map(DType::I32, 1, cast(DType::I32, f(value))));
    let outcome = lab.run(device, &[]).await;
    let bits = |value: f32| if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() };
    let canonical = |dtype: DType, got: Vec<u32>| -> Vec<u32> {
        let is_float = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        got.into_iter().map(|word| if is_float { bits(f32::from_bits(word)) } else { word }).collect()
    };
    let of_float = |dtype: DType, value: f32| match dtype {
        DType::F32 => bits(value),
        DType::F16 => bits(f16::from_f32(value).to_f32()),
        DType::BF16 => bits(bf16::from_f32(value).to_f32()),
        DType::I32 => value as i32 as u32,
        DType::U32 => value as u32,
        DType::I8 => i32::from(value as i8) as u32,
        DType::U8 => u32::from(value as u8),
        DType::Bool => u32::from(value != 0.0),
    };
    let of_int = |dtype: DType, value: i64| match dtype {
        DType::F32 | DType::F16 | DType::BF16 => of_float(dtype, value as f32),
        DType::I32 | DType::U32 => value as u32,
        DType::I8 => i32::from(value as i8) as u32,
        DType::U8 => u32::from(value as u8),
        DType::Bool => u32::from(value != 0),
    };
    for (dtype, from_floats, from_ints, from_words) in made {
        let got = canonical(dtype, outcome.of::<u32>(from_floats));
        let want: Vec<u32> = floats.iter().map(|value| of_float(dtype, *value)).collect();
        let got: Vec<u32> = got
            .iter()
            .zip(&floats)
            .zip(&want)
            .map(
                |((got, value), want)| {
                    if is_subnormal(f64::from(*value)) && got & 0x7fff_ffff == 0 { *want } else { *got }
                },
            )
            .collect();
        check(&format!("{dtype}"), &got, &want, &floats);
        let want: Vec<u32> = ints.iter().map(|value| of_int(dtype, i64::from(*value))).collect();
        check(&format!("{dtype} of i32"), &canonical(dtype, outcome.of(from_ints)), &want, &ints);
        let want: Vec<u32> = words.iter().map(|value| of_int(dtype, i64::from(*value))).collect();
        check(&format!("{dtype} of u32"), &canonical(dtype, outcome.of(from_words)), &want, &words);
    }
    for node in from_bool {
        assert_eq!(outcome.of::<u32>(node), [0, 1]);
    }
    let got: Vec<i32> = constants.iter().map(|node| outcome.of::<i32>(*node)[0]).collect();
    assert_eq!(got, [0, i32::MAX, -1, i32::MAX]);
}

pub async fn stores_round_and_wrap_to_the_dtype_of_the_node(device: &Device<gpu::Gpu>) {
    let floats: Vec<f32> = floats().into_iter().chain([2049.0, 2051.0, 6e-8, 1e-7]).collect();
    let ints = ints();
    let mut lab = Lab::default();
    let x = lab.given(DType::F32, &[floats.len() as u32], &floats);
    let n = lab.given(DType::I32, &[ints.len() as u32], &ints);
    let value = lab.load(x, at(&[0]));
    let (h, b) = (lab.map(DType::F16, floats.len(), value.clone()), lab.map(DType::BF16, floats.len(), value));
    let value = lab.load(n, at(&[0]));
    let byte = lab.map(DType::I8, ints.len(), value.clone());
    let small = lab.map(DType::U8, ints.len(), bitcast(Ty::U32, value));
    // And back.
    let value = lab.load(byte, at(&[0]));
    let wide = lab.map(DType::I32, ints.len(), value);
    let value = lab.load(h, at(&[0]));
    let single = lab.map(DType::F32, floats.len(), value);
    let outcome = lab.run(device, &[]).await;
    let nan = |bits: u16, is_nan: bool, canonical: u16| if is_nan { canonical } else { bits };
    let got: Vec<u16> =
        outcome.of::<u16>(h).into_iter().map(|bits| nan(bits, f16::from_bits(bits).is_nan(), 0x7e00)).collect();
    let want: Vec<u16> =
        floats.iter().map(|value| nan(f16::from_f32(*value).to_bits(), value.is_nan(), 0x7e00)).collect();
    check("f16", &got, &want, &floats);
    let got: Vec<u16> =
        outcome.of::<u16>(b).into_iter().map(|bits| nan(bits, bf16::from_bits(bits).is_nan(), 0x7fc0)).collect();
    let want: Vec<u16> =
        floats.iter().map(|value| nan(bf16::from_f32(*value).to_bits(), value.is_nan(), 0x7fc0)).collect();
    check("bf16", &got, &want, &floats);
    let want: Vec<i8> = ints.iter().map(|value| *value as i8).collect();
    check("i8", &outcome.of::<i8>(byte), &want, &ints);
    check("u8", &outcome.of::<u8>(small), &ints.iter().map(|value| *value as u8).collect::<Vec<u8>>(), &ints);
    check(
        "i8, read",
        &outcome.of::<i32>(wide),
        &want.iter().map(|value| i32::from(*value)).collect::<Vec<i32>>(),
        &ints,
    );
    for (got, value) in outcome.of::<f32>(single).iter().zip(&floats) {
        let want = f16::from_f32(*value).to_f32();
        assert!(*got == want || (got.is_nan() && want.is_nan()), "{value} as f16 is {got}, not {want}");
    }
}
