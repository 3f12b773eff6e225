//! Web: promises drive completion. At most one `onSubmittedWorkDone` is in flight, whatever the number of events; on
//! Firefox a pump submits nothing while somebody waits, because it looks for completed work every 100 ms otherwise
//! (Bugzilla 1870699).

use std::sync::Arc;
use std::time::Duration;

use js_sys::{Array, ArrayBuffer, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::driver::bytes::Bytes;
use crate::driver::gpu::platform::VECTOR_BYTES;
use crate::driver::gpu::platform::web_objects::{
    Buffer, Device, Gpu, ShaderModule, Submission, is_memory, map_raw, message_of, pop_scopes, push_scopes, warm,
    watch_raw, write, write_slice,
};
use crate::driver::gpu::platform::web_tasks::{Promised, is_gecko, now, sleep, spawn};
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::{Caught, Complaint};
use crate::error::{Error, ErrorKind, Result};
use crate::wgsl::bind_plan::Pattern;

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
    spawn(Box::pin(async move { then(verdict.caught().await) }));
}

/// Reports to `progress` how far the queue has come, with one promise in flight.
pub(in crate::driver::gpu) fn watch_done(device: &Device, progress: &Arc<Progress>, _seq: u64) {
    if !progress.arm() {
        return;
    }
    // At once, not in a task: Chromium sends what was asked of the queue in a microtask, and each such message takes as long
    // as a small submission.
    let mut asked = ask(device, progress);
    let (device, progress) = (device.clone(), progress.clone());
    spawn(Box::pin(async move {
        while let Some((seq, done)) = asked {
            // A rejection is a lost device, which its own callback reports.
            let _ = done.await;
            progress.work_done(seq, now_ms());
            asked = ask(&device, &progress);
        }
    }));
}

/// Asks when the last submission is done.
fn ask(device: &Device, progress: &Progress) -> Option<(u64, Promised)> {
    progress.next_undone().map(|seq| (seq, Promised::new(device.work_done())))
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
    spawn(Box::pin(async move {
        while progress.keep_driving(Duration::ZERO) {
            device.submit(None);
            let _ = Promised::new(sleep(PUMP_MS)).await;
        }
    }));
}

/// A page has one thread: nobody else has the runner.
pub(in crate::driver::gpu) fn let_go(_runner: &GpuRunner) {}

/// Releases holds as they become ready.
pub(in crate::driver::gpu) fn drive_holds(runner: &Arc<GpuRunner>) {
    let runner = runner.clone();
    spawn(Box::pin(std::future::poll_fn(move |cx| runner.poll_holds(cx))));
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

/// Tells of the loss of a device, and `with_errors` of errors outside any scope: the kind, what is to be said, and what the
/// browser says.
pub(in crate::driver::gpu) fn watch(
    device: &Device,
    with_errors: bool,
    told: impl Fn(ErrorKind, &str, &str) + 'static,
) {
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
    watch_raw(&device.0, with_errors, told.as_ref());
    // The listener lives as long as the device, which the collector decides.
    told.forget();
}

/// Open scopes for validation and memory.
pub(in crate::driver::gpu) struct Scopes<'a>(&'a Gpu);

impl<'a> Scopes<'a> {
    pub(in crate::driver::gpu) fn push(device: &'a Device) -> Self {
        push_scopes(&device.0);
        Self(&device.0)
    }

    pub(in crate::driver::gpu) fn pop(self) -> Verdict {
        Verdict(pop_scopes(self.0))
    }
}

/// The outcome of scopes, in flight.
pub(in crate::driver::gpu) struct Verdict(Promise);

impl Verdict {
    /// Waits for both scopes.
    pub(in crate::driver::gpu) async fn caught(self) -> Option<Caught> {
        let error = Promised::new(self.0).await.ok().filter(|error| !error.is_undefined())?;
        let said = message_of(&error);
        Some(if is_memory(&error) { Caught::OutOfMemory(said) } else { Caught::Validation(said) })
    }
}

/// The bytes of a mapped buffer, which are JavaScript's.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    buffer: Gpu,
    bytes: ArrayBuffer,
}

impl Mapped {
    fn view(&self, start: u64, len: u64) -> Uint8Array {
        Uint8Array::new_with_byte_offset_and_length(&self.bytes, start as u32, len as u32)
    }

    /// Shows bytes of it.
    pub(in crate::driver::gpu) fn with_bytes(
        &self,
        start: u64,
        len: u64,
        read: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        read(&self.view(start, len).to_vec())
    }

    /// A fresh array of bytes of it, which never were in wasm memory.
    pub(crate) fn fresh(&self, start: u64, len: u64) -> Uint8Array {
        self.view(start, len).slice(0, len as u32)
    }

    pub(in crate::driver::gpu) fn unmap(self) {
        self.buffer.unmap();
    }
}

/// Maps the first bytes of a buffer; `then` gets them, or what went wrong.
pub(in crate::driver::gpu) fn map(
    buffer: &Buffer,
    len: u64,
    then: impl FnOnce(std::result::Result<Mapped, String>) + 'static,
) {
    let (buffer, mapping) = (buffer.raw.clone(), map_raw(&buffer.raw, len as f64));
    spawn(Box::pin(async move {
        let mapped = Promised::new(mapping).await;
        then(match mapped {
            Ok(bytes) => Ok(Mapped { buffer, bytes: bytes.unchecked_into() }),
            Err(error) => Err(message_of(&error)),
        });
    }));
}

/// Queues a write of `bytes[start..start + len]`; everything is a multiple of 4 and in range.
pub(in crate::driver::gpu) fn write_buffer(
    device: &Device,
    buffer: &Buffer,
    offset: u64,
    bytes: Bytes<'_>,
    start: u64,
    len: u64,
) -> Result<()> {
    let (offset, start, len) = (offset as f64, start as f64, len as f64);
    match bytes {
        Bytes::Slice(slice) => write_slice(&device.0, &buffer.raw, offset, slice, start, len),
        Bytes::Js(array) => write(&device.0, &buffer.raw, offset, array, start, len).map_err(refused_write)?,
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

/// Compiles asynchronously what is then created synchronously: browsers share the work, and the queue goes on
/// (measured in Chromium: 2 to 13 ms instead of 3.9 s for a heavy kernel). Gives what is wrong with the text.
pub(in crate::driver::gpu) async fn warm_pipeline(
    device: &Device,
    text: &str,
    pattern: &Pattern,
    slot_bytes: u64,
) -> Vec<Complaint> {
    let read_only = bytemuck::cast_slice(&pattern.read_only);
    let said = Promised::new(warm(&device.0, text, read_only, VECTOR_BYTES as f64, slot_bytes as f64)).await;
    // Without an answer the device is lost, which others say.
    let said: Array = said.map_or_else(|_| Array::new(), JsCast::unchecked_into);
    let mut complaints = Vec::new();
    for at in (0..said.length()).step_by(2) {
        let message = said.get(at).as_string().unwrap_or_default();
        complaints.push(Complaint { message, offset: said.get(at + 1).as_f64().map(|offset| offset as usize) });
    }
    complaints
}

/// What is wrong with the text was said when it was warmed.
pub(in crate::driver::gpu) async fn complaints(_module: &ShaderModule) -> Vec<Complaint> {
    Vec::new()
}
