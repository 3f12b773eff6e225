//! Every shared case, on the host driver and on the GPU with both sets of limits.

use serde_json::Value;
use wgslab::{Forced, gpu, host};

use crate::common::case::Case;
use crate::common::run_case::{Outcome, run_case};

fn all_cases() -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(files.len() >= 180, "only {} case files", files.len());
    files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        })
        .collect()
}

fn on_gpu(case: &Case, limits: gpu::LimitsChoice) -> Result<Outcome, String> {
    let device = crate::open_with(gpu::OpenOptions {
        limits,
        segment_cap_bytes: case.device.segment_cap_bytes,
        heap_bytes: case.device.heap_bytes,
        ..gpu::OpenOptions::default()
    });
    pollster::block_on(run_case(case, &device, true))
}

fn on_host(case: &Case) -> Result<Outcome, String> {
    let device = host::open(host::OpenOptions {
        segment_cap_bytes: case.device.segment_cap_bytes,
        ..host::OpenOptions::default()
    })
    .unwrap();
    pollster::block_on(run_case(case, &device, false))
}

fn assert_all(what: &str, run: impl Fn(&Case) -> Result<Outcome, String>) {
    let cases = all_cases();
    let mut unsupported = 0;
    let mut failures = Vec::new();
    for case in &cases {
        match run(case) {
            Ok(Outcome::Passed { .. }) => {}
            Ok(Outcome::Unsupported) => unsupported += 1,
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    let passed = cases.len() - unsupported - failures.len();
    println!("{what}: {passed} cases passed, {unsupported} refused as unsupported, {} failed", failures.len());
    assert!(failures.is_empty(), "{what}:\n{}", failures.join("\n"));
}

#[test]
fn every_case_passes_on_the_gpu_with_default_limits() {
    assert_all("gpu, default limits", |case| on_gpu(case, gpu::LimitsChoice::Default));
}

#[test]
fn every_case_passes_on_the_gpu_with_the_limits_of_the_adapter() {
    assert_all("gpu, adapter limits", |case| on_gpu(case, gpu::LimitsChoice::Adapter));
}

#[test]
fn every_case_passes_on_the_host_driver_and_raw_kernels_are_refused() {
    assert_all("host", on_host);
}

#[test]
fn every_program_passes_however_its_kernels_are_spread() {
    for forced in Forced::ALL {
        let run = |case: &Case| {
            let case = Case { forced: Some(forced), ..case.clone() };
            if case.program.is_some() { on_gpu(&case, gpu::LimitsChoice::Adapter) } else { Ok(Outcome::Unsupported) }
        };
        assert_all(&format!("{forced:?}"), run);
    }
}

/// The harness must see a wrong element, wherever it is.
#[test]
fn a_perturbed_expectation_fails() {
    let mut spoiled = 0;
    for mut case in all_cases() {
        let Some((_, Value::Object(output))) = case.outputs.iter_mut().next() else { continue };
        let Some(Value::Array(data)) = output.get_mut("data") else { continue };
        let Some(last) = data.last_mut() else { continue };
        // Far enough to be another value of the type, however large it is.
        let value = last.as_f64().unwrap_or(0.0);
        *last = Value::from(value.abs() + value + 1.0);
        let outcome = on_gpu(&case, gpu::LimitsChoice::Default);
        assert!(outcome.is_err(), "{} passes with a wrong expectation", case.name);
        spoiled += 1;
    }
    assert!(spoiled >= 100, "only {spoiled} cases could be spoiled");
}
