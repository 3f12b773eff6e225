//! Runs a folder of case files on the native hosts, and prints one line per case and host.
//!
//! `cargo run --release --example cases -- DIR [--host native,host] [--limits default] [--json]`

#[allow(dead_code)]
#[path = "../../tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::common::case::Case;
use self::common::run_case::{Outcome, run_case};
use clap::{Parser, ValueEnum};
use serde_json::json;
use wgslab::{gpu, host};

/// Runs case files on the native hosts.
#[derive(Parser)]
struct Arguments {
    /// A folder of case files, or one case file.
    cases: PathBuf,
    /// Where to run them.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Place::Native, Place::Host])]
    host: Vec<Place>,
    /// Which limits to open GPU devices with.
    #[arg(long, value_enum, default_value_t = Limits::Adapter)]
    limits: Limits,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// The gpu driver.
    Native,
    /// The gpu driver on a Vulkan driver that the environment chose (`VK_DRIVER_FILES`).
    NativeSwiftshader,
    /// The host driver.
    Host,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Native => "native",
            Place::NativeSwiftshader => "native-swiftshader",
            Place::Host => "host",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Limits {
    Adapter,
    Default,
}

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let files = match case_files(&arguments.cases) {
        Ok(files) if !files.is_empty() => files,
        Ok(_) => return fail(&format!("{} holds no .json files", arguments.cases.display())),
        Err(error) => return fail(&format!("cannot read {}: {error}", arguments.cases.display())),
    };
    let mut failed = 0;
    for file in &files {
        let case = read_case(file);
        let name = case.as_ref().map_or_else(|_| file.display().to_string(), |case| case.name.clone());
        for &host in &arguments.host {
            let outcome = case.clone().and_then(|case| pollster::block_on(run_on(&case, host, arguments.limits)));
            failed += usize::from(outcome.is_err());
            print_row(&name, host, &outcome, arguments.json);
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}

fn case_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read_case(file: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("not a case: {error}"))
}

async fn run_on(case: &Case, host: Place, limits: Limits) -> Result<Outcome, String> {
    let segment_cap_bytes = case.device.segment_cap_bytes;
    match host {
        Place::Host => {
            let device = host::open(host::OpenOptions { segment_cap_bytes, ..host::OpenOptions::default() })
                .map_err(|error| error.to_string())?;
            run_case(case, &device, false).await
        }
        Place::Native | Place::NativeSwiftshader => {
            let limits = match limits {
                Limits::Adapter => gpu::LimitsChoice::Adapter,
                Limits::Default => gpu::LimitsChoice::Default,
            };
            let heap_bytes = case.device.heap_bytes;
            let options = gpu::OpenOptions { limits, segment_cap_bytes, heap_bytes, ..gpu::OpenOptions::default() };
            let device = gpu::open(options).await.map_err(|error| error.to_string())?;
            run_case(case, &device, true).await
        }
    }
}

fn print_row(case: &str, host: Place, outcome: &Result<Outcome, String>, as_json: bool) {
    let (pass, error, max_error) = match outcome {
        Ok(Outcome::Passed { max_error }) => (true, None, Some(*max_error)),
        Ok(Outcome::Unsupported) => (true, None, None),
        Err(error) => (false, Some(error), None),
    };
    if as_json {
        println!(
            "{}",
            json!({ "case": case, "host": host.name(), "pass": pass, "error": error, "max_error": max_error })
        );
    } else {
        let note = match outcome {
            Ok(Outcome::Unsupported) => "refused raw WGSL as unsupported, as it must",
            Ok(Outcome::Passed { .. }) => "",
            Err(error) => error,
        };
        println!("{:<6} {:<18} {case:<40} {note}", if pass { "ok" } else { "FAILED" }, host.name());
    }
}
