//! Case files: what they say, as types. `tests/cases/README.md` is their description.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One case file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    #[allow(dead_code)]
    pub source: String,
    #[serde(default)]
    pub device: DeviceOptions,
    // A program.
    pub program: Option<String>,
    /// How its kernels are spread: for whoever runs the case to say.
    #[serde(skip)]
    pub forced: Option<wgslab::Forced>,
    // A raw kernel.
    pub wgsl: Option<String>,
    pub tensors: Option<Value>,
    pub grid: Option<[u32; 3]>,
    #[serde(default)]
    pub statics: Map<String, Value>,
    #[serde(default)]
    pub inputs: Map<String, Value>,
    #[serde(default)]
    pub outputs: Map<String, Value>,
    #[serde(default = "one")]
    pub repeat: u32,
    #[serde(default)]
    pub error: bool,
    pub stage: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    #[serde(default)]
    pub also: Vec<(u32, u32)>,
    pub kind: Option<String>,
    pub contains: Option<String>,
    // Steps.
    #[serde(default)]
    pub nodes: Map<String, Value>,
    #[serde(default)]
    pub kernels: Map<String, Value>,
    #[serde(default)]
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceOptions {
    pub segment_cap_bytes: Option<u64>,
    pub heap_bytes: Option<u64>,
}

/// A tensor of a kernel, or a node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    pub name: Option<String>,
    pub node: Option<String>,
    pub dtype: String,
    pub shape: Vec<u32>,
    pub mode: Option<String>,
    pub access: Option<String>,
}

/// Values of a tensor, given or expected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    pub dtype: String,
    pub shape: Vec<u32>,
    pub data: Vec<Value>,
    #[serde(default)]
    pub rtol: f64,
    #[serde(default)]
    pub atol: f64,
}

/// A kernel of a case with steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    pub wgsl: String,
    /// Node name → access.
    pub tensors: Map<String, Value>,
    pub grid: [u32; 3],
    #[serde(default)]
    pub statics: Vec<String>,
}

/// What a failing step must say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub kind: String,
    #[serde(default)]
    pub contains: String,
}

/// One step.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    pub error: Option<Failure>,
    #[serde(flatten)]
    pub op: Op,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    Allocate {
        context: String,
        r#as: String,
        nodes: Vec<String>,
    },
    Upload {
        context: String,
        r#as: String,
        data: Map<String, Value>,
    },
    Child {
        context: String,
        r#as: String,
    },
    Write {
        context: String,
        node: String,
        data: Vec<Value>,
        #[serde(default)]
        at: u64,
    },
    Zero {
        context: String,
        node: String,
        start: u64,
        len: u64,
    },
    Copy {
        context: String,
        from: String,
        #[serde(default)]
        from_start: u64,
        to: String,
        #[serde(default)]
        to_start: u64,
        len: u64,
    },
    WriteBlock {
        context: String,
        node: String,
        block: Vec<Vec<u32>>,
        data: Vec<Value>,
    },
    ReadBlock {
        context: String,
        node: String,
        block: Vec<Vec<u32>>,
        #[serde(default)]
        expect: Vec<Value>,
        #[serde(default)]
        rtol: f64,
        #[serde(default)]
        atol: f64,
    },
    CopyBlock {
        context: String,
        from: String,
        from_block: Vec<Vec<u32>>,
        to: String,
        to_block: Vec<Vec<u32>>,
    },
    Link {
        context: String,
        kernel: String,
        r#as: String,
    },
    Run {
        routine: String,
        #[serde(default)]
        statics: Map<String, Value>,
        #[serde(default = "one")]
        times: u32,
    },
    Read {
        context: String,
        node: String,
        #[serde(default)]
        expect: Vec<Value>,
        #[serde(default)]
        rtol: f64,
        #[serde(default)]
        atol: f64,
    },
    Loc {
        context: String,
        node: String,
        expect: (u32, u64),
    },
    Report {
        in_use_bytes: Option<u64>,
        padding_bytes: Option<u64>,
        pool_count: Option<usize>,
    },
    Finalize {
        context: String,
    },
    FreeConstants {
        expect: u64,
    },
    Compact,
    AllocPool {
        pool: u32,
        size: u64,
        #[serde(default = "alignment")]
        alignment: u64,
    },
    FreePool {
        pool: u32,
    },
    ZeroPool {
        pool: u32,
        offset: u64,
        len: u64,
    },
}

fn one() -> u32 {
    1
}

fn alignment() -> u64 {
    256
}

/// Reads a value of the case, saying where it is wrong.
pub fn parse<T: for<'a> Deserialize<'a>>(what: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("bad {what} in the case file: {error}"))
}
