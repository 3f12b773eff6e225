//! A loop nest as a raw kernel: one `@compute` function over the points of its free indices.
//!
//! Tensors are `t0`, `t1` and so on in the order of their first use, the targets first, so that nests that differ in buffer
//! numbers only are one text, and one pipeline. The text is made of what is defined on every driver; constants that a
//! front end would compute with, and refuse, have names.

mod print;
mod staged;
mod subgroups;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::loops::ir::{BufferIndex, Fold, Loops, Nest, Stage};
use crate::notation::ast::Accumulate;
use crate::notation::program::{IndexId, StaticIndex, Value};
use crate::schedule::{Schedule, Spread, iterations, online};
use crate::steps::Lowering;
use crate::steps::block::{Reg, ZERO};
use crate::steps::ops::{Op, accumulation};
use crate::steps::reduce::neutral;
use crate::wgsl::math;
use crate::wgsl::spec::Access;

/// What a kernel is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// The text. It calls `load_tN` and so on for the tensor at position N, `static_sN` for the program's static N.
    pub text: String,
    /// The tensors, each once, and what is done with them.
    pub tensors: Vec<(BufferIndex, Access)>,
    /// The statics that the text asks for.
    pub statics: Vec<StaticIndex>,
    /// Workgroups in x, y and z; with a zero where there is nothing to do.
    pub grid: [u32; 3],
    /// Whether it calls `load4_tN` or `store4_tN` too.
    pub by_fours: bool,
}

/// The head of a loop in which the invocations of a workgroup take turns.
const TURNS: &str = "for (var turn = lane; turn < #u; turn += lab_width)";

/// The kernel of a nest, for a grid of at most so many workgroups (at least 1) per dimension.
pub fn emit(loops: &Loops, nest: &Nest, schedule: &Schedule, most_workgroups: u32) -> Emitted {
    let lanes = schedule.lanes;
    let mut emitter = Emitter {
        lowering: Lowering::new(loops, nest),
        texts: Vec::new(),
        lanes: lanes.into(),
        turns: schedule.turns,
        subgroups: schedule.subgroups,
        most_workgroups,
    };
    emitter.lowering.fours = schedule.by_fours.then(Vec::new);
    emitter.lowering.online = online(nest).filter(|_| schedule.is_online);
    let (globals, grid) = match &schedule.spread {
        Spread::PerPoint => (String::new(), emitter.per_point(&[])),
        Spread::Tiled(tile) => (String::new(), emitter.per_point(tile)),
        Spread::PerWorkgroup => emitter.per_workgroup(),
        Spread::Staged { tile, turns } => emitter.staged(tile, *turns),
    };
    let Emitter { lowering, texts, .. } = emitter;
    let steps = lowering.block.finish();
    let (mut statics, mut loaded, mut by_fours) = (Vec::new(), vec![false; lowering.tensors.len()], false);
    for step in &steps.steps {
        let number = step.number as usize;
        match step.op {
            Op::Static => statics.push(number),
            Op::Load => loaded[number] = true,
            Op::LoadQuad => (loaded[number], by_fours) = (true, true),
            Op::StoreQuad => by_fours = true,
            _ => {}
        }
    }
    let mut tensors = Vec::new();
    for (buffer, is_loaded) in lowering.tensors.iter().zip(loaded) {
        let access = match nest.stores().find(|store| store.target == *buffer) {
            None => Access::Read,
            Some(store) if store.atomic.is_some() => Access::Atomic,
            Some(_) if is_loaded => Access::ReadWrite,
            Some(_) => Access::Write,
        };
        tensors.push((*buffer, access));
    }
    let (directive, parameters) = if schedule.subgroups { subgroups::HEAD } else { ("", "") };
    let mut text = format!(
        "{directive}{globals}@compute @workgroup_size({lanes})\nfn main(@builtin(workgroup_id) group: vec3<u32>, \
         @builtin(local_invocation_index) lane: u32{parameters}) {{\n{}}}\n",
        print::print(&steps, &texts)
    );
    math::link(&mut text);
    Emitted { text, tensors, statics, grid, by_fours }
}

struct Emitter<'a> {
    lowering: Lowering<'a>,
    texts: Vec<Text>,
    /// Invocations of a workgroup.
    lanes: u64,
    turns: u32,
    /// Whether subgroups put together what lanes have.
    subgroups: bool,
    most_workgroups: u32,
}

