//! Rows: what is done with each element of a row behind what was accumulated over it, in the same nest.
//!
//! A softmax goes over its rows for the maximum, for the sum, and for the result, and a device that does so row by row has
//! the row at hand. What was summed and is part of the result is stored in the result's place meanwhile, where that is exact.

use crate::dtype::DType;
use crate::loops::ir::{Fold, Loops, Nest, Stage, Store};
use crate::loops::optimise::cost::{ACCESS, cost};
use crate::loops::optimise::inline::CHEAP;
use crate::loops::optimise::merge::moved;
use crate::loops::rewrite::{IndexMap, any_part, each_part};
use crate::notation::program::{Affine, Expr, ExprKind, IndexId, Load, Position, Ty, Value, points};

/// How many rows there must be, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub least: u64,
    pub length: u64,
}

impl Rows {
    /// The points of the first nest as rows of the second one, an elementwise nest that reads what the first stores.
    pub fn points(self, first: &Nest, second: &Nest, read: &Load) -> Option<IndexMap> {
        let is_elementwise = second.stages.len() == 1 && !second.has_fold();
        if !is_elementwise || !first.has_fold() || points(&first.indices, &first.free) < self.least {
            return None;
        }
        let store = first.stores().find(|store| store.target == read.node)?;
        let mut map = IndexMap::new(first.indices.len());
        for (own, other) in store.positions.iter().zip(&read.positions) {
            let (Position::Affine(own), Position::Affine(other)) = (own, other) else { return None };
            let (own, other) = (own.alone()?, other.alone()?);
            let (one, two) = (&first.indices[own], &second.indices[other]);
            let is_new = !map.all().any(|known| known.alone() == Some(other));
            let are_free = first.free.contains(&own) && second.free.contains(&other);
            if !is_new || !are_free || (one.lo, one.hi) != (two.lo, two.hi) {
                return None;
            }
            map.put(own, Affine::index(other, 0));
        }
        first.free.iter().all(|free| map.get(*free).is_some()).then_some(map)
    }

    /// Makes the last stage, which has more points, one over rows: by the indices of those that accumulated such rows.
    pub fn spread(self, nest: &mut Nest, all: &[IndexId]) -> Option<()> {
        let mut row = all.to_vec();
        row.retain(|index| !nest.free.contains(index));
        if row.is_empty() || points(&nest.indices, &row) < self.length {
            return None;
        }
        let range = |index: &IndexId| (nest.indices[*index].lo, nest.indices[*index].hi);
        let mut is_same = false;
        let (last, before) = nest.stages.split_last_mut()?;
        for stage in before {
            let Some(Fold { over, .. }) = &stage.fold else { continue };
            if over.iter().map(range).ne(row.iter().map(range)) {
                continue;
            }
            let mut map = IndexMap::new(nest.indices.len());
            for index in 0..nest.indices.len() {
                map.put(index, Affine::index(index, 0));
            }
            for (own, other) in over.iter().zip(&row) {
                map.put(*own, Affine::index(*other, 0));
            }
            *stage = moved(stage, &map)?;
            is_same = true;
        }
        let start = Expr::constant(Value::I32(0));
        last.fold = Some(Fold { op: None, start, over: row, is_each: true });
        is_same.then_some(())
    }
}

/// Stores in the place of the last stage what a stage before accumulates and the last one computes again.
pub fn keep_values(nest: &mut Nest, loops: &Loops) {
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
