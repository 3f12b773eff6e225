//! What the layer and programs cost natively, in turn with wgpu alone doing the same. The rows of programs are those of
//! `bench/rows.json`, which the browser measures too.
//!
//! `cargo run --release --example bench [-- --json] [--rows record,upload,readback,link,control,compile,programs]`

#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot go on ends")]

#[path = "compile.rs"]
mod compile;
#[path = "kernels.rs"]
mod kernels;
#[path = "layer.rs"]
mod layer;
#[path = "measure.rs"]
mod measure;
#[path = "programs.rs"]
mod programs;
#[path = "raw.rs"]
mod raw;
#[path = "rows.rs"]
mod rows;

use clap::{Parser, ValueEnum};
use raw::Raw;
use serde_json::json;
use wgslab::{Result, Tune, gpu};

/// Measures natively, in turn with wgpu alone.
#[derive(Parser)]
struct Arguments {
    /// One JSON object on stdout.
    #[arg(long)]
    json: bool,
    /// Only these groups.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Group::value_variants().iter().copied())]
    rows: Vec<Group>,
    /// Of the group programs only these rows, by their names.
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// For how long each row of programs is timed, about, in seconds.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Whether programs are tuned first: quick or full.
    #[arg(long, default_value = "off", value_parser = ["off", "quick", "full"])]
    tune: String,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Group {
    /// 1,000 runs of a small kernel.
    Record,
    /// Host to slab.
    Upload,
    /// Slab to host.
    Readback,
    /// Many nodes linked or made, and finalized.
    Link,
    /// wgpu against itself: what a ratio is by chance.
    Control,
    /// A program from its text to a routine.
    Compile,
    /// Whole programs.
    Programs,
}

pub fn main() -> Result<()> {
    let arguments = Arguments::parse();
    pollster::block_on(async {
        let device = gpu::open(gpu::OpenOptions::default()).await?;
        let raw = Raw::open().await;
        let mut rows = Vec::new();
        for group in &arguments.rows {
            rows.extend(match group {
                Group::Record => layer::record(&device, &raw).await?,
                Group::Upload => layer::upload(&device, &raw)?,
                Group::Readback => layer::readback(&device, &raw)?,
                Group::Link => layer::link(&device, &raw).await?,
                Group::Control => layer::control(&raw)?,
                Group::Compile => compile::compile(&device).await?,
                Group::Programs => Vec::new(),
            });
        }
        let tune = match &*arguments.tune {
            "quick" => Tune::Quick,
            "full" => Tune::Full,
            _ => Tune::Off,
        };
        let programs = if arguments.rows.contains(&Group::Programs) {
            Some(programs::programs(&device, &raw, &arguments.programs, arguments.seconds, tune).await?)
        } else {
            None
        };
        if arguments.json {
            let mut result = json!({ "driver": "gpu", "adapter": device.adapter(), "rows": rows });
            if let Some(programs) = programs {
                result["programs"] = json!(programs);
            }
            println!("{result}");
        } else {
            println!("{}", device.adapter().name);
            rows.iter().for_each(|row| println!("{row}"));
            programs.iter().for_each(|programs| println!("{programs}"));
        }
        Ok(())
    })
}
