//! A program, checked: every name is resolved, every type and range is known, nothing can leave its tensor. This is what
//! the program means; the stages behind it decide how it is computed.

use std::ops::{Deref, DerefMut};

use crate::dtype::DType;
use crate::notation::ast::{Accumulate, BinaryOp, Function, ReduceOp, Span, UnaryOp};

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// 32-bit float; what f16 and bf16 are read as.
    F32,
    /// Signed 32-bit integer; what i8 is read as, and indices are.
    I32,
    /// Unsigned 32-bit integer; what u8 is read as.
    U32,
    /// Truth value.
    Bool,
}

impl Ty {
    /// What an element of that dtype is read as.
    pub const fn of(dtype: DType) -> Self {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Ty::F32,
            DType::I32 | DType::I8 => Ty::I32,
            DType::U32 | DType::U8 => Ty::U32,
            DType::Bool => Ty::Bool,
        }
    }

    /// The dtype that holds every value of the type.
    pub const fn dtype(self) -> DType {
        match self {
            Ty::F32 => DType::F32,
            Ty::I32 => DType::I32,
            Ty::U32 => DType::U32,
            Ty::Bool => DType::Bool,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.dtype().name()
    }
}

/// Where a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Given through the API.
    Given,
    /// Declared in the text, and not given: created at link, filled with zeros, kept between runs.
    Declared,
    /// Created by its first assignment, without contents before it in each run.
    Created,
}

/// A node of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramNode {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents, row-major; rank 0 to 8.
    pub shape: Vec<u32>,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether it is listed as an output, and so materialised in the context.
    pub is_output: bool,
}

/// The name of a node: its position in [`Program::nodes`].
pub type NodeIndex = usize;
/// The name of a static: its position in [`Program::statics`].
pub type StaticIndex = usize;
/// The name of an index of a statement: its position in [`Statement::indices`].
pub type IndexId = usize;

/// What the statics must satisfy in each run, else nothing is run: `least <= sum of factor * static <= most`, in integers
/// without wrapping.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticBound {
    /// The statics with their factors.
    pub terms: Vec<(StaticIndex, i64)>,
    /// The least value.
    pub least: i64,
    /// The greatest value.
    pub most: i64,
    /// The access that wants it: the node, the axis.
    pub node: NodeIndex,
    /// The axis.
    pub axis: usize,
    /// Where the access stands.
    pub span: Span,
}

/// A checked program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Every node, in the order of first mention.
    pub nodes: Vec<ProgramNode>,
    /// The names of the statics, in the order of first mention.
    pub statics: Vec<String>,
    /// What the statics must satisfy.
    pub static_bounds: Vec<StaticBound>,
    /// In order. Each reads the values from before it, and writes all of its target as if at once.
    pub statements: Vec<Statement>,
}

/// An index with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopIndex {
    /// Its name.
    pub name: String,
    /// The first value.
    pub lo: i64,
    /// Behind the last value; `lo` where the range is empty. Every value fits an i32.
    pub hi: i64,
}

impl LoopIndex {
    /// How many values it has.
    pub const fn count(&self) -> u64 {
        let count = self.hi.wrapping_sub(self.lo);
        if count > 0 { count as u64 } else { 0 }
    }

    /// Whether it runs over an axis of that extent, from end to end.
    pub(crate) fn is_whole(&self, extent: u32) -> bool {
        (self.lo, self.hi) == (0, i64::from(extent))
    }
}

/// How many points some indices have together; saturates.
pub fn points(indices: &[LoopIndex], over: &[IndexId]) -> u64 {
    let mut points = 1u64;
    for index in over {
        points = times(points, indices[*index].count());
    }
    points
}

/// The product; saturates, without the 128 bits that the library takes for it.
pub(crate) fn times(a: u64, b: u64) -> u64 {
    if a != 0 && b > u64::MAX / a { u64::MAX } else { a.wrapping_mul(b) }
}

/// The product, where it fits.
pub(crate) fn product(a: i64, b: i64) -> Option<i64> {
    let product = a.wrapping_mul(b);
    // A wrapped product does not lead back, but for the least number, whose negative is itself.
    (a == 0 || (product.wrapping_div(a) == b && !(a == -1 && b == i64::MIN))).then_some(product)
}

