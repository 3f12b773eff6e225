//! Programs without text: the same syntax, made by Rust.
//!
//! ```
//! use wgslab::notation::ast::Ast;
//! use wgslab::notation::builder::{at, index, load, sum};
//! use wgslab::notation::parse;
//!
//! let (i, j, k) = (index("i"), index("j"), index("k"));
//! let built = Ast::new()
//!     .statement(at("c", [i, j]).add_fresh(load("a", [i, k]) * load("b", [k, j])))
//!     .statement(at("d", i).set(load("c", (i, i + 1)).max(0) / sum([k], load("a", [i, k]))).where_range(i, 0..8));
//!
//! let text = "
//!     c[i, j] +=! a[i, k] * b[k, j]
//!     d[i] = max(c[i, i + 1], 0) / sum[k](a[i, k]) where i in 0:8
//! ";
//! assert_eq!(built, parse(text)?);
//! # Ok::<(), wgslab::Error>(())
//! ```

mod statement;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

pub use statement::{Target, at};

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::notation::ast::{
    Ast, BinaryOp, Declaration, Expr, ExprKind, Function, Item, Name, ReduceOp, Span, Statement, UnaryOp,
};
use crate::notation::parse::parse;
use crate::notation::words::MAX_DEPTH;

const NOWHERE: Span = Span { start: 0, end: 0 };

/// The name in place of an expression that became too deep: no text has it, and [`Ast::written`] finds it.
const TOO_DEEP: &str = "";

fn name(text: &str) -> Name {
    Name { text: text.to_owned(), span: NOWHERE }
}

impl Ast {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// The program with `name: dtype[extents]` at its end.
    #[must_use]
    pub fn declare(mut self, node: &str, dtype: DType, extents: impl Into<Vec<u32>>) -> Self {
        let declaration = Declaration { name: name(node), dtype, extents: extents.into(), span: NOWHERE };
        self.items.push(Item::Declaration(declaration));
        self
    }

    /// The program with a statement at its end.
    #[must_use]
    pub fn statement(mut self, statement: Statement) -> Self {
        self.items.push(Item::Statement(statement));
        self
    }

    /// The canonical text, and the same program with the places of its parts in that text, which messages point to.
    ///
    /// # Errors
    /// [`ErrorKind::NotationSyntax`] where no text says what was built: a name that is not one, a range that ends before it
    /// starts, a rank over 8, an expression over [`MAX_DEPTH`] deep.
    pub fn written(&self) -> Result<(String, Ast)> {
        for (number, item) in self.items.iter().enumerate() {
            let Item::Statement(statement) = item else { continue };
            let mut parts = statement.positions.iter().chain([&statement.value]);
            if parts.any(|part| matches!(&part.kind, ExprKind::Name(name) if name == TOO_DEEP)) {
                let message = format!(
                    "item {}: `{}` is written from an expression over {MAX_DEPTH} operators deep; give parts of it \
                     names in statements of their own",
                    number + 1,
                    statement.target.text
                );
                return Err(Error::new(ErrorKind::NotationSyntax, message));
            }
        }
        let text = self.to_string();
        let placed = parse(&text).map_err(|error| error.context("the text of a built program"))?;
        if placed != *self {
            let pairs = self.items.iter().zip(&placed.items);
            let number = pairs.take_while(|(built, read)| built == read).count();
            let item = self.items.get(number).map(Item::to_string).unwrap_or_default();
            let message = format!(
                "item {}: the text `{item}` does not mean what was built; names are ASCII letters, digits and `_`",
                number + 1
            );
            return Err(Error::new(ErrorKind::NotationSyntax, message));
        }
        Ok((text, placed))
    }
}

/// An index, or a node of rank 0, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index<'a>(&'a str);

/// An index of that name.
pub const fn index(name: &str) -> Index<'_> {
    Index(name)
}

/// An expression. Numbers, bools and indices turn into one; operators, and functions as methods, make larger ones.
#[derive(Clone, Debug, PartialEq)]
pub struct E {
    expr: Expr,
    height: u32,
}

impl E {
    /// An expression above parts of that height.
    fn new(kind: ExprKind, height: u32) -> Self {
        if height < MAX_DEPTH {
            return Self { expr: Expr::new(kind, NOWHERE), height: height + 1 };
        }
        let kind = ExprKind::Name(TOO_DEEP.to_owned());
        Self { expr: Expr::new(kind, NOWHERE), height: MAX_DEPTH }
    }

    fn unary(self, op: UnaryOp) -> Self {
        Self::new(ExprKind::Unary(op, self.expr), self.height)
    }

    fn binary(self, op: BinaryOp, right: Self) -> Self {
        let height = self.height.max(right.height);
        Self::new(ExprKind::Binary(op, self.expr, right.expr), height)
    }

    /// The syntax of it.
    pub fn into_expr(self) -> Expr {
        self.expr
    }
}

impl fmt::Display for E {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl From<Index<'_>> for E {
    fn from(index: Index<'_>) -> Self {
        E::new(ExprKind::Name(index.0.to_owned()), 0)
    }
}

