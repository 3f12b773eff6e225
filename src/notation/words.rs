//! What the words and the operators are: one table for the parser, the formatter and everyone's messages.

use crate::dtype::DType;
use crate::node::parts;
use crate::notation::ast::{Accumulate, AssignOp, BinaryOp, Function, ReduceOp, UnaryOp};
use crate::notation::lex::Kind;

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

/// The operators, the assignments and the other signs, in the order of [`BinaryOp::ALL`], [`AssignOp::ALL`] and
/// [`crate::notation::lex::Kind`]. Lists in one text are the smallest tables in a web build.
pub(crate) const SIGNS: &str = "** * / % + - << >> & ^ | < <= > >= == != && || \
    = += *= max= min= +=! *=! max=! min=! ! ~ ? : , ( [ ) ] ;";

/// The names of reductions, in the order of [`ReduceOp::ALL`].
const REDUCTIONS: &str = "sum prod max min argmax argmin";

/// The word of that number in a list.
pub(crate) fn word_at(list: &'static str, number: usize) -> &'static str {
    parts(list, b" ").nth(number).unwrap_or("")
}

/// The number of a word in a list.
pub(crate) fn number_of(list: &str, word: &str) -> Option<usize> {
    parts(list, b" ").position(|known| known == word)
}

/// The text for a key in a table: lines of keys between blanks, a tab and their text.
pub(crate) fn text_for(table: &'static str, key: &str) -> Option<&'static str> {
    parts(table, b"\n").find_map(|line| {
        let mut columns = parts(line, b"\t");
        number_of(columns.next()?, key)?;
        columns.next()
    })
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
    /// Every operator, in the order of declaration.
    pub(crate) const ALL: [BinaryOp; 19] = {
        use BinaryOp::*;
        [Pow, Mul, Div, Rem, Add, Sub, Shl, Shr, BitAnd, BitXor, BitOr, Lt, Le, Gt, Ge, Eq, Ne, And, Or]
    };

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        word_at(SIGNS, self as usize)
    }

    pub(crate) const fn level(self) -> u8 {
        match self {
            BinaryOp::Pow => level::POWER,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => level::PRODUCT,
            BinaryOp::Add | BinaryOp::Sub => level::SUM,
            BinaryOp::Shl | BinaryOp::Shr => level::SHIFT,
            BinaryOp::BitAnd => level::BIT_AND,
            BinaryOp::BitXor => level::BIT_XOR,
            BinaryOp::BitOr => level::BIT_OR,
            BinaryOp::And => level::AND,
            BinaryOp::Or => level::OR,
            _ => level::COMPARE,
        }
    }
}

impl AssignOp {
    /// Every assignment, in the order of the reference.
    pub(crate) const ALL: [AssignOp; 9] = [
        AssignOp::Set,
        AssignOp::Onto(Accumulate::Add),
        AssignOp::Onto(Accumulate::Mul),
        AssignOp::Onto(Accumulate::Max),
        AssignOp::Onto(Accumulate::Min),
        AssignOp::Fresh(Accumulate::Add),
        AssignOp::Fresh(Accumulate::Mul),
        AssignOp::Fresh(Accumulate::Max),
        AssignOp::Fresh(Accumulate::Min),
    ];

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        let number = match self {
            AssignOp::Set => 0,
            AssignOp::Onto(op) => 1 + op as usize,
            AssignOp::Fresh(op) => 5 + op as usize,
        };
        word_at(SIGNS, BinaryOp::ALL.len() + number)
    }
}

impl ReduceOp {
    /// Every reduction, in the order of declaration.
    pub(crate) const ALL: [ReduceOp; 6] =
        [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin];

    /// Its name.
    pub fn name(self) -> &'static str {
        word_at(REDUCTIONS, self as usize)
    }
}

/// The words that are reserved beside functions and dtypes, and what they are.
const WORDS: &str = "where in true false inf nan pi pad sum prod argmax argmin bitcast_f32 bitcast_i32 bitcast_u32";
const WORD_KINDS: [(Kind, u8); 15] = [
    (Kind::Where, 0),
    (Kind::In, 0),
    (Kind::True, 0),
    (Kind::False, 0),
    (Kind::Inf, 0),
    (Kind::Nan, 0),
    (Kind::Pi, 0),
    (Kind::Pad, 0),
    (Kind::Reduce, ReduceOp::Sum as u8),
    (Kind::Reduce, ReduceOp::Prod as u8),
    (Kind::Reduce, ReduceOp::ArgMax as u8),
    (Kind::Reduce, ReduceOp::ArgMin as u8),
    (Kind::Bitcast, DType::F32 as u8),
    (Kind::Bitcast, DType::I32 as u8),
    (Kind::Bitcast, DType::U32 as u8),
];

/// What a word is: of a function, a dtype or a reduction also which, by its number in their `ALL`.
pub(crate) fn word(text: &str) -> (Kind, u8) {
    if let Some(known) = number_of(WORDS, text).and_then(|number| WORD_KINDS.get(number)) {
        return *known;
    }
    for dtype in DType::ALL {
        if dtype.name() == text {
            return (Kind::DType, dtype as u8);
        }
    }
    number_of(Function::NAMES, text).map_or((Kind::Free, 0), |number| (Kind::Function, number as u8))
}

/// Whether a node or an index may have that name: ASCII letters, digits and `_`, not starting with a digit, not reserved.
pub fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && !bytes[0].is_ascii_digit()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && word(text).0 == Kind::Free
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
