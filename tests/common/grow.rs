//! Random programs in index notation, as text: one statement after another, each taken if the checker takes it.

mod expressions;
mod narrow;
mod rows;

use wgslab::DType;
use wgslab::notation::check::{Given, check};
use wgslab::notation::parse;
use wgslab::notation::program::{Origin, Program, ProgramNode, Ty};

use super::model::Random;

/// A program with what it is run on.
#[derive(Clone, Debug)]
pub struct Grown {
    pub text: String,
    pub given: Vec<Given>,
    /// The bytes of each node that is given.
    pub bytes: Vec<Vec<u8>>,
    pub outputs: Vec<String>,
    pub statics: Vec<(String, i32)>,
    pub runs: u32,
    /// Statements that the checker took, and refused.
    pub taken: u64,
    pub refused: u64,
}

impl Grown {
    /// The program as it is checked.
    pub fn program(&self) -> wgslab::Result<Program> {
        check(&self.text, &parse(&self.text)?, &self.given, &self.outputs)
    }

    /// The values of the statics, in the order of the program; `None` where the program refuses them.
    pub fn statics_of(&self, program: &Program) -> Option<Vec<i32>> {
        let value = |name: &String| self.statics.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value);
        let values: Vec<i32> = program.statics.iter().map(value).collect();
        let holds = program.static_bounds.iter().all(|bound| {
            let sum: i64 = bound.terms.iter().map(|(index, factor)| i64::from(values[*index]) * factor).sum();
            (bound.least..=bound.most).contains(&sum)
        });
        holds.then_some(values)
    }
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    dtype: DType,
    shape: Vec<u32>,
    is_constant: bool,
}

#[derive(Clone, Debug)]
struct Index {
    name: &'static str,
    lo: i64,
    hi: i64,
    /// The extents of axes on which it stands alone.
    lone: Vec<u32>,
}

const NAMES: [&str; 12] = ["i", "j", "k", "l", "m", "n", "p", "q", "r", "s", "u", "v"];
const STATICS: [&str; 2] = ["s", "shift"];
const DTYPES: [DType; 15] = {
    use DType::*;
    [F32, F32, F32, I32, I32, U32, F16, BF16, I8, U8, U8, Bool, F16, BF16, I8]
};

struct Grower<'r> {
    random: &'r mut Random,
    tensors: Vec<Tensor>,
    indices: Vec<Index>,
    /// Those that a name leads to here.
    scope: Vec<usize>,
    /// Points so far.
    cost: i64,
    /// Whether a position may gather.
    may_gather: bool,
}

/// Points of a statement, inner reductions included.
const MOST_POINTS: i64 = 3000;

