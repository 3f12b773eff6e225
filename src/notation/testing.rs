//! What tests of the notation share: example programs, and random syntax.

use crate::dtype::DType;
use crate::notation::ast::{
    Accumulate, AssignOp, Ast, BinaryOp, Declaration, Expr, ExprKind, Function, IndexRange, Item, Name, ReduceOp, Span,
    Statement, UnaryOp,
};

/// Programs of the reference, and of the kinds that it names.
pub(crate) const PROGRAMS: &[&str] = &[
    "# a comment to the end of the line
x: f32[128, 64]                      # declarations are optional where the node is given through the API
w: f32[32, 64]
b: f32[32]
y[n, o] +=! x[n, i] * w[o, i]        # i stands only on the right: it is summed over
y[n, o]  = max(y[n, o] + b[o], 0)    # later statements see what earlier ones wrote
",
    "h[ids[t]] +=! 1",
    "w[@slot, i] +=! x[j, i]",
    "s = sum[k](a[i,k] * b[k,j])",
    "x[i] = x[i+1] where i in 0:9",
    "x[i] += x[i-1] where i in 1:10",
    "c[i,j] +=! c[i,k] * c[k,j]",
    "t[i] = a[i]; a[i] = b[i]; b[i] = t[i]",
    "y[i] = i > 0 ? x[i] : 0",
    "y[t, d] = table[ids[t], d]; g[ids[t], d] += x[t, d]; x[i, i] = 0",
    "y[n, i] +=! pad(x[n, i + u - 1], v) where i in 0:10, j in 0:5",
    "y[i] = -a[i] ** 2 + 2 ** -1 + x * (1/2) + -2147483648",
    "u[c] = f32(threefry2x32(s, 0, c, 0) >> 8) * 2.0 ** -24; v[c] = f32(threefry2x32(s, 0, c, 1) >> 8) * 2.0 ** -24
n[c] = sqrt(-2 * log(1 - u[c])) * cos(2 * pi * v[c]); m[c] = uniform(s, c) + normal(s, c)",
    "q[i] = !(a[i] < b[i]) && x[i] != x[i] || isnan(x[i]) ; r[t] = x[ids[t] + 1]",
    // softmax
    "m[n] max=! x[n, j]
e[n, j] = exp(x[n, j] - m[n])
s[n] +=! e[n, j]
y[n, j] = e[n, j] / s[n]",
    // layer norm
    "mean[n] = sum[j](x[n, j]) / 64
var[n] = sum[j]((x[n, j] - mean[n]) ** 2) / 64
y[n, j] = (x[n, j] - mean[n]) * rsqrt(var[n] + 1e-5) * g[j] + b[j]",
    // causal attention
    "s[h, q, k] +=! Q[h, q, d] * K[h, k, d] / sqrt(64.0)
s[h, q, k] = k <= q ? s[h, q, k] : -inf
p[h, q, k] = exp(s[h, q, k] - max[j](s[h, q, j]))
p[h, q, k] = p[h, q, k] / sum[j](p[h, q, j])
o[h, q, d] +=! p[h, q, k] * V[h, k, d]",
    // convolution, pooling
    "y[n, o, i, j] +=! pad(x[n, c, 2 * i + u - 1, 2 * j + v - 1], 0) * w[o, c, u, v]
p[n, o, i, j] max=! y[n, o, 2*i+u, 2*j+v] where u in 0:2, v in 0:2",
    // Adam
    "m[i] = 0.9 * m[i] + 0.1 * g[i]
v[i] = 0.999 * v[i] + 0.001 * g[i] ** 2
w[i] = w[i] - 1e-3 * (m[i] / (1 - 0.9 ** f32(@step))) / (sqrt(v[i] / (1 - 0.999 ** f32(@step))) + 1e-8)",
    // accuracy, one-hot, game of life, primes, 4-bit weights
    "hit +=! argmax[j](p[n, j]) == label[n] ? 1 : 0
one[n, c] = f32(label[n] == c)
live[i, j] = sum[u, v](pad(cell[i + u - 1, j + v - 1], 0)) - cell[i, j] where u in 0:3, v in 0:3
cell[i, j] = live[i, j] == 3 || live[i, j] == 2 && cell[i, j] == 1 ? 1 : 0
prime[n] = n > 1 && sum[d](d > 1 && d < n && n % d == 0 ? 1 : 0) == 0 where n in 0:100, d in 0:100
y[n, o] +=! x[n, i] * f32((packed[o, i / 8] >> u32(4 * (i % 8))) & 15)",
];

/// The same numbers in each run: SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

