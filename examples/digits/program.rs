//! The training program as data: `program.json` and the files that it names, the same that the page reads.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wgslab::{Context, Driver, KernelSpec, ProgramSpec, Routine, Source, TensorNode, host};

use crate::native::Result;

/// The program, as the file has it.
#[derive(Debug, Deserialize)]
pub struct Program {
    pub hyperparameters: Hyperparameters,
    pub data: Split,
    /// The host reads the losses after every so many steps.
    pub read_loss_every: u32,
    pub nodes: Vec<Node>,
    /// Nodes that the host uploads.
    pub inputs: Vec<String>,
    /// Nodes that start as zeros.
    pub state: Vec<String>,
    /// Nodes that the host reads at the end: accuracy, confusion matrix, predictions, confidence.
    pub outputs: Vec<String>,
    /// What runs once before the first step.
    pub setup: Vec<Kernel>,
    /// What one step runs, in order.
    pub step: Vec<Kernel>,
    /// What reads the test rows, in order.
    pub test: Vec<Kernel>,
}

#[derive(Debug, Deserialize)]
pub struct Hyperparameters {
    pub batch: u32,
    pub learning_rate: f32,
    pub momentum: f32,
    pub epochs: u32,
    pub seed: i32,
}

#[derive(Debug, Deserialize)]
pub struct Split {
    pub shuffle_seed: u32,
    pub test_fraction: f64,
}

#[derive(Debug, Deserialize)]
pub struct Node {
    pub name: String,
    dtype: String,
    shape: Vec<Extent>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Extent {
    Fixed(u32),
    Of(Cut),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cut {
    Batches,
    Rows,
}

/// How the training rows, round and round, are cut into batches.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    pub count: u32,
    /// The rows of each.
    pub rows: u32,
}

/// What a device compiles: a program in index notation, and perhaps a raw kernel that does the same.
#[derive(Debug, Deserialize)]
pub struct Kernel {
    name: String,
    files: Vec<String>,
    raw: Option<Raw>,
}

#[derive(Debug, Deserialize)]
struct Raw {
    file: String,
    grid: [u32; 3],
    tensors: Vec<Tensor>,
}

/// How a raw kernel uses a node.
#[derive(Debug, Deserialize)]
struct Tensor {
    node: String,
    access: String,
}

/// A JSON file in the folder of the examples.
pub fn load<T: DeserializeOwned>(file: &str) -> Result<T> {
    Ok(serde_json::from_str(&text(file)?)?)
}

fn text(file: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()).into())
}

impl Program {
    /// The digits program.
    pub fn load() -> Result<Self> {
        load("digits/program.json")
    }

    /// Whole batches in that many training rows.
    pub fn steps_per_epoch(&self, train_len: usize) -> u32 {
        train_len as u32 / self.hyperparameters.batch
    }
}

/// Nodes by their names.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    all: BTreeMap<String, TensorNode>,
    merged: Option<(String, TensorNode)>,
}

impl Nodes {
    /// Makes nodes, in that order.
    pub fn new<'a>(nodes: impl IntoIterator<Item = &'a Node>, batches: Batches) -> Result<Self> {
        let mut made = Self::default();
        for Node { name, dtype, shape } in nodes {
            let extent = |extent: &Extent| match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Of(Cut::Batches) => batches.count,
                Extent::Of(Cut::Rows) => batches.rows,
            };
            let shape: Vec<u32> = shape.iter().map(extent).collect();
            made.insert(name, TensorNode::new(name, dtype.parse()?, shape));
        }
        Ok(made)
    }

    /// Gives a node that name, from now on.
    pub fn insert(&mut self, name: &str, node: TensorNode) {
        self.all.insert(name.to_owned(), node);
    }

    /// The same, and a name for what the merge buffer holds.
    pub fn merging(mut self, name: &str, node: TensorNode) -> Self {
        self.merged = Some((name.to_owned(), node));
        self
    }

    /// The node of that name.
    pub fn get(&self, name: &str) -> Result<&TensorNode> {
        self.all.get(name).ok_or_else(|| format!("program.json: there is no node \"{name}\"").into())
    }

    /// The nodes of those names, in their order.
    pub fn get_all(&self, names: &[String]) -> Result<Vec<&TensorNode>> {
        names.iter().map(|name| self.get(name)).collect()
    }
}

impl Kernel {
    /// What a device of that driver compiles.
    fn source(&self, nodes: &Nodes, driver: &str) -> Result<Source> {
        if let Some(Raw { file, grid, tensors }) = self.raw.as_ref().filter(|_| driver != host::Host::NAME) {
            let mut kernel = KernelSpec::new(&self.name, text(file)?).grid(*grid);
            for Tensor { node, access } in tensors {
                kernel = kernel.tensor(node, nodes.get(node)?, access.parse()?);
            }
            return Ok(kernel.into());
        }
        let texts = self.files.iter().map(|file| text(file)).collect::<Result<Vec<_>>>()?;
        let mut program = ProgramSpec::new(&self.name, texts.join("\n"));
        for (name, node) in &nodes.all {
            program = program.node_as(name, node);
        }
        Ok(nodes.merged.iter().fold(program, |program, (name, node)| program.merge_node(name, node)).into())
    }
}

/// Compiles kernels and links them in order, each into the context of the one before.
pub async fn link<D: Driver>(context: &mut Context<D>, kernels: &[Kernel], nodes: &Nodes) -> Result<Vec<Routine<D>>> {
    let mut routines = Vec::new();
    for kernel in kernels {
        let code = context.device().compile(kernel.source(nodes, D::NAME)?).await?;
        let routine = context.link(&code).await?;
        *context = routine.context().clone();
        routines.push(routine);
    }
    Ok(routines)
}
