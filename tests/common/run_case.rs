//! Runs a case on a device of any driver.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wgslab::{
    Access, Block, BufferLoc, Context, DType, Device, Driver, Error, KernelSpec, MemoryMode, PoolId, Routine, Span,
    TensorNode,
};

use super::blocks::{read_block, write_block};
use super::case::{Case, Failure, Kernel, Op, Step, Tensor, Values, parse};
use super::run_program::run_program_case;
use super::values::{compare, encode};

/// What came of a case.
#[derive(Clone, Debug)]
pub enum Outcome {
    Passed {
        #[allow(dead_code)]
        max_error: f64,
    },
    /// The driver refused a raw kernel as unsupported, as it must.
    Unsupported,
}

/// Runs a case. `executes` says whether the driver can execute raw kernels.
pub async fn run_case<D: Driver>(case: &Case, device: &Device<D>, executes: bool) -> Result<Outcome, String> {
    let used = device.report().in_use_bytes;
    let outcome = match &case.program {
        Some(text) => run_program_case(case, text, device).await,
        None if case.steps.is_empty() => run_kernel_case(case, device, executes).await,
        None => run_steps(case, device, executes).await,
    }?;
    device.free_unused_constants();
    let left = device.report().in_use_bytes;
    if left != used {
        return Err(format!("{} bytes are still in use after the case", left as i64 - used as i64));
    }
    device.await_idle().await.map_err(|error| format!("the device failed: {error}"))?;
    Ok(outcome)
}

fn node(name: &str, tensor: &Tensor) -> Result<TensorNode, String> {
    let dtype: DType = tensor.dtype.parse().map_err(|error: Error| error.to_string())?;
    let mode = match tensor.mode.as_deref() {
        Some("constant") => MemoryMode::Constant,
        _ => MemoryMode::OnDevice,
    };
    Ok(TensorNode::with_mode(name, dtype, tensor.shape.clone(), mode))
}

/// The tensors of a kernel, in order, with their names.
fn tensors(value: Option<&Value>) -> Result<Vec<(String, Tensor)>, String> {
    match value {
        Some(Value::Object(map)) => {
            map.iter().map(|(name, value)| Ok((name.clone(), parse::<Tensor>("tensor", value)?))).collect()
        }
        Some(Value::Array(list)) => list
            .iter()
            .map(|value| {
                let tensor: Tensor = parse("tensor", value)?;
                let name = tensor.name.clone().ok_or("a tensor of a list has no name")?;
                Ok((name, tensor))
            })
            .collect(),
        _ => Err("a raw kernel needs tensors".to_owned()),
    }
}

struct KernelCase {
    spec: KernelSpec,
    nodes: BTreeMap<String, TensorNode>,
    statics: Vec<i32>,
}

fn kernel_case(case: &Case) -> Result<KernelCase, String> {
    let text = case.wgsl.clone().ok_or("a case needs a program, wgsl or steps")?;
    let mut nodes: BTreeMap<String, TensorNode> = BTreeMap::new();
    let mut spec = KernelSpec::new(&case.name, text).grid(case.grid.ok_or("a raw kernel needs a grid")?);
    for (name, tensor) in tensors(case.tensors.as_ref())? {
        let node = match &tensor.node {
            Some(other) => nodes.get(other).ok_or_else(|| format!("no tensor \"{other}\" before \"{name}\""))?.clone(),
            None => node(&name, &tensor)?,
        };
        let access: Access = tensor.access.as_deref().unwrap_or("read").parse().map_err(|e: Error| e.to_string())?;
        spec = spec.tensor(&name, &node, access);
        nodes.insert(name, node);
    }
    spec = spec.statics(case.statics.keys());
    let statics = case.statics.values().map(|value| value.as_i64().unwrap_or(0) as i32).collect();
    Ok(KernelCase { spec, nodes, statics })
}

