//! Nests over the same points as the stages of one nest.
//!
//! A later nest that reads an earlier one's elements at its own points gets them as they are computed: what follows a
//! reduction is done where it ends, and a reduction that wants the result of another comes behind it. Elementwise nests over
//! the same points that have nothing to do with each other are done together.

use crate::loops::ir::{BufferIndex, BufferKind, Loops, Nest, Stage};
use crate::loops::optimise::inline::{add_indices, rounded};
use crate::loops::optimise::rows::{self, Rows};
use crate::loops::optimise::{is_fine, is_whole, may_pass};
use crate::loops::rewrite::{IndexMap, each_child, map_affines, map_indices, map_part};
use crate::notation::program::{Affine, Expr, ExprKind, Load, LoopIndex, Position, Term, points, product};

/// Stages of a nest, at most.
const MOST_STAGES: usize = 16;

/// Merges as many nests as may be: over the same points, or elementwise ones into those that accumulated their rows.
pub fn merge(loops: &mut Loops, rows: Option<Rows>) {
    let mut later = 1;
    while later < loops.nests.len() {
        let merged = (0..later).rev().find_map(|earlier| Some((earlier, merged(loops, earlier, later, rows)?)));
        let Some((earlier, (nest, at))) = merged else {
            later += 1;
            continue;
        };
        for store in loops.nests[earlier].stores() {
            if !nest.writes(store.target) {
                loops.buffers[store.target].note = "handed on within a kernel";
            }
        }
        loops.nests[at] = nest;
        loops.nests.remove(earlier + later - at);
        // It may merge with what is before it now, and with what is behind it.
        later = if at == later { later - 1 } else { at }.max(1);
    }
}

/// Two nests as one, and which of their places it takes.
fn merged(loops: &Loops, earlier: usize, later: usize, rows: Option<Rows>) -> Option<(Nest, usize)> {
    let (first, second) = (&loops.nests[earlier], &loops.nests[later]);
    if first.stages.len() + second.stages.len() > MOST_STAGES || first.is_atomic() || second.is_atomic() {
        return None;
    }
    let (mut map, is_paired) = match (read_by(first, second), rows) {
        (Some(read), _) => behind(loops, first, second, read, rows.is_some())?,
        (None, None) => (beside(first, second)?, true),
        _ => return None,
    };
    let between = &loops.nests[earlier + 1..later];
    let at = if may_pass(first, between) {
        later
    } else if may_pass(second, between) {
        earlier
    } else {
        return None;
    };
    let mut nest = Nest {
        name: second.name.clone(),
        indices: second.indices.clone(),
        free: second.free.clone(),
        stages: Vec::new(),
    };
    add_indices(&mut map, first, &mut nest);
    for stage in &first.stages {
        nest.stages.push(moved(stage, &map)?);
    }
    for stage in &second.stages {
        let stage = behind_stages(stage, &nest.stages[..first.stages.len()], loops, first.stages.len())?;
        nest.stages.push(stage);
    }
    let is_kept = drop_stores(loops, &mut nest, first.stages.len(), (earlier, later), is_paired);
    if is_kept {
        if !is_paired {
            return None;
        }
        nest.name = format!("{}+{}", first.name, second.name);
    }
    match rows {
        Some(rows) => rows::spread(&mut nest, loops, &map, rows)?,
        None if is_fine(&nest) => {}
        None => return None,
    }
    Some((nest, at))
}

/// Drops what the first stages store for nobody; whether anything is left of it.
fn drop_stores(loops: &Loops, nest: &mut Nest, first: usize, merged: (usize, usize), is_paired: bool) -> bool {
    let others = || loops.nests.iter().enumerate().filter(|(at, _)| *at != merged.0 && *at != merged.1);
    let is_read = |target: BufferIndex, nest: &Nest| {
        loops.buffers[target].kind != BufferKind::Temporary
            || nest.reads(target)
            || others().any(|(_, other)| other.reads(target))
    };
    let mut is_kept = false;
    for at in 0..first {
        let Some(store) = &nest.stages[at].store else { continue };
        let is_overwritten = is_paired && nest.stages[first..].iter().any(|stage| stage.store.as_ref() == Some(store));
        if is_overwritten || !is_read(store.target, nest) {
            nest.stages[at].store = None;
        } else {
            is_kept = true;
        }
    }
    is_kept
}

