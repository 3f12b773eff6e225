use super::{Rows, SMALL_WORK, join_rows, optimise};
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
    optimise(&mut loops, SMALL_WORK);
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

/// The nests of a program with at least so many rows of at least that length joined.
fn joined(text: &str, given: &[(&str, DType, &[u32])], outputs: &[&str], least: (u64, u64)) -> String {
    let mut loops = optimised(text, given, outputs);
    join_rows(&mut loops, Rows { least: least.0, length: least.1, keeps: true });
    nests(&loops)
}

const SOFTMAX: &str = "m[i] max=! x[i, j]\ns[i] +=! exp(x[i, j] - m[i])\ny[i, j] = exp(x[i, j] - m[i]) / s[i]";

#[test]
fn the_rows_of_a_softmax_are_one_nest_that_computes_exponentials_once() {
    let x: [(&str, DType, &[u32]); 1] = [("x", DType::F32, &[9, 13])];
    let want = "y:3 for i in 0:9
  %0 = -inf
  %0 max= x[i, j] over j in 0:13
  %1 = 0.0
  %1 += exp((x[i, j] - %0)) over j in 0:13
  %2 = (y[i, j] / %1) over j in 0:13
  y[i, j] = %1 each
  y[i, j] = %2 each
";
    assert_eq!(joined(SOFTMAX, &x, &["y"], (9, 13)), want);
    assert_eq!(joined(SOFTMAX, &x, &["y"], (10, 13)).matches(" for ").count(), 2, "too few rows");
    assert_eq!(joined(SOFTMAX, &x, &["y"], (9, 14)).matches(" for ").count(), 2, "too short ones");
}

#[test]
fn what_a_row_accumulates_is_stored_alone_where_that_is_the_result() {
    let given: [(&str, DType, &[u32]); 2] = [("x", DType::F32, &[900, 130]), ("v", DType::F32, &[130, 40])];
    let text =
        "m[i] max=! x[i, j]\ne[i, j] = exp(x[i, j] - m[i])\ns[i] +=! e[i, j]\ny[i, k] +=! e[i, j] / s[i] * v[j, k]";
    let want = "m:1+s:3+e:2 for i in 0:900
  %0 = -inf
  %0 max= x[i, j] over j in 0:130
  %1 = 0.0
  %1 += exp((x[i, j] - %0)) over j in 0:130
  %2 = %1
  e[i, j] = %1 each
  s[i] = %2
";
    let nests = joined(text, &given, &["y"], (1, 1));
    assert!(nests.starts_with(want) && nests.matches(" for ").count() == 2, "{nests}");
}

#[test]
fn rows_keep_no_values_where_that_would_round_or_where_they_are_read() {
    let given: [(&str, DType, &[u32]); 2] = [("x", DType::F32, &[9, 13]), ("y", DType::F16, &[9, 13])];
    let rounded = joined(SOFTMAX, &given, &["y"], (1, 1));
    assert!(rounded.matches(" for ").count() == 1 && rounded.matches("exp").count() == 2, "{rounded}");
    let in_place = joined(&SOFTMAX.replace('y', "x"), &given[..1], &["x"], (1, 1));
    assert!(in_place.matches(" for ").count() == 1 && in_place.matches("exp").count() == 2, "{in_place}");
}