async fn run_kernel_case<D: Driver>(case: &Case, device: &Device<D>, executes: bool) -> Result<Outcome, String> {
    let KernelCase { spec, nodes, statics } = kernel_case(case)?;
    let stage = case.stage.as_deref().unwrap_or("compile");
    let code = match device.compile(spec).await {
        Err(error) if error.kind().code() == "unsupported" && !executes => return Ok(Outcome::Unsupported),
        Err(error) if case.error && stage == "compile" => return check_failure(case, &error),
        Err(error) => return Err(error.to_string()),
        Ok(_) if !executes => return Err("the driver compiled a raw kernel that it cannot execute".to_owned()),
        Ok(_) if case.error && stage == "compile" => return Err("compiling succeeded; it must fail".to_owned()),
        Ok(code) => code,
    };
    let mut uploads = Vec::new();
    for (name, value) in &case.inputs {
        let values: Values = parse("input", value)?;
        let node = nodes.get(name).ok_or_else(|| format!("no tensor for input \"{name}\""))?;
        uploads.push((node, encode(node.dtype(), &values.data)?));
    }
    let uploads: Vec<_> = uploads.iter().map(|(node, bytes)| (*node, bytes.as_slice())).collect();
    let loaded = Context::root(device).init_from_host_many(&uploads).map_err(|error| error.to_string())?;
    let routine = match loaded.link(&code).await {
        Err(error) if case.error && stage == "link" => return check_failure(case, &error),
        Err(error) => return Err(error.to_string()),
        Ok(_) if case.error && stage == "link" => return Err("linking succeeded; it must fail".to_owned()),
        Ok(routine) => routine,
    };
    for _ in 0..case.repeat {
        match routine.run_values(&statics) {
            Err(error) if case.error && stage == "run" => return check_failure(case, &error),
            Err(error) => return Err(error.to_string()),
            Ok(_) if case.error => return Err("the run succeeded; it must fail".to_owned()),
            Ok(_) => {}
        }
    }
    let mut max_error = 0.0f64;
    for (name, value) in &case.outputs {
        let want: Values = parse("output", value)?;
        let node = nodes.get(name).ok_or_else(|| format!("no tensor for output \"{name}\""))?;
        let got = read(routine.context(), node).await?;
        let error = compare(node.dtype(), &got, &want.data, want.rtol, want.atol);
        max_error = max_error.max(error.map_err(|error| format!("output \"{name}\": {error}"))?);
    }
    Ok(Outcome::Passed { max_error })
}

pub(super) fn check_failure(case: &Case, error: &Error) -> Result<Outcome, String> {
    let said = error.to_string();
    if let Some(kind) = &case.kind
        && kind != error.kind().code()
    {
        return Err(format!("failed as {}, expected {kind}: {said}", error.kind().code()));
    }
    if let Some(part) = &case.contains
        && !said.contains(part)
    {
        return Err(format!("the message does not contain \"{part}\": {said}"));
    }
    let first = error.diagnostics().first().map(|at| (at.line, at.column));
    let is_there = case.line.is_none_or(|line| first.is_some_and(|first| first.0 == line))
        && case.column.is_none_or(|column| first.is_some_and(|first| first.1 == column));
    if !is_there && !case.also.iter().any(|&place| Some(place) == first) {
        let (line, column) = (case.line, case.column);
        return Err(format!("the error is at {first:?}, expected line {line:?}, column {column:?}: {said}"));
    }
    Ok(Outcome::Passed { max_error: 0.0 })
}

pub(super) async fn read<D: Driver>(context: &Context<D>, node: &TensorNode) -> Result<Vec<u8>, String> {
    let mut parts = context.to_host_many(&[node]).await.map_err(|error| error.to_string())?;
    parts.pop().ok_or_else(|| "a readback of one node gave none".to_owned())
}

/// What the steps have made so far.
struct Stage<'a, D: Driver> {
    device: &'a Device<D>,
    nodes: BTreeMap<String, TensorNode>,
    kernels: &'a Map<String, Value>,
    contexts: BTreeMap<String, Context<D>>,
    routines: BTreeMap<String, Routine<D>>,
    max_error: f64,
}

/// A step either failed, as the crate's error, or the case is wrong, or did not hold.
enum Trouble {
    Failed(Error),
    Wrong(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Failed(error)
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Trouble::Wrong(text)
    }
}

async fn run_steps<D: Driver>(case: &Case, device: &Device<D>, executes: bool) -> Result<Outcome, String> {
    if !executes && !case.kernels.is_empty() {
        return Ok(Outcome::Unsupported);
    }
    let mut nodes = BTreeMap::new();
    for (name, value) in &case.nodes {
        nodes.insert(name.clone(), node(name, &parse("node", value)?)?);
    }
    let contexts = BTreeMap::from([("root".to_owned(), Context::root(device))]);
    let (kernels, routines) = (&case.kernels, BTreeMap::new());
    let mut stage = Stage { device, nodes, kernels, contexts, routines, max_error: 0.0 };
    for (index, step) in case.steps.iter().enumerate() {
        let at = |text: String| format!("step {index}: {text}");
        match (stage.step(step).await, &step.error) {
            (Ok(()), None) => {}
            (Ok(()), Some(failure)) => return Err(at(format!("succeeded; it must fail as {}", failure.kind))),
            (Err(Trouble::Wrong(text)), _) => return Err(at(text)),
            (Err(Trouble::Failed(error)), None) => return Err(at(error.to_string())),
            (Err(Trouble::Failed(error)), Some(failure)) => check_step(failure, &error).map_err(at)?,
        }
    }
    Ok(Outcome::Passed { max_error: stage.max_error })
}

