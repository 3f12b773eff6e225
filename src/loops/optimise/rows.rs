//! Rows: what is done with each element of a row behind what was accumulated over it, in the same nest.
//!
//! A softmax goes over its rows for the maximum, for the sum, and for the result, and a device that does so row by row has
//! the row at hand. What was summed and is part of the result is stored in the result's place meanwhile, where that is exact.

use crate::dtype::DType;
use crate::loops::ir::{Fold, Loops, Nest, Stage, Store};
use crate::loops::optimise::cost::{ACCESS, cost};
use crate::loops::optimise::inline::CHEAP;
use crate::loops::optimise::is_fine;
use crate::loops::optimise::merge::moved;
use crate::loops::rewrite::{IndexMap, any_part, each_part};
use crate::notation::program::{Affine, Expr, ExprKind, Load, Term, Ty, Value, points};

/// Which rows are worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// How many there are, at least.
    pub least: u64,
    /// How long they are, at least.
    pub length: u64,
    /// Whether what was summed is stored meanwhile: it costs an access of each element, and saves computing it again.
    pub keeps: bool,
}

/// Makes the last stage of a nest, which has more points, one over rows, by the indices of those that accumulated such rows.
/// `map` has the points of those before.
pub fn spread(nest: &mut Nest, loops: &Loops, map: &IndexMap, rows: Rows) -> Option<()> {
    let mut row = std::mem::take(&mut nest.free);
    row.retain(|index| {
        let is_row = map.all().all(|affine| affine.terms.iter().all(|(term, _)| *term != Term::Index(*index)));
        if !is_row {
            nest.free.push(*index);
        }
        is_row
    });
    if row.is_empty() || points(&nest.indices, &nest.free) < rows.least || points(&nest.indices, &row) < rows.length {
        return None;
    }
    let Nest { indices, stages, .. } = nest;
    let (last, before) = stages.split_last_mut()?;
    let mut is_same = false;
    for stage in before {
        let Some(Fold { over, .. }) = &stage.fold else { continue };
        let mut own = IndexMap::identity(indices.len());
        let mut is_row = over.len() == row.len();
        for (from, to) in over.iter().zip(&row) {
            let (one, two) = (&indices[*from], &indices[*to]);
            is_row &= (one.lo, one.hi) == (two.lo, two.hi);
            own.put(*from, Affine::index(*to, 0));
        }
        if is_row {
            *stage = moved(stage, &own)?;
            is_same = true;
        }
    }
    let start = Expr::constant(Value::I32(0));
    last.fold = Some(Fold { op: None, start, over: row, is_each: true });
    if !is_same || !is_fine(nest) {
        return None;
    }
    if rows.keeps {
        keep_values(nest, loops);
    }
    Some(())
}

/// Stores in the place of the last stage what a stage before accumulates and the last one computes again.
fn keep_values(nest: &mut Nest, loops: &Loops) {
    let Some(Stage { value, fold: Some(Fold { over, .. }), store: Some(store) }) = nest.stages.last() else { return };
    let is_kept = |stage: &Stage| {
        let is_over = stage.fold.as_ref().is_some_and(|fold| fold.op.is_some() && fold.over == *over && !fold.is_each);
        let is_dear = is_over && cost(&stage.value, &nest.indices, ACCESS).0 > CHEAP;
        is_dear && any_part(value, &mut |part| *part == stage.value)
    };
    let Some(at) = nest.stages.iter().position(is_kept) else { return };
    let (store, kept) = (store.clone(), nest.stages[at].value.clone());
    if loops.buffers[store.target].dtype != DType::F32 || kept.ty != Ty::F32 || nest.reads(store.target) {
        return;
    }
    let Store { target, positions, .. } = store.clone();
    let load = Expr::new(ExprKind::Load(Load { node: target, positions, pad: None }), Ty::F32);
    let own = nest.stages[at].store.replace(store);
    if let Some(fold) = &mut nest.stages[at].fold {
        fold.is_each = true;
    }
    let Some(last) = nest.stages.last_mut() else { return };
    if last.value == kept {
        nest.stages.pop();
    } else {
        each_part(&mut last.value, &mut |part| {
            if *part == kept {
                *part = load.clone();
            }
        });
    }
    if own.is_some() {
        nest.stages.push(Stage { value: Expr::new(ExprKind::Stage(at), Ty::F32), fold: None, store: own });
    }
}
