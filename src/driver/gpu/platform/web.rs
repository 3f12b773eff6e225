//! Web: promises drive completion. At most one `onSubmittedWorkDone` is in flight, whatever the number of events; on
//! Firefox a pump submits nothing while somebody waits, because it looks for completed work every 100 ms otherwise
//! (Bugzilla 1870699).

use std::sync::Arc;
use std::time::Duration;

use js_sys::{Array, ArrayBuffer, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::{Caught, Complaint};
use crate::error::{Error, ErrorKind, Result};
use crate::wgsl::bind_plan::Pattern;

// wgpu 30 has no asynchronous pipeline creation (wgpu#3794) and its error conversion panics on a GPUInternalError
// (wgpu#9914, fixed after 30.0.2): both are reached through the raw device. So are error scopes and mappings: two promises
// are one here, and bytes go to JavaScript without a view in between.
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
export function watch(device, withErrors, told) {
  device.lost.then(({ reason, message }) => told(reason === 'destroyed' ? 4 : 3, message));
  const kind = (error) => (
    error instanceof GPUOutOfMemoryError ? 0 : error instanceof GPUValidationError ? 1 : 2);
  if (withErrors) device.addEventListener('uncapturederror', ({ error }) => told(kind(error), error.message));
}
export function pushScopes(device) {
  device.pushErrorScope('validation');
  device.pushErrorScope('out-of-memory');
}
export async function popScopes(device) {
  const popped = await Promise.allSettled([device.popErrorScope(), device.popErrorScope()]);
  return popped.map(({ value }) => value).find(Boolean);
}
export function isMemory(error) { return error instanceof GPUOutOfMemoryError; }
export async function map(buffer, len) {
  await buffer.mapAsync(1, 0, len);
  return buffer.getMappedRange(0, len);
}
export function unmap(buffer) { buffer.unmap(); }
export async function warm(device, code, readOnly, slotBytes) {
  // What is wrong but for the text is said by the synchronous creation that follows; here it must not reach the device.
  device.pushErrorScope('validation');
  const visibility = 4;
  const heaps = device.createBindGroupLayout({ entries: Array.from(readOnly, (ro, binding) => (
    { binding, visibility, buffer: { type: ro ? 'read-only-storage' : 'storage', minBindingSize: 16 } })) });
  const params = device.createBindGroupLayout({ entries: [
    { binding: 0, visibility, buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: slotBytes } }] });
  const layout = device.createPipelineLayout({ bindGroupLayouts: [heaps, params] });
  const module = device.createShaderModule({ code });
  const made = device.createComputePipelineAsync({ layout, compute: { module } });
  const popped = device.popErrorScope();
  const [{ reason }] = await Promise.allSettled([made, popped]);
  if (!reason) return [];
  const { messages } = await module.getCompilationInfo();
  const bytes = (end) => new TextEncoder().encode(code.slice(0, end)).length;
  return Array.from(messages).filter(({ type }) => type === 'error').flatMap(({ message, offset, length }) => (
    [message, offset || length ? bytes(offset) : undefined]));
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
    fn watch_raw(device: &JsValue, with_errors: bool, told: &JsValue);
    #[wasm_bindgen(js_name = pushScopes)]
    fn push_scopes(device: &JsValue);
    #[wasm_bindgen(js_name = popScopes)]
    fn pop_scopes(device: &JsValue) -> Promise;
    #[wasm_bindgen(js_name = isMemory)]
    fn is_memory(error: &JsValue) -> bool;
    #[wasm_bindgen(js_name = map)]
    fn map_raw(buffer: &JsValue, len: f64) -> Promise;
    #[wasm_bindgen(js_name = unmap)]
    fn unmap_raw(buffer: &JsValue);
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

/// Tells of the loss of a device, and `with_errors` of errors outside any scope: the kind, what is to be said, and what the
/// browser says.
pub(in crate::driver::gpu) fn watch(
    device: &wgpu::Device,
    with_errors: bool,
    told: impl Fn(ErrorKind, &str, &str) + 'static,
) {
    let Some(raw) = device.as_webgpu() else { return };
    let told = Closure::<dyn FnMut(u32, String)>::new(move |what: u32, said: String| {
        let (kind, from) = match what {
            0 => (ErrorKind::OutOfMemory, "the GPU reported"),
            1 => (ErrorKind::Bug, "the GPU reported"),
            2 => (ErrorKind::PipelineRejected, "the browser's GPU process failed"),
            3 => (ErrorKind::DeviceLost, "the driver gave no reason"),
            _ => (ErrorKind::DeviceLost, "destroyed"),
        };
        told(kind, from, &said);
    });
    watch_raw(raw.as_ref(), with_errors, told.as_ref());
    // The listener lives as long as the device, which the collector decides.
    told.forget();
}

/// Open scopes for validation and memory.
pub(in crate::driver::gpu) struct Scopes<'a>(Option<&'a JsValue>);

