//! What a program costs before it runs: the attention block, from its text to kernels, and into a context.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use wgslab::{Context, DType, Device, ProgramSpec, Result, TensorNode, gpu};

use crate::native::measure::Row;

const TURNS: usize = 41;
const WARM_UP: usize = 10;

/// The block again and again, each time with nodes of its own. Its pipelines are those of a code that lives on, so that the
/// driver's compilation is no part of it: that is paid once for a text.
pub async fn compile(device: &Device<gpu::Gpu>) -> Result<Vec<Row>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/program_attention.json");
    let case: Value = serde_json::from_str(&fs::read_to_string(path).expect("the case file")).expect("a case");
    let text = case["program"].as_str().expect("a program");
    let fresh = || -> Vec<TensorNode> {
        let inputs = case["inputs"].as_object().expect("inputs");
        let shape = |input: &Value| -> Vec<u32> {
            input["shape"].as_array().into_iter().flatten().filter_map(|extent| Some(extent.as_u64()? as u32)).collect()
        };
        inputs.iter().map(|(name, input)| TensorNode::new(name.clone(), DType::F32, shape(input))).collect()
    };
    let spec = |nodes: &[TensorNode]| {
        nodes.iter().fold(ProgramSpec::new("attention", text), |spec, node| spec.node(node)).outputs(["y"])
    };
    let root = Context::root(device);
    let before = device.stats().pipelines_created;
    let first = device.compile(spec(&fresh())).await?;
    let pipelines = device.stats().pipelines_created - before;
    let (mut compiling, mut linking) = (Vec::new(), Vec::new());
    for turn in 0..WARM_UP + TURNS {
        let nodes = fresh();
        let context = root.init_zeros(&nodes.iter().collect::<Vec<_>>())?;
        device.await_idle().await?;
        let start = Instant::now();
        let code = device.compile(spec(&nodes)).await?;
        let compiled = start.elapsed();
        let routine = context.link(&code).await?;
        let linked = start.elapsed() - compiled;
        routine.context().finalize();
        context.finalize();
        if turn >= WARM_UP {
            compiling.push(compiled.as_secs_f64() * 1e3);
            linking.push(linked.as_secs_f64() * 1e3);
        }
    }
    let created = device.stats().pipelines_created - before;
    assert_eq!(created, pipelines, "the block's pipelines were not cached, and were measured");
    drop(first);
    let note = |goal| format!("goal: under {goal} ms; {pipelines} kernels, cached");
    Ok(vec![
        Row::alone("compile the attention block from its text", "ms", &compiling).with_note(&note(10)),
        Row::alone("link the attention block", "ms", &linking).with_note(&note(1)),
    ])
}