/// The program of a seed.
pub fn grow(seed: u64) -> Grown {
    let mut random = Random::new(seed);
    if seed % 6 == 5 {
        let (text, given, counts) = rows::rows(&mut random);
        return finished(&mut random, text, given, counts);
    }
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut text = String::new();
    let mut given = Vec::new();
    // Compilers take time: most programs are small.
    let is_large = random.below(8) == 0;
    for number in 0..2 + random.index(if is_large { 6 } else { 3 }) {
        let dtype = DTYPES[random.index(DTYPES.len())];
        let shape = shape(&mut random, &tensors);
        let is_declared = random.below(4) == 0;
        let is_constant = !is_declared && random.below(6) == 0;
        let name = format!("t{number}");
        if is_declared {
            let extents: Vec<String> = shape.iter().map(u32::to_string).collect();
            let extents = if extents.is_empty() { String::new() } else { format!("[{}]", extents.join(", ")) };
            text.push_str(&format!("{name}: {dtype}{extents}\n"));
        } else {
            given.push(Given { name: name.clone(), dtype, shape: shape.clone(), is_constant });
        }
        tensors.push(Tensor { name, dtype, shape, is_constant });
    }
    let (mut taken, mut refused) = (0, 0);
    let wanted = 1 + random.index(if is_large { 7 } else { 3 }) as u64;
    while taken < wanted && refused < 40 {
        let mut grower = Grower {
            random: &mut random,
            tensors: tensors.clone(),
            indices: Vec::new(),
            scope: Vec::new(),
            cost: 1,
            may_gather: true,
        };
        let Some(line) = grower.statement() else { continue };
        let longer = format!("{text}{line}\n");
        match parse(&longer).and_then(|ast| check(&longer, &ast, &given, &[])) {
            Ok(program) if points(&program) <= 40_000 => {
                taken += 1;
                text = longer;
                for node in &program.nodes {
                    if !tensors.iter().any(|known| known.name == node.name) {
                        let (name, shape) = (node.name.clone(), node.shape.clone());
                        tensors.push(Tensor { name, dtype: node.dtype, shape, is_constant: false });
                    }
                }
            }
            Ok(_) => {}
            Err(error) => {
                refused += 1;
                if std::env::var_os("WGSLAB_SHOW_REFUSED").is_some() {
                    eprintln!("refused: {line}\n  {error}");
                }
            }
        }
    }
    let mut counts = [taken, refused];
    if seed % 16 == 4 {
        // By numbers of their own, so that the program before them is what it would be.
        narrow::behind(&mut Random::new(!seed), &mut text, (&tensors, &given), &mut counts);
    }
    finished(&mut random, text, given, counts)
}

/// A program with what else it takes to run it.
fn finished(random: &mut Random, text: String, mut given: Vec<Given>, [taken, refused]: [u64; 2]) -> Grown {
    let mut outputs = Vec::new();
    if let Ok(program) = parse(&text).and_then(|ast| check(&text, &ast, &given, &[])) {
        given.retain(|node| program.nodes.iter().any(|known| known.name == node.name));
        let created = program.nodes.iter().filter(|node| node.origin == Origin::Created);
        let is_listed = |node: &&ProgramNode| node.name == narrow::READ || random.below(3) > 0;
        outputs.extend(created.filter(is_listed).map(|node| node.name.clone()));
    }
    let bytes = given.iter().map(|node| contents(random, node.dtype, &node.shape)).collect();
    let runs = 1 + random.below(2) as u32;
    let mut grown = Grown { text, given, bytes, outputs, statics: Vec::new(), runs, taken, refused };
    for _ in 0..60 {
        grown.statics = STATICS.iter().map(|name| ((*name).to_owned(), random.below(9) as i32 - 3)).collect();
        if grown.program().is_ok_and(|program| grown.statics_of(&program).is_some()) {
            break;
        }
    }
    grown
}

/// The most points of a statement.
fn points(program: &Program) -> i64 {
    let of = |statement: &wgslab::notation::program::Statement| {
        statement.indices.iter().map(|index| (index.hi - index.lo).max(1)).fold(1i64, i64::saturating_mul)
    };
    program.statements.iter().map(of).max().unwrap_or(0)
}

fn shape(random: &mut Random, tensors: &[Tensor]) -> Vec<u32> {
    let rank = [0, 1, 1, 1, 2, 2, 2, 3, 3, 4][random.index(10)];
    let mut shape: Vec<u32> = (0..rank).map(|_| extent(random, tensors)).collect();
    while shape.iter().map(|extent| i64::from(*extent)).product::<i64>() > MOST_POINTS {
        if let Some(most) = shape.iter_mut().max() {
            *most = 2;
        }
    }
    shape
}

fn extent(random: &mut Random, tensors: &[Tensor]) -> u32 {
    let known: Vec<u32> = tensors.iter().flat_map(|tensor| tensor.shape.iter().copied()).collect();
    if !known.is_empty() && random.below(3) > 0 {
        return known[random.index(known.len())];
    }
    match random.below(24) {
        0 => 0,
        1 => [64, 65, 127, 129, 130][random.index(5)],
        2 => [257, 300, 513][random.index(3)],
        _ => 1 + random.below(7) as u32,
    }
}

