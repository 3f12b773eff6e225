//! The training program as data: `program.json` and its kernels, the same files that the page reads.

use serde::Deserialize;
use wgslab::Access;

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
    /// Nodes that the host reads at the end: labels, predictions, confidence.
    pub outputs: Vec<String>,
    /// Kernels that run once before the first step.
    pub setup: Vec<Kernel>,
    /// Kernels of one step, in order.
    pub step: Vec<Kernel>,
    /// Kernels that read the test rows, in order.
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
    pub dtype: String,
    pub shape: Vec<u32>,
}

#[derive(Debug, Deserialize)]
pub struct Kernel {
    pub name: String,
    pub file: String,
    pub grid: [u32; 3],
    pub statics: Vec<String>,
    pub tensors: Vec<Tensor>,
}

/// A tensor of a kernel: its name in the kernel's accessors, and the node that stands for it.
#[derive(Debug, Deserialize)]
pub struct Tensor {
    pub name: String,
    pub node: String,
    access: String,
}

impl Program {
    /// The program that this example was built with.
    pub fn load() -> Result<Self> {
        Ok(serde_json::from_str(include_str!("program.json"))?)
    }

    /// Whole batches in that many training rows.
    pub fn steps_per_epoch(&self, train_len: usize) -> u32 {
        train_len as u32 / self.hyperparameters.batch
    }
}

impl Kernel {
    /// The kernel's WGSL.
    pub fn text(&self) -> Result<&'static str> {
        Ok(match self.file.as_str() {
            "gather.wgsl" => include_str!("gather.wgsl"),
            "hidden.wgsl" => include_str!("hidden.wgsl"),
            "hidden_grad.wgsl" => include_str!("hidden_grad.wgsl"),
            "init.wgsl" => include_str!("init.wgsl"),
            "output.wgsl" => include_str!("output.wgsl"),
            "predict.wgsl" => include_str!("predict.wgsl"),
            "update.wgsl" => include_str!("update.wgsl"),
            file => return Err(format!("program.json: kernel \"{}\" has no file \"{file}\"", self.name).into()),
        })
    }
}

impl Tensor {
    /// How the kernel uses the tensor.
    pub fn access(&self) -> Result<Access> {
        Ok(match self.access.as_str() {
            "read" => Access::Read,
            "write" => Access::Write,
            "read_write" => Access::ReadWrite,
            access => return Err(format!("program.json: tensor \"{}\" has access \"{access}\"", self.name).into()),
        })
    }
}