#[test]
fn rows_stay_apart_where_they_are_read_or_written_by_others() {
    let given: [(&str, DType, &[u32]); 3] =
        [("x", DType::F32, &[9, 9]), ("y", DType::F32, &[9]), ("w", DType::F32, &[9, 40])];
    for text in [
        // Of the next row, of a column, of what is not a row.
        "m[i] max=! x[i, j]\nz[i, j] = x[i, j] - m[i + 1] where i in 0:8",
        "m[i] max=! x[j, i]\nx[i, j] = x[i, j] - m[i]",
        "m[i] max=! w[i, k]\nz[i, j] = x[i, j] - m[i]",
        "m[i] max=! x[i, j]\nz[i] = m[i]\nm[i] = y[i]\nx[i, j] = x[i, j] - m[i]",
    ] {
        let nests = joined(text, &given, &["z"][..usize::from(text.contains('z'))], (1, 1));
        assert!(nests.matches(" for ").count() > 1, "{nests}");
    }
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

#[test]
fn a_shifted_read_is_a_shifted_value() {
    let text = "t[i] = x[i] * f32(i)\ny[j] = t[j + 1] - t[2 * j] where j in 0:3";
    let want = "y:2 for j in 0:3
  %0 = ((x[j + 1] * f32((j + 1i))) - (x[2 * j] * f32((j * 2i))))
  y[j] = %0
";
    assert_eq!(floats(text, &[("x", &[6])], &["y"]), want);
}

#[test]
fn what_stands_between_two_values_of_a_narrow_node_is_rounded() {
    let given: [(&str, DType, &[u32]); 2] = [("x", DType::F32, &[4]), ("y", DType::F16, &[4])];
    let want = "y:2 for i in 0:4
  %0 = (f16((x[i] / 3.0)) * 3.0)
  y[i] = %0
";
    assert_eq!(nests(&optimised("y[i] = x[i] / 3\ny[i] = y[i] * 3", &given, &[])), want);
}

#[test]
fn stores_side_by_side_are_one_nest_where_they_never_meet() {
    let given: [(&str, &[u32]); 2] = [("x", &[4]), ("y", &[9])];
    let apart = "y[2 * p] = x[p]\ny[2 * p + 1] = -x[p]";
    assert_eq!(floats(apart, &given, &[]).matches(" for ").count(), 1);
    let meeting = "y[p] = x[p] where p in 0:4\ny[p + 1] = -x[p]";
    assert_eq!(floats(meeting, &given, &[]).matches(" for ").count(), 2);
}

#[test]
fn a_product_may_be_taken_in_another_order_by_what_follows() {
    let text = "c[i, j] +=! a[i, k] * b[k, j]\ny[j, i] = c[i, j] + 1";
    let want = "y:2 for j in 0:4, i in 0:2
  %0 = 0.0
  %0 += (a[i, k] * b[k, j]) over k in 0:3
  %1 = (%0 + 1.0)
  y[j, i] = %1
";
    assert_eq!(floats(text, &[("a", &[2, 3]), ("b", &[3, 4])], &["y"]), want);
}

#[test]
fn what_is_dear_is_not_computed_again_in_a_reduction() {
    let text = "g[i, k] = gelu(x[i, k])\ny[i, j] +=! g[i, k] * w[k, j]";
    let given: [(&str, &[u32]); 2] = [("x", &[64, 64]), ("w", &[64, 64])];
    assert_eq!(floats(text, &given, &["y"]).matches(" for ").count(), 2);
    let text = text.replace("gelu", "relu");
    assert_eq!(floats(&text, &given, &["y"]).matches(" for ").count(), 1);
}

#[test]
fn what_ends_a_reduction_is_done_there_and_not_in_the_next_one() {
    let text = "s[n, j] +=! g[n, k] * w[j, k]\nd[n, j] = h[n, j] > 0 ? s[n, j] : 0\ny[i, j] +=! x[n, i] * d[n, j]";
    let given: [(&str, &[u32]); 4] = [("g", &[32, 8]), ("w", &[16, 8]), ("h", &[32, 16]), ("x", &[32, 4])];
    let nests = floats(text, &given, &["y"]);
    assert_eq!(nests.matches(" for ").count(), 2, "{nests}");
    assert!(nests.contains("  d[n, j] = %1\n") && nests.contains("x[n, i] * d[n, j]"), "{nests}");
}

#[test]
fn what_is_the_same_for_a_row_is_computed_once_for_it() {
    let given: [(&str, DType, &[u32]); 1] = [("x", DType::F32, &[90, 130])];
    let softmax = "y[i, j] = exp(x[i, j] - max[k](x[i, k])) / sum[k](exp(x[i, k] - max[l](x[i, l])))";
    let want = "y:1 for i in 0:90
  %0 = -inf
  %0 max= x[i, j] over j in 0:130
  %1 = 0.0
  %1 += exp((x[i, j] - %0)) over j in 0:130
  %2 = (y[i, j] / %1) over j in 0:130
  y[i, j] = %1 each
  y[i, j] = %2 each
";
    assert_eq!(joined(softmax, &given, &["y"], (1, 1)), want);
}
