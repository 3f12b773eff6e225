//! As `tests/native/model.rs`, in the browser; the number of programs is set when the suite is built.

use wasm_bindgen_test::{console_log, wasm_bindgen_test};
use wgslab::{gpu, host};

use crate::common::compare::{CAP_BYTES, Count, SMALL_HEAP_BYTES, run};
use crate::common::model::Devices;

async fn open_gpu(heap_bytes: Option<u64>) -> wgslab::Device<gpu::Gpu> {
    let options = gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(CAP_BYTES),
        heap_bytes,
        ..gpu::OpenOptions::default()
    };
    gpu::open(options).await.unwrap()
}

fn open_host() -> Devices<host::Host> {
    let options = host::OpenOptions { segment_cap_bytes: Some(CAP_BYTES), ..host::OpenOptions::default() };
    let open = || host::open(options.clone()).unwrap();
    Devices::new(open(), open())
}

#[wasm_bindgen_test]
async fn random_programs_give_what_the_oracle_says_on_both_drivers() {
    let programs: u64 = option_env!("WGSLAB_PROGRAMS").and_then(|count| count.parse().ok()).unwrap_or(60);
    let open = || async { (Devices::new(open_gpu(None).await, open_gpu(Some(SMALL_HEAP_BYTES)).await), open_host()) };
    let mut count = Count::default();
    run(open, None, 1..programs + 1, &mut count).await.unwrap_or_else(|said| panic!("{said}"));
    console_log!("seeds 1..={programs}: {count}");
    count.check().unwrap();
}
