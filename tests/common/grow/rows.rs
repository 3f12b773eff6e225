//! Programs that accumulate rows and go over them again: softmaxes and norms of all kinds, and what is nearly one.

use wgslab::DType;
use wgslab::notation::check::{Given, check};
use wgslab::notation::parse;

use super::super::model::Random;

/// Elements of the tensor whose rows they are, at most.
const MOST_ELEMENTS: u32 = 4000;

struct Rows<'r> {
    random: &'r mut Random,
    is_float: bool,
    /// What expressions are made of, at any point.
    atoms: Vec<String>,
}

/// The text, what it is given, and how many of its statements the checker took and refused.
pub(super) fn rows(random: &mut Random) -> (String, Vec<Given>, [u64; 2]) {
    let is_float = random.below(5) > 0;
    let dtypes = if is_float { [DType::F32, DType::F32, DType::F16] } else { [DType::I32, DType::I32, DType::I8] };
    let dtype = |random: &mut Random| dtypes[random.index(3)];
    let extent = |random: &mut Random| match random.below(12) {
        0 => [64, 65, 130, 300][random.index(4)],
        1 => 0,
        _ => 1 + random.below(9) as u32,
    };
    let mut axes: Vec<(&str, u32)> = Vec::new();
    let (outer, inner) = (1 + random.index(2), 1 + random.index(4) / 3);
    for name in ["i", "k"][..outer].iter().chain(&["j", "l"][..inner]) {
        let all: u32 = axes.iter().map(|(_, extent)| *extent).product();
        let len = extent(random);
        axes.push((name, if all.saturating_mul(len) > MOST_ELEMENTS { 3 } else { len }));
    }
    let of = |axes: &[(&str, u32)]| {
        let names: Vec<&str> = axes.iter().map(|(name, _)| *name).collect();
        (names.join(", "), axes.iter().map(|(_, extent)| *extent).collect::<Vec<u32>>())
    };
    let (point, points) = of(&axes[..outer]);
    let (row, lengths) = of(&axes[outer..]);
    if random.below(4) == 0 {
        axes.rotate_left(outer);
    }
    let (element, elements) = of(&axes);
    let mut given = Vec::new();
    for (name, shape) in [("x", &elements), ("y", &elements), ("w", &lengths), ("g", &points)] {
        let is_constant = name == "w" && random.below(2) == 0;
        given.push(Given { name: name.to_owned(), dtype: dtype(random), shape: shape.clone(), is_constant });
    }
    let x = format!("x[{element}]");
    let mut rows = Rows { random, is_float, atoms: vec![x.clone(), x.clone(), x, format!("w[{row}]"), "3".to_owned()] };
    let mut lines = Vec::new();
    let mut kept = None;
    for number in 0..1 + rows.random.index(3) {
        let op = ["+", "+", "max", "max", "min", "*"][rows.random.index(6)];
        let mut value = rows.expr(2);
        if rows.is_float && rows.random.below(2) == 0 {
            value = format!("exp(min({value}, 2.5))");
            kept = Some(value.clone());
        }
        if rows.random.below(5) == 0 {
            lines.push(format!("g[{point}] {op}= {value}"));
            rows.atoms.push(format!("g[{point}]"));
        } else {
            lines.push(format!("r{number}[{point}] {op}=! {value}"));
            rows.atoms.push(format!("r{number}[{point}]"));
        }
    }
    if let Some(kept) = kept.filter(|_| rows.random.below(4) > 0) {
        rows.atoms.extend([kept.clone(), kept.clone(), kept]);
    }
    for number in 0..1 + rows.random.index(3) {
        let target = ["z", "z", "y", "x"][rows.random.index(4)];
        let target = if target == "z" { format!("z{number}[{element}]") } else { format!("{target}[{element}]") };
        let value = rows.expr(2);
        lines.push(match rows.random.below(8) {
            0 => format!("w[{row}] {}=! {value}", ["+", "max"][rows.random.index(2)]),
            1 => format!("q{number}[{point}] +=! {target} * 2"),
            2 => format!("{target} += {value}"),
            _ => format!("{target} = {value}"),
        });
        rows.atoms.push(target);
    }
    let (mut text, mut counts) = (String::new(), [0, 0]);
    for line in lines {
        let longer = format!("{text}{line}\n");
        let is_taken = parse(&longer).and_then(|ast| check(&longer, &ast, &given, &[])).is_ok();
        counts[usize::from(!is_taken)] += 1;
        if is_taken {
            text = longer;
        }
    }
    (text, given, counts)
}

impl Rows<'_> {
    fn expr(&mut self, depth: u32) -> String {
        if depth == 0 || self.random.below(6) == 0 {
            return self.atoms[self.random.index(self.atoms.len())].clone();
        }
        let (a, b) = (self.expr(depth - 1), self.expr(depth - 1));
        match self.random.below(9) {
            0 | 1 => format!("({a} + {b})"),
            2..=4 => format!("({a} - {b})"),
            5 => format!("({a} * {b})"),
            6 => format!("max({a}, {b})"),
            7 if self.is_float => format!("({a} / {b})"),
            7 => format!("({a} ^ {b})"),
            _ => format!("abs({a})"),
        }
    }
}
