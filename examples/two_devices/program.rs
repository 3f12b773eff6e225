//! The training as data: `program.json`, over what it takes from `../digits/program.json`; the page reads both too.

use std::collections::BTreeMap;

use serde::Deserialize;
use wgslab::{KernelSpec, TensorNode};

use crate::native::Result;
use crate::native::twins::{Shapes, twin};

/// Invocations of a workgroup, in every kernel that has one invocation per element.
const WORKGROUP: u64 = 64;

/// What is of the digits network, however many devices train it.
#[derive(Debug, Deserialize)]
pub struct Network {
    pub hyperparameters: Hyperparameters,
    pub data: Split,
    /// The host reads the losses after every so many steps.
    pub read_loss_every: u32,
    nodes: Vec<Node>,
    /// Nodes that the host uploads.
    pub inputs: Vec<String>,
    /// Nodes that the host reads at the end: labels, predictions, confidence.
    pub outputs: Vec<String>,
    /// Kernels that run once before the first step.
    pub setup: Vec<Kernel>,
    /// Kernels that read the test rows, in order.
    pub test: Vec<Kernel>,
}

#[derive(Debug, Deserialize)]
pub struct Hyperparameters {
    pub batch: u32,
    pub learning_rate: f32,
    pub momentum: f32,
    pub seed: i32,
}

#[derive(Debug, Deserialize)]
pub struct Split {
    pub shuffle_seed: u32,
    pub test_fraction: f64,
}

/// How two devices train the network, or one alone by the same kernels.
#[derive(Debug, Deserialize)]
pub struct Training {
    pub epochs: u32,
    /// The largest difference of a weight to that of one device with whole batches, over the largest weight.
    pub tolerance: f64,
    pub exchange: Exchange,
    nodes: Vec<Node>,
    views: Vec<View>,
    /// Nodes that start as zeros.
    pub state: Vec<String>,
    /// Kernels of one step up to the gradients, in order.
    pub step: Vec<Kernel>,
    /// Kernels that merge the gradients of the other device.
    pub merge: Vec<Kernel>,
    /// Kernels that change the weights.
    pub update: Vec<Kernel>,
}

/// The node that goes to the other device, and the one that gets what both have.
#[derive(Debug, Deserialize)]
pub struct Exchange {
    pub node: String,
    pub merged_into: String,
}

#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    dtype: String,
    shape: Vec<Extent>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Extent {
    Fixed(u32),
    /// The rows that a device takes of each batch.
    Rows(Rows),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rows {
    Rows,
}

#[derive(Debug, Deserialize)]
struct View {
    name: String,
    of: String,
    start: u64,
    shape: Vec<u32>,
}

#[derive(Debug, Deserialize)]
pub struct Kernel {
    pub name: String,
    file: String,
    grid: Grid,
    statics: Vec<String>,
    tensors: Vec<Tensor>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Grid {
    Fixed([u32; 3]),
    /// One invocation per element of these nodes.
    Over {
        over: Vec<String>,
    },
}

/// A tensor of a kernel: its name in the kernel's accessors, and the node that stands for it.
#[derive(Debug, Deserialize)]
struct Tensor {
    name: String,
    node: String,
    access: String,
    #[serde(default)]
    merged: bool,
}

/// The programs that this example was built with.
pub fn load() -> Result<(Network, Training)> {
    let network = serde_json::from_str(include_str!("../digits/program.json"))?;
    Ok((network, serde_json::from_str(include_str!("program.json"))?))
}

/// The nodes of a training, by name.
#[derive(Clone, Debug)]
pub struct Nodes {
    all: BTreeMap<String, TensorNode>,
}

impl Nodes {
    /// Nodes for a device that takes so many rows of each batch.
    pub fn new(network: &Network, training: &Training, rows: u32) -> Result<Self> {
        let mut nodes = Self { all: BTreeMap::new() };
        for Node { name, dtype, shape } in network.nodes.iter().chain(&training.nodes) {
            let extent = |extent: &Extent| match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Rows(Rows::Rows) => rows,
            };
            let shape: Vec<u32> = shape.iter().map(extent).collect();
            nodes.all.insert(name.clone(), TensorNode::new(name, dtype.parse()?, shape));
        }
        for View { name, of, start, shape } in &training.views {
            let view = TensorNode::view(name, nodes.get(of)?, *start, shape.clone());
            nodes.all.insert(name.clone(), view);
        }
        Ok(nodes)
    }

    /// The same for a device that merges nothing: what it has is all there is.
    pub fn alone(mut self, exchange: &Exchange) -> Result<Self> {
        let own = self.get(&exchange.node)?.clone();
        self.all.insert(exchange.merged_into.clone(), own);
        Ok(self)
    }

    /// The node of that name.
    pub fn get(&self, name: &str) -> Result<&TensorNode> {
        self.all.get(name).ok_or_else(|| format!("program.json: there is no node \"{name}\"").into())
    }

    /// The nodes of those names, in their order.
    pub fn get_all(&self, names: &[String]) -> Result<Vec<&TensorNode>> {
        names.iter().map(|name| self.get(name)).collect()
    }

    /// The views, in the order in which they were made.
    pub fn views(&self) -> Vec<&TensorNode> {
        let mut views: Vec<_> = self.all.values().filter(|node| node.base().is_some()).collect();
        views.sort_by_key(|view| view.id());
        views
    }
}

impl Kernel {
    /// The kernel over those nodes, with its host twin.
    pub fn spec(&self, nodes: &Nodes) -> Result<KernelSpec> {
        let (text, twin) = (self.text()?, twin(&self.name)?);
        let mut spec = KernelSpec::new(&self.name, text).statics(self.statics.iter().cloned());
        let mut shapes = Shapes::default();
        for Tensor { name, node, access, merged } in &self.tensors {
            let node = nodes.get(node)?;
            shapes.insert(name, node.shape());
            spec = if *merged { spec.merge_tensor(name, node) } else { spec.tensor(name, node, access.parse()?) };
        }
        let grid = match &self.grid {
            Grid::Fixed(grid) => *grid,
            Grid::Over { over } => {
                let invocations: u64 = nodes.get_all(over)?.iter().map(|node| node.element_len()).sum();
                [invocations.div_ceil(WORKGROUP) as u32, 1, 1]
            }
        };
        Ok(spec.grid(grid).twin(move |args| twin(args, &shapes)))
    }

    fn text(&self) -> Result<&'static str> {
        Ok(match self.file.trim_start_matches("../digits/") {
            "gather.wgsl" => include_str!("../digits/gather.wgsl"),
            "hidden.wgsl" => include_str!("../digits/hidden.wgsl"),
            "hidden_grad.wgsl" => include_str!("../digits/hidden_grad.wgsl"),
            "init.wgsl" => include_str!("../digits/init.wgsl"),
            "output.wgsl" => include_str!("../digits/output.wgsl"),
            "predict.wgsl" => include_str!("../digits/predict.wgsl"),
            "gradient.wgsl" => include_str!("gradient.wgsl"),
            "merge.wgsl" => include_str!("merge.wgsl"),
            "momentum.wgsl" => include_str!("momentum.wgsl"),
            file => return Err(format!("program.json: kernel \"{}\" has no file \"{file}\"", self.name).into()),
        })
    }
}
