//! Random programs in index notation, as `tests/native/fuzz.rs`: the browser's shader compiler is another.
//!
//! `WGSLAB_FUZZ_WAY=every WGSLAB_PROGRAM_FUZZ=2000 WASM_BINDGEN_TEST_TIMEOUT=7200 wasm-pack test --headless --chrome --
//! --test web -- fuzz::random --nocapture` shows how far it is. What these variables say is compiled in.

use crate::common::fuzz::{APART_BYTES, Count, Devices, Ways, check_seed};
use crate::open;
use wasm_bindgen_test::{console_log, wasm_bindgen_test};
use wgslab::{gpu, host};

fn number(variable: &str, text: Option<&str>, otherwise: u64) -> u64 {
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}

/// Programs per set of devices.
const BATCH: u64 = 100;

async fn open_all(ways: Ways) -> Devices<host::Host, gpu::Gpu> {
    let apart = gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(APART_BYTES[0]),
        heap_bytes: Some(APART_BYTES[1]),
        ..gpu::OpenOptions::default()
    };
    Devices {
        host: host::open(host::OpenOptions::default()).unwrap(),
        gpu: open(gpu::LimitsChoice::Default).await,
        wide: open(gpu::LimitsChoice::Adapter).await,
        apart: gpu::open(apart).await.unwrap(),
        ways,
    }
}

#[wasm_bindgen_test]
async fn random_programs_mean_the_same_on_both_drivers() {
    let programs = number("WGSLAB_PROGRAM_FUZZ", option_env!("WGSLAB_PROGRAM_FUZZ"), 40);
    let first = number("WGSLAB_SEED", option_env!("WGSLAB_SEED"), 0);
    let ways = Ways::named(option_env!("WGSLAB_FUZZ_WAY"));
    let (mut count, mut failures) = (Count::default(), Vec::new());
    for batch in (first..first + programs).step_by(BATCH as usize) {
        let devices = open_all(ways).await;
        for seed in batch..(batch + BATCH).min(first + programs) {
            if failures.len() >= 10 {
                break;
            }
            if let Err(text) = check_seed(seed, &devices, &mut count).await {
                console_log!("fuzz: {text}");
                failures.push(text);
            }
        }
        if programs > BATCH {
            console_log!("fuzz: before seed {}, {count}", batch + BATCH);
        }
        // What scripts let go of is collected when the browser thinks of it.
        for device in [&devices.gpu, &devices.wide, &devices.apart] {
            device.destroy();
        }
    }
    console_log!("fuzz: {count}; {} failures\n{}", failures.len(), count.table());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    count.check(ways).unwrap();
}
