//! Web: promises drive completion. At most one `onSubmittedWorkDone` is in flight, whatever the number of events; on
//! Firefox a pump submits nothing while somebody waits, because it looks for completed work every 100 ms otherwise
//! (Bugzilla 1870699).

use std::sync::Arc;
use std::time::Duration;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::{Caught, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::wgsl::bind_plan::Pattern;

// wgpu 30 has no asynchronous pipeline creation (wgpu#3794) and its error conversion panics on a GPUInternalError
// (wgpu#9914, fixed after 30.0.2): both are reached through the raw device. Delete `watch` with the next wgpu release.
#[wasm_bindgen(inline_js = "
export function hasWebgpu() { return typeof navigator !== 'undefined' && !!navigator.gpu; }
export function isGecko() { return typeof navigator !== 'undefined' && / Gecko\\//.test(navigator.userAgent ?? ''); }
export function now() { return performance.now(); }
export function sleep(ms) { return new Promise((resolve) => setTimeout(resolve, ms)); }
export function write(queue, buffer, offset, data, start, len) { queue.writeBuffer(buffer, offset, data, start, len); }
export function workDone(queue) { return queue.onSubmittedWorkDone(); }
export function submitNothing(queue) { queue.submit([]); }
export function describe(device) {
  const { description, vendor, architecture, device: model } = device.adapterInfo ?? {};
  return description || [vendor, architecture, model].filter(Boolean).join(' ') || 'WebGPU adapter';
}
export function watch(device, onError) {
  device.addEventListener('uncapturederror', (event) => {
    if (typeof GPUInternalError !== 'undefined' && event.error instanceof GPUInternalError) {
      event.stopImmediatePropagation();
      onError(event.error.message);
    }
  }, { capture: true });
}
export async function warm(device, code, readOnly, slotBytes) {
  // What is wrong with the text is said by the synchronous creation that follows; here it must not reach the device.
  device.pushErrorScope('validation');
  const visibility = 4;
  const heaps = device.createBindGroupLayout({ entries: Array.from(readOnly, (ro, binding) => (
    { binding, visibility, buffer: { type: ro ? 'read-only-storage' : 'storage', minBindingSize: 16 } })) });
  const params = device.createBindGroupLayout({ entries: [
    { binding: 0, visibility, buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: slotBytes } }] });
  const layout = device.createPipelineLayout({ bindGroupLayouts: [heaps, params] });
  const made = device.createComputePipelineAsync({ layout, compute: { module: device.createShaderModule({ code }) } });
  const popped = device.popErrorScope();
  await Promise.allSettled([made, popped]);
}
")]
extern "C" {
    #[wasm_bindgen(js_name = hasWebgpu)]
    fn has_webgpu() -> bool;
    #[wasm_bindgen(js_name = isGecko)]
    fn is_gecko() -> bool;
    fn now() -> f64;
    fn sleep(ms: f64) -> Promise;
    #[wasm_bindgen(catch)]
    fn write(
        queue: &JsValue,
        buffer: &JsValue,
        offset: f64,
        data: &Uint8Array,
        start: f64,
        len: f64,
    ) -> std::result::Result<(), JsValue>;
    #[wasm_bindgen(js_name = workDone)]
    fn raw_work_done(queue: &JsValue) -> Promise;
    #[wasm_bindgen(js_name = submitNothing)]
    fn submit_nothing(queue: &JsValue);
    fn describe(device: &JsValue) -> String;
    #[wasm_bindgen(js_name = watch)]
    fn watch_raw(device: &JsValue, on_error: &JsValue);
    #[wasm_bindgen(js_name = warm)]
    fn warm_raw(device: &JsValue, code: &str, read_only: &[u8], slot_bytes: f64) -> Promise;
}

/// How often the pump submits, in milliseconds.
const PUMP_MS: f64 = 2.0;

/// Where submissions stand; wgpu's index says nothing on the web.
#[derive(Debug, Default)]
pub(in crate::driver::gpu) struct InFlight(());

impl InFlight {
    pub(in crate::driver::gpu) fn push(&mut self, _last_seq: u64, _index: wgpu::SubmissionIndex, _done_seq: u64) {}
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
        _device: &wgpu::Device,
        _bytes: Bytes<'_>,
        _start: u64,
        _len: u64,
    ) -> Option<Arc<wgpu::Buffer>> {
        None
    }

    pub(in crate::driver::gpu) fn recycle(&self) {}

    pub(in crate::driver::gpu) fn trim(&self) {}

    pub(in crate::driver::gpu) fn bytes(&self) -> u64 {
        0
    }
}

/// Whether this page has WebGPU at all; wgpu would panic in some surroundings without it.
pub(in crate::driver::gpu) fn check_webgpu() -> Result<()> {
    if has_webgpu() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NoAdapter,
        "this JavaScript environment has no WebGPU (navigator.gpu is missing); use a browser with WebGPU in a secure \
         context (https or localhost), or open the host driver: Device.open({ driver: \"host\" })",
    ))
}

