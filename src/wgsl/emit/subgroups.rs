//! What the lanes of a workgroup have, put together by its subgroups: one barrier instead of one for each halving.
//!
//! Nothing is taken for granted of how many lanes a subgroup has, which ones, and whether all of them run: the operations of the
//! language go over those that do, the first of them says what they come to, and subgroups count themselves.

use crate::steps::block::Reg;
use crate::steps::ops::Op;
use crate::wgsl::emit::Emitter;

/// What stands in front of a kernel with subgroups, and its parameters beyond those of others.
pub(super) const HEAD: (&str, &str) =
    ("enable subgroups;\n\n", ", @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32");

/// Says which lane speaks for its subgroup.
pub(super) const FIRST: &str = "let is_first = lane == subgroupBroadcastFirst(lane);";

impl Emitter<'_> {
    /// Puts together what all lanes have, and a start; every lane gets the result, and the same.
    pub(super) fn grouped(&mut self, combine: Op, start: Reg, sum: Reg, stage: u64) -> Reg {
        let together = match combine {
            Op::AddF | Op::Add => "$0 = subgroupAdd($0);",
            Op::MulF | Op::Mul => "$0 = subgroupMul($0);",
            Op::MaxF => "$0 = lab_subgroup_max($0);",
            Op::MinF => "$0 = lab_subgroup_min($0);",
            Op::MaxI | Op::MaxU => "$0 = subgroupMax($0);",
            Op::MinI | Op::MinU => "$0 = subgroupMin($0);",
            Op::Both => "$0 = subgroupAll($0);",
            _ => "$0 = subgroupAny($0);",
        };
        let sum = self.lowering.block.effect(Op::Var, 0, &[sum]);
        let together = self.add(together, 0);
        self.lowering.block.effect(Op::Line, together, &[sum]);
        self.lowering.block.open();
        let own = self.text("lab_lanes#[subgroup]", stage);
        self.lowering.block.effect(Op::Assign, 0, &[own, sum]);
        self.close("if (is_first)", 0, &[]);
        self.line("workgroupBarrier();", 0);
        let all = self.lowering.block.apart(Op::Var, 0, &[start]);
        self.lowering.block.open();
        self.lowering.block.set_depth(all, 1);
        let one = self.text("lab_lanes#[at]", stage);
        let next = self.lowering.block.value(combine, 0, &[all, one]);
        self.lowering.block.effect(Op::Assign, 0, &[all, next]);
        self.close("for (var at = 0u; at < subgroups; at++)", 0, &[all]);
        all
    }
}