fn contents(random: &mut Random, dtype: DType, shape: &[u32]) -> Vec<u8> {
    let len: u64 = shape.iter().map(|extent| u64::from(*extent)).product();
    let mut bytes = Vec::new();
    let is_wild = random.below(4) == 0;
    for _ in 0..len {
        let special = is_wild && random.below(12) == 0;
        let float = if special {
            [0.0, -0.0, f32::NAN, f32::INFINITY, 1e10, -70000.0, 1e-6, 100.5][random.index(8)]
        } else if is_wild {
            (random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0) * 4.0
        } else {
            (random.below(49) as f32 - 24.0) / 8.0
        };
        let whole = if special {
            [i32::MIN, i32::MAX, -1, 255, 256, 31, 32, -129][random.index(8)]
        } else {
            random.below(13) as i32 - 4
        };
        match dtype {
            DType::F32 => bytes.extend(float.to_le_bytes()),
            DType::F16 => bytes.extend(half::f16::from_f32(float).to_le_bytes()),
            DType::BF16 => bytes.extend(half::bf16::from_f32(float).to_le_bytes()),
            DType::I32 => bytes.extend(whole.to_le_bytes()),
            DType::U32 => bytes.extend(if special { whole as u32 } else { random.below(9) as u32 }.to_le_bytes()),
            DType::I8 | DType::U8 => bytes.push(if is_wild { random.below(256) as u8 } else { random.below(9) as u8 }),
            DType::Bool => bytes.push(random.below(2) as u8),
        }
    }
    bytes
}