/// The adapter's name, or what the browser says in place of one: wgpu looks at the description only.
pub(in crate::driver::gpu) fn adapter_name(device: &wgpu::Device, info: &wgpu::AdapterInfo) -> String {
    device.as_webgpu().map_or_else(|| info.name.clone(), |raw| describe(raw.as_ref()))
}

/// Takes internal errors off the device before wgpu sees them: it would panic.
pub(in crate::driver::gpu) fn watch_internal_errors(device: &wgpu::Device, progress: &Arc<Progress>) {
    let Some(raw) = device.as_webgpu() else { return };
    let progress = progress.clone();
    let on_error = Closure::<dyn FnMut(String)>::new(move |message: String| {
        progress.fail_unsettled(Error::say(
            ErrorKind::PipelineRejected,
            format_args!("the browser's GPU process failed: {message}"),
        ));
    });
    watch_raw(raw.as_ref(), on_error.as_ref());
    // The listener lives as long as the device, which the collector decides.
    on_error.forget();
}

/// Queues a write of `bytes[start..start + len]`; everything is a multiple of 4 and in range.
pub(in crate::driver::gpu) fn write_buffer(
    queue: &wgpu::Queue,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: Bytes<'_>,
    start: u64,
    len: u64,
) -> Result<()> {
    match bytes {
        Bytes::Slice(slice) => queue.write_buffer(buffer, offset, &slice[start as usize..(start + len) as usize]),
        Bytes::Js(array) => {
            if let (Some(queue), Some(buffer)) = (queue.as_webgpu(), buffer.as_webgpu()) {
                let written = write(queue.as_ref(), buffer.as_ref(), offset as f64, array, start as f64, len as f64);
                written.map_err(refused_write)?;
            }
        }
    }
    Ok(())
}

/// The browser would not take an array: detached, resizable, or too large to copy.
fn refused_write(error: JsValue) -> Error {
    let said = error.dyn_ref::<js_sys::Error>().map_or_else(String::new, |error| String::from(error.message()));
    Error::say(
        ErrorKind::Unsupported,
        format_args!("the browser refused to upload the array: {said}; upload a plain copy of it"),
    )
}

/// Calls `then` with the outcome of an error scope, when it is known.
pub(in crate::driver::gpu) fn settle(verdict: Verdict, then: impl FnOnce(Option<Caught>) + 'static) {
    spawn_local(async move { then(verdict.caught().await) });
}

/// Reports to `progress` how far the queue has come, with one promise in flight.
pub(in crate::driver::gpu) fn watch_done(queue: &wgpu::Queue, progress: &Arc<Progress>, _seq: u64) {
    if !progress.arm() {
        return;
    }
    let Some(queue) = queue.as_webgpu().map(|queue| JsValue::clone(queue.as_ref())) else { return };
    let progress = progress.clone();
    spawn_local(async move {
        while let Some(seq) = progress.next_undone() {
            // A rejection is a lost device, which its own callback reports.
            let _ = JsFuture::from(raw_work_done(&queue)).await;
            progress.work_done(seq, now_ms());
        }
    });
}

/// Milliseconds since some moment.
pub(in crate::driver::gpu) fn now_ms() -> f64 {
    now()
}

/// Callbacks run when the page's event loop does.
pub(in crate::driver::gpu) fn poll(_device: &wgpu::Device) {}

/// Pumps Firefox's queue while somebody waits.
pub(in crate::driver::gpu) fn drive(runner: &Arc<GpuRunner>) {
    if !is_gecko() {
        // The promises come by themselves; nobody needs to be told again.
        return;
    }
    let Some(queue) = runner.dev.queue.as_webgpu().map(|queue| JsValue::clone(queue.as_ref())) else { return };
    let progress = runner.progress().clone();
    spawn_local(async move {
        while progress.keep_driving(Duration::ZERO) {
            submit_nothing(&queue);
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

/// Compiles asynchronously what is then created synchronously: browsers share the work, and the queue goes on
/// (measured in Chromium: 2 to 13 ms instead of 3.9 s for a heavy kernel).
pub(in crate::driver::gpu) async fn warm_pipeline(
    device: &wgpu::Device,
    text: &str,
    pattern: &Pattern,
    slot_bytes: u64,
) {
    let read_only: Vec<u8> = pattern.read_only.iter().map(|&read_only| u8::from(read_only)).collect();
    if let Some(raw) = device.as_webgpu() {
        let _ = JsFuture::from(warm_raw(raw.as_ref(), text, &read_only, slot_bytes as f64)).await;
    }
}

/// Browsers count the workgroup variables themselves.
pub(in crate::driver::gpu) fn workgroup_bytes(_text: &str) -> Option<u64> {
    None
}

/// Lets go of a buffer: on the web, dropping a handle frees nothing.
pub(in crate::driver::gpu) fn discard(buffer: &wgpu::Buffer) {
    buffer.destroy();
}

/// Gives back what dropping does not: on the web, dropping a handle frees nothing.
pub(in crate::driver::gpu) fn release(device: &wgpu::Device) {
    device.destroy();
}
