//! A loop nest as a raw kernel: one `@compute` function over the points of its free indices.
//!
//! Tensors are `t0`, `t1` and so on in the order of their first use, the target first, so that nests that differ in buffer
//! numbers only are one text, and one pipeline. The text is made of what is defined on every driver; constants that a
//! front end would compute with, and refuse, are values.

mod block;
mod expr;
mod position;
mod reduce;
#[cfg(test)]
mod tests;

use crate::driver::limits::DeviceLimits;
use crate::loops::ir::{BufferIndex, Loops, Nest, Store};
use crate::notation::ast::Accumulate;
use crate::notation::program::{IndexId, StaticIndex};
use crate::schedule::{Schedule, choose, extent, iterations};
use crate::wgsl::emit::block::{Block, Operand};
use crate::wgsl::emit::reduce::{neutral, wgsl_type};
use crate::wgsl::math;
use crate::wgsl::spec::Access;

/// What bounds a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmitLimits {
    /// Workgroups of a grid, per dimension; at least 1.
    pub workgroups_per_dimension: u32,
}

impl EmitLimits {
    /// Those of a device.
    pub fn of(limits: &DeviceLimits) -> Self {
        Self { workgroups_per_dimension: limits.workgroups_per_dimension }
    }
}

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
}

/// Invocations of a workgroup: a power of two that every device has, and few enough for small nests.
const WORKGROUP: u64 = 64;

/// The kernel of a nest.
pub fn emit(loops: &Loops, nest: &Nest, limits: &EmitLimits) -> Emitted {
    let mut emitter = Emitter {
        loops,
        nest,
        block: Block::new(),
        tensors: Vec::new(),
        statics: Vec::new(),
        counters: vec![None; nest.indices.len()],
    };
    emitter.tensor(nest.target, true);
    let schedule = choose(nest);
    let (globals, grid) = match schedule {
        Schedule::PerPoint => (String::new(), emitter.per_point(limits)),
        Schedule::PerWorkgroup => emitter.per_workgroup(limits),
    };
    let mut text = format!(
        "{globals}@compute @workgroup_size({WORKGROUP})\nfn main(@builtin(workgroup_id) group: vec3<u32>, \
         @builtin(local_invocation_index) lane: u32) {{\n{}}}\n",
        emitter.block.finish()
    );
    let library = math::used_by(&text);
    text.push_str(&library);
    Emitted { text, tensors: emitter.tensors, statics: emitter.statics, grid }
}

struct Emitter<'a> {
    loops: &'a Loops,
    nest: &'a Nest,
    block: Block,
    tensors: Vec<(BufferIndex, Access)>,
    statics: Vec<StaticIndex>,
    /// Per index that is bound, a u32 that counts its values from 0.
    counters: Vec<Option<Operand>>,
}

