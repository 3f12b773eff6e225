//! The syntax of a program: what the parser reads, the builder makes and the formatter prints. Nothing is resolved yet:
//! a name may be a node or an index, and no type is known.

use std::ops::{Deref, DerefMut};

use crate::dtype::DType;
use crate::notation::words::word_at;

/// A range of bytes of the text; empty at 0 for what a builder made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

/// Programs are equal wherever their parts stand in a text.
impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A program: declarations and statements in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ast {
    /// In the order of the text.
    pub items: Vec<Item>,
}

/// A line of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `x: f32[128, 64]`
    Declaration(Declaration),
    /// `y[i] +=! x[i, j] * 2 where j in 0:8`
    Statement(Statement),
}

/// A name where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// `x: f32[128, 64]`
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The node.
    pub name: Name,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents; none for rank 0.
    pub extents: Vec<u32>,
    /// The whole declaration.
    pub span: Span,
}

/// `target[positions] op value where ranges`
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The node that is written.
    pub target: Name,
    /// One per axis; none for rank 0.
    pub positions: Vec<Expr>,
    /// How it is written.
    pub op: AssignOp,
    /// Where the operator stands.
    pub op_span: Span,
    /// The right side.
    pub value: Expr,
    /// The `where` clause, in order.
    pub ranges: Vec<IndexRange>,
    /// The whole statement.
    pub span: Span,
}

/// `i in lo:hi`
#[derive(Clone, Debug, PartialEq)]
pub struct IndexRange {
    /// The index.
    pub index: Name,
    /// The first value.
    pub lo: i64,
    /// Behind the last value; not below `lo`.
    pub hi: i64,
    /// The whole range.
    pub span: Span,
}

/// What accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// `+=`
    Add,
    /// `*=`
    Mul,
    /// `max=`
    Max,
    /// `min=`
    Min,
}

/// How a statement writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=` and so on: onto what is there.
    Onto(Accumulate),
    /// `+=!` and so on: from the neutral element.
    Fresh(Accumulate),
}

/// An expression where it stands; at most [`crate::notation::words::MAX_DEPTH`] deep, so that it may be walked recursively.
/// It is a pointer, since expressions are handed on more often than they are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(Box<Placed>);

/// What an expression is, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

impl Expr {
    /// An expression that stands there.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Self(Box::new(Placed { kind, span }))
    }
}

impl Deref for Expr {
    type Target = Placed;

    fn deref(&self) -> &Placed {
        &self.0
    }
}

impl DerefMut for Expr {
    fn deref_mut(&mut self) -> &mut Placed {
        &mut self.0
    }
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// An integer literal, up to 4294967295.
    Int(u32),
    /// A literal with a point or an exponent; finite and not negative.
    Float(f64),
    /// `inf`
    Inf,
    /// `nan`
    Nan,
    /// `pi`
    Pi,
    /// `true`, `false`
    Bool(bool),
    /// `i`: an index, or a node of rank 0.
    Name(String),
    /// `@batch`
    Static(String),
    /// `x[i, j + 1]`, `x[]`
    Access {
        /// The node.
        name: Name,
        /// One per axis.
        positions: Vec<Expr>,
    },
    /// `-a`, `!a`, `~a`
    Unary(UnaryOp, Expr),
    /// `a + b` and so on.
    Binary(BinaryOp, Expr, Expr),
    /// `c ? a : b`
    Conditional(Expr, Expr, Expr),
    /// `exp(a)` and so on.
    Call(Function, Vec<Expr>),
    /// `f16(a)` and so on.
    Cast(DType, Expr),
    /// `bitcast_u32(a)` and so on; f32, i32 or u32.
    Bitcast(DType, Expr),
    /// `sum[k](a[i, k] * b[k, j])` and so on.
    Reduce {
        /// How.
        op: ReduceOp,
        /// Over which indices; one for `argmax` and `argmin`.
        indices: Vec<Name>,
        /// Of what.
        body: Expr,
    },
    /// `pad(x[i - 1], 0)`
    Pad {
        /// An [`ExprKind::Access`].
        access: Expr,
        /// The value outside the tensor.
        value: Expr,
    },
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
    /// `~`
    BitNot,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `**`
    Pow,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// What a reduction inside an expression does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// `sum`
    Sum,
    /// `prod`
    Prod,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `argmax`
    ArgMax,
    /// `argmin`
    ArgMin,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:literal,)*) => {
        /// A function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function { $($(#[$doc])* $variant,)* }

        impl Function {
            /// Every function, in the order of the reference.
            pub const ALL: &'static [Function] = &[$(Function::$variant,)*];

            /// The names, each with a blank behind it.
            pub(crate) const NAMES: &'static str = concat!($($name, " "),*);

            /// Its name.
            pub fn name(self) -> &'static str {
                word_at(Self::NAMES, self as usize)
            }

            /// How many arguments it takes.
            pub const fn arity(self) -> usize {
                const ARITIES: &[u8] = &[$($arity,)*];
                ARITIES[self as usize] as usize
            }
        }
    };
}

functions! {
    /// `abs(a)`
    Abs "abs" 1,
    /// `sign(a)`
    Sign "sign" 1,
    /// `floor(a)`
    Floor "floor" 1,
    /// `ceil(a)`
    Ceil "ceil" 1,
    /// `round(a)`, half to even
    Round "round" 1,
    /// `trunc(a)`
    Trunc "trunc" 1,
    /// `sqrt(a)`
    Sqrt "sqrt" 1,
    /// `rsqrt(a)`
    Rsqrt "rsqrt" 1,
    /// `exp(a)`
    Exp "exp" 1,
    /// `exp2(a)`
    Exp2 "exp2" 1,
    /// `log(a)`
    Log "log" 1,
    /// `log2(a)`
    Log2 "log2" 1,
    /// `sin(a)`
    Sin "sin" 1,
    /// `cos(a)`
    Cos "cos" 1,
    /// `tan(a)`
    Tan "tan" 1,
    /// `asin(a)`
    Asin "asin" 1,
    /// `acos(a)`
    Acos "acos" 1,
    /// `atan(a)`
    Atan "atan" 1,
    /// `atan2(y, x)`
    Atan2 "atan2" 2,
    /// `sinh(a)`
    Sinh "sinh" 1,
    /// `cosh(a)`
    Cosh "cosh" 1,
    /// `tanh(a)`
    Tanh "tanh" 1,
    /// `pow(a, b)`, as `a ** b`
    Pow "pow" 2,
    /// `min(a, b)`
    Min "min" 2,
    /// `max(a, b)`
    Max "max" 2,
    /// `clamp(x, lo, hi)`
    Clamp "clamp" 3,
    /// `fma(a, b, c)`
    Fma "fma" 3,
    /// `erf(a)`
    Erf "erf" 1,
    /// `sigmoid(a)`
    Sigmoid "sigmoid" 1,
    /// `relu(a)`
    Relu "relu" 1,
    /// `gelu(a)`, exact
    Gelu "gelu" 1,
    /// `gelu_tanh(a)`
    GeluTanh "gelu_tanh" 1,
    /// `silu(a)`
    Silu "silu" 1,
    /// `softplus(a)`
    Softplus "softplus" 1,
    /// `select(c, a, b)`, as `c ? a : b`
    Select "select" 3,
    /// `isnan(a)`
    IsNan "isnan" 1,
    /// `isinf(a)`
    IsInf "isinf" 1,
    /// `threefry2x32(k0, k1, c0, c1)`
    Threefry "threefry2x32" 4,
    /// `uniform(s, c)`
    Uniform "uniform" 2,
    /// `normal(s, c)`
    Normal "normal" 2,
}
