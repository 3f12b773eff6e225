use super::*;
use crate::dtype::DType;
use crate::loops::ir::{Buffer, BufferKind, Fold, Stage, Store};
use crate::notation::ast::{Accumulate, BinaryOp};
use crate::notation::program::{Affine, Expr, ExprKind, Load, LoopIndex, Position, Term, Ty, Value};
use crate::notation::spec::Binding;

const POINT: Schedule = Schedule {
    spread: Spread::PerPoint,
    lanes: 64,
    turns: 4,
    by_fours: false,
    binding: Binding::Pooled,
    is_online: false,
    subgroups: false,
};

fn emit(loops: &Loops, nest: &Nest) -> Emitted {
    super::emit(loops, nest, &POINT, 65535)
}

fn loops(shapes: &[&[u32]]) -> Loops {
    let buffer = |(at, shape): (usize, &&[u32])| Buffer {
        name: format!("x{at}"),
        dtype: DType::F32,
        shape: shape.to_vec(),
        kind: BufferKind::Temporary,
        note: "",
    };
    Loops { buffers: shapes.iter().enumerate().map(buffer).collect(), ..Loops::default() }
}

fn at(indices: &[IndexId]) -> Vec<Position> {
    let position = |index: &IndexId| Position::Affine(Affine { constant: 0, terms: vec![(Term::Index(*index), 1)] });
    indices.iter().map(position).collect()
}

fn load(node: BufferIndex, indices: &[IndexId]) -> Expr {
    Expr::new(ExprKind::Load(Load { node, positions: at(indices), pad: None }), Ty::F32)
}

fn constant(value: f32) -> Expr {
    Expr::constant(Value::F32(value))
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    let ty = a.ty;
    Expr::binary(op, a, b, ty)
}

/// Sets every element of a target of those extents.
fn nest(target: BufferIndex, extents: &[i64], value: Expr) -> Nest {
    let index = |extent: &i64| LoopIndex { name: "i".to_owned(), lo: 0, hi: *extent };
    let free: Vec<IndexId> = (0..extents.len()).collect();
    let store = Some(Store { target, positions: at(&free), atomic: None });
    Nest {
        name: "n".to_owned(),
        indices: extents.iter().map(index).collect(),
        free,
        stages: vec![Stage { value, fold: None, store }],
    }
}

#[test]
fn a_map_is_a_line_for_each_value() {
    let loops = loops(&[&[100], &[100]]);
    let value = binary(BinaryOp::Add, binary(BinaryOp::Mul, load(0, &[0]), constant(2.0)), load(0, &[0]));
    let emitted = emit(&loops, &nest(1, &[100], value));
    let want = "@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let number = group.x;
  let point = number * 64u + lane;
  if (point >= 100u) { return; }
  let v5 = load_t1(point);
  let v7 = v5 * 2.0f;
  let v8 = v7 + v5;
  store_t0(point, v8);
}
";
    assert_eq!(emitted.text, want);
    assert_eq!(emitted.tensors, [(1, Access::Write), (0, Access::Read)]);
    assert_eq!((emitted.grid, emitted.statics.len()), ([2, 1, 1], 0));
}

#[test]
fn nests_that_differ_in_buffer_numbers_are_one_text() {
    let loops = loops(&[&[8], &[8], &[8], &[8]]);
    let text = |target, source| emit(&loops, &nest(target, &[8], load(source, &[0]))).text;
    assert_eq!(text(0, 1), text(3, 2));
    assert_ne!(text(0, 1), text(2, 2), "a nest that reads its target is another");
}