/// How a statement writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Sets each element that is reached; no two points of the loops reach the same.
    Set,
    /// Accumulates onto what is there.
    Onto(Accumulate),
    /// Sets every element that the left side can address over the ranges (on a scattered axis: the whole axis) to the
    /// neutral element of the node's dtype, then accumulates.
    Fresh(Accumulate),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The node that is written.
    pub target: NodeIndex,
    /// One per axis of the target. A [`Position::Computed`] is a scatter: what is out of range is dropped.
    pub positions: Vec<Position>,
    /// How.
    pub write: Write,
    /// Of the type that the target's dtype is read as; the store rounds or wraps to the dtype.
    pub value: Expr,
    /// All indices, those of reductions inside the value included.
    pub indices: Vec<LoopIndex>,
    /// The indices that stand on the left, in order of appearance.
    pub free: Vec<IndexId>,
    /// The indices that stand on the right only, outside reductions: they are reduced by accumulating.
    pub reduced: Vec<IndexId>,
    /// Where the statement stands.
    pub span: Span,
}

/// What an affine expression is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// An index of the statement.
    Index(IndexId),
    /// A static.
    Static(StaticIndex),
}

/// `constant + sum of factor * term`, in integers without wrapping; each term once, no factor 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// The constant.
    pub constant: i64,
    /// The terms with their factors.
    pub terms: Vec<(Term, i64)>,
}

impl Affine {
    /// A constant.
    pub(crate) fn constant(constant: i64) -> Self {
        Self { constant, terms: Vec::new() }
    }

    /// The value of an index, and a constant.
    pub(crate) fn index(index: IndexId, constant: i64) -> Self {
        Self { constant, terms: vec![(Term::Index(index), 1)] }
    }

    /// The index that stands alone, if that is all.
    pub(crate) fn alone(&self) -> Option<IndexId> {
        match (self.constant, &self.terms[..]) {
            (0, &[(Term::Index(index), 1)]) => Some(index),
            _ => None,
        }
    }

    /// Adds a multiple; `None` where 64 bits do not hold it. The terms stay in order: equal sums are written alike.
    pub(crate) fn add(&mut self, other: &Affine, by: i64) -> Option<()> {
        self.constant = self.constant.checked_add(product(other.constant, by)?)?;
        for &(term, factor) in &other.terms {
            self.add_term(term, product(factor, by)?)?;
        }
        Some(())
    }

    /// Adds a multiple of a term; `None` where 64 bits do not hold it.
    pub(crate) fn add_term(&mut self, term: Term, factor: i64) -> Option<()> {
        let mut at = 0;
        while self.terms.get(at).is_some_and(|(known, _)| *known < term) {
            at += 1;
        }
        match self.terms.get_mut(at) {
            Some((known, old)) if *known == term => {
                *old = old.checked_add(factor)?;
                if *old == 0 {
                    self.terms.remove(at);
                }
            }
            _ if factor == 0 => {}
            _ => self.terms.insert(at, (term, factor)),
        }
        Some(())
    }

    /// It in words, with `name` for those of its terms.
    pub(crate) fn show<'n>(&self, name: &dyn Fn(Term) -> &'n str) -> String {
        let mut text = String::new();
        for at in 0..=self.terms.len() {
            let term = self.terms.get(at);
            let factor = term.map_or(self.constant, |(_, factor)| *factor);
            if term.is_none() && factor == 0 && at > 0 {
                break;
            }
            let sign = match (at, factor < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            let size = factor.unsigned_abs();
            let part = match term {
                None => format!("{sign}{size}"),
                Some((term, _)) => {
                    let (at, name) = (if matches!(term, Term::Static(_)) { "@" } else { "" }, name(*term));
                    if size == 1 { format!("{sign}{at}{name}") } else { format!("{sign}{size} * {at}{name}") }
                }
            };
            text.push_str(&part);
        }
        text
    }
}

/// A position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    /// In range for every point of the loops and every admitted static, unless the access is padded.
    Affine(Affine),
    /// An integer (i32 or u32) with tensor accesses. On the right it is clamped to the axis, as the value that its type
    /// has (a u32 is never negative), unless the access is padded; on the left, what is out of range is dropped.
    Computed(Expr),
}

