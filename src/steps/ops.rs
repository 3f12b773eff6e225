//! The operations that steps are made of. Whatever the types, operands and results are 32 bits; operations that do the same
//! to the bits are one.

use crate::node::parts;
use crate::notation::ast::{Accumulate, BinaryOp};
use crate::notation::program::Ty;

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident $wgsl:literal,)*) => {
        /// An operation. What is not said otherwise has no effect but its value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Op { $($(#[$doc])* $name,)* }

        impl Op {
            pub(crate) const fn is_constant(self) -> bool {
                matches!(self, Op::Word | Op::Int | Op::Float | Op::Truth)
            }

            /// In WGSL: `$0` and so on are the operands; see [`crate::wgsl::emit`] for the rest.
            pub(crate) fn wgsl(self) -> &'static str {
                // One text, since each of many would cost the web build an address.
                const ALL: &str = concat!($($wgsl, "\n",)*);
                parts(ALL, b"\n").nth(self as usize).unwrap_or_default()
            }
        }
    };
}

ops! {
    /// A constant: the number is its bits.
    Word "",
    Int "",
    Float "",
    Truth "",
    /// What counts an index, of that number, from 0.
    Counter "",
    /// A variable, with what it starts from.
    Var "var $4 = $0;",
    /// Sets a variable.
    Assign "$0 = $1;",
    /// Stores into the target: the offset, the value.
    Store "store_t#($0, $1);",
    /// Four elements in a row, from an offset that is a multiple of 4. In kernels only.
    StoreQuad "store4_t#($0, $1);",
    /// The same, accumulated atomically, where the third operand is true.
    AtomicAdd "atomic_add_t#($0, $1);",
    AtomicMul "atomic_mul_t#($0, $1);",
    AtomicMax "atomic_max_t#($0, $1);",
    AtomicMin "atomic_min_t#($0, $1);",
    /// A loop over a counter, so many times.
    Open "for (var $0 = 0u; $0 < #u; $0++) {",
    Close "}",
    /// A text of that number: an operand, a line, the head of a block. In kernels only.
    Text "",
    Line "@",
    Head "@ {",

    /// Static of that number, with what is always 0: Mesa (llvmpipe) follows a condition that depends on uniforms alone
    /// along every path that there is to them, of which a random number has more than it ever ends with.
    Static "static_s#() + i32(group.x >> 31u)",
    /// The element of the tensor of that number at an offset.
    Load "load_t#($0)",
    /// Four elements in a row, from an offset that is a multiple of 4; one of four values; four values. In kernels only.
    LoadQuad "load4_t#($0)",
    Part "$0[#]",
    Quad "vec4($0, $1, $2, $3)",
    /// What lies at a place in the workgroup's memory of that number. The place must change in the loop that it is read in, so
    /// that the value is not taken from before a barrier. In kernels only.
    Staged "lab_staged#[$0]",
    /// Of a u32, by the number. In kernels only.
    Digit "$0 % #u",
    Quotient "$0 / #u",

    /// From here on, what depends on the operands alone.
    AddF "$0 + $1",
    SubF "$0 - $1",
    MulF "$0 * $1",
    DivF "$0 / $1",
    RemF "lab_fmod($0, $1)",
    PowF "lab_pow($0, $1)",
    MinF "lab_min($0, $1)",
    MaxF "lab_max($0, $1)",
    LtF "$0 < $1",
    LeF "$0 <= $1",
    EqF "$0 == $1",
    NegF "-$0",
    Add "$0 + $1",
    Sub "$0 - $1",
    Mul "$0 * $1",
    MulHigh "lab_mul_high($0, $1)",
    DivI "lab_div_i($0, $1)",
    DivU "lab_div_u($0, $1)",
    RemI "lab_rem_i($0, $1)",
    RemU "lab_rem_u($0, $1)",
    PowI "lab_pow_i($0, $1)",
    PowU "lab_pow_u($0, $1)",
    /// With an exponent that may be negative.
    PowUI "lab_pow_ui($0, $1)",
    MinI "min($0, $1)",
    MinU "min($0, $1)",
    MaxI "max($0, $1)",
    MaxU "max($0, $1)",
    LtI "$0 < $1",
    LtU "$0 < $1",
    LeI "$0 <= $1",
    LeU "$0 <= $1",
    Eq "$0 == $1",
    And "$0 & $1",
    Xor "$0 ^ $1",
    Or "$0 | $1",
    Shl "$0 << $1",
    ShrI "$0 >> $1",
    ShrU "$0 >> $1",
    IsNan "lab_isnan($0)",
    Both "$0 & $1",
    Either "$0 | $1",
    Not "!$0",
    /// The second operand where the first is true, else the third.
    Select "select($2, $1, $0)",
    AsF "bitcast<f32>($0)",
    AsI "bitcast<i32>($0)",
    AsU "bitcast<u32>($0)",
    FToI "lab_f_to_i($0)",
    FToU "lab_f_to_u($0)",
    IToF "lab_i_to_f($0)",
    UToF "lab_u_to_f($0)",
    /// Rounded to f16, as f32.
    F16 "lab_f16($0)",
    BF16 "lab_bf16($0)",
    /// The function of that number in the order of the reference.
    Call "&",
}

/// What an operator does to operands of a type. Those that are not here are made of others.
pub(super) fn binary(op: BinaryOp, ty: Ty) -> Op {
    use Op::*;
    // On f32, i32, u32 and bool, in the order of the operators.
    static ALL: [[Op; 4]; BinaryOp::ALL.len()] = [
        [PowF, PowI, PowU, Either],
        [MulF, Mul, Mul, Both],
        [DivF, DivI, DivU, Either],
        [RemF, RemI, RemU, Either],
        [AddF, Add, Add, Either],
        [SubF, Sub, Sub, Xor],
        [Shl; 4],
        [ShrI, ShrI, ShrU, ShrU],
        [And; 4],
        [Xor; 4],
        [Or; 4],
        [LtF, LtI, LtU, LtU],
        [LeF, LeI, LeU, LeU],
        [LtF, LtI, LtU, LtU],
        [LeF, LeI, LeU, LeU],
        [EqF, Eq, Eq, Eq],
        [EqF, Eq, Eq, Eq],
        [Both; 4],
        [Either; 4],
    ];
    ALL[op as usize][ty as usize]
}

/// `a op b` of an accumulation.
pub(crate) fn accumulation(op: Accumulate, ty: Ty) -> Op {
    use Op::*;
    static ALL: [[Op; 4]; 4] =
        [[AddF, Add, Add, Either], [MulF, Mul, Mul, Both], [MaxF, MaxI, MaxU, Either], [MinF, MinI, MinU, Both]];
    ALL[op as usize][ty as usize]
}
