//! As `tests/native/model.rs`, in the browser; the number of programs is set when the suite is built.

use wasm_bindgen_test::{console_log, wasm_bindgen_test};
use wgslab::{gpu, host};

use crate::common::compare::{CAP_BYTES, Count, run};
use crate::common::model::Devices;

async fn open_gpu() -> wgslab::Device<gpu::Gpu> {
    let options = gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(CAP_BYTES),
        ..gpu::OpenOptions::default()
    };
    gpu::open(options).await.unwrap()
}

fn open_host() -> Devices<host::Host> {
    let options = host::OpenOptions { segment_cap_bytes: Some(CAP_BYTES), ..host::OpenOptions::default() };
    Devices::new(|| host::open(options.clone()).unwrap())
}

#[wasm_bindgen_test]
async fn random_programs_give_what_the_oracle_says_on_both_drivers() {
    let programs: u64 = option_env!("WGSLAB_PROGRAMS").and_then(|count| count.parse().ok()).unwrap_or(60);
    let open = || async {
        let foreign = host::open(host::OpenOptions::default()).unwrap();
        (Devices { both: [open_gpu().await, open_gpu().await], foreign }, open_host())
    };
    let mut count = Count::default();
    run(open, None, 1..programs + 1, &mut count).await.unwrap_or_else(|said| panic!("{said}"));
    console_log!("seeds 1..={programs}: {count}");
    count.check().unwrap();
}
