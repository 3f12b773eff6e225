//! Web: promises drive completion. At most one `onSubmittedWorkDone` is in flight, whatever the number of events; on
//! Firefox a pump submits nothing while somebody waits, because it looks for completed work every 100 ms otherwise
//! (Bugzilla 1870699).

use std::sync::Arc;
use std::time::Duration;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::platform::{Buffer, Device, Submission, Verdict};
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::Caught;

#[wasm_bindgen(inline_js = "
export function isGecko() { return typeof navigator !== 'undefined' && / Gecko\\//.test(navigator.userAgent ?? ''); }
export function now() { return performance.now(); }
export function sleep(ms) { return new Promise((resolve) => setTimeout(resolve, ms)); }
")]
extern "C" {
    #[wasm_bindgen(js_name = isGecko)]
    fn is_gecko() -> bool;
    fn now() -> f64;
    fn sleep(ms: f64) -> Promise;
}

/// How often the pump submits, in milliseconds.
const PUMP_MS: f64 = 2.0;

/// Where submissions stand, which nobody asks for on the web.
#[derive(Debug, Default)]
pub(in crate::driver::gpu) struct InFlight(());

impl InFlight {
    pub(in crate::driver::gpu) fn push(&mut self, _last_seq: u64, _index: Submission, _done_seq: u64) {}
}

/// A browser's own staging is as good as any: nothing goes through buffers of ours.
pub(in crate::driver::gpu) const STAGED_UPLOAD_BYTES: Option<u64> = None;
pub(in crate::driver::gpu) const UPLOAD_PIECE_BYTES: u64 = 4 << 20;

/// There are no staging buffers for uploads on the web.
#[derive(Debug, Default)]
pub(in crate::driver::gpu) struct UploadStaging(());

impl UploadStaging {
    pub(in crate::driver::gpu) fn fill(
        &self,
        _device: &Device,
        _bytes: Bytes<'_>,
        _start: u64,
        _len: u64,
    ) -> Option<Arc<Buffer>> {
        None
    }

    pub(in crate::driver::gpu) fn recycle(&self) {}

    pub(in crate::driver::gpu) fn trim(&self) {}

    pub(in crate::driver::gpu) fn bytes(&self) -> u64 {
        0
    }
}

/// Calls `then` with the outcome of an error scope, when it is known.
pub(in crate::driver::gpu) fn settle(verdict: Verdict, then: impl FnOnce(Option<Caught>) + 'static) {
    settle_boxed(verdict, Box::new(then));
}

fn settle_boxed(verdict: Verdict, then: Box<dyn FnOnce(Option<Caught>)>) {
    spawn_local(async move { then(verdict.caught().await) });
}

/// Reports to `progress` how far the queue has come, with one promise in flight.
pub(in crate::driver::gpu) fn watch_done(device: &Device, progress: &Arc<Progress>, _seq: u64) {
    if !progress.arm() {
        return;
    }
    let (device, progress) = (device.clone(), progress.clone());
    spawn_local(async move {
        while let Some(seq) = progress.next_undone() {
            // A rejection is a lost device, which its own callback reports.
            let _ = JsFuture::from(device.work_done()).await;
            progress.work_done(seq, now_ms());
        }
    });
}

/// Milliseconds since some moment.
pub(in crate::driver::gpu) fn now_ms() -> f64 {
    now()
}

/// Callbacks run when the page's event loop does.
pub(in crate::driver::gpu) fn poll(_device: &Device) {}

/// Pumps Firefox's queue while somebody waits.
pub(in crate::driver::gpu) fn drive(runner: &Arc<GpuRunner>) {
    if !is_gecko() {
        // The promises come by themselves; nobody needs to be told again.
        return;
    }
    let (device, progress) = (runner.dev.device.clone(), runner.progress().clone());
    spawn_local(async move {
        while progress.keep_driving(Duration::ZERO) {
            device.submit(None);
            let _ = JsFuture::from(sleep(PUMP_MS)).await;
        }
    });
}

/// A page has one thread: nobody else has the runner.
pub(in crate::driver::gpu) fn let_go(_runner: &GpuRunner) {}

/// Releases holds as they become ready.
pub(in crate::driver::gpu) fn drive_holds(runner: &Arc<GpuRunner>) {
    let runner = runner.clone();
    spawn_local(std::future::poll_fn(move |cx| runner.poll_holds(cx)));
}

/// Holds are released when the page's event loop runs.
pub(in crate::driver::gpu) fn try_release(_runner: &Arc<GpuRunner>) {}

/// Browsers count the workgroup variables themselves.
pub(in crate::driver::gpu) fn workgroup_bytes(_text: &str) -> Option<u64> {
    None
}

/// Lets go of a buffer: on the web, dropping a handle frees nothing.
pub(in crate::driver::gpu) fn discard(buffer: &Buffer) {
    buffer.destroy();
}

/// Gives back what dropping does not: on the web, dropping a handle frees nothing.
pub(in crate::driver::gpu) fn release(device: &Device) {
    device.destroy();
}
