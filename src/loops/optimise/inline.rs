//! Temporaries that are computed where they are read.
//!
//! The rule, in units of `cost`: computing an element anew is taken for cheap up to [`CHEAP`], however often it is done, and up
//! to [`BROADCAST`] in a nest without a reduction, which waits for memory; up to [`MODERATE`] where a reader needs no more
//! elements than there are, so that it is done once for each reader; and at any price where there is one such reader. What is
//! computed less than [`SMALL_WORK`](super::SMALL_WORK) altogether is less than a kernel costs. What ends a reduction costs nothing where it ends,
//! and is not computed again in another reduction.

use crate::dtype::DType;
use crate::loops::ir::{BufferIndex, BufferKind, Loops, Nest, Stage, Store};
use crate::loops::optimise::cost::{ACCESS, cost};
use crate::loops::optimise::{is_fine, is_whole};
use crate::loops::rewrite::{IndexMap, each_child, map_expr};
use crate::notation::program::{self, Affine, Expr, ExprKind, Load, Position, Ty, points};

/// Two loads and four operations, or one load and eight.
pub const CHEAP: u64 = 12;
/// A load or two and a function or two.
const BROADCAST: u64 = 24;
/// A few loads and functions.
const MODERATE: u64 = 48;

/// Computes temporaries where they are read, the first ones first; at any price, if `always`. `small_work` is not worth
/// a kernel.
pub fn inline(loops: &mut Loops, always: bool, small_work: u64) {
    let mut at = 0;
    while at < loops.nests.len() {
        let (target, note) = match try_inline(loops, at, always, small_work) {
            Ok(target) => {
                loops.nests.remove(at);
                (target, "computed where it is read")
            }
            Err(why) => {
                at += 1;
                why
            }
        };
        if let Some(target) = target {
            loops.buffers[target].note = note;
        }
    }
}

/// A nest that sets each element of a temporary that nothing else writes.
struct Maker<'a> {
    nest: &'a Nest,
    store: &'a Store,
    dtype: DType,
    value: &'a Expr,
}

