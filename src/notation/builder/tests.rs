//! What is built is what the text says.

use std::ops::Range;

use super::*;
use crate::notation::parse;
use crate::notation::testing::{Random, random_ast};

#[test]
fn every_part_can_be_built() {
    let (i, j, k, t) = (index("i"), index("j"), index("k"), index("t"));
    let x = || load("x", i);
    let (a, b) = (load("a", [i, j]), load("b", ()));
    for (statement, text) in [
        (at("y", ()).set(1), "y = 1"),
        (at("y", i).set(-1), "y[i] = -1"),
        (at("y", [i, j]).add(i32::MIN), "y[i, j] += -2147483648"),
        (at("y", (i + 1, 2 * j, 0, k)).mul(u32::MAX), "y[i + 1, 2 * j, 0, k] *= 4294967295"),
        (at("y", vec![i, j]).max(0.1f32), "y[i, j] max= 0.1"),
        (at("y", i).min(1e-30), "y[i] min= 1e-30"),
        (at("y", i).add_fresh(-2.0), "y[i] +=! -2.0"),
        (at("y", i).mul_fresh(f64::NEG_INFINITY), "y[i] *=! -inf"),
        (at("y", i).max_fresh(f64::NAN), "y[i] max=! nan"),
        (at("y", load("ids", t) - 1).min_fresh(f32::INFINITY), "y[ids[t] - 1] min=! inf"),
        (at("y", i).set(true), "y[i] = true"),
        (at("y", i).set(-0.0), "y[i] = -0.0"),
        (at("y", i).set(pi() * static_index("s")), "y[i] = pi * @s"),
        (at("y", i).set(&a + &b - i), "y[i] = a[i, j] + b[] - i"),
        (at("y", i).set((&a + 1) * 2.5 / (3 - x())), "y[i] = (a[i, j] + 1) * 2.5 / (3 - x[i])"),
        (at("y", i).set((x() % 2) << 1 >> 2), "y[i] = x[i] % 2 << 1 >> 2"),
        (at("y", i).set((x() & 3) | (x() ^ 4u32)), "y[i] = x[i] & 3 | x[i] ^ 4"),
        (at("y", i).set(-x().pow(2)), "y[i] = -x[i] ** 2"),
        (at("y", i).set((-x()).pow(-1)), "y[i] = (-x[i]) ** -1"),
        (at("y", i).set(!x().lt(1).and(x().bit_not().ge(i))), "y[i] = !(x[i] < 1 && ~x[i] >= i)"),
        (at("y", i).set(x().le(1).or(x().gt(2)).or(x().equals(3))), "y[i] = x[i] <= 1 || x[i] > 2 || x[i] == 3"),
        (at("y", i).set(x().differs(x()).choose(0, x())), "y[i] = x[i] != x[i] ? 0 : x[i]"),
        (at("y", i).set(select(x().isnan(), 0.0, x().exp())), "y[i] = select(isnan(x[i]), 0.0, exp(x[i]))"),
        (at("y", i).set(x().clamp(0, 1).fma(2, b.clone())), "y[i] = fma(clamp(x[i], 0, 1), 2, b[])"),
        (at("y", i).set(x().max(1).min(2).atan2(3)), "y[i] = atan2(min(max(x[i], 1), 2), 3)"),
        (at("y", i).set(x().cast(DType::F16).bitcast(DType::U32)), "y[i] = bitcast_u32(f16(x[i]))"),
        (at("y", i).set(call(Function::Uniform, (7, i))), "y[i] = uniform(7, i)"),
        (at("y", i).set(sum([j, k], &a * load("c", [k]))), "y[i] = sum[j, k](a[i, j] * c[k])"),
        (at("y", i).set(prod([j], &a) - max_over([j], &a)), "y[i] = prod[j](a[i, j]) - max[j](a[i, j])"),
        (at("y", i).set(min_over([j], &a) + argmax(j, &a)), "y[i] = min[j](a[i, j]) + argmax[j](a[i, j])"),
        (at("y", i).set(argmin(j, &a) * j), "y[i] = argmin[j](a[i, j]) * j"),
        (at("y", i).set(pad("x", i - 1, -0.5)), "y[i] = pad(x[i - 1], -0.5)"),
        (at("y", i).set(1).where_range(i, -2..9).where_range(j, 0..0), "y[i] = 1 where i in -2:9, j in 0:0"),
    ] {
        let built = Ast::new().statement(statement);
        assert_eq!(built.to_string(), text);
        assert_eq!(built, parse(text).unwrap(), "{text}");
        assert_eq!(built.written().unwrap(), (text.to_owned(), built));
    }
    let built = Ast::new().declare("x", DType::F32, [128, 64]).declare("s", DType::Bool, []);
    assert_eq!(built, parse("x: f32[128, 64]; s: bool").unwrap());
}

#[test]
fn written_gives_places() {
    let (text, placed) = Ast::new().statement(at("y", ()).set(load("x", ()) + 1)).written().unwrap();
    let Item::Statement(statement) = &placed.items[0] else { panic!("{placed:?}") };
    assert_eq!(&text[statement.value.span.start as usize..statement.value.span.end as usize], "x[] + 1");
}

#[test]
fn written_reads_any_syntax_back() {
    let mut random = Random::new(3);
    for _ in 0..500 {
        let ast = random_ast(&mut random);
        assert_eq!(ast.written().unwrap().1, ast);
    }
}

#[test]
fn what_no_text_says_is_refused() {
    let i = index("i");
    let message = |statement| Ast::new().statement(statement).written().unwrap_err().to_string();
    assert_eq!(
        message(at("y", i).set(index("a + b") * 2)),
        "item 1: the text `y[i] = a + b * 2` does not mean what was built; names are ASCII letters, digits and `_`"
    );
    assert!(message(at("y", i).set(index("1; z = 2"))).starts_with("item 1: the text `y[i] = 1; z = 2` does not"));
    assert!(message(at("sum", i).set(1)).contains("1:1: found `sum`, which is reserved"));
    assert!(message(at("y", i).set(1).where_range(i, Range { start: 5, end: 3 })).contains("1:16: found 5:3 for `i`"));
    assert!(message(at("y", [i; 9]).set(1)).contains("found a ninth axis"));
    assert!(message(at("y", i).set(load("x", i).bitcast(DType::F16))).contains("found `bitcast_f16(`"));
    assert!(message(at("y", i).set(call(Function::Exp, [i, i]))).contains("found 2 arguments, but `exp` takes 1"));
    let item = Ast::new().declare("x", DType::F32, [1; 9]).written().unwrap_err().to_string();
    assert!(item.contains("found a ninth axis"), "{item}");
}

#[test]
fn depth_is_bounded() {
    let i = index("i");
    let chain = |terms: u32| (1..terms).fold(E::from(i), |sum, _| sum + 1);
    Ast::new().statement(at("y", i).set(chain(MAX_DEPTH))).written().unwrap();
    for statement in [
        at("y", i).set(chain(MAX_DEPTH + 1)),
        at("y", i).set(chain(100_000)),
        at("y", i).set(load("x", chain(100_000)).exp().choose(1, 2)),
        at("y", (i, chain(100_000))).set(1),
    ] {
        assert_eq!(
            Ast::new().declare("y", DType::F32, [1]).statement(statement).written().unwrap_err().to_string(),
            "item 2: `y` is written from an expression over 200 operators deep; give parts of it names in statements of \
             their own"
        );
    }
}