impl From<&E> for E {
    fn from(e: &E) -> Self {
        e.clone()
    }
}

impl From<u32> for E {
    fn from(value: u32) -> Self {
        E::new(ExprKind::Int(value), 0)
    }
}

impl From<i32> for E {
    fn from(value: i32) -> Self {
        let size = E::from(value.unsigned_abs());
        if value < 0 { -size } else { size }
    }
}

impl From<f64> for E {
    fn from(value: f64) -> Self {
        let size = match value {
            _ if value.is_nan() => return E::new(ExprKind::Nan, 0),
            _ if value.is_infinite() => ExprKind::Inf,
            _ => ExprKind::Float(value.abs()),
        };
        let size = E::new(size, 0);
        if value.is_sign_negative() { -size } else { size }
    }
}

impl From<f32> for E {
    /// The shortest number that is this f32: 0.1, not 0.10000000149011612.
    fn from(value: f32) -> Self {
        E::from(value.to_string().parse().unwrap_or(f64::from(value)))
    }
}

impl From<bool> for E {
    fn from(value: bool) -> Self {
        E::new(ExprKind::Bool(value), 0)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident,)*) => {$(
        operators! { @left $trait $method $op, E, Index<'_>, &E }
        operators! { @literal $trait $method $op, i32 u32 f32 f64 }
    )*};
    (@left $trait:ident $method:ident $op:ident, $($left:ty),*) => {$(
        impl<R: Into<E>> $trait<R> for $left {
            type Output = E;

            fn $method(self, right: R) -> E {
                E::from(self).binary(BinaryOp::$op, right.into())
            }
        }
    )*};
    (@literal $trait:ident $method:ident $op:ident, $($left:ty)*) => {$(
        impl $trait<E> for $left {
            type Output = E;

            fn $method(self, right: E) -> E {
                E::from(self).binary(BinaryOp::$op, right)
            }
        }

        impl $trait<Index<'_>> for $left {
            type Output = E;

            fn $method(self, right: Index<'_>) -> E {
                E::from(self).binary(BinaryOp::$op, right.into())
            }
        }
    )*};
}

operators! {
    Add add Add,
    Sub sub Sub,
    Mul mul Mul,
    Div div Div,
    Rem rem Rem,
    Shl shl Shl,
    Shr shr Shr,
    BitAnd bitand BitAnd,
    BitOr bitor BitOr,
    BitXor bitxor BitXor,
}

macro_rules! signs {
    ($($left:ty)*) => {$(
        impl Neg for $left {
            type Output = E;

            fn neg(self) -> E {
                E::from(self).unary(UnaryOp::Neg)
            }
        }

        /// `!`, of bools; bits are inverted by [`E::bit_not`].
        impl Not for $left {
            type Output = E;

            fn not(self) -> E {
                E::from(self).unary(UnaryOp::Not)
            }
        }
    )*};
}

