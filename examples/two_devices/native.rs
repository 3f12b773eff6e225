//! Trains the network of `examples/digits` on two devices at once, and shows that it becomes the network that one device
//! trains alone.
//!
//! ```sh
//! cargo run --release --example two_devices
//! ```
//!
//! Each device has the data, weights of its own from the same seed, and takes half of every batch. Its gradients are one
//! node with a view for each parameter, so that one copy a step brings them to the other device: into its *merge buffer*,
//! where a program reads them beside its own. Both add the same two numbers, so both go on with the same weights, bit for bit.
//! A copy is recorded like other work: the host waits for nothing, and what is recorded on a device behind a copy waits for
//! the bytes of the other.
//!
//! One device with whole batches sums the same gradients in another order, so its weights are others by the rounding of f32:
//! by 2.5e-7 of the largest weight after 5 epochs, and 3.9e-7 after 50 (llvmpipe). The tolerance leaves room for adapters
//! that contract or round otherwise, and for units that change sides; few epochs are trained, as that adds up.
//!
//! The two devices are two adapters of hardware where the machine has them, else two devices of one adapter. The program is
//! data, `two_devices/program.json` over `digits/program.json`; the page in `www/site` runs the same.

#[path = "../digits/data.rs"]
mod data;
#[allow(dead_code, reason = "each of the two examples uses its part")]
#[path = "../digits/program.rs"]
mod program;
#[path = "replica.rs"]
mod replica;
#[path = "show.rs"]
mod show;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
#[path = "train.rs"]
mod train;
#[path = "training.rs"]
mod training;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use wgslab::{Device, Driver, ErrorKind, gpu, host};

use crate::native::data::Digits;
use crate::native::program::Program;
use crate::native::train::{Job, Outcome};
use crate::native::training::Training;

/// The example's errors are messages for a person.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Said where the host driver steps in.
const NO_ADAPTER: &str = "no GPU adapter was found: training on the host driver, on the CPU; for a GPU install its Vulkan, \
     Metal or DX12 driver (a software one will do: mesa-vulkan-drivers on Debian)";

/// Trains a digit classifier on two devices that merge their gradients, and on one, and compares the weights.
#[derive(Debug, Parser)]
#[command(
    name = "two_devices",
    after_help = "Progress goes to stderr, the result to stdout. Exit code 1 on failure, and where the weights differ too much."
)]
struct Options {
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// The kind of devices; `host` computes on the CPU [default: gpu, and host where no adapter is found]
    #[arg(long, value_enum)]
    driver: Option<DriverName>,
    /// How often to go through the training rows [default: as program.json says]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    epochs: Option<u32>,
    /// Which adapters of the machine to open, such as `0,1` [default: two of hardware, else two devices of one]
    #[arg(long, value_delimiter = ',', num_args = 2, value_name = "ORDINAL")]
    adapters: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DriverName {
    Gpu,
    Host,
}

pub fn main() -> ExitCode {
    let options = Options::parse();
    match pollster::block_on(run(&options)) {
        Ok(outcome) => {
            println!("{}", outcome.text);
            if outcome.agrees { ExitCode::SUCCESS } else { fail("the weights differ by more than the tolerance") }
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}

/// What to print, and whether it is good.
struct Shown {
    text: String,
    agrees: bool,
}

/// Trains as the options say.
async fn run(options: &Options) -> Result<Shown> {
    let on_host = || host::open(host::OpenOptions::default());
    let outcome = match options.driver {
        Some(DriverName::Host) => train_on([&on_host()?, &on_host()?], options.epochs).await?,
        wanted => match two_on_gpu(options).await {
            Ok([one, other]) => train_on([&one, &other], options.epochs).await?,
            Err(error) if wanted.is_none() && options.adapters.is_none() && error.kind() == ErrorKind::NoAdapter => {
                eprintln!("{NO_ADAPTER}");
                train_on([&on_host()?, &on_host()?], options.epochs).await?
            }
            Err(error) => return Err(error.into()),
        },
    };
    let text = if options.json { serde_json::to_string(&outcome)? } else { outcome.to_string() };
    Ok(Shown { text, agrees: outcome.agrees })
}

/// Two devices, of the adapters that are wanted.
async fn two_on_gpu(options: &Options) -> wgslab::Result<[Device<gpu::Gpu>; 2]> {
    let ordinals = match options.adapters.as_deref() {
        Some(&[one, other]) => [Some(one), Some(other)],
        _ => two_of_hardware().await,
    };
    let open = |ordinal| gpu::open(gpu::OpenOptions { ordinal, ..gpu::OpenOptions::default() });
    Ok([open(ordinals[0]).await?, open(ordinals[1]).await?])
}

/// The first two adapters that are hardware; else twice the preferred one.
async fn two_of_hardware() -> [Option<u32>; 2] {
    let adapters = gpu::static_properties().await;
    let mut hardware = adapters.iter().filter(|known| known.adapter.device_type != "cpu").map(|known| known.ordinal);
    match (hardware.next(), hardware.next()) {
        (Some(one), Some(other)) => [Some(one), Some(other)],
        _ => [None, None],
    }
}

async fn train_on<D: Driver>(devices: [&Device<D>; 2], epochs: Option<u32>) -> Result<Outcome> {
    let (network, training) = (Program::load()?, Training::load()?);
    let digits = Digits::read(&network.data)?;
    let epochs = epochs.unwrap_or(training.epochs);
    let bar = ProgressBar::new(0)
        .with_style(ProgressStyle::with_template("{bar:32} step {pos} of {len}  loss {msg}  {per_sec}, {eta} left")?);
    let job = Job { network: &network, training: &training, digits: &digits, epochs };
    let outcome = job.compare(devices, |done, steps, loss| {
        bar.set_length(steps.into());
        bar.set_message(format!("{loss:.4}"));
        bar.set_position(done.into());
    });
    let outcome = outcome.await;
    bar.finish_and_clear();
    outcome
}
