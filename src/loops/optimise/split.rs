//! Reductions as loops of their own, and long ones in two steps.
//!
//! A reduction inside an expression becomes a stage, so that schedules see it. One that is long where there are few points
//! is split: a nest accumulates parts of it into a buffer, the old nest accumulates those. What is left where the parts do
//! not divide what there is, the old nest accumulates first.

use crate::loops::ir::{Buffer, BufferKind, Fold, Loops, Nest, Stage, Store};
use crate::loops::lower::neutral;
use crate::loops::rewrite::{IndexMap, any_part, each_child_mut, map_expr, uses_index};
use crate::notation::ast::{Accumulate, BinaryOp, ReduceOp};
use crate::notation::program::{
    Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Position, Term, Ty, Value, points, times,
};

/// What is accumulated altogether for a split to be worth a kernel.
const LEAST_WORK: u64 = 1 << 20;
/// Iterations of a part, at least.
const LEAST_ITERATIONS: u64 = 16;
/// Iterations that are split whatever else: Mesa 22.3 (llvmpipe) leaves loops after 65,535.
const MOST_ITERATIONS: u64 = 1 << 15;
/// Points of which each has a workgroup, at most, that leave most of a device idle.
const FEW_POINTS: u64 = 16;

/// Makes stages of the reductions in the values of a nest, but of those that depend on what others run over.
pub fn hoist(nest: &mut Nest) {
    let mut at = 0;
    while at < nest.stages.len() {
        let mut around = nest.stages[at].fold.as_ref().map_or(Vec::new(), |fold| fold.over.clone());
        let mut value = std::mem::replace(&mut nest.stages[at].value, Expr::constant(Value::Bool(false)));
        let mut before = nest.stages[..at].to_vec();
        take(&mut value, &nest.indices, &mut around, &mut before);
        let mut made = before.split_off(at);
        let stage = &mut nest.stages[at];
        stage.value = value;
        // A value that is a reduction is one itself.
        let is_last = !made.is_empty() && stage.value.kind == ExprKind::Stage(at + made.len() - 1);
        if is_last
            && stage.fold.is_none()
            && let Some(own) = made.pop()
        {
            (stage.value, stage.fold) = (own.value, own.fold);
        }
        let count = made.len();
        shift(&mut nest.stages[at + 1..], at, count);
        for (place, stage) in made.into_iter().enumerate() {
            nest.stages.insert(at + place, stage);
        }
        at += count + 1;
    }
}

/// The reductions of an expression, as stages behind those before it. `around` are the indices that it is within.
fn take(expr: &mut Expr, indices: &[LoopIndex], around: &mut Vec<IndexId>, before: &mut Vec<Stage>) {
    let count = around.len();
    if let ExprKind::Reduce { indices: over, .. } = &expr.kind {
        around.extend(over);
    }
    each_child_mut(expr, &mut |child| take(child, indices, around, before));
    around.truncate(count);
    let ty = expr.ty;
    let is_inner = around.iter().any(|index| uses_index(expr, *index));
    let ExprKind::Reduce { op, indices: over, body } = &mut expr.kind else { return };
    if is_inner {
        return;
    }
    let mut stage = |value: Expr, op| {
        let ty = value.ty;
        let fold = Some(Fold { op: Some(op), start: neutral_start(ty, op), over: over.clone(), is_each: false });
        let known = before.iter().position(|stage| stage.value == value && stage.fold == fold);
        let at = known.unwrap_or(before.len());
        if known.is_none() {
            before.push(Stage { value, fold, store: None });
        }
        Expr::new(ExprKind::Stage(at), ty)
    };
    let number = |number| Expr::constant(Value::I32(number));
    let op = match op {
        ReduceOp::Sum => Accumulate::Add,
        ReduceOp::Prod => Accumulate::Mul,
        ReduceOp::Max => Accumulate::Max,
        ReduceOp::Min => Accumulate::Min,
        ReduceOp::ArgMax | ReduceOp::ArgMin if points(indices, over) <= MOST_ITERATIONS => return,
        // The first position at which the value is the extreme one: what is accumulated in any order can be shared.
        ReduceOp::ArgMax | ReduceOp::ArgMin => {
            let op = if *op == ReduceOp::ArgMax { Accumulate::Max } else { Accumulate::Min };
            let extreme = stage(body.clone(), op);
            let is_extreme = Expr::binary(BinaryOp::Eq, body.clone(), extreme, Ty::Bool);
            let position = Expr::new(ExprKind::Index(over[0]), ty);
            let value = Expr::conditional(is_extreme, position, number(i32::MAX));
            let found = stage(value, Accumulate::Min);
            // All are NaN.
            let is_none = Expr::binary(BinaryOp::Eq, found.clone(), number(i32::MAX), Ty::Bool);
            *expr = Expr::conditional(is_none, number(0), found);
            return;
        }
    };
    *expr = stage(body.clone(), op);
}

fn neutral_start(ty: Ty, op: Accumulate) -> Expr {
    Expr::constant(neutral(ty.dtype(), op))
}

/// Says that the stages from a number on are so many further behind.
fn shift(stages: &mut [Stage], from: usize, by: usize) {
    for stage in stages {
        stage.each_part(&mut |part| {
            if let ExprKind::Stage(number) = &mut part.kind
                && *number >= from
            {
                *number += by;
            }
        });
    }
}