#[test]
fn what_does_not_change_stands_outside_the_loop() {
    let loops = loops(&[&[5], &[5], &[7], &[5]]);
    let value = binary(BinaryOp::Mul, binary(BinaryOp::Mul, load(1, &[0]), constant(3.0)), load(2, &[1]));
    let mut nest = nest(0, &[5, 7], value);
    nest.free = vec![0];
    nest.stages[0].fold = Some(Fold { op: Some(Accumulate::Add), start: load(0, &[0]), over: vec![1], is_each: false });
    nest.stages[0].store = Some(Store { target: 0, positions: at(&[0]), atomic: None });
    let emitted = emit(&loops, &nest);
    let body = "  let v5 = load_t0(point);
  let v8 = load_t1(point);
  let v10 = v8 * 3.0f;
  var a6 = v5;
  for (var n7 = 0u; n7 < 7u; n7++) {
    let v11 = load_t2(n7);
    let v12 = v10 * v11;
    let v13 = a6 + v12;
    a6 = v13;
  }
  store_t0(point, a6);
";
    assert!(emitted.text.contains(body), "{}", emitted.text);
    assert_eq!(emitted.tensors[0], (0, Access::ReadWrite));
}

#[test]
fn a_reduction_by_subgroups_has_one_barrier() {
    let loops = loops(&[&[5], &[5, 700]]);
    let mut nest = nest(0, &[5, 700], load(1, &[0, 1]));
    nest.free = vec![0];
    nest.stages[0].fold = Some(Fold { op: Some(Accumulate::Max), start: load(0, &[0]), over: vec![1], is_each: false });
    nest.stages[0].store = Some(Store { target: 0, positions: at(&[0]), atomic: None });
    let text = |subgroups| {
        let schedule = Schedule { spread: Spread::PerWorkgroup, subgroups, ..POINT };
        super::emit(&loops, &nest, &schedule, 65535).text
    };
    let want = "enable subgroups;

const lab_width = 64u;

var<workgroup> lab_lanes0: array<f32, lab_width>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32, \
        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32) {
";
    let grouped = text(true);
    assert!(grouped.starts_with(want), "{grouped}");
    assert_eq!(grouped.matches("workgroupBarrier();").count(), 1, "{grouped}");
    let tree = text(false);
    assert!(tree.contains("workgroupBarrier();") && !tree.contains("subgroup"), "{tree}");
}

#[test]
fn constants_that_a_front_end_would_compute_with_are_values() {
    let loops = loops(&[&[4]]);
    let text = |value| emit(&loops, &nest(0, &[4], value)).text;
    let divided = text(binary(BinaryOp::Div, constant(1.0), constant(0.0)));
    assert!(divided.contains(" = lab_f(0x7f800000u);") && divided.contains("store_t0(point, v"), "{divided}");
    let added = text(binary(BinaryOp::Add, constant(f32::MAX), constant(1.0)));
    assert!(added.contains(" = lab_f(0x7f7fffffu);"), "{added}");
    let twice = text(binary(BinaryOp::Add, constant(2.0), constant(3.0)));
    assert!(twice.contains("5.0f") && !twice.contains("2.0f"), "{twice}");
    let inf = text(constant(f32::INFINITY));
    assert!(inf.contains("= lab_f(0x7f800000u);") && inf.contains("fn lab_f("), "{inf}");
    assert!(text(constant(-0.0)).contains("lab_f(0x80000000u)"));
    assert!(text(constant(-2.75)).contains("store_t0(point, f32(-2.75));"));
    assert!(text(constant(0.1)).contains("lab_f(0x3dcccccdu)"));
}

#[test]
fn a_grid_folds_where_a_dimension_is_too_short() {
    let loops = loops(&[&[1000]]);
    let emitted = super::emit(&loops, &nest(0, &[1000], constant(1.0)), &POINT, 3);
    assert_eq!(emitted.grid, [3, 3, 2], "16 workgroups");
    let number = "  let row = group.z * 3u + group.y;\n  let number = row * 3u + group.x;\n";
    assert!(emitted.text.contains(number), "{}", emitted.text);
    assert!(emitted.text.contains("if (number >= 16u) { return; }"), "{}", emitted.text);
    assert_eq!(emit(&loops, &nest(0, &[0], constant(1.0))).grid[0], 0);
}