/// The first element of what one nest stores that another reads.
fn read_by<'n>(first: &Nest, second: &'n Nest) -> Option<&'n Load> {
    let mut found = None;
    for stage in &second.stages {
        stage.each_expr(&mut |expr| find_read(first, expr, &mut found));
    }
    found
}

fn find_read<'e>(by: &Nest, expr: &'e Expr, found: &mut Option<&'e Load>) {
    if let ExprKind::Load(load) = &expr.kind
        && found.is_none()
        && by.writes(load.node)
    {
        *found = Some(load);
    }
    each_child(expr, &mut |child| find_read(by, child, found));
}

/// The points of the first nest as those of the second, which reads an element of what the first stores; and whether each
/// point has one in the other nest. The points may be rows of the second one, if that is elementwise, and only those if asked.
fn behind(loops: &Loops, first: &Nest, second: &Nest, read: &Load, are_rows: bool) -> Option<(IndexMap, bool)> {
    let mut stores = first.stores().filter(|store| store.target == read.node);
    let (Some(store), None) = (stores.next(), stores.next()) else { return None };
    let mut map = IndexMap::new(first.indices.len());
    for free in &first.free {
        let range = &first.indices[*free];
        if range.count() == 1 {
            map.put(*free, Affine::constant(range.lo));
        }
    }
    for (own, other) in store.positions.iter().zip(&read.positions) {
        let (Position::Affine(own), Position::Affine(other)) = (own, other) else { return None };
        if let [(Term::Index(free), 1)] = own.terms[..] {
            let mut moved = other.clone();
            moved.constant = moved.constant.checked_sub(own.constant)?;
            map.put(free, moved);
        }
    }
    let mut stored = store.positions.clone();
    if first.free.iter().any(|free| map.get(*free).is_none())
        || !map_affines(&mut stored, &map)
        || stored != read.positions
    {
        return None;
    }
    let mut taken = Vec::new();
    let mut is_paired = true;
    for free in &first.free {
        let range = &first.indices[*free];
        let Affine { constant, terms } = map.get(*free)?;
        is_paired &= match terms[..] {
            [] => range.count() == 1 && *constant == range.lo,
            [(Term::Index(index), 1)] => {
                let other = &second.indices[index];
                let is_new = !taken.contains(&index);
                taken.push(index);
                is_new
                    && second.free.contains(&index)
                    && (other.lo + constant, other.hi + constant) == (range.lo, range.hi)
            }
            _ => false,
        };
    }
    if are_rows {
        return (is_paired && second.stages.len() == 1 && !second.has_fold()).then_some((map, true));
    }
    is_paired &= second.free.iter().all(|index| taken.contains(index) || second.indices[*index].count() == 1);
    if is_paired {
        return Some((map, true));
    }
    // Else it is done for the points of the second nest, which must be no more, and all of which there must be; and only
    // its own points are known to them.
    let is_known = |(term, _): &(Term, i64)| match term {
        Term::Index(index) => second.free.contains(index),
        Term::Static(_) => true,
    };
    let is_subset = is_whole(loops, first, store)
        && map.all().all(|affine| affine.terms.iter().all(is_known))
        && points(&second.indices, &second.free) <= points(&first.indices, &first.free);
    is_subset.then_some((map, false))
}