/// Splits long reductions, for a device that is busy with so many points. Parts are in a row each if `in_rows`, as a CPU
/// reads them best; else neighbouring points read neighbouring elements.
pub fn split(loops: &mut Loops, busy: u64, in_rows: bool) {
    let mut at = 0;
    while at < loops.nests.len() {
        let stages = 0..loops.nests[at].stages.len();
        if let Some(parts) = stages.into_iter().find_map(|stage| parts_of(loops, at, stage, (busy, in_rows))) {
            loops.nests.insert(at, parts);
        }
        at += 1;
    }
}

/// A nest that accumulates parts of a stage, which accumulates those from then on.
fn parts_of(loops: &mut Loops, at: usize, stage: usize, (busy, in_rows): (u64, bool)) -> Option<Nest> {
    let nest = &loops.nests[at];
    let Stage { value, fold: Some(Fold { op: Some(op), over, start, .. }), .. } = &nest.stages[stage] else {
        return None;
    };
    let (all, own) = (points(&nest.indices, &nest.free), points(&nest.indices, over));
    let is_worth = all <= FEW_POINTS && times(all, own) >= LEAST_WORK;
    if !(is_worth || own > MOST_ITERATIONS) || value.ty == Ty::Bool || uses_stages(value) || all > u64::from(u32::MAX) {
        return None;
    }
    // The longest, the last one of those.
    let mut along = *over.first()?;
    for index in over {
        if nest.indices[*index].count() >= nest.indices[along].count() {
            along = *index;
        }
    }
    let LoopIndex { name, lo, hi } = nest.indices[along].clone();
    let extent = nest.indices[along].count();
    let parts = (busy / all.max(1)).max(own / MOST_ITERATIONS).min(own / LEAST_ITERATIONS).min(extent);
    if parts < 2 || times(parts, all) > u64::from(u32::MAX) {
        return None;
    }
    let mut turns = extent / parts;
    if in_rows && turns >= 64 {
        // By fours, and not so far apart that all parts meet in one set of a cache.
        turns = turns / 8 * 8 + 4;
    }
    let (parts, turns) = ((extent / turns) as i64, turns as i64);
    let (along_by, part_by) = if in_rows { (1, turns) } else { (parts, 1) };
    let (op, over, ty) = (*op, over.clone(), value.ty);
    let start = match op {
        // The extreme of a NaN and of nothing is NaN: no number is neutral, but each part may begin with the start.
        Accumulate::Max | Accumulate::Min if !uses_stages(start) => start.clone(),
        _ => neutral_start(ty, op),
    };
    let (mut of_part, mut rest) = (value.clone(), value.clone());
    // The number of the point, the last index the fastest.
    let mut number = Affine::default();
    let mut stride = 1i64;
    for free in nest.free.iter().rev() {
        let range = &nest.indices[*free];
        number.add(&Affine::index(*free, -range.lo), stride)?;
        stride *= range.count() as i64;
    }
    let part = nest.indices.len();
    let run = |hi: i64| LoopIndex { name: name.clone(), lo: 0, hi };
    let mut partial = Nest {
        name: format!("{} parts", nest.name),
        indices: nest.indices.clone(),
        free: nest.free.clone(),
        stages: Vec::new(),
    };
    partial.indices[along] = run(turns);
    partial.indices.push(run(parts));
    partial.free.push(part);
    let terms = vec![(Term::Index(along), along_by), (Term::Index(part), part_by)];
    let from = lo + turns * parts;
    let is_whole = from >= hi;
    let mut map = IndexMap::identity(partial.indices.len());
    map.put(along, Affine { constant: lo, terms });
    let mut is_mapped = map_expr(&mut of_part, &map);
    map.put(along, Affine::index(part + 1, 0));
    is_mapped &= is_whole || map_expr(&mut rest, &map);
    if !is_mapped {
        return None;
    }
    let target = loops.buffers.len();
    let positions = vec![Position::Affine(number), Position::index(part)];
    let load = Load { node: target, positions: positions.clone(), pad: None };
    partial.stages.push(Stage {
        value: of_part,
        fold: Some(Fold { op: Some(op), start, over: over.clone(), is_each: false }),
        store: Some(Store { target, positions, atomic: None }),
    });
    loops.buffers.push(Buffer {
        name: partial.name.clone(),
        dtype: ty.dtype(),
        shape: vec![all as u32, parts as u32],
        kind: BufferKind::Temporary,
        note: "parts of a long reduction",
    });
    let nest = &mut loops.nests[at];
    nest.indices.push(run(parts));
    nest.indices.push(LoopIndex { name, lo: from, hi });
    let old = &mut nest.stages[stage];
    old.value = Expr::new(ExprKind::Load(load), ty);
    let Some(fold) = &mut old.fold else { return None };
    fold.over = vec![part];
    if !is_whole {
        let begun = Expr::new(ExprKind::Stage(stage), ty);
        let mut first = Fold { op: Some(op), start: std::mem::replace(&mut fold.start, begun), over, is_each: false };
        for index in &mut first.over {
            if *index == along {
                *index = part + 1;
            }
        }
        shift(&mut nest.stages[stage + 1..], stage, 1);
        nest.stages.insert(stage, Stage { value: rest, fold: Some(first), store: None });
    }
    Some(partial)
}

fn uses_stages(expr: &Expr) -> bool {
    any_part(expr, &mut |part| matches!(part.kind, ExprKind::Stage(_)))
}