impl Grower<'_> {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.index(of.len())]
    }

    fn chance(&mut self, of: u64, among: u64) -> bool {
        self.random.below(among) < of
    }

    /// A new index; its name may hide another's.
    fn index(&mut self, lo: i64, hi: i64, may_hide: bool) -> Option<usize> {
        let cost = self.cost.saturating_mul((hi - lo).max(1));
        if cost > MOST_POINTS {
            return None;
        }
        self.cost = cost;
        let is_used = |name: &str, indices: &[Index]| indices.iter().any(|index| index.name == name);
        let name = match self.indices.last() {
            Some(last) if may_hide && self.random.below(6) == 0 => last.name,
            _ => NAMES.into_iter().find(|name| !is_used(name, &self.indices))?,
        };
        self.indices.push(Index { name, lo, hi, lone: Vec::new() });
        Some(self.indices.len() - 1)
    }

    fn statement(&mut self) -> Option<String> {
        let writable: Vec<Tensor> = self.tensors.iter().filter(|tensor| !tensor.is_constant).cloned().collect();
        let existing = (!writable.is_empty() && (self.chance(2, 3) || self.tensors.len() >= 12))
            .then(|| writable[self.random.index(writable.len())].clone());
        let is_bool = existing.as_ref().is_some_and(|tensor| tensor.dtype == DType::Bool);
        let op = match &existing {
            _ if is_bool => "=",
            Some(_) => self.one(&["=", "=", "=", "+=", "*=", "max=", "min=", "+=!", "+=!", "*=!", "max=!", "min=!"]),
            None => self.one(&["=", "=", "=", "+=!", "+=!", "*=!", "max=!", "min=!"]),
        };
        let accumulates = op != "=";
        let (name, ty, left) = match existing {
            Some(tensor) => {
                let left = self.left(&tensor, accumulates)?;
                (tensor.name.clone(), Ty::of(tensor.dtype), left)
            }
            None => {
                let shape = shape(self.random, &self.tensors);
                let mut left = Vec::new();
                for extent in shape {
                    let index = self.index(0, i64::from(extent), false)?;
                    self.scope.push(index);
                    left.push(self.indices[index].name.to_owned());
                }
                let ty = if accumulates { 3 } else { 4 };
                let ty = [Ty::F32, Ty::I32, Ty::U32, Ty::Bool][self.random.index(ty)];
                let ty = if self.chance(1, 3) { Ty::F32 } else { ty };
                (format!("c{}", self.tensors.len()), ty, left)
            }
        };
        if accumulates {
            for _ in 0..self.random.below(3) {
                let extent = i64::from(extent(self.random, &self.tensors));
                let lo = if self.chance(1, 8) { extent / 3 } else { 0 };
                if let Some(index) = self.index(lo, extent, false) {
                    self.scope.push(index);
                }
            }
        }
        let depth = 1 + self.random.below(4) as u32;
        let mut value = self.expr(ty, depth);
        if accumulates {
            // An index that stands nowhere is none.
            for index in self.scope.clone() {
                if !value.contains(self.indices[index].name)
                    && !left.iter().any(|at| at.contains(self.indices[index].name))
                {
                    let access = self.load_along(index, ty);
                    value = format!("{value} + {access}");
                }
            }
        }
        let mut ranges: Vec<String> = Vec::new();
        let mut named: Vec<&str> = Vec::new();
        for index in &self.indices {
            let Index { name, lo, hi, lone } = index;
            let is_plain = *lo == 0 && !lone.is_empty() && lone.iter().all(|extent| i64::from(*extent) == *hi);
            let is_left_out = is_plain && self.random.below(4) > 0 || self.random.below(30) == 0;
            if !is_left_out && !named.contains(name) {
                named.push(name);
                ranges.push(format!("{name} in {lo}:{hi}"));
            }
        }
        let positions = if left.is_empty() { String::new() } else { format!("[{}]", left.join(", ")) };
        let clause = if ranges.is_empty() { String::new() } else { format!(" where {}", ranges.join(", ")) };
        Some(format!("{name}{positions} {op} {value}{clause}"))
    }

    /// An access along an index, or what stands for it.
    fn load_along(&mut self, index: usize, ty: Ty) -> String {
        let name = self.indices[index].name;
        match ty {
            Ty::F32 => format!("f32({name})"),
            Ty::I32 => name.to_owned(),
            _ => format!("u32({name})"),
        }
    }

    /// Positions on the left of a node that exists.
    fn left(&mut self, tensor: &Tensor, accumulates: bool) -> Option<Vec<String>> {
        let mut left = Vec::new();
        for &extent in &tensor.shape {
            let whole = i64::from(extent);
            let roll = self.random.below(22);
            let text = match roll {
                0..=1 | 20..=21 if accumulates => {
                    let hi = 1 + self.random.below(6) as i64;
                    if self.scope.is_empty() {
                        let index = self.index(0, hi, false)?;
                        self.scope.push(index);
                    }
                    self.may_gather = false;
                    let gathered = self.gather();
                    self.may_gather = true;
                    gathered?
                }
                2..=3 if !self.scope.is_empty() => self.affine(whole)?,
                4 if whole > 0 => self.random.below(whole as u64).to_string(),
                5 if whole > 1 => {
                    self.fresh(0, whole / 2)?;
                    let name = self.indices.last()?.name;
                    format!("2 * {name} + {}", whole % 2)
                }
                6 => {
                    self.fresh(0, whole)?;
                    let name = self.indices.last()?.name;
                    format!("{} - {name}", whole - 1)
                }
                7 if whole > 2 => {
                    self.fresh(0, whole - 2)?;
                    let name = self.indices.last()?.name;
                    format!("{name} + {}", 1 + self.random.below(2))
                }
                8 if whole > 2 => {
                    self.fresh(1, whole - 1)?;
                    self.indices.last()?.name.to_owned()
                }
                9 if whole > 1 => {
                    self.fresh(0, whole / 2)?;
                    let name = self.indices.last()?.name;
                    format!("{name} + @{}", STATICS[0])
                }
                10 if whole > 3 => {
                    let inner = 2 + self.random.below(2) as i64;
                    self.fresh(0, whole / inner)?;
                    let outer = self.indices.last()?.name;
                    self.fresh(0, inner)?;
                    format!("{inner} * {outer} + {}", self.indices.last()?.name)
                }
                _ => {
                    self.fresh(0, whole)?;
                    self.indices.last_mut()?.lone.push(extent);
                    self.indices.last()?.name.to_owned()
                }
            };
            left.push(text);
        }
        Some(left)
    }

    fn fresh(&mut self, lo: i64, hi: i64) -> Option<()> {
        let index = self.index(lo, hi.max(lo), false)?;
        self.scope.push(index);
        Some(())
    }

    /// A position that stays on the axis.
    fn affine(&mut self, extent: i64) -> Option<String> {
        for _ in 0..6 {
            if self.scope.is_empty() {
                break;
            }
            let index = self.scope[self.random.index(self.scope.len())];
            let Index { name, lo, hi, .. } = self.indices[index].clone();
            let factor = [1, 1, 1, -1, 2, -2, 3][self.random.index(7)];
            let ends = [factor * lo, factor * (hi - 1)];
            let (mut least, mut most) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            if lo >= hi {
                (least, most) = (0, 0);
            }
            let mut text = match factor {
                1 => name.to_owned(),
                -1 => format!("-{name}"),
                _ => format!("{factor} * {name}"),
            };
            if self.chance(1, 5) {
                let other = self.scope[self.random.index(self.scope.len())];
                let Index { name, lo, hi, .. } = self.indices[other].clone();
                if lo < hi {
                    (least, most) = (least + lo, most + hi - 1);
                }
                text = format!("{text} + {name}");
            }
            let room = extent - 1 - most + least;
            if room < 0 {
                continue;
            }
            let constant = -least + self.random.below(room as u64 + 1) as i64;
            if room > 1 && self.chance(1, 6) {
                return Some(format!("{text} + @{} + {constant}", self.one(&STATICS)));
            }
            return Some(match constant {
                0 => text,
                1.. => format!("{text} + {constant}"),
                _ => format!("{text} - {}", -constant),
            });
        }
        None
    }

    fn position(&mut self, extent: u32, may_leave: bool) -> Option<String> {
        let whole = i64::from(extent);
        if may_leave && self.chance(1, 2) && !self.scope.is_empty() {
            let index = self.scope[self.random.index(self.scope.len())];
            let shift = self.random.below(7) as i64 - 3;
            let factor = self.one(&["", "2 * ", "-"]);
            return Some(format!("{factor}{} + {shift}", self.indices[index].name));
        }
        match self.random.below(10) {
            0 if self.may_gather && whole > 0 => {
                self.may_gather = false;
                let gathered = self.gather();
                self.may_gather = true;
                return gathered;
            }
            1 | 2 => {
                if let Some(text) = self.affine(whole) {
                    return Some(text);
                }
            }
            _ => {}
        }
        let exact: Vec<usize> = (self.scope.iter().copied())
            .filter(|index| self.indices[*index].lo == 0 && self.indices[*index].hi == whole)
            .collect();
        if !exact.is_empty() {
            let index = exact[self.random.index(exact.len())];
            self.indices[index].lone.push(extent);
            return Some(self.indices[index].name.to_owned());
        }
        let fits: Vec<usize> = (self.scope.iter().copied())
            .filter(|index| self.indices[*index].lo >= 0 && self.indices[*index].hi <= whole)
            .collect();
        if !fits.is_empty() && self.chance(4, 5) {
            let index = fits[self.random.index(fits.len())];
            self.indices[index].lone.push(extent);
            return Some(self.indices[index].name.to_owned());
        }
        if let Some(text) = self.affine(whole) {
            return Some(text);
        }
        (whole > 0).then(|| self.random.below(whole as u64).to_string())
    }
}
