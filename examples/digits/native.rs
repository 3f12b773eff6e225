//! Trains a multilayer perceptron to read 1,797 scans of handwritten digits. Every step runs on the device.
//!
//! ```sh
//! cargo run --release --example digits
//! ```
//!
//! The program is data: `digits/program.json`, and what it runs in index notation, `digits/*.wgslab`, beside one raw kernel,
//! `digits/predict.wgsl`. The page in `www/site` runs the same.

#[path = "data.rs"]
mod data;
#[allow(dead_code, reason = "each of the two examples uses its part")]
#[path = "program.rs"]
mod program;
#[path = "show.rs"]
mod show;
#[path = "train.rs"]
mod train;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use wgslab::{Device, Driver, ErrorKind, gpu, host};

use crate::native::data::Digits;
use crate::native::program::Program;
use crate::native::train::{Outcome, train};

/// The example's errors are messages for a person.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Said where the host driver steps in.
const NO_ADAPTER: &str = "no GPU adapter was found: training on the host driver, on the CPU; for a GPU install its Vulkan, \
     Metal or DX12 driver (a software one will do: mesa-vulkan-drivers on Debian)";

/// Trains a digit classifier on slab-pooled GPU memory, tests it on unseen digits, and prints what it learned.
#[derive(Debug, Parser)]
#[command(name = "digits", after_help = "Progress goes to stderr, the result to stdout. Exit code 1 on failure.")]
struct Options {
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// The kind of device; `host` computes on the CPU [default: gpu, and host where no adapter is found]
    #[arg(long, value_enum)]
    driver: Option<DriverName>,
    /// How often to go through the training rows [default: as program.json says]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    epochs: Option<u32>,
    /// Open the device with the adapter's own limits, or with WebGPU's defaults
    #[arg(long, value_enum, default_value_t = LimitsName::Adapter)]
    limits: LimitsName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DriverName {
    Gpu,
    Host,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LimitsName {
    Adapter,
    Default,
}

pub fn main() -> ExitCode {
    let options = Options::parse();
    match pollster::block_on(run(&options)) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Trains as the options say; what to print.
async fn run(options: &Options) -> Result<String> {
    let limits = match options.limits {
        LimitsName::Adapter => gpu::LimitsChoice::Adapter,
        LimitsName::Default => gpu::LimitsChoice::Default,
    };
    let on_host = || host::open(host::OpenOptions::default());
    let outcome = match options.driver {
        Some(DriverName::Host) => train_on(&on_host()?, options).await?,
        wanted => match gpu::open(gpu::OpenOptions { limits, ..gpu::OpenOptions::default() }).await {
            Ok(device) => train_on(&device, options).await?,
            Err(error) if wanted.is_none() && error.kind() == ErrorKind::NoAdapter => {
                eprintln!("{NO_ADAPTER}");
                train_on(&on_host()?, options).await?
            }
            Err(error) => return Err(error.into()),
        },
    };
    Ok(if options.json { serde_json::to_string(&outcome)? } else { outcome.to_string() })
}

async fn train_on<D: Driver>(device: &Device<D>, options: &Options) -> Result<Outcome> {
    let program = Program::load()?;
    let digits = Digits::read(&program.data)?;
    let epochs = options.epochs.unwrap_or(program.hyperparameters.epochs);
    let bar = ProgressBar::new(0)
        .with_style(ProgressStyle::with_template("{bar:32} step {pos} of {len}  loss {msg}  {per_sec}, {eta} left")?);
    let outcome = train(device, &program, &digits, epochs, |done, steps, loss| {
        bar.set_length(steps.into());
        bar.set_message(format!("{loss:.4}"));
        bar.set_position(done.into());
    })
    .await;
    bar.finish_and_clear();
    outcome
}
