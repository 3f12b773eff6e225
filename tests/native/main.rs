//! The native suite: the shared cases on both drivers, properties of the pure planner, the runner's promises, and the
//! order of the code.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;
#[path = "../emit/mod.rs"]
mod emit;

mod across;
mod batch;
mod blocks;
mod budget;
mod builtins;
mod cases;
mod compact;
mod contexts;
mod cycles;
mod deps;
mod emitted;
mod errors;
mod explain;
mod fuzz;
mod layering;
mod loss;
mod merge;
mod model;
mod modes;
mod notation_docs;
mod planner;
mod programs;
mod recycle;
mod registry;
mod runner;
mod schedules;
mod sequence;
mod tune;
mod twins;
mod virtuals;
mod volume;

use wgslab::{Access, Context, DType, Device, KernelSpec, Routine, TensorNode, gpu};

/// A GPU device with default limits: what passes on it passes everywhere.
fn open() -> Device<gpu::Gpu> {
    open_with(gpu::OpenOptions { limits: gpu::LimitsChoice::Default, ..gpu::OpenOptions::default() })
}

/// A GPU device with all that its adapter has.
fn open_wide() -> Device<gpu::Gpu> {
    open_with(gpu::OpenOptions::default())
}

fn open_with(options: gpu::OpenOptions) -> Device<gpu::Gpu> {
    pollster::block_on(gpu::open(options)).expect("a GPU adapter (a software one will do)")
}

/// Adds one to every element of `x`, which is in the context.
fn increment(context: &Context<gpu::Gpu>, x: &TensorNode) -> Routine<gpu::Gpu> {
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_x(id.x, load_x(id.x) + 1); }";
    let groups = x.element_len().div_ceil(64) as u32;
    let spec = KernelSpec::new("increment", text).tensor("x", x, Access::ReadWrite).grid([groups, 1, 1]);
    let code = pollster::block_on(context.device().compile(spec)).unwrap();
    pollster::block_on(context.link(&code)).unwrap()
}

/// A kernel that takes a while: it runs `rounds` dependent steps on one element of `x`, and stores how many it did.
fn slow(context: &Context<gpu::Gpu>, x: &TensorNode, rounds: u32) -> Routine<gpu::Gpu> {
    let text = format!(
        "@compute @workgroup_size(1) fn main() {{
            var n = load_x(0u);
            for (var i = 0; i < {rounds}; i++) {{ n = (n * 75 + 74) % 65537; if (n < 0) {{ n = 0; }} }}
            store_x(0u, n); }}"
    );
    let spec = KernelSpec::new("slow", text).tensor("x", x, Access::ReadWrite);
    let code = pollster::block_on(context.device().compile(spec)).unwrap();
    pollster::block_on(context.link(&code)).unwrap()
}

fn ints(label: &str, len: u32) -> TensorNode {
    TensorNode::new(label, DType::I32, [len])
}
