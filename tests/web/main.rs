//! The browser suite: the shared cases on both drivers, and what only a browser shows.
#![cfg(target_arch = "wasm32")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;
#[path = "../emit/mod.rs"]
mod emit;

mod cycles;
mod emitted;
mod fuzz;
mod model;

use common::builtins::{check_casts, check_copies, check_fills};
use common::case::Case;
use common::run_case::{Outcome, run_case};
use include_dir::{Dir, include_dir};
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};
use wgslab::{Access, Context, DType, Device, ErrorKind, KernelSpec, Landing, TensorNode, gpu, host};

wasm_bindgen_test_configure!(run_in_browser);

static CASES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/tests/cases");

fn all_cases() -> Vec<Case> {
    let files: Vec<_> =
        CASES.files().filter(|file| file.path().extension().is_some_and(|extension| extension == "json")).collect();
    assert!(files.len() >= 180, "only {} case files", files.len());
    files
        .iter()
        .map(|file| {
            let text = file.contents_utf8().unwrap_or("");
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", file.path().display()))
        })
        .collect()
}

async fn open(limits: gpu::LimitsChoice) -> Device<gpu::Gpu> {
    gpu::open(gpu::OpenOptions { limits, ..gpu::OpenOptions::default() }).await.unwrap()
}

async fn on_gpu(case: &Case, limits: gpu::LimitsChoice) -> Result<Outcome, String> {
    let device = gpu::open(gpu::OpenOptions {
        limits,
        segment_cap_bytes: case.device.segment_cap_bytes,
        heap_bytes: case.device.heap_bytes,
        ..gpu::OpenOptions::default()
    })
    .await
    .unwrap();
    run_case(case, &device, true).await
}

async fn assert_all_on_gpu(limits: gpu::LimitsChoice) {
    let mut failures = Vec::new();
    let cases = all_cases();
    for case in &cases {
        if let Err(error) = on_gpu(case, limits).await {
            failures.push(format!("{}: {error}", case.name));
        }
    }
    console_log!("gpu, {limits:?} limits: {} cases passed, {} failed", cases.len() - failures.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[wasm_bindgen_test]
async fn every_case_passes_on_the_gpu_with_default_limits() {
    assert_all_on_gpu(gpu::LimitsChoice::Default).await;
}

#[wasm_bindgen_test]
async fn every_case_passes_on_the_gpu_with_the_limits_of_the_adapter() {
    assert_all_on_gpu(gpu::LimitsChoice::Adapter).await;
}

#[wasm_bindgen_test]
async fn every_case_passes_on_the_host_driver_and_raw_kernels_are_refused() {
    let mut failures = Vec::new();
    for case in all_cases() {
        let options =
            host::OpenOptions { segment_cap_bytes: case.device.segment_cap_bytes, ..host::OpenOptions::default() };
        if let Err(error) = run_case(&case, &host::open(options).unwrap(), false).await {
            failures.push(format!("{}: {error}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[wasm_bindgen_test]
async fn a_perturbed_expectation_fails() {
    let mut case = all_cases().into_iter().find(|case| case.name == "kernel_scale").unwrap();
    case.outputs["y"]["data"][99] = serde_json::Value::from(1.25);
    let outcome = on_gpu(&case, gpu::LimitsChoice::Default).await;
    assert!(outcome.is_err(), "a wrong expectation passes");
}

#[wasm_bindgen_test]
async fn a_thousand_runs_make_at_most_ten_submissions() {
    let device = open(gpu::LimitsChoice::Default).await;
    let x = TensorNode::new("x", DType::I32, [64]);
    let context = Context::root(&device).init_from_host(&x, &[0; 64]).unwrap();
    let text = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        store_x(id.x, load_x(id.x) + 1); }";
    let code = device.compile(KernelSpec::new("increment", text).tensor("x", &x, Access::ReadWrite)).await.unwrap();
    let routine = context.link(&code).await.unwrap();
    let before = device.stats();
    for _ in 0..1000 {
        routine.run().unwrap();
    }
    device.await_idle().await.unwrap();
    let after = device.stats();
    assert!(after.submissions - before.submissions <= 10);
    assert_eq!(context.to_host::<i32>(&x).await.unwrap(), [1000; 64]);
}

#[wasm_bindgen_test]
async fn a_device_destroyed_in_flight_settles_every_promise() {
    let device = open(gpu::LimitsChoice::Default).await;
    let x = TensorNode::new("x", DType::F32, [1 << 20]);
    let context = Context::root(&device).init_from_host(&x, &vec![1.0f32; 1 << 20]).unwrap();
    let read = context.to_host::<f32>(&x);
    let event = device.all_work();
    device.flush().unwrap();
    let lost = device.lost();
    device.destroy();
    assert_eq!(event.await.unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(read.await.unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(lost.await.kind(), ErrorKind::DeviceLost);
    assert_eq!(context.to_host::<f32>(&x).await.unwrap_err().kind(), ErrorKind::DeviceLost);
}

/// As `tests/native/builtins.rs`, in the browser: its shader compiler and driver are others.
#[wasm_bindgen_test]
async fn the_kernels_that_come_with_the_crate_give_what_rust_says() {
    let device = open(gpu::LimitsChoice::Default).await;
    let mut wrong = check_casts(&device).await;
    wrong.extend(check_fills(&device).await);
    wrong.extend(check_copies(&device, 40).await);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two devices of one page: what waits for the other waits without blocking, and copies are recorded work.
#[wasm_bindgen_test]
async fn devices_wait_for_each_other_and_copies_between_them_are_recorded() {
    let (one, other) = (open(gpu::LimitsChoice::Default).await, open(gpu::LimitsChoice::Default).await);
    // Three bytes over two pieces of a copy.
    let len = (8 << 20) + 3;
    let x = TensorNode::new("x", DType::U8, [len]);
    let bytes_of = |seed: u32| (0..len).map(|index| (index.wrapping_mul(seed) >> 5) as u8).collect::<Vec<u8>>();
    let theirs = Context::root(&one).init_from_host(&x, &bytes_of(3)).unwrap();
    let mine = Context::root(&other).init_zeros(&[&x]).unwrap();
    mine.will_wait_for(&one.all_work()).unwrap();
    let copy = mine.device_to_device(&x, Landing::Node, &theirs).unwrap().unwrap();
    let arrived = copy.run().unwrap();
    theirs.from_host(&x, &bytes_of(5)).unwrap();
    let before = mine.to_host::<u8>(&x);
    mine.from_host_at(&x, 1, &[77u8; 2]).unwrap();
    let after = mine.to_host::<u8>(&x);
    arrived.await.unwrap();
    let mut want = bytes_of(3);
    assert!(before.await.unwrap() == want);
    want[1..3].fill(77);
    assert!(after.await.unwrap() == want);
    let on_host = Context::root(&host::open(host::OpenOptions::default()).unwrap());
    let pending = one.all_work();
    if !pending.is_done() {
        assert_eq!(on_host.will_wait_for(&pending).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    drop((mine, theirs, copy));
    assert_eq!((one.report().in_use_bytes, other.report().in_use_bytes), (0, 0));
}