const NAMES: [&str; 12] = ["x", "y", "a1", "_", "i", "j", "k", "fn", "sums", "maxi", "e1", "where_"];
const ACCUMULATE: [Accumulate; 4] = [Accumulate::Add, Accumulate::Mul, Accumulate::Max, Accumulate::Min];
pub(crate) const BINARY: [BinaryOp; 19] = [
    BinaryOp::Pow,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::BitAnd,
    BinaryOp::BitXor,
    BinaryOp::BitOr,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::And,
    BinaryOp::Or,
];

/// Well-formed syntax of every form; whether its names and types fit is left to chance.
pub(crate) fn random_ast(random: &mut Random) -> Ast {
    let items =
        (0..random.below(4)).map(|_| if random.below(5) == 0 { declaration(random) } else { statement(random) });
    Ast { items: items.collect() }
}

fn name(random: &mut Random) -> Name {
    Name { text: random.one_of(&NAMES).to_owned(), span: Span::default() }
}

fn declaration(random: &mut Random) -> Item {
    let extents = (0..random.below(9)).map(|_| random.bits() as u32 >> random.below(32)).collect();
    Item::Declaration(Declaration {
        name: name(random),
        dtype: random.one_of(&DType::ALL),
        extents,
        span: Span::default(),
    })
}

fn statement(random: &mut Random) -> Item {
    let accumulate = random.one_of(&ACCUMULATE);
    let op = random.one_of(&[AssignOp::Set, AssignOp::Onto(accumulate), AssignOp::Fresh(accumulate)]);
    let depth = random.below(7) as u32;
    let positions = expressions(random, 4, depth / 2);
    let value = expression(random, depth);
    let ranges = (0..random.below(3)).map(|_| range(random)).collect();
    let span = Span::default();
    Item::Statement(Statement { target: name(random), positions, op, op_span: span, value, ranges, span })
}

fn range(random: &mut Random) -> IndexRange {
    let ends = [(); 2].map(|()| (random.bits() as i32 >> random.below(32)) as i64 * 2);
    IndexRange { index: name(random), lo: ends[0].min(ends[1]), hi: ends[0].max(ends[1]), span: Span::default() }
}

fn expressions(random: &mut Random, most: usize, depth: u32) -> Vec<Expr> {
    (0..random.below(most + 1)).map(|_| expression(random, depth)).collect()
}

fn access(random: &mut Random, depth: u32) -> ExprKind {
    ExprKind::Access { name: name(random), positions: expressions(random, 4, depth) }
}

fn leaf(random: &mut Random) -> ExprKind {
    match random.below(9) {
        0 => ExprKind::Int(random.bits() as u32 >> random.below(32)),
        1 => ExprKind::Float(random.below(1000) as f64 / 8.0),
        2 => {
            let value = f64::from_bits(random.bits()).abs();
            ExprKind::Float(if value.is_finite() { value } else { f64::MIN_POSITIVE })
        }
        3 if random.below(2) == 0 => ExprKind::Inf,
        3 => ExprKind::Pi,
        4 => ExprKind::Nan,
        5 => ExprKind::Bool(random.below(2) == 0),
        6 => ExprKind::Static(name(random).text),
        7 => access(random, 0),
        _ => ExprKind::Name(name(random).text),
    }
}

/// At most `depth` operators and functions deep.
fn expression(random: &mut Random, depth: u32) -> Expr {
    let Some(depth) = depth.checked_sub(1) else { return Expr::new(leaf(random), Span::default()) };
    let part = |random: &mut Random| expression(random, depth);
    let kind = match random.below(16) {
        0 => leaf(random),
        1 => access(random, depth),
        2 | 3 => ExprKind::Unary(random.one_of(&[UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot]), part(random)),
        4 => ExprKind::Conditional(part(random), part(random), part(random)),
        5 => {
            let function = random.one_of(Function::ALL);
            ExprKind::Call(function, (0..function.arity()).map(|_| part(random)).collect())
        }
        6 => ExprKind::Cast(random.one_of(&DType::ALL), part(random)),
        7 => ExprKind::Bitcast(random.one_of(&[DType::F32, DType::I32, DType::U32]), part(random)),
        8 => {
            let op = random.one_of(&[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min]);
            let mut indices = vec![name(random), name(random)];
            indices.dedup();
            ExprKind::Reduce { op, indices, body: part(random) }
        }
        9 => {
            let op = random.one_of(&[ReduceOp::ArgMax, ReduceOp::ArgMin]);
            ExprKind::Reduce { op, indices: vec![name(random)], body: part(random) }
        }
        10 => {
            let access = Expr::new(access(random, depth), Span::default());
            ExprKind::Pad { access, value: part(random) }
        }
        _ => ExprKind::Binary(random.one_of(&BINARY), part(random), part(random)),
    };
    Expr::new(kind, Span::default())
}