impl Position {
    /// The value of an index.
    pub(crate) fn index(index: IndexId) -> Self {
        Position::Affine(Affine::index(index, 0))
    }
}

/// A typed expression: a pointer, since expressions are handed on much more often than they are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(Box<TypedKind>);

/// What an expression is, and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedKind {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
}

impl Expr {
    /// An expression of that type.
    pub fn new(kind: ExprKind, ty: Ty) -> Self {
        Self(Box::new(TypedKind { kind, ty }))
    }

    /// A constant.
    pub fn constant(value: Value) -> Self {
        Self::new(ExprKind::Const(value), value.ty())
    }

    /// `a op b`, of that type.
    pub fn binary(op: BinaryOp, a: Expr, b: Expr, ty: Ty) -> Self {
        Self::new(ExprKind::Binary(op, a, b), ty)
    }

    /// `condition ? a : b`
    pub fn conditional(condition: Expr, a: Expr, b: Expr) -> Self {
        let ty = a.ty;
        Self::new(ExprKind::Conditional(condition, a, b), ty)
    }
}

impl Deref for Expr {
    type Target = TypedKind;

    fn deref(&self) -> &TypedKind {
        &self.0
    }
}

impl DerefMut for Expr {
    fn deref_mut(&mut self) -> &mut TypedKind {
        &mut self.0
    }
}

/// A constant.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Of type f32.
    F32(f32),
    /// Of type i32.
    I32(i32),
    /// Of type u32.
    U32(u32),
    /// Of type bool.
    Bool(bool),
}

impl Value {
    /// Its type.
    pub const fn ty(self) -> Ty {
        match self {
            Value::F32(_) => Ty::F32,
            Value::I32(_) => Ty::I32,
            Value::U32(_) => Ty::U32,
            Value::Bool(_) => Ty::Bool,
        }
    }

    /// Its 32 bits; a bool is 0 or 1.
    pub const fn bits(self) -> u32 {
        match self {
            Value::F32(value) => value.to_bits(),
            Value::I32(value) => value as u32,
            Value::U32(value) => value,
            Value::Bool(value) => value as u32,
        }
    }
}

/// Constants are equal where their bits are: a NaN equals itself, the zeros differ.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.ty() == other.ty() && self.bits() == other.bits()
    }
}

/// What an expression is. Operands of an operator have one type, but for shifts; every conversion is explicit.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// The value of an index, an i32.
    Index(IndexId),
    /// The value of a static, an i32.
    Static(StaticIndex),
    /// An element, read as the type of its dtype.
    Load(Load),
    /// The value of an earlier stage of the same point, in loops only: programs have none.
    Stage(usize),
    /// `-` on f32, i32, u32 (wrapping); `!` on bool; `~` on i32, u32.
    Unary(UnaryOp, Expr),
    /// Arithmetic on f32, i32, u32; bits and shifts on i32, u32 (the amount may be the other integer type); comparisons
    /// give bool; `==`, `!=` on all types; `&&`, `||` on bool. `**` on f32, i32, u32: of integers, the exponent may be the
    /// other integer type.
    Binary(BinaryOp, Expr, Expr),
    /// `c ? a : b`, and `select`.
    Conditional(Expr, Expr, Expr),
    /// A function but `select`. `abs`, `sign`, `min`, `max`, `clamp`, `relu` and `pow` are on f32, i32, u32; `isnan`, `isinf` on
    /// f32; the random numbers on u32; the others on f32.
    Call(Function, Vec<Expr>),
    /// To a dtype and back to the type that it is read as: rounds, wraps, saturates, or is the identity.
    Cast(DType, Expr),
    /// The same 32 bits as another type: f32, i32 or u32.
    Bitcast(Expr),
    /// A reduction over the values of indices, which are bound inside only. `argmax` and `argmin` give the value of their one
    /// index, an i32.
    Reduce {
        /// How.
        op: ReduceOp,
        /// Over which indices, in order: the last one is the fastest.
        indices: Vec<IndexId>,
        /// Of what.
        body: Expr,
    },
}

/// An element of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The node.
    pub node: NodeIndex,
    /// One per axis.
    pub positions: Vec<Position>,
    /// What the value is where a position is out of range, of the same type; without it nothing is out of range.
    pub pad: Option<Expr>,
}
