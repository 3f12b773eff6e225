use super::*;
use crate::loops::ir::{Fold, Stage, Store};
use crate::notation::ast::{Accumulate, BinaryOp};
use crate::notation::program::{Affine, Load, LoopIndex, Position, Term, Ty, Value};
use crate::notation::spec::Forced;
use crate::schedule::{Candidate, candidates};

fn load(node: usize, indices: &[IndexId]) -> Expr {
    Expr::new(ExprKind::Load(Load { node, positions: at(indices), pad: None }), Ty::F32)
}

fn at(indices: &[IndexId]) -> Vec<Position> {
    let position = |index: &IndexId| Position::Affine(Affine { constant: 0, terms: vec![(Term::Index(*index), 1)] });
    indices.iter().map(position).collect()
}

fn mul(a: Expr, b: Expr) -> Expr {
    Expr::binary(BinaryOp::Mul, a, b, Ty::F32)
}

/// Sums a value over the last of so many values of each index.
fn sums(extents: &[i64], value: Expr) -> Nest {
    let index = |extent: &i64| LoopIndex { name: "i".to_owned(), lo: 0, hi: *extent };
    let free: Vec<IndexId> = (0..extents.len() - 1).collect();
    let start = Expr::constant(Value::F32(0.0));
    let fold = Some(Fold { op: Some(Accumulate::Add), start, over: vec![free.len()], is_each: false });
    let store = Some(Store { target: 0, positions: at(&free), atomic: None });
    Nest {
        name: "n".to_owned(),
        indices: extents.iter().map(index).collect(),
        free,
        stages: vec![Stage { value, fold, store }],
    }
}

fn product(n: i64, m: i64, k: i64) -> Nest {
    sums(&[n, m, k], mul(load(1, &[0, 2]), load(2, &[2, 1])))
}

fn target(is_cpu: bool) -> Target {
    Target { is_cpu, has_rows: true, is_aligned: true, most_lanes: 256, most_bytes: 16384, ..Target::default() }
}

fn is_staged(candidate: &Candidate) -> bool {
    matches!(candidate.schedule.spread, Spread::Staged { .. })
}

#[test]
fn large_products_go_through_memory_where_a_workgroup_has_some() {
    let all = candidates(&product(1024, 1024, 1024), &target(false));
    assert_eq!(all[0].schedule.to_string(), "tile 8x8 staged by 16 of 64 lanes");
    assert!(all.iter().any(|candidate| matches!(candidate.schedule.spread, Spread::Tiled(_))), "{all:?}");
    let without = candidates(&product(1024, 1024, 1024), &Target { most_bytes: 4096, ..target(false) });
    let bytes = |tile: &[u32]| 4 * 16 * (8 * (tile[0] + tile[1]) + 2);
    for Candidate { schedule, .. } in &without {
        assert!(!matches!(&schedule.spread, Spread::Staged { tile, .. } if bytes(tile) > 4096), "{schedule}");
    }
}

#[test]
fn on_a_cpu_they_are_far_down() {
    for size in [64, 512, 1024] {
        let all = candidates(&product(size, size, size), &target(true));
        let at = all.iter().position(is_staged).unwrap();
        assert!(at >= 6 && all[at].cost >= 4 * all[0].cost, "{size}: number {at} of {all:?}");
        assert!(!all[at].schedule.by_fours);
    }
    for target in [target(true), target(false)] {
        let all = candidates(&product(256, 256, 256), &Target { forced: Some(Forced::Staged), ..target });
        let names: Vec<String> = all.iter().map(|candidate| candidate.schedule.to_string()).collect();
        let base = "tile 2x3 staged by 8 of 64 lanes";
        assert_eq!(names, [base, "tile 2x3 staged by 4 of 256 lanes", &format!("{base} direct")]);
    }
}

#[test]
fn small_products_and_short_reductions_do_without() {
    for (n, m, k) in [(64, 64, 64), (128, 128, 128), (16, 16, 4096), (1024, 1024, 8), (4096, 10, 32)] {
        let all = candidates(&product(n, m, k), &target(false));
        assert!(!is_staged(&all[0]), "{n} by {m} by {k}: {}", all[0].schedule);
    }
}

#[test]
fn a_matrix_times_a_vector_has_no_block() {
    let vector = sums(&[4096, 4096], mul(load(1, &[0, 1]), load(2, &[1])));
    let all = candidates(&vector, &target(false));
    assert!(!all.iter().any(is_staged), "{all:?}");
    // A batch of them has one that helps no one: each element of the matrix is wanted once.
    let batch = sums(&[64, 1024, 1024], mul(load(1, &[0, 1, 2]), load(2, &[0, 2])));
    assert!(!is_staged(&candidates(&batch, &target(false))[0]));
}

#[test]
fn the_largest_parts_that_lanes_share_are_staged_each_once() {
    let shared = mul(load(1, &[0, 2]), load(3, &[2]));
    let other = mul(load(2, &[2, 1]), load(4, &[0, 1, 2]));
    let nest = sums(&[64, 64, 64], mul(mul(shared.clone(), other), shared.clone()));
    let staged = staged(&nest, &[8, 8]).unwrap();
    let parts = [Part { value: shared, axis: Some(0) }, Part { value: load(2, &[2, 1]), axis: Some(1) }];
    assert_eq!(staged.parts, parts);
    let stage = |number| Expr::new(ExprKind::Stage(number), Ty::F32);
    assert_eq!(staged.body, mul(mul(stage(0), mul(stage(1), load(4, &[0, 1, 2]))), stage(0)));
}

#[test]
fn what_has_nothing_to_share_or_cannot_wait_is_left_alone() {
    let mut nest = product(64, 64, 64);
    assert!(staged(&nest, &[8, 8]).is_some() && staged(&nest, &[8, 1]).is_none());
    nest.stages[0].store.as_mut().unwrap().atomic = Some(Accumulate::Add);
    assert!(staged(&nest, &[8, 8]).is_none(), "whatever else reaches an element");
    assert!(staged(&product(64, 64, 0), &[8, 8]).is_none(), "nothing to sum");
    assert!(staged(&sums(&[8, 8, 8], load(1, &[0, 1, 2])), &[8, 8]).is_none());
    let mut rows = product(64, 64, 64);
    rows.stages.push(rows.stages[0].clone());
    assert!(staged(&rows, &[8, 8]).is_none(), "two reductions");
    let forced = Target { forced: Some(Forced::Staged), ..target(true) };
    assert_eq!(candidates(&product(5, 7, 3), &forced)[0].schedule.to_string(), "tile 2x3 staged by 8 of 64 lanes");
    assert_eq!(candidates(&rows, &forced)[0].schedule.spread, Spread::PerPoint);
    let left = Target { leaves_loops: true, ..forced };
    assert_eq!(candidates(&product(5, 7, 1 << 20), &left)[0].schedule.spread, Spread::PerWorkgroup);
}