impl Emitter<'_> {
    /// The number of a buffer's tensor.
    fn tensor(&mut self, buffer: BufferIndex, is_target: bool) -> usize {
        let access = match self.nest.store {
            _ if !is_target => Access::Read,
            Store::Atomic(_) => Access::Atomic,
            Store::Set | Store::Fresh(..) | Store::Onto(_) => Access::Write,
        };
        let known = self.tensors.iter().position(|(known, _)| *known == buffer);
        let Some(at) = known else {
            self.tensors.push((buffer, access));
            return self.tensors.len() - 1;
        };
        if let (Access::Write, Access::Read) = (self.tensors[at].1, access) {
            self.tensors[at].1 = Access::ReadWrite;
        }
        at
    }

    /// What counts the values of an index from 0, and the first value.
    fn counter(&mut self, index: IndexId) -> (Operand, i64) {
        let counter = self.counters[index].clone();
        (counter.unwrap_or_else(|| Operand::literal("0u".to_owned())), self.nest.indices[index].lo)
    }

    fn index_depth(&self, index: IndexId) -> usize {
        self.counters[index].as_ref().map_or(0, |counter| counter.depth)
    }

    /// Opens a loop for each index.
    fn open_loops(&mut self, indices: &[IndexId]) {
        for index in indices {
            self.block.open();
            let text = self.block.name('n');
            self.counters[*index] = Some(Operand { text, depth: self.block.depth(), is_literal: false });
        }
    }

    fn close_loops(&mut self, indices: &[IndexId]) {
        for index in indices.iter().rev() {
            let counter = self.counters[*index].take().map(|counter| counter.text).unwrap_or_default();
            let count = extent(&self.nest.indices[*index]);
            self.block.close(&format!("for (var {counter} = 0u; {counter} < {count}u; {counter}++)"));
        }
    }

    /// Takes a number apart into the values of indices, the last one the fastest.
    fn decode(&mut self, number: &str, indices: &[IndexId]) {
        let depth = self.block.depth();
        let mut rest = number.to_owned();
        for (left, index) in indices.iter().enumerate().rev() {
            let count = extent(&self.nest.indices[*index]).max(1);
            let counter = if count == 1 {
                Operand::literal("0u".to_owned())
            } else if left == 0 {
                Operand { text: rest.clone(), depth, is_literal: false }
            } else {
                let digit = self.block.value(depth, format!("{rest} % {count}u"));
                rest = self.block.value(depth, format!("{rest} / {count}u")).text;
                digit
            };
            self.counters[*index] = Some(counter);
        }
    }

    /// Names the workgroup, in a grid that is folded where one dimension does not hold so many; those that are over leave.
    fn workgroup(&mut self, groups: u64, limits: &EmitLimits) -> [u32; 3] {
        let most = u64::from(limits.workgroups_per_dimension.max(1));
        let z = groups.div_ceil(most * most).max(1);
        let y = groups.div_ceil(z).div_ceil(most).max(1);
        let x = groups.div_ceil(z).div_ceil(y);
        if z > 1 {
            self.block.line(&format!("let number = (group.z * {y}u + group.y) * {x}u + group.x;"));
        } else if y > 1 {
            self.block.line(&format!("let number = group.y * {x}u + group.x;"));
        } else {
            self.block.line("let number = group.x;");
        }
        if x * y * z > groups {
            self.block.line(&format!("if (number >= {groups}u) {{ return; }}"));
        }
        [x as u32, y as u32, z as u32]
    }

    fn per_point(&mut self, limits: &EmitLimits) -> [u32; 3] {
        let nest = self.nest;
        // Points that a u32 does not count are left to their invocation.
        let mut outer = 0;
        while iterations(&nest.indices, &nest.free[outer..]) > u64::from(u32::MAX) {
            outer += 1;
        }
        let (looped, spread) = nest.free.split_at(outer);
        let points = iterations(&nest.indices, spread);
        let grid = self.workgroup(points.div_ceil(WORKGROUP), limits);
        self.block.line(&format!("let point = number * {WORKGROUP}u + lane;"));
        if !points.is_multiple_of(WORKGROUP) {
            self.block.line(&format!("if (point >= {points}u) {{ return; }}"));
        }
        self.decode("point", spread);
        self.open_loops(looped);
        self.point();
        self.close_loops(looped);
        grid
    }

    /// One point: computes its value and stores it.
    fn point(&mut self) {
        let nest = self.nest;
        if let Store::Atomic(op) = nest.store {
            self.atomic(op);
            return;
        }
        let (offset, _) = self.place(nest.target, &nest.positions, false, false);
        let value = match nest.store {
            Store::Fresh(op, start) => {
                let start = self.constant(start);
                self.accumulate(op, nest.value.ty, start, &nest.reduced, &nest.value)
            }
            Store::Onto(op) => {
                let start = self.target_element(&offset, offset.depth);
                self.accumulate(op, nest.value.ty, start, &nest.reduced, &nest.value)
            }
            Store::Set | Store::Atomic(_) => self.expr(&nest.value),
        };
        self.block.line(&format!("store_t0({}, {});", offset.text, value.text));
    }

    fn target_element(&mut self, offset: &Operand, depth: usize) -> Operand {
        self.tensor(self.nest.target, false);
        self.block.value(depth, format!("load_t0({})", offset.text))
    }

    fn atomic(&mut self, op: Accumulate) {
        let nest = self.nest;
        let (offset, inside) = self.place(nest.target, &nest.positions, false, false);
        let value = self.expr(&nest.value);
        let verb = match op {
            Accumulate::Add => "add",
            Accumulate::Mul => "mul",
            Accumulate::Max => "max",
            Accumulate::Min => "min",
        };
        let call = format!("atomic_{verb}_t0({}, {});", offset.text, value.text);
        match inside {
            Some(inside) => self.block.line(&format!("if ({}) {{ {call} }}", inside.text)),
            None => self.block.line(&call),
        }
    }

    /// A workgroup for each point: its invocations take turns over the reduced indices. The module's variables, the grid.
    fn per_workgroup(&mut self, limits: &EmitLimits) -> (String, [u32; 3]) {
        let nest = self.nest;
        let ty = nest.value.ty;
        let (op, start) = match nest.store {
            Store::Fresh(op, start) => (op, Some(start)),
            Store::Onto(op) | Store::Atomic(op) => (op, None),
            Store::Set => (Accumulate::Add, None),
        };
        let grid = self.workgroup(iterations(&nest.indices, &nest.free), limits);
        self.decode("number", &nest.free);
        let sum = self.block.name('a');
        let start_of_all = self.constant(neutral(ty, op));
        self.block.line(&format!("var {sum} = {};", start_of_all.text));
        self.block.open();
        let turn = self.block.name('n');
        self.decode(&turn, &nest.reduced);
        let value = self.expr(&nest.value);
        let depth = self.block.depth();
        let named = |text: &str, depth: usize| Operand { text: text.to_owned(), depth, is_literal: false };
        let next = self.combine(op, ty, named(&sum, depth), value);
        self.block.line(&format!("{sum} = {};", next.text));
        let count = iterations(&nest.indices, &nest.reduced);
        self.block.close(&format!("for (var {turn} = lane; {turn} < {count}u; {turn} += {WORKGROUP}u)"));
        self.block.line(&format!("lab_lanes[lane] = {sum};"));
        self.block.open();
        self.block.line("workgroupBarrier();");
        self.block.open();
        let next = self.combine(op, ty, named("lab_lanes[lane]", 2), named("lab_lanes[lane + half]", 2));
        self.block.line(&format!("lab_lanes[lane] = {};", next.text));
        self.block.close("if (lane < half)");
        self.block.close(&format!("for (var half = {}u; half > 0u; half >>= 1u)", WORKGROUP / 2));
        let (offset, _) = self.place(nest.target, &nest.positions, false, false);
        self.block.open();
        let start = match start {
            Some(start) => self.constant(start),
            None => self.target_element(&offset, 1),
        };
        let value = self.combine(op, ty, start, named("lab_lanes[0]", 1));
        self.block.line(&format!("store_t0({}, {});", offset.text, value.text));
        self.block.close("if (lane == 0u)");
        let globals = format!("var<workgroup> lab_lanes: array<{}, {WORKGROUP}>;\n\n", wgsl_type(ty));
        (globals, grid)
    }
}