fn check_step(failure: &Failure, error: &Error) -> Result<(), String> {
    if failure.kind != error.kind().code() || !error.to_string().contains(&failure.contains) {
        return Err(format!("failed as {:?}, expected {failure:?}", error));
    }
    Ok(())
}

impl<D: Driver> Stage<'_, D> {
    fn node(&self, name: &str) -> Result<&TensorNode, Trouble> {
        self.nodes.get(name).ok_or_else(|| Trouble::Wrong(format!("the case has no node \"{name}\"")))
    }

    fn context(&self, name: &str) -> Result<&Context<D>, Trouble> {
        self.contexts.get(name).ok_or_else(|| Trouble::Wrong(format!("the case has no context \"{name}\"")))
    }

    async fn step(&mut self, step: &Step) -> Result<(), Trouble> {
        match &step.op {
            Op::Allocate { context, r#as, nodes } => {
                let nodes = nodes.iter().map(|name| self.node(name)).collect::<Result<Vec<_>, _>>()?;
                let child = self.context(context)?.init_zeros(&nodes)?;
                self.contexts.insert(r#as.clone(), child);
            }
            Op::Upload { context, r#as, data } => {
                let mut uploads = Vec::new();
                for (name, value) in data {
                    let node = self.node(name)?;
                    let values: Vec<Value> = parse("data", value)?;
                    uploads.push((node, encode(node.dtype(), &values)?));
                }
                let uploads: Vec<_> = uploads.iter().map(|(node, bytes)| (*node, bytes.as_slice())).collect();
                let child = self.context(context)?.init_from_host_many(&uploads)?;
                self.contexts.insert(r#as.clone(), child);
            }
            Op::Child { context, r#as } => {
                let child = self.context(context)?.child().build();
                self.contexts.insert(r#as.clone(), child);
            }
            Op::Write { context, node, data, at } => {
                let node = self.node(node)?;
                let bytes = encode(node.dtype(), data)?;
                write_elements(self.context(context)?, node, *at, &bytes)?;
            }
            Op::Zero { context, node, start, len } => {
                self.context(context)?.zero(self.node(node)?, *start, *len)?;
            }
            Op::Copy { context, from, from_start, to, to_start, len } => {
                let (from, to) = (self.node(from)?, self.node(to)?);
                self.context(context)?.copy_bytes(from, *from_start, to, *to_start, *len)?;
            }
            Op::WriteBlock { context, node, block, data } => {
                let node = self.node(node)?;
                let bytes = encode(node.dtype(), data)?;
                write_block(self.context(context)?, node, &parse_block(node, block)?, &bytes)?;
            }
            Op::ReadBlock { context, node, block, expect, rtol, atol } => {
                let node = self.node(node)?;
                let got = read_block(self.context(context)?, node, &parse_block(node, block)?).await?;
                let error = compare(node.dtype(), &got, expect, *rtol, *atol);
                self.max_error = self.max_error.max(error.map_err(|error| format!("a block of {node}: {error}"))?);
            }
            Op::CopyBlock { context, from, from_block, to, to_block } => {
                let (from, to) = (self.node(from)?, self.node(to)?);
                let blocks = (parse_block(from, from_block)?, parse_block(to, to_block)?);
                self.context(context)?.copy_block(from, &blocks.0, to, &blocks.1)?;
            }
            Op::Link { context, kernel, r#as } => self.link(context, kernel, r#as).await?,
            Op::Run { routine, statics, times } => {
                let routine = self.routines.get(routine).ok_or_else(|| format!("no routine \"{routine}\""))?;
                let statics: Vec<_> =
                    statics.iter().map(|(name, value)| (name.as_str(), value.as_i64().unwrap_or(0) as i32)).collect();
                for _ in 0..*times {
                    routine.run_with(&statics)?;
                }
            }
            Op::Read { context, node, expect, rtol, atol } => {
                let node = self.node(node)?;
                let got = self.context(context)?.to_host_many(&[node]).await?.pop().unwrap_or_default();
                let error = compare(node.dtype(), &got, expect, *rtol, *atol);
                self.max_error = self.max_error.max(error.map_err(|error| format!("{node}: {error}"))?);
            }
            Op::Loc { context, node, expect } => {
                let got = self.context(context)?.loc(self.node(node)?);
                let want = BufferLoc { pool_id: PoolId(expect.0), offset: expect.1 };
                if got != Some(want) {
                    return Err(Trouble::Wrong(format!("\"{node}\" is at {got:?}, expected {want:?}")));
                }
            }
            Op::Report { in_use_bytes, padding_bytes, pool_count } => {
                let report = self.device.report();
                let differs = in_use_bytes.is_some_and(|want| want != report.in_use_bytes)
                    || padding_bytes.is_some_and(|want| want != report.padding_bytes)
                    || pool_count.is_some_and(|want| want != report.pools.len());
                if differs {
                    return Err(Trouble::Wrong(format!("the report is {report:?}")));
                }
            }
            Op::Finalize { context } => self.context(context)?.finalize(),
            Op::FreeConstants { expect } => {
                let freed = self.device.free_unused_constants();
                if freed != *expect {
                    return Err(Trouble::Wrong(format!("{freed} bytes of constants were freed, expected {expect}")));
                }
            }
            Op::Compact => {
                self.device.compact()?;
            }
            Op::AllocPool { pool, size, alignment } => {
                wgslab::alloc_pool(self.device, PoolId(*pool), *size, *alignment, None)?;
            }
            Op::FreePool { pool } => wgslab::free_pool(self.device, PoolId(*pool))?,
            Op::ZeroPool { pool, offset, len } => {
                wgslab::memset_zero(self.device, PoolId(*pool), *offset, *len)?;
            }
        }
        Ok(())
    }

    async fn link(&mut self, context: &str, kernel: &str, name: &str) -> Result<(), Trouble> {
        let declared = self.kernels.get(kernel).ok_or_else(|| format!("the case has no kernel \"{kernel}\""))?;
        let Kernel { wgsl, tensors, grid, statics } = parse("kernel", declared)?;
        let mut spec = KernelSpec::new(kernel, wgsl).grid(grid).statics(statics);
        for (tensor, access) in &tensors {
            let access: Access = access.as_str().unwrap_or("").parse().map_err(|e: Error| e.to_string())?;
            spec = spec.tensor(tensor, self.node(tensor)?, access);
        }
        let code = self.device.compile(spec).await?;
        let routine = self.context(context)?.link(&code).await?;
        self.contexts.insert(name.to_owned(), routine.context().clone());
        self.routines.insert(name.to_owned(), routine);
        Ok(())
    }
}

/// A block as the case gives it: per axis `[start, extent]` or `[start, extent, step]`.
fn parse_block(node: &TensorNode, axes: &[Vec<u32>]) -> Result<Block, Trouble> {
    let span = |axis: &Vec<u32>| match axis[..] {
        [start, extent] => Ok(Span { start, extent, step: 1 }),
        [start, extent, step] => Ok(Span { start, extent, step }),
        _ => Err(Trouble::Wrong(format!("{axis:?} is no [start, extent] or [start, extent, step]"))),
    };
    let spans = axes.iter().map(span).collect::<Result<Vec<_>, _>>()?;
    Ok(Block::new(node, &spans)?)
}

/// Writes bytes of whole elements through the typed API.
fn write_elements<D: Driver>(context: &Context<D>, node: &TensorNode, at: u64, bytes: &[u8]) -> Result<(), Error> {
    macro_rules! write_as {
        ($type:ty) => {{
            let elements: Vec<$type> = bytes
                .chunks_exact(size_of::<$type>())
                .map(|chunk| <$type>::from_le_bytes(chunk.try_into().expect("a chunk has the size of an element")))
                .collect();
            context.from_host_at(node, at, &elements).map(drop)
        }};
    }
    match node.dtype() {
        DType::F32 => write_as!(f32),
        DType::F16 | DType::BF16 => write_as!(u16),
        DType::I32 => write_as!(i32),
        DType::U32 => write_as!(u32),
        DType::I8 => write_as!(i8),
        DType::U8 | DType::Bool => write_as!(u8),
    }
}
