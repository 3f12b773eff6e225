//! The rows of the group `programs`, `bench/rows.json`: the same for the browser and natively.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A tensor of a row. One with a fill is given to both sides; others are made by them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    pub shape: Vec<u32>,
    /// Values between these.
    uniform: Option<(f32, f32)>,
    /// Whole numbers from 0, below this: of i32.
    below: Option<u32>,
    /// One 1 in each row, zeros beside it.
    #[serde(default)]
    one_hot: bool,
}

/// One dispatch of a hand-written kernel.
#[derive(Debug, Deserialize)]
pub struct Dispatch {
    /// The file in bench/kernels, without its ending.
    pub kernel: String,
    /// What is declared in front of it, as WGSL.
    pub constants: BTreeMap<String, String>,
    /// What it binds, in order.
    pub tensors: Vec<String>,
    pub groups: [u32; 3],
}

#[derive(Debug, Deserialize)]
pub struct Tolerance {
    absolute: f32,
    relative: f32,
}

/// What one row measures.
#[derive(Debug, Deserialize)]
pub struct RowSpec {
    pub name: String,
    pub nodes: BTreeMap<String, NodeSpec>,
    /// The text in index notation, by lines.
    pub program: Vec<String>,
    /// What is compared.
    pub outputs: Vec<String>,
    /// How often it runs before what it left is compared.
    #[serde(default = "once")]
    pub steps: u32,
    /// Additions and multiplications of a run.
    pub flops: f64,
    /// What a run must read and write at least.
    pub bytes: f64,
    tolerance: Tolerance,
    /// Hand-written ways; which is the fastest depends on the adapter.
    pub raw: BTreeMap<String, Vec<Dispatch>>,
}

fn once() -> u32 {
    1
}

/// A file below `bench`.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bench").join(path)
}

/// All rows.
pub fn rows() -> Vec<RowSpec> {
    let text = fs::read_to_string(file("rows.json")).expect("bench/rows.json");
    serde_json::from_str(&text).expect("rows as examples/bench/rows.rs has them")
}

impl Dispatch {
    /// The text of the kernel, with the constants in front.
    pub fn text(&self) -> String {
        let path = file(&format!("kernels/{}.wgsl", self.kernel));
        let body = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let constants = self.constants.iter().map(|(name, value)| format!("const {name} = {value};\n"));
        constants.chain([body]).collect()
    }
}

impl NodeSpec {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().map(|extent| *extent as usize).product()
    }

    pub fn is_integer(&self) -> bool {
        self.below.is_some()
    }

    /// The bytes that both sides start from, if it is given.
    pub fn bytes(&self, seed: u32) -> Option<Vec<u8>> {
        let places = 0..self.len() as u32;
        if let Some(below) = self.below {
            return Some(places.flat_map(|at| (hash(seed, at) % below).to_le_bytes()).collect());
        }
        if self.one_hot {
            let width = self.shape.last().copied().unwrap_or(1);
            let is_hot = |at: u32| at % width == hash(seed, at - at % width) % width;
            return Some(places.flat_map(|at| f32::from(u8::from(is_hot(at))).to_le_bytes()).collect());
        }
        let (low, high) = self.uniform?;
        let value = |at| low + (high - low) * (hash(seed, at) >> 8) as f32 / (1 << 24) as f32;
        Some(places.flat_map(|at| value(at).to_le_bytes()).collect())
    }
}

/// "lowbias32" of Chris Wellons, <https://nullprogram.com/blog/2018/07/31/>
fn hash(seed: u32, at: u32) -> u32 {
    let mut x = seed.wrapping_mul(0x9e37_79b9) ^ at;
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

impl RowSpec {
    /// The first difference between the outputs of two sides, in words.
    pub fn difference(&self, ours: &[Vec<f32>], theirs: &[Vec<f32>]) -> Option<String> {
        let Tolerance { absolute, relative } = self.tolerance;
        let is_close = |one: f32, other: f32| (one - other).abs() <= absolute + relative * other.abs();
        self.outputs.iter().zip(ours.iter().zip(theirs)).find_map(|(name, (ours, theirs))| {
            if ours.len() != theirs.len() {
                return Some(format!("{name} has {} elements, not {}", ours.len(), theirs.len()));
            }
            let at = (0..ours.len()).find(|at| !is_close(ours[*at], theirs[*at]))?;
            Some(format!("{name}[{at}] is {}, not {}", ours[at], theirs[at]))
        })
    }
}
