use super::optimise;
use crate::dtype::DType;
use crate::loops::ir::Loops;
use crate::loops::lower::lower;
use crate::notation::check::{Given, check};
use crate::notation::parse;

/// The loops of a program, optimised.
fn optimised(text: &str, given: &[(&str, DType, &[u32])], outputs: &[&str]) -> Loops {
    let given: Vec<Given> = given
        .iter()
        .map(|(name, dtype, shape)| Given {
            name: (*name).to_owned(),
            dtype: *dtype,
            shape: shape.to_vec(),
            is_constant: false,
        })
        .collect();
    let outputs: Vec<String> = outputs.iter().map(|name| (*name).to_owned()).collect();
    let program = check(text, &parse(text).unwrap(), &given, &outputs).unwrap_or_else(|error| panic!("{error}"));
    let mut loops = lower(&program);
    optimise(&mut loops);
    loops
}

fn floats(text: &str, given: &[(&str, &[u32])], outputs: &[&str]) -> String {
    let given: Vec<_> = given.iter().map(|(name, shape)| (*name, DType::F32, *shape)).collect();
    nests(&optimised(text, &given, outputs))
}

/// The nests alone.
fn nests(loops: &Loops) -> String {
    let text = loops.to_string();
    text.lines().skip(loops.buffers.len()).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_chain_of_maps_is_one_nest() {
    let text = "a[i] = x[i] * 2\nb[i] = a[i] + x[i]\ny[i] = max(b[i], 0)";
    let want = "y:3 for i in 0:6
  %0 = max(((x[i] * 2.0) + x[i]), 0.0)
  y[i] = %0
";
    assert_eq!(floats(text, &[("x", &[6])], &["y"]), want);
}

#[test]
fn what_follows_a_product_is_done_where_it_ends() {
    let text = "y[n, o] +=! x[n, i] * w[o, i]\ny[n, o] = max(y[n, o] + b[o], 0)";
    let want = "y:2 for n in 0:4, o in 0:3
  %0 = 0.0
  %0 += (x[n, i] * w[o, i]) over i in 0:5
  %1 = max((%0 + b[o]), 0.0)
  y[n, o] = %1
";
    assert_eq!(floats(text, &[("x", &[4, 5]), ("w", &[3, 5]), ("b", &[3])], &["y"]), want);
}

#[test]
fn softmax_is_two_nests() {
    let text = "m[i] max=! x[i, j]\ne[i, j] = exp(x[i, j] - m[i])\ns[i] +=! e[i, j]\ny[i, j] = e[i, j] / s[i]";
    let want = "m:1+s:3 for i in 0:9
  %0 = -inf
  %0 max= x[i, j] over j in 0:13
  %1 = 0.0
  %1 += exp((x[i, j] - %0)) over j in 0:13
  m[i] = %0
  s[i] = %1
y:4 for i in 0:9, j in 0:13
  %0 = (exp((x[i, j] - m[i])) / s[i])
  y[i, j] = %0
";
    assert_eq!(floats(text, &[("x", &[9, 13])], &["y"]), want);
}

#[test]
fn a_value_does_not_move_behind_a_write_to_what_it_reads() {
    let text = "t[i] = a[i]\na[i] = b[i]\nb[i] = t[i]";
    let want = "t:1+a:2+b:3 for i in 0:4
  %0 = a[i]
  %1 = b[i]
  %2 = %0
  a[i] = %1
  b[i] = %2
";
    assert_eq!(floats(text, &[("a", &[4]), ("b", &[4])], &[]), want);
}