/// A temporary that is not inlined, and why.
type Kept = (Option<BufferIndex>, &'static str);

impl<'a> Maker<'a> {
    fn of(loops: &'a Loops, at: usize) -> Result<Self, Kept> {
        let nest = &loops.nests[at];
        let ([Stage { value, fold, store: Some(store) }], false) = (&nest.stages[..], nest.is_atomic()) else {
            return Err((nest.stores().next().map(|store| store.target), "several points accumulate onto an element"));
        };
        let buffer = &loops.buffers[store.target];
        if buffer.kind != BufferKind::Temporary {
            return Err((None, ""));
        }
        if fold.is_some() {
            return Err((Some(store.target), "a reduction"));
        }
        let mut is_alone = is_whole(loops, nest, store);
        for (other, nest) in loops.nests.iter().enumerate() {
            is_alone &= other == at || !nest.writes(store.target) && (other > at || !nest.reads(store.target));
        }
        if !is_alone {
            return Err((Some(store.target), "it is set in parts"));
        }
        Ok(Self { nest, store, dtype: buffer.dtype, value })
    }

    /// The value at those positions, in a nest that has `indices` more.
    fn at(&self, positions: &[Position], reader: &mut Nest) -> Option<Expr> {
        let mut map = IndexMap::new(self.nest.indices.len());
        for free in &self.nest.free {
            // Those that no axis has run over one value.
            map.put(*free, Affine::constant(self.nest.indices[*free].lo));
        }
        for (axis, position) in self.store.positions.iter().zip(positions) {
            let (Position::Affine(axis), Position::Affine(affine)) = (axis, position) else { return None };
            if let Some(index) = axis.alone() {
                map.put(index, affine.clone());
            }
        }
        add_indices(&mut map, self.nest, reader);
        let mut value = self.value.clone();
        map_expr(&mut value, &map).then(|| rounded(value, self.dtype))
    }
}

/// Gives a nest an index for each one of another that nothing stands for: those of reductions.
pub fn add_indices(map: &mut IndexMap, from: &Nest, to: &mut Nest) {
    for (own, range) in from.indices.iter().enumerate() {
        if map.get(own).is_none() {
            map.put(own, Affine::index(to.indices.len(), 0));
            to.indices.push(range.clone());
        }
    }
}

/// A value as it is read back from a buffer.
pub fn rounded(value: Expr, dtype: DType) -> Expr {
    if matches!(dtype, DType::F32 | DType::I32 | DType::U32 | DType::Bool) {
        return value;
    }
    Expr::new(ExprKind::Cast(dtype, value), Ty::of(dtype))
}

/// Puts the value of the nest at `at` in place of what reads it. Gives its target if nothing reads it any more.
fn try_inline(loops: &mut Loops, at: usize, always: bool, small_work: u64) -> Result<Option<BufferIndex>, Kept> {
    let maker = Maker::of(loops, at)?;
    let target = maker.store.target;
    let readers = loops.nests[at + 1..].iter().filter(|nest| nest.reads(target)).count();
    let elements = points(&maker.nest.indices, &maker.nest.free);
    let (price, _) = cost(maker.value, &maker.nest.indices, ACCESS);
    let mut changed: Vec<(usize, Nest, bool)> = Vec::new();
    let mut why = "";
    let ends_reduction = ends_reduction(loops, at, &maker);
    let mut may_move = true;
    for (reader, nest) in loops.nests.iter().enumerate().skip(at + 1) {
        if nest.reads(target) {
            let times = evaluations(nest, target);
            let is_once = times <= elements;
            let folds = nest.has_fold();
            let is_cheap = price <= CHEAP
                || !folds && price <= BROADCAST
                || is_once && (price <= MODERATE || readers == 1)
                || program::times(times, price) <= small_work;
            let is_worth = always || is_cheap && !(folds && ends_reduction);
            if !is_worth && is_cheap {
                why = "it is the end of a reduction";
            } else if !is_worth {
                why = "computing it costs more than reading it";
            } else if !may_move {
                why = "what it is made of is written before it is read";
            } else if let Some(inlined) = inlined(nest, &maker) {
                changed.push((reader, inlined, is_once && folds && price <= BROADCAST));
            } else {
                why = "it is gathered, padded, or read where its node is written";
            }
        }
        may_move &= !nest.stores().any(|store| maker.nest.reads(store.target));
    }
    let is_gone = changed.len() == readers;
    for (reader, nest, is_worth_alone) in changed {
        // A reduction over what the temporary is made of does not wait for it, if that is not dear; all else reads what is
        // there.
        if is_gone || is_worth_alone {
            loops.nests[reader] = nest;
        }
    }
    if is_gone { Ok(Some(target)) } else { Err((Some(target), why)) }
}

/// Whether a maker is all that reads a reduction, at its points: it becomes the reduction's last stage, and then what comes
/// after it reads one element instead of two or more.
fn ends_reduction(loops: &Loops, at: usize, maker: &Maker<'_>) -> bool {
    let is_made_here = |made: &Store| {
        let is_read = |load: &Load| load.node == made.target && load.positions == maker.store.positions;
        let readers = loops.nests.iter().filter(|nest| nest.reads(made.target)).count();
        loops.buffers[made.target].kind == BufferKind::Temporary
            && readers == 1
            && maker.nest.loads(&mut |load| is_read(load))
    };
    loops.nests[..at].iter().any(|nest| nest.has_fold() && nest.stores().any(is_made_here))
}

/// The reader with the value in place of each load.
fn inlined(reader: &Nest, maker: &Maker<'_>) -> Option<Nest> {
    let mut nest = reader.clone();
    let mut is_done = true;
    let mut stages = std::mem::take(&mut nest.stages);
    for stage in &mut stages {
        stage.each_part(&mut |part| {
            let ExprKind::Load(load) = &part.kind else { return };
            if load.node != maker.store.target {
                return;
            }
            let value = if load.pad.is_none() { maker.at(&load.positions, &mut nest) } else { None };
            match value {
                Some(value) => *part = value,
                None => is_done = false,
            }
        });
    }
    nest.stages = stages;
    (is_done && is_fine(&nest)).then_some(nest)
}

/// How many elements of a buffer a nest reads, each place where it stands once: what is read twice is computed once.
fn evaluations(nest: &Nest, buffer: BufferIndex) -> u64 {
    type Seen<'e> = Vec<(&'e [Position], u64)>;
    fn within<'e>(expr: &'e Expr, times: u64, nest: &Nest, buffer: BufferIndex, seen: &mut Seen<'e>) {
        let times = match &expr.kind {
            ExprKind::Reduce { indices, .. } => program::times(times, points(&nest.indices, indices)),
            ExprKind::Load(Load { node, positions, .. }) if *node == buffer => {
                if !seen.contains(&(positions, times)) {
                    seen.push((positions, times));
                }
                times
            }
            _ => times,
        };
        each_child(expr, &mut |child| within(child, times, nest, buffer, seen));
    }
    let (mut seen, free) = (Seen::new(), points(&nest.indices, &nest.free));
    for stage in &nest.stages {
        let over = stage.fold.as_ref().map_or(1, |fold| points(&nest.indices, &fold.over));
        stage.each_expr(&mut |expr| {
            let over = if std::ptr::eq(expr, &stage.value) { over } else { 1 };
            within(expr, program::times(free, over), nest, buffer, &mut seen);
        });
    }
    seen.iter().fold(0, |sum, (_, times)| sum.saturating_add(*times))
}
