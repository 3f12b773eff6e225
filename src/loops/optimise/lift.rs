//! Reductions inside expressions that are the same for many points, as nests of their own.
//!
//! `x[i, j] / sum[k](x[i, k])` wants a sum for each i, not for each i and j. What is lifted so is what a statement of its own
//! would have computed, and is merged, or done row by row, like one.

use crate::loops::ir::{Buffer, BufferKind, Loops, Nest, Stage, Store};
use crate::loops::optimise::cost::{ACCESS, cost};
use crate::loops::rewrite::{IndexMap, any_part, each_child, each_child_mut, each_part, map_part, uses_index};
use crate::notation::program::{Affine, Expr, ExprKind, IndexId, Load, LoopIndex, Position, points, product, times};

/// Lifts out of all nests what saves more work than that.
pub fn lift(loops: &mut Loops, small_work: u64) {
    let mut at = 0;
    while at < loops.nests.len() {
        share_indices(&mut loops.nests[at]);
        match lifted(loops, at, small_work) {
            // It may have more of them inside.
            Some(nest) => loops.nests.insert(at, nest),
            None => at += 1,
        }
    }
}

/// Gives reductions that are equal but for the names of their indices the same indices, so that they are equal: those with as
/// many reductions below each other, of which none is inside another one.
fn share_indices(nest: &mut Nest) {
    let Nest { indices, stages, .. } = nest;
    let mut known = Vec::new();
    for stage in stages {
        stage.each_part(&mut |part| share(part, indices, &mut known));
    }
}

/// The same for a reduction whose inner ones are done.
fn share(expr: &mut Expr, indices: &[LoopIndex], known: &mut Vec<(usize, IndexId)>) {
    let height = height(expr);
    let ExprKind::Reduce { indices: over, body, .. } = &mut expr.kind else { return };
    let mut map = IndexMap::identity(indices.len());
    let mut taken = Vec::new();
    for own in over {
        let mut found = None;
        for (of, index) in &*known {
            let (one, two) = (&indices[*own], &indices[*index]);
            let is_same = *of == height && (one.lo, one.hi) == (two.lo, two.hi) && !taken.contains(index);
            if is_same && found.is_none() {
                found = Some(*index);
            }
        }
        let index = found.unwrap_or(*own);
        known.push((height, index));
        taken.push(index);
        map.put(*own, Affine::index(index, 0));
        *own = index;
    }
    each_part(body, &mut |part| {
        map_part(part, &map);
    });
}

/// Reductions below each other.
fn height(expr: &Expr) -> usize {
    let mut inner = 0;
    each_child(expr, &mut |child| inner = inner.max(height(child)));
    inner + usize::from(matches!(expr.kind, ExprKind::Reduce { .. }))
}

/// What is lifted out of a nest, which reads it from then on.
fn lifted(loops: &mut Loops, at: usize, small_work: u64) -> Option<Nest> {
    let nest = &loops.nests[at];
    let mut most = 0;
    for (buffer, Buffer { shape, .. }) in loops.buffers.iter().enumerate() {
        if nest.writes(buffer) || nest.reads(buffer) {
            most = most.max(shape.iter().fold(1, |count, extent| times(count, u64::from(*extent))));
        }
    }
    let mut found = None;
    for stage in &nest.stages {
        let mut around = nest.free.clone();
        if let Some(fold) = &stage.fold {
            around.extend(&fold.over);
        }
        find(&stage.value, nest, &mut around, (most, small_work), &mut found);
    }
    let (value, free) = found?;
    let target = loops.buffers.len();
    let (mut positions, mut shape) = (Vec::new(), Vec::new());
    for index in &free {
        positions.push(Position::Affine(Affine::index(*index, product(nest.indices[*index].lo, -1)?)));
        shape.push(nest.indices[*index].count() as u32);
    }
    let load = Load { node: target, positions: positions.clone(), pad: None };
    let load = Expr::new(ExprKind::Load(load), value.ty);
    let store = Some(Store { target, positions, atomic: None });
    let name = format!("{} part", nest.name);
    let mut made = Nest { name: name.clone(), indices: nest.indices.clone(), free, stages: Vec::new() };
    let (dtype, kind, note) = (value.ty.dtype(), BufferKind::Temporary, "the same for many points");
    loops.buffers.push(Buffer { name, dtype, shape, kind, note });
    for stage in &mut loops.nests[at].stages {
        replace(&mut stage.value, &value, &load);
    }
    made.stages.push(Stage { value, fold: None, store });
    Some(made)
}

/// The first reduction that is worth it, and the indices that it depends on.
fn find(
    expr: &Expr,
    nest: &Nest,
    around: &mut Vec<IndexId>,
    (most, small_work): (u64, u64),
    found: &mut Option<(Expr, Vec<IndexId>)>,
) {
    if found.is_some() {
        return;
    }
    let count = around.len();
    if let ExprKind::Reduce { indices, .. } = &expr.kind {
        let (mut on, mut is_own) = (Vec::new(), true);
        for (at, index) in around.iter().enumerate() {
            let (is_used, is_free) = (uses_index(expr, *index), at < nest.free.len());
            if is_used {
                on.push(*index);
            }
            // What has the nest's own points becomes one of its stages.
            is_own &= is_used == is_free || is_free && nest.indices[*index].count() == 1;
        }
        let (all, own) = (points(&nest.indices, around), points(&nest.indices, &on));
        let is_stage = any_part(expr, &mut |part| matches!(part.kind, ExprKind::Stage(_)));
        let price = times(all, cost(expr, &nest.indices, ACCESS).0);
        if own <= all / 2 && own <= most && price > small_work && !is_own && !is_stage {
            *found = Some((expr.clone(), on));
            return;
        }
        around.extend(indices);
    }
    each_child(expr, &mut |child| find(child, nest, around, (most, small_work), found));
    around.truncate(count);
}

/// Puts a load in place of a value.
fn replace(expr: &mut Expr, value: &Expr, load: &Expr) {
    if expr == value {
        *expr = load.clone();
    } else {
        each_child_mut(expr, &mut |child| replace(child, value, load));
    }
}