impl<'a> Scopes<'a> {
    pub(in crate::driver::gpu) fn push(device: &'a wgpu::Device) -> Self {
        let device: Option<&JsValue> = device.as_webgpu().map(AsRef::as_ref);
        device.inspect(|device| push_scopes(device));
        Self(device)
    }

    pub(in crate::driver::gpu) fn pop(self) -> Verdict {
        Verdict(self.0.map(pop_scopes))
    }
}

/// The outcome of scopes, in flight.
pub(in crate::driver::gpu) struct Verdict(Option<Promise>);

impl Verdict {
    /// Waits for both scopes.
    pub(in crate::driver::gpu) async fn caught(self) -> Option<Caught> {
        let error = JsFuture::from(self.0?).await.ok().filter(|error| !error.is_undefined())?;
        let said = message_of(&error);
        Some(if is_memory(&error) { Caught::OutOfMemory(said) } else { Caught::Validation(said) })
    }
}

/// What an error of JavaScript says.
fn message_of(error: &JsValue) -> String {
    error.unchecked_ref::<js_sys::Error>().message().into()
}

/// The bytes of a mapped buffer, which are JavaScript's.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    buffer: JsValue,
    bytes: ArrayBuffer,
}

impl Mapped {
    fn view(&self, start: u64, len: u64) -> Uint8Array {
        Uint8Array::new_with_byte_offset_and_length(&self.bytes, start as u32, len as u32)
    }

    /// Shows bytes of it.
    pub(in crate::driver::gpu) fn with_bytes(&self, start: u64, len: u64, read: &mut dyn FnMut(&[u8])) -> Result<()> {
        read(&self.view(start, len).to_vec());
        Ok(())
    }

    /// A fresh array of bytes of it, which never were in wasm memory.
    pub(crate) fn fresh(&self, start: u64, len: u64) -> Uint8Array {
        self.view(start, len).slice(0, len as u32)
    }

    pub(in crate::driver::gpu) fn unmap(self) {
        unmap_raw(&self.buffer);
    }
}

/// Maps the first bytes of a buffer; `then` gets them, or what went wrong.
pub(in crate::driver::gpu) fn map(
    buffer: &wgpu::Buffer,
    len: u64,
    then: impl FnOnce(std::result::Result<Mapped, String>) + 'static,
) {
    let Some(raw) = buffer.as_webgpu() else { return };
    let (buffer, mapping) = (JsValue::clone(raw.as_ref()), map_raw(raw.as_ref(), len as f64));
    spawn_local(async move {
        let mapped = JsFuture::from(mapping).await;
        then(match mapped {
            Ok(bytes) => Ok(Mapped { buffer, bytes: bytes.unchecked_into() }),
            Err(error) => Err(message_of(&error)),
        });
    });
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
    let said = message_of(&error);
    Error::say(
        ErrorKind::Unsupported,
        format_args!("the browser refused to upload the array: {said}; upload a plain copy of it"),
    )
}

/// Calls `then` with the outcome of an error scope, when it is known.
pub(in crate::driver::gpu) fn settle(verdict: Verdict, then: impl FnOnce(Option<Caught>) + 'static) {
    settle_boxed(verdict, Box::new(then));
}

fn settle_boxed(verdict: Verdict, then: Box<dyn FnOnce(Option<Caught>)>) {
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
/// (measured in Chromium: 2 to 13 ms instead of 3.9 s for a heavy kernel). Gives what is wrong with the text.
pub(in crate::driver::gpu) async fn warm_pipeline(
    device: &wgpu::Device,
    text: &str,
    pattern: &Pattern,
    slot_bytes: u64,
) -> Vec<Complaint> {
    let read_only: Vec<u8> = pattern.read_only.iter().map(|&read_only| u8::from(read_only)).collect();
    let Some(raw) = device.as_webgpu() else { return Vec::new() };
    let said = JsFuture::from(warm_raw(raw.as_ref(), text, &read_only, slot_bytes as f64)).await;
    let said: Array = said.unwrap_or_default().unchecked_into();
    let mut complaints = Vec::new();
    for at in (0..said.length()).step_by(2) {
        let message = said.get(at).as_string().unwrap_or_default();
        complaints.push(Complaint { message, offset: said.get(at + 1).as_f64().map(|offset| offset as usize) });
    }
    complaints
}

/// What is wrong with the text was said when it was warmed.
pub(in crate::driver::gpu) async fn complaints(_module: &wgpu::ShaderModule) -> Vec<Complaint> {
    Vec::new()
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