/// A text in which `#` stands for the number.
type Text = (&'static str, u32);

impl Emitter<'_> {
    fn add(&mut self, text: &'static str, number: u64) -> u32 {
        self.texts.push((text, number as u32));
        self.texts.len() as u32 - 1
    }

    /// A text as an operand that changes in all loops that are open.
    fn text(&mut self, text: &'static str, number: u64) -> Reg {
        let text = self.add(text, number);
        self.lowering.block.apart(Op::Text, text, &[])
    }

    fn line(&mut self, text: &'static str, number: u64) {
        let text = self.add(text, number);
        self.lowering.block.effect(Op::Line, text, &[]);
    }

    /// Ends the innermost block, which has that head.
    fn close(&mut self, head: &'static str, number: u64, variables: &[Reg]) {
        self.close_by(head, number, ZERO, variables);
    }

    /// The same, where the head has an operand.
    fn close_by(&mut self, head: &'static str, number: u64, operand: Reg, variables: &[Reg]) {
        let head = self.add(head, number);
        self.lowering.block.close(Op::Head, head, operand, variables, false);
    }

    /// Takes a number apart into the values of indices, the last one the fastest; of those of a tile, into their tiles.
    fn decode(&mut self, number: Reg, indices: &[IndexId], tile: &[u32]) {
        // Eight by eight tiles are neighbours, so that a workgroup loads a few rows and columns often. Without a reduction each
        // is loaded once, best in its order.
        let has_fold = self.lowering.nest.has_fold();
        let is_square = has_fold && tile.iter().filter(|length| **length > 1).count() == 2;
        self.digits(number, indices, tile, is_square);
        for (index, length) in indices.iter().zip(tile) {
            self.lowering.tile(*index, *length);
        }
    }

    /// The same, for whoever makes the tiles.
    fn digits(&mut self, number: Reg, indices: &[IndexId], tile: &[u32], is_square: bool) {
        let mut rest = number;
        for is_low in [true, false] {
            for (left, index) in indices.iter().enumerate().rev() {
                let length = tile.get(left).copied().unwrap_or(1);
                let tiles = self.lowering.nest.indices[*index].count().div_ceil(u64::from(length)).max(1) as u32;
                let block = if is_square && length > 1 { 1 << tiles.trailing_zeros().min(3) } else { 1 };
                let count = if is_low { block } else { tiles / block };
                let steps = &mut self.lowering.block;
                let digit = match count {
                    1 => ZERO,
                    _ if left == 0 && !is_low => rest,
                    _ => {
                        let digit = steps.value(Op::Digit, count, &[rest]);
                        rest = steps.value(Op::Quotient, count, &[rest]);
                        digit
                    }
                };
                let counter = &mut self.lowering.counters[*index];
                if is_low || block == 1 {
                    *counter = digit;
                } else if digit != ZERO {
                    let block = steps.value(Op::Word, block, &[]);
                    let first = steps.value(Op::Mul, 0, &[digit, block]);
                    *counter = steps.value(Op::Add, 0, &[first, *counter]);
                }
            }
        }
    }

    /// Names the workgroup, in a grid that is folded where one dimension does not hold so many; those that are over leave.
    fn workgroup(&mut self, groups: u64) -> [u32; 3] {
        let most = u64::from(self.most_workgroups.max(1));
        let z = groups.div_ceil(most * most).max(1);
        let y = groups.div_ceil(z).div_ceil(most).max(1);
        let x = groups.div_ceil(z).div_ceil(y);
        if y * z == 1 {
            self.line("let number = group.x;", 0);
        } else {
            self.line("let row = group.z * #u + group.y;", y);
            self.line("let number = row * #u + group.x;", x);
        }
        if x * y * z > groups {
            self.line("if (number >= #u) { return; }", groups);
        }
        [x as u32, y as u32, z as u32]
    }

    /// An invocation for each tile; without lengths, for each point.
    fn per_point(&mut self, tile: &[u32]) -> [u32; 3] {
        let nest = self.lowering.nest;
        // Points that a u32 does not count are left to their invocation.
        let mut outer = 0;
        while iterations(&nest.indices, &nest.free[outer..]) > u64::from(u32::MAX) {
            outer += 1;
        }
        let (looped, spread) = nest.free.split_at(outer);
        let mut points = iterations(&nest.indices, spread);
        for (index, length) in spread.iter().zip(tile) {
            let extent = nest.indices[*index].count().max(1);
            points = points / extent * extent.div_ceil(u64::from(*length));
        }
        let grid = self.workgroup(points.div_ceil(self.lanes));
        self.line("let point = number * #u + lane;", self.lanes);
        if !points.is_multiple_of(self.lanes) {
            self.line("if (point >= #u) { return; }", points);
        }
        let point = self.text("point", 0);
        self.decode(point, spread, tile);
        self.lowering.turns = self.turns;
        self.lowering.open(looped);
        self.lowering.point();
        self.lowering.close(looped, 1, &[], false);
        grid
    }

    /// A workgroup for each point: its invocations take turns over what is accumulated. The module's variables, the grid.
    fn per_workgroup(&mut self) -> (String, [u32; 3]) {
        let nest = self.lowering.nest;
        let grid = self.workgroup(iterations(&nest.indices, &nest.free));
        let number = self.text("number", 0);
        self.decode(number, &nest.free, &[]);
        if self.subgroups {
            self.line(subgroups::FIRST, 0);
        }
        let mut globals = format!("const lab_width = {}u;\n\n", self.lanes);
        let mut places = Vec::new();
        for (at, stage) in nest.stages.iter().enumerate() {
            if stage.fold.as_ref().is_some_and(|fold| fold.op.is_some()) {
                let ty = stage.value.ty.name();
                let _ = write!(globals, "var<workgroup> lab_lanes{at}: array<{ty}, lab_width>;\n\n");
            }
            if let Some(store) = stage.store_of(false) {
                places.push(self.lowering.place_of(store));
            }
            let online = self.lowering.online;
            let value = match &stage.fold {
                // With the next one.
                Some(fold) if online == Some(at) => self.lowering.expr(&fold.start),
                Some(fold) if at > 0 && online == Some(at - 1) => self.below(fold, at),
                Some(fold) => self.shared(fold, stage, at as u64),
                None => self.lowering.expr(&stage.value),
            };
            self.lowering.stages.push(value);
        }
        if nest.stores().any(|store| nest.reads(store.target)) {
            self.line("storageBarrier();", 0);
        }
        self.lowering.block.open();
        self.lowering.stores(&places);
        self.close("if (lane == 0u)", 0, &[]);
        (globals, grid)
    }

    /// Accumulates with all lanes; every lane gets the result. What is stored of each element is read by the lane that stored
    /// it, if at all.
    fn shared(&mut self, fold: &Fold, of: &Stage, stage: u64) -> Reg {
        let value = &of.value;
        let op = fold.op.unwrap_or(Accumulate::Add);
        let combine = accumulation(op, value.ty);
        let start = self.lowering.expr(&fold.start);
        let start_of_lane = match op {
            Accumulate::Add | Accumulate::Mul => self.lowering.constant(neutral(value.ty, op)),
            // The extreme of a NaN and of nothing is NaN: no number is neutral, but each lane may begin with the start.
            Accumulate::Max | Accumulate::Min => start,
        };
        let sum = self.lowering.block.apart(Op::Var, 0, &[start_of_lane]);
        self.lowering.block.open();
        self.lowering.block.set_depth(sum, 1);
        let turn = self.text("turn", 0);
        self.decode(turn, &fold.over, &[]);
        let value = self.lowering.expr(value);
        if let Some(store) = of.store_of(true) {
            let place = self.lowering.place_of(store);
            self.lowering.store(store, &[place], &[value]);
        }
        let count = iterations(&self.lowering.nest.indices, &fold.over);
        if fold.op.is_none() {
            self.close(TURNS, count, &[]);
            return ZERO;
        }
        let next = self.lowering.block.value(combine, 0, &[sum, value]);
        self.lowering.block.effect(Op::Assign, 0, &[sum, next]);
        self.close(TURNS, count, &[sum]);
        self.together(combine, start, sum, stage)
    }

    /// A maximum and the sum of the exponentials below it, of which that stage is the second: each lane has both of its share.
    fn below(&mut self, fold: &Fold, stage: usize) -> Reg {
        let nest = self.lowering.nest;
        let Stage { value, fold: Some(Fold { over, .. }), .. } = &nest.stages[stage - 1] else { return ZERO };
        let before = self.lowering.stages.pop().unwrap_or(ZERO);
        let (start, zero) = (self.lowering.expr(&fold.start), self.lowering.constant(Value::F32(0.0)));
        let greatest = self.lowering.block.apart(Op::Var, 0, &[before]);
        let sum = self.lowering.block.apart(Op::Var, 0, &[zero]);
        let state = [greatest, sum];
        self.lowering.block.open();
        self.lowering.set_inside(&state);
        let turn = self.text("turn", 0);
        self.decode(turn, over, &[]);
        let value = self.lowering.expr(value);
        let (next, below) = self.lowering.go_on((greatest, sum), &[value]);
        self.lowering.block.effect(Op::Assign, 0, &[greatest, next]);
        self.lowering.block.effect(Op::Assign, 0, &[sum, below]);
        self.close(TURNS, iterations(&nest.indices, over), &state);
        let all = self.together(Op::MaxF, before, greatest, stage as u64 - 1);
        let scale = self.lowering.below(greatest, all);
        let mine = self.lowering.two(Op::MulF, sum, scale);
        let below = self.together(Op::AddF, zero, mine, stage as u64);
        self.lowering.stages.push(all);
        self.lowering.come_to(start, (all, below))
    }

    /// What the lanes have, in a tree or by subgroups; every lane gets the result.
    fn together(&mut self, combine: Op, start: Reg, sum: Reg, stage: u64) -> Reg {
        if self.subgroups {
            return self.grouped(combine, start, sum, stage);
        }
        let mine = self.text("lab_lanes#[lane]", stage);
        self.lowering.block.effect(Op::Assign, 0, &[mine, sum]);
        self.lowering.block.open();
        self.line("workgroupBarrier();", 0);
        self.lowering.block.open();
        let (mine, other) = (self.text("lab_lanes#[lane]", stage), self.text("lab_lanes#[lane + half]", stage));
        let next = self.lowering.block.value(combine, 0, &[mine, other]);
        self.lowering.block.effect(Op::Assign, 0, &[mine, next]);
        self.close("if (lane < half)", 0, &[]);
        self.close("for (var half = #u; half > 0u; half >>= 1u)", self.lanes / 2, &[]);
        self.line("workgroupBarrier();", 0);
        let all = self.text("lab_lanes#[0]", stage);
        self.lowering.block.value(combine, 0, &[start, all])
    }
}