#[test]
fn points_that_no_u32_counts_are_looped_over() {
    let loops = loops(&[&[65536, 65536]]);
    let mut nest = nest(0, &[65536, 65536, 3], constant(1.0));
    nest.stages[0].store = Some(Store { target: 0, positions: at(&[0, 1]), atomic: Some(Accumulate::Add) });
    let emitted = emit(&loops, &nest);
    assert!(emitted.text.contains("for (var n") && emitted.text.contains("< 65536u"), "{}", emitted.text);
    assert_eq!(emitted.grid, [3072, 1, 1]);
}

/// `t[i, j] +=! a[i, k] * b[k, j]`
fn product(n: i64, m: i64, k: i64) -> (Loops, Nest) {
    let loops = loops(&[&[n as u32, m as u32], &[n as u32, k as u32], &[k as u32, m as u32]]);
    let value = binary(BinaryOp::Mul, load(1, &[0, 2]), load(2, &[2, 1]));
    let mut nest = nest(0, &[n, m, k], value);
    nest.free = vec![0, 1];
    nest.stages[0].fold = Some(Fold { op: Some(Accumulate::Add), start: constant(0.0), over: vec![2], is_each: false });
    nest.stages[0].store = Some(Store { target: 0, positions: at(&[0, 1]), atomic: None });
    (loops, nest)
}

#[test]
fn what_a_workgroup_shares_is_computed_by_all_lanes_between_barriers() {
    let (loops, nest) = product(20, 48, 10);
    let staged = |tile: [u32; 2], turns, lanes| {
        let spread = Spread::Staged { tile: tile.to_vec(), turns };
        super::emit(&loops, &nest, &Schedule { spread, lanes, ..POINT }, 65535)
    };
    let Emitted { text, grid, .. } = staged([2, 3], 8, 64);
    assert_eq!(grid, [4, 1, 1], "20 by 48 points, 16 by 24 a block");
    let memory =
        "var<workgroup> lab_staged0: array<f32, 136>;\n\nvar<workgroup> lab_staged1: array<f32, 192>;\n\n@compute";
    assert!(text.starts_with(memory), "{text}");
    let loaded = "  for (var first = 0u; first < 10u; first += 8u) {
    let v45 = first + v19;
    let v47 = min(v45, 9u);
    let v50 = v49 + v47;
    let v51 = load_t1(v50);
    lab_staged0[v54] = v51;\n";
    assert!(text.contains(loaded), "{text}");
    let summed = "    workgroupBarrier();
    let v111 = 10u - first;
    let v112 = min(v111, 8u);
    for (var turn = 0u; turn < v112; turn += 1u) {
      let v114 = turn * 17u;
      let v115 = v7 + v114;
      let v116 = lab_staged0[v115];
      let v117 = v115 + 8u;
      let v118 = lab_staged0[v117];\n";
    assert!(text.contains(summed), "{text}");
    let ended = "      a43 = v137;\n    }\n    workgroupBarrier();\n  }\n  if (v12) { store_t0(v26, a38); }\n";
    assert!(text.contains(ended) && !text.contains("return;"), "{text}");
    // Where all turns are whole, several are done in a row; where lanes have not as much to load, some do not.
    let whole = staged([2, 2], 10, 64).text;
    assert!(whole.contains("turn < 10u; turn += 1u") && !whole.contains("min(v111"), "{whole}");
    assert!(whole.contains("    if (lane < 32u) {\n      lab_staged1["), "{whole}");
    let (loops, nest) = product(256, 256, 64);
    let spread = Spread::Staged { tile: vec![2, 2], turns: 16 };
    let large = super::emit(&loops, &nest, &Schedule { spread, lanes: 256, ..POINT }, 65535);
    assert_eq!(large.grid, [64, 1, 1]);
    assert!(large.text.contains("turn < 16u; turn += 4u") && !large.text.contains("if "), "{}", large.text);
}
