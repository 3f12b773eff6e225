//! The training as data: `program.json`, over what it takes from `../digits/program.json`; the page reads both too.

use serde::Deserialize;
use wgslab::TensorNode;

use crate::native::Result;
use crate::native::program::{self, Batches, Kernel, Node, Nodes, Program};

/// How two devices train the network, or one alone by the same programs.
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
    /// What one step runs up to the gradients, in order.
    pub step: Vec<Kernel>,
    /// What merges the gradients of the other device.
    pub merge: Vec<Kernel>,
    /// What changes the weights.
    pub update: Vec<Kernel>,
}

/// The node that goes to the other device, the name that it has there, and the one that gets what both have.
#[derive(Debug, Deserialize)]
pub struct Exchange {
    pub node: String,
    pub merged_as: String,
    pub merged_into: String,
}

#[derive(Debug, Deserialize)]
struct View {
    name: String,
    of: String,
    start: u64,
    shape: Vec<u32>,
}

/// What devices that train together have in common.
#[derive(Debug)]
pub struct Shared {
    pub batches: Batches,
    pub nodes: Nodes,
    /// The nodes that are views, in the order in which they were made.
    pub views: Vec<TensorNode>,
}

impl Training {
    /// The training on two devices.
    pub fn load() -> Result<Self> {
        program::load("two_devices/program.json")
    }

    /// Makes the nodes for devices that take those batches.
    pub fn share(&self, network: &Program, batches: Batches) -> Result<Shared> {
        let mut nodes = Nodes::new(network.nodes.iter().chain(&self.nodes), batches)?;
        let mut views = Vec::new();
        for View { name, of, start, shape } in &self.views {
            let view = TensorNode::view(name, nodes.get(of)?, *start, shape.clone());
            nodes.insert(name, view.clone());
            views.push(view);
        }
        Ok(Shared { batches, nodes, views })
    }
}
