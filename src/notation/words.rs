//! What the words and the operators are: one table for the parser, the formatter and everyone's messages.

use crate::dtype::DType;
use crate::notation::ast::{Accumulate, AssignOp, BinaryOp, Function, ReduceOp, UnaryOp};

/// How deep an expression may be: brackets within brackets, and operators above operands (a sum of n terms is n - 1
/// operators deep). Whoever walks an expression may recurse.
pub const MAX_DEPTH: u32 = 200;

/// The highest rank of a node.
pub const MAX_RANK: usize = 8;

/// How tightly the parts of expressions bind: the levels of Python.
pub(crate) mod level {
    pub(crate) const CONDITIONAL: u8 = 0;
    pub(crate) const OR: u8 = 1;
    pub(crate) const AND: u8 = 2;
    pub(crate) const COMPARE: u8 = 3;
    pub(crate) const BIT_OR: u8 = 4;
    pub(crate) const BIT_XOR: u8 = 5;
    pub(crate) const BIT_AND: u8 = 6;
    pub(crate) const SHIFT: u8 = 7;
    pub(crate) const SUM: u8 = 8;
    pub(crate) const PRODUCT: u8 = 9;
    pub(crate) const UNARY: u8 = 10;
    pub(crate) const POWER: u8 = 11;
    pub(crate) const PRIMARY: u8 = 12;
}

impl UnaryOp {
    /// As it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
            UnaryOp::BitNot => "~",
        }
    }
}

impl BinaryOp {
    /// As it is written.
    pub const fn symbol(self) -> &'static str {
        self.row().0
    }

    pub(crate) const fn level(self) -> u8 {
        self.row().1
    }

    const fn row(self) -> (&'static str, u8) {
        match self {
            BinaryOp::Pow => ("**", level::POWER),
            BinaryOp::Mul => ("*", level::PRODUCT),
            BinaryOp::Div => ("/", level::PRODUCT),
            BinaryOp::Rem => ("%", level::PRODUCT),
            BinaryOp::Add => ("+", level::SUM),
            BinaryOp::Sub => ("-", level::SUM),
            BinaryOp::Shl => ("<<", level::SHIFT),
            BinaryOp::Shr => (">>", level::SHIFT),
            BinaryOp::BitAnd => ("&", level::BIT_AND),
            BinaryOp::BitXor => ("^", level::BIT_XOR),
            BinaryOp::BitOr => ("|", level::BIT_OR),
            BinaryOp::Lt => ("<", level::COMPARE),
            BinaryOp::Le => ("<=", level::COMPARE),
            BinaryOp::Gt => (">", level::COMPARE),
            BinaryOp::Ge => (">=", level::COMPARE),
            BinaryOp::Eq => ("==", level::COMPARE),
            BinaryOp::Ne => ("!=", level::COMPARE),
            BinaryOp::And => ("&&", level::AND),
            BinaryOp::Or => ("||", level::OR),
        }
    }
}

impl AssignOp {
    /// As it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            AssignOp::Set => "=",
            AssignOp::Onto(Accumulate::Add) => "+=",
            AssignOp::Onto(Accumulate::Mul) => "*=",
            AssignOp::Onto(Accumulate::Max) => "max=",
            AssignOp::Onto(Accumulate::Min) => "min=",
            AssignOp::Fresh(Accumulate::Add) => "+=!",
            AssignOp::Fresh(Accumulate::Mul) => "*=!",
            AssignOp::Fresh(Accumulate::Max) => "max=!",
            AssignOp::Fresh(Accumulate::Min) => "min=!",
        }
    }
}

impl ReduceOp {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::ArgMin => "argmin",
        }
    }
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Word {
    /// Not reserved: a node or an index.
    Free,
    /// A function; `max` and `min` are reductions too, if `[` follows.
    Function(Function),
    DType(DType),
    Bitcast(DType),
    Reduce(ReduceOp),
    Pad,
    Where,
    In,
    True,
    False,
    Inf,
    Nan,
    Pi,
}

impl Word {
    pub(crate) fn of(text: &str) -> Self {
        match text {
            "sum" => Word::Reduce(ReduceOp::Sum),
            "prod" => Word::Reduce(ReduceOp::Prod),
            "argmax" => Word::Reduce(ReduceOp::ArgMax),
            "argmin" => Word::Reduce(ReduceOp::ArgMin),
            "pad" => Word::Pad,
            "where" => Word::Where,
            "in" => Word::In,
            "true" => Word::True,
            "false" => Word::False,
            "inf" => Word::Inf,
            "nan" => Word::Nan,
            "pi" => Word::Pi,
            "bitcast_f32" => Word::Bitcast(DType::F32),
            "bitcast_i32" => Word::Bitcast(DType::I32),
            "bitcast_u32" => Word::Bitcast(DType::U32),
            _ => {
                if let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.name() == text) {
                    return Word::DType(dtype);
                }
                match Function::ALL.iter().find(|function| function.name() == text) {
                    Some(function) => Word::Function(*function),
                    None => Word::Free,
                }
            }
        }
    }
}

/// Whether a node or an index may have that name: ASCII letters, digits and `_`, not starting with a digit, not reserved.
pub fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && !bytes[0].is_ascii_digit()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && Word::of(text) == Word::Free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_no_names() {
        let words = "where in true false inf nan pi sum prod argmax argmin pad bitcast_f32 bitcast_i32 bitcast_u32";
        let functions = Function::ALL.iter().map(|function| function.name());
        let dtypes = DType::ALL.iter().map(|dtype| dtype.name());
        for word in words.split(' ').chain(functions).chain(dtypes) {
            assert!(!is_name(word), "{word}");
            assert!(is_name(&format!("{word}_")), "{word}_");
        }
        for name in ["fn", "var", "loop", "x", "_", "__x9", "Sum", "F32", "f64", "bitcast_u8"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", "9x", "a b", "é", "a-b", "@a"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