/// The points of an elementwise nest as those of another one with the same ranges.
fn beside(first: &Nest, second: &Nest) -> Option<IndexMap> {
    if first.has_fold() || second.has_fold() || first.free.len() != second.free.len() {
        return None;
    }
    let mut map = IndexMap::new(first.indices.len());
    for (own, other) in first.free.iter().zip(&second.free) {
        let (one, two) = (&first.indices[*own], &second.indices[*other]);
        if (one.lo, one.hi) != (two.lo, two.hi) {
            return None;
        }
        map.put(*own, Affine::index(*other, 0));
    }
    Some(map)
}

/// A stage of the first nest at the points of the second.
pub fn moved(stage: &Stage, map: &IndexMap) -> Option<Stage> {
    let mut stage = stage.clone();
    let mut is_moved = true;
    stage.each_part(&mut |part| is_moved &= map_part(part, map));
    if let Some(fold) = &mut stage.fold {
        is_moved &= map_indices(&mut fold.over, map);
    }
    if let Some(store) = &mut stage.store {
        is_moved &= map_affines(&mut store.positions, map);
    }
    is_moved.then_some(stage)
}

/// A stage of the second nest behind the stages of the first, with what those compute in place of what they store.
fn behind_stages(stage: &Stage, before: &[Stage], loops: &Loops, by: usize) -> Option<Stage> {
    let mut stage = stage.clone();
    let mut is_done = true;
    stage.each_part(&mut |part| match &mut part.kind {
        ExprKind::Stage(number) => *number += by,
        ExprKind::Load(load) => {
            let (mut is_stored, mut found) = (false, None);
            for (at, stage) in before.iter().enumerate() {
                let Some(store) = stage.store.as_ref().filter(|store| store.target == load.node) else { continue };
                is_stored = true;
                if found.is_none() && store.positions == load.positions && load.pad.is_none() && !stage.is_each() {
                    found = Some(at);
                }
            }
            match found {
                Some(at) => {
                    let dtype = loops.buffers[load.node].dtype;
                    *part = rounded(Expr::new(ExprKind::Stage(at), part.ty), dtype);
                }
                None => is_done &= !is_stored,
            }
        }
        _ => {}
    });
    is_done.then_some(stage)
}

/// Whether two accesses of one buffer never meet, at whatever two points.
pub fn are_apart(one: &[Position], other: &[Position], indices: &[LoopIndex]) -> bool {
    one.iter().zip(other).any(|pair| match pair {
        (Position::Affine(one), Position::Affine(other)) => {
            let (one, other) = (Reach::of(one, indices), Reach::of(other, indices));
            one.is_apart(&other).unwrap_or(false)
        }
        _ => false,
    })
}

/// What an affine expression runs over, statics aside.
struct Reach {
    statics: Vec<(Term, i64)>,
    least: i64,
    most: i64,
    /// The greatest common divisor of its steps; 0 where it does not move.
    step: i64,
    is_known: bool,
}

impl Reach {
    fn of(affine: &Affine, indices: &[LoopIndex]) -> Self {
        let mut reach =
            Self { statics: Vec::new(), least: affine.constant, most: affine.constant, step: 0, is_known: true };
        for &(term, factor) in &affine.terms {
            let Term::Index(index) = term else {
                reach.statics.push((term, factor));
                continue;
            };
            let LoopIndex { lo, hi, .. } = indices[index];
            reach.is_known &= reach.extend(product(factor, lo), product(factor, hi - 1)).is_some();
            if hi - lo > 1 {
                reach.step = divisor(reach.step, factor);
            }
        }
        reach
    }

    fn extend(&mut self, one: Option<i64>, other: Option<i64>) -> Option<()> {
        let (one, other) = (one?, other?);
        self.least = self.least.checked_add(one.min(other))?;
        self.most = self.most.checked_add(one.max(other))?;
        Some(())
    }

    fn is_apart(&self, other: &Self) -> Option<bool> {
        if !self.is_known || !other.is_known || self.statics != other.statics {
            return None;
        }
        if self.most < other.least || other.most < self.least {
            return Some(true);
        }
        let step = divisor(self.step, other.step);
        Some(step != 0 && self.least.checked_sub(other.least)? % step != 0)
    }
}

fn divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