signs! { E Index<'_> &E }

macro_rules! methods {
    (binary $($method:ident $op:ident)*) => {$(
        #[doc = concat!("`", stringify!($op), "` with the left operand `self`.")]
        #[must_use]
        pub fn $method(self, right: impl Into<E>) -> E {
            self.binary(BinaryOp::$op, right.into())
        }
    )*};
    (unary $($method:ident $function:ident)*) => {$(
        #[doc = concat!("`", stringify!($method), "(self)`")]
        #[must_use]
        pub fn $method(self) -> E {
            call(Function::$function, [self])
        }
    )*};
}

impl E {
    methods! { binary pow Pow lt Lt le Le gt Gt ge Ge equals Eq differs Ne and And or Or }
    methods! {
        unary abs Abs sign Sign floor Floor ceil Ceil round Round trunc Trunc sqrt Sqrt rsqrt Rsqrt exp Exp exp2 Exp2
        log Log log2 Log2 sin Sin cos Cos tan Tan asin Asin acos Acos atan Atan sinh Sinh cosh Cosh tanh Tanh erf Erf
        sigmoid Sigmoid relu Relu gelu Gelu gelu_tanh GeluTanh silu Silu softplus Softplus isnan IsNan isinf IsInf
    }

    /// `atan2(self, x)`
    #[must_use]
    pub fn atan2(self, x: impl Into<E>) -> E {
        call(Function::Atan2, [self, x.into()])
    }

    /// `min(self, other)`
    #[must_use]
    pub fn min(self, other: impl Into<E>) -> E {
        call(Function::Min, [self, other.into()])
    }

    /// `max(self, other)`
    #[must_use]
    pub fn max(self, other: impl Into<E>) -> E {
        call(Function::Max, [self, other.into()])
    }

    /// `clamp(self, lo, hi)`
    #[must_use]
    pub fn clamp(self, lo: impl Into<E>, hi: impl Into<E>) -> E {
        call(Function::Clamp, [self, lo.into(), hi.into()])
    }

    /// `fma(self, factor, summand)`
    #[must_use]
    pub fn fma(self, factor: impl Into<E>, summand: impl Into<E>) -> E {
        call(Function::Fma, [self, factor.into(), summand.into()])
    }

    /// `~self`
    #[must_use]
    pub fn bit_not(self) -> E {
        self.unary(UnaryOp::BitNot)
    }

    /// `self ? then : other`
    #[must_use]
    pub fn choose(self, then: impl Into<E>, other: impl Into<E>) -> E {
        let (then, other) = (then.into(), other.into());
        let height = self.height.max(then.height).max(other.height);
        let kind = ExprKind::Conditional(self.expr, then.expr, other.expr);
        E::new(kind, height)
    }

    /// `f16(self)` and so on.
    #[must_use]
    pub fn cast(self, dtype: DType) -> E {
        E::new(ExprKind::Cast(dtype, self.expr), self.height)
    }

    /// `bitcast_u32(self)` and so on; f32, i32 or u32.
    #[must_use]
    pub fn bitcast(self, dtype: DType) -> E {
        E::new(ExprKind::Bitcast(dtype, self.expr), self.height)
    }
}

/// One position, an array or a vector of positions, or a tuple of up to 8 of different kinds: `(i, j + 1, 0)`.
pub trait Positions {
    /// In order.
    fn into_positions(self) -> Vec<E>;
}

impl<T: Into<E>, const N: usize> Positions for [T; N] {
    fn into_positions(self) -> Vec<E> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<E>> Positions for Vec<T> {
    fn into_positions(self) -> Vec<E> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Positions for Index<'_> {
    fn into_positions(self) -> Vec<E> {
        vec![self.into()]
    }
}

impl Positions for E {
    fn into_positions(self) -> Vec<E> {
        vec![self]
    }
}

macro_rules! tuples {
    ($(($($part:ident)*))*) => {$(
        impl<$($part: Into<E>),*> Positions for ($($part,)*) {
            #[allow(non_snake_case)]
            fn into_positions(self) -> Vec<E> {
                let ($($part,)*) = self;
                vec![$($part.into()),*]
            }
        }
    )*};
}

tuples! { () (A) (A B) (A B C) (A B C D) (A B C D F) (A B C D F G) (A B C D F G H) (A B C D F G H I) }

fn parts(list: Vec<E>) -> (Vec<Expr>, u32) {
    let height = list.iter().map(|e| e.height).max().unwrap_or(0);
    (list.into_iter().map(|e| e.expr).collect(), height)
}

/// `node[positions]`
pub fn load(node: &str, positions: impl Positions) -> E {
    let (positions, height) = parts(positions.into_positions());
    E::new(ExprKind::Access { name: name(node), positions }, height)
}

/// `pad(node[positions], value)`
pub fn pad(node: &str, positions: impl Positions, value: impl Into<E>) -> E {
    let (access, value) = (load(node, positions), value.into());
    let height = access.height.max(value.height);
    E::new(ExprKind::Pad { access: access.expr, value: value.expr }, height)
}

/// `@name`
pub fn static_index(name: &str) -> E {
    E::new(ExprKind::Static(name.to_owned()), 0)
}

/// `pi`
pub fn pi() -> E {
    E::new(ExprKind::Pi, 0)
}

/// A function by its name; [`E`] has most of them as methods.
pub fn call(function: Function, arguments: impl Positions) -> E {
    let (arguments, height) = parts(arguments.into_positions());
    E::new(ExprKind::Call(function, arguments), height)
}

/// `select(condition, then, other)`
pub fn select(condition: impl Into<E>, then: impl Into<E>, other: impl Into<E>) -> E {
    call(Function::Select, (condition, then, other))
}

/// A reduction over indices by its name.
pub fn reduce<'a>(op: ReduceOp, indices: impl IntoIterator<Item = Index<'a>>, body: impl Into<E>) -> E {
    let body = body.into();
    let indices = indices.into_iter().map(|index| name(index.0)).collect();
    E::new(ExprKind::Reduce { op, indices, body: body.expr }, body.height)
}

/// `sum[indices](body)`
pub fn sum<'a>(indices: impl IntoIterator<Item = Index<'a>>, body: impl Into<E>) -> E {
    reduce(ReduceOp::Sum, indices, body)
}

/// `prod[indices](body)`
pub fn prod<'a>(indices: impl IntoIterator<Item = Index<'a>>, body: impl Into<E>) -> E {
    reduce(ReduceOp::Prod, indices, body)
}

/// `max[indices](body)`
pub fn max_over<'a>(indices: impl IntoIterator<Item = Index<'a>>, body: impl Into<E>) -> E {
    reduce(ReduceOp::Max, indices, body)
}

/// `min[indices](body)`
pub fn min_over<'a>(indices: impl IntoIterator<Item = Index<'a>>, body: impl Into<E>) -> E {
    reduce(ReduceOp::Min, indices, body)
}

/// `argmax[index](body)`
pub fn argmax(index: Index<'_>, body: impl Into<E>) -> E {
    reduce(ReduceOp::ArgMax, [index], body)
}

/// `argmin[index](body)`
pub fn argmin(index: Index<'_>, body: impl Into<E>) -> E {
    reduce(ReduceOp::ArgMin, [index], body)
}
