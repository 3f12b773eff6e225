//! Native: `poll` drives callbacks, from whoever blocks or from a thread that lives as long as somebody awaits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::driver::bytes::Bytes;
use crate::driver::gpu::platform::Device;
use crate::driver::gpu::progress::Progress;
use crate::driver::gpu::runner::GpuRunner;
use crate::driver::gpu::scope::{Caught, Complaint};
use crate::driver::maybe_send::BoxFuture;
use crate::error::{Error, ErrorKind, Result};
use crate::wgsl::bind_plan::Pattern;

/// How long the thread that drives completion waits for another waiter: starting it costs more than waking it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where submissions stand: the last sequence number of each batch with wgpu's index.
#[derive(Debug, Default)]
pub(in crate::driver::gpu) struct InFlight {
    submissions: VecDeque<(u64, wgpu::SubmissionIndex)>,
}

impl InFlight {
    pub(in crate::driver::gpu) fn push(&mut self, last_seq: u64, index: wgpu::SubmissionIndex, done_seq: u64) {
        while self.submissions.front().is_some_and(|(seq, _)| *seq <= done_seq) {
            self.submissions.pop_front();
        }
        self.submissions.push_back((last_seq, index));
    }

    /// The submission that contains `seq`; `None` if it is done, or not submitted.
    pub(in crate::driver::gpu) fn index_of(&self, seq: u64) -> Option<wgpu::SubmissionIndex> {
        self.submissions.iter().find(|(last, _)| *last >= seq).map(|(_, index)| index.clone())
    }
}

/// Tells of the loss of a device, and `with_errors` of errors outside any scope: the kind, what is to be said, and what the
/// driver says.
pub(in crate::driver::gpu) fn watch(
    device: &Device,
    with_errors: bool,
    told: impl Fn(ErrorKind, &str, &str) + Send + Sync + 'static,
) {
    let told = Arc::new(told);
    if with_errors {
        let told = told.clone();
        device.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let is_memory = matches!(error, wgpu::Error::OutOfMemory { .. });
            let kind = if is_memory { ErrorKind::OutOfMemory } else { ErrorKind::Bug };
            told(kind, "the GPU reported", &error.to_string());
        }));
    }
    device.device.set_device_lost_callback(move |reason, said| {
        let is_destroyed = matches!(reason, wgpu::DeviceLostReason::Destroyed);
        told(ErrorKind::DeviceLost, if is_destroyed { "destroyed" } else { "the driver gave no reason" }, &said);
    });
}

/// Open scopes for validation and memory.
pub(in crate::driver::gpu) struct Scopes {
    validation: wgpu::ErrorScopeGuard,
    out_of_memory: wgpu::ErrorScopeGuard,
}

impl Scopes {
    pub(in crate::driver::gpu) fn push(device: &Device) -> Self {
        let validation = device.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let out_of_memory = device.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        Self { validation, out_of_memory }
    }

    pub(in crate::driver::gpu) fn pop(self) -> Verdict {
        let out_of_memory = Box::pin(self.out_of_memory.pop());
        let validation = Box::pin(self.validation.pop());
        Verdict { out_of_memory, validation }
    }
}

/// The outcome of scopes, in flight.
pub(in crate::driver::gpu) struct Verdict {
    out_of_memory: BoxFuture<Option<wgpu::Error>>,
    validation: BoxFuture<Option<wgpu::Error>>,
}

impl Verdict {
    /// Waits for both scopes.
    pub(in crate::driver::gpu) async fn caught(self) -> Option<Caught> {
        let out_of_memory = self.out_of_memory.await;
        let validation = self.validation.await;
        out_of_memory
            .map(|error| Caught::OutOfMemory(error.to_string()))
            .or_else(|| validation.map(|error| Caught::Validation(error.to_string())))
    }
}

/// Queues a write of `bytes[start..start + len]`; everything is a multiple of 4 and in range.
pub(in crate::driver::gpu) fn write_buffer(
    device: &Device,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: Bytes<'_>,
    start: u64,
    len: u64,
) -> Result<()> {
    let Bytes::Slice(slice) = bytes;
    device.queue.write_buffer(buffer, offset, &slice[start as usize..(start + len) as usize]);
    Ok(())
}

/// Calls `then` with the outcome of an error scope: at once, since native scopes are settled when they are popped.
pub(in crate::driver::gpu) fn settle(verdict: Verdict, then: impl FnOnce(Option<Caught>) + 'static) {
    let mut caught = Box::pin(verdict.caught());
    match caught.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(caught) => then(caught),
        Poll::Pending => then(Some(Caught::Validation("an error scope did not settle when it was popped".to_owned()))),
    }
}

/// Reports to `progress` when the batch that ends at `seq` has been executed.
pub(in crate::driver::gpu) fn watch_done(device: &Device, progress: &Arc<Progress>, seq: u64) {
    let progress = progress.clone();
    device.queue.on_submitted_work_done(move || progress.work_done(seq, now_ms()));
}

/// Lets callbacks run that are due.
pub(in crate::driver::gpu) fn poll(device: &Device) {
    // An error here is a lost device, which its own callback reports.
    let _ = device.device.poll(wgpu::PollType::Poll);
}

/// Blocks until that submission is done.
///
/// Without a time limit: wgpu-core 30 asserts that an empty queue means a finished wait (`device/resource.rs`, in
/// `maintain`), which fails where a wait runs out of time while another thread polls.
pub(in crate::driver::gpu) fn wait(device: &Device, submission_index: wgpu::SubmissionIndex) {
    let _ = device.device.poll(wgpu::PollType::Wait { submission_index: Some(submission_index), timeout: None });
}

/// Lets go of a buffer. Dropping is enough, and `Buffer::destroy` would wait for a lock that a waiting thread holds
/// (wgpu-core 30; measured at over a second).
pub(in crate::driver::gpu) fn discard(_buffer: &wgpu::Buffer) {}

/// Milliseconds since some moment.
pub(in crate::driver::gpu) fn now_ms() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3
}

/// Tells whoever drives completion to look again.
struct Stir(Arc<Progress>);

impl Wake for Stir {
    fn wake(self: Arc<Self>) {
        self.0.stir();
    }
}

fn stirring(progress: &Arc<Progress>) -> Waker {
    Arc::new(Stir(progress.clone())).into()
}

thread_local! {
    /// Whether this thread drives a device.
    static IS_DRIVER: Cell<bool> = const { Cell::new(false) };
}

/// Waits until the thread that drives completion has let go of the runner, so that whoever drops the last of a device is
/// the one who ends it. A process that returns from `main` while another thread ends a Vulkan device crashes in the
/// driver (lavapipe of Mesa 22.3, 1 of 20 short programs with a cold shader cache).
pub(in crate::driver::gpu) fn let_go(runner: &GpuRunner) {
    if !IS_DRIVER.get() {
        runner.progress().quiesce();
    }
}

/// Drives completion for those who await, on a thread that ends when nobody has for a while.
///
/// It never blocks for a hold: what that waits for may itself wait for earlier work of this device, which somebody must
/// drive meanwhile.
pub(in crate::driver::gpu) fn drive(runner: &Arc<GpuRunner>) {
    let (shared, progress) = (Arc::downgrade(runner), runner.progress().clone());
    let spawned = std::thread::Builder::new().name("wgslab-progress".to_owned()).spawn(move || {
        IS_DRIVER.set(true);
        while progress.keep_driving(PATIENCE) {
            // Whoever waits keeps the runner alive.
            let Some(runner) = shared.upgrade() else { return };
            match progress.first_waited() {
                Some(seq) if runner.is_held(seq) => {
                    let polled = runner.poll_holds(&mut Context::from_waker(&stirring(&progress)));
                    drop(runner);
                    if polled.is_pending() {
                        progress.rest();
                    }
                }
                Some(seq) => runner.wait_for_queue(seq),
                None => (),
            }
        }
    });
    if let Err(error) = spawned {
        runner.progress().lose(&format!("cannot start the thread that drives completion: {error}"));
        // Nobody drives, and nobody waits for who does.
        runner.progress().keep_driving(Duration::ZERO);
    }
}

/// Holds are released by those who wait: see `GpuRunner::wait_for`.
pub(in crate::driver::gpu) fn drive_holds(_runner: &Arc<GpuRunner>) {}

/// Releases what is due without waiting, for those who only ask. A hold remembers one waker: that of whoever drives.
pub(in crate::driver::gpu) fn try_release(runner: &Arc<GpuRunner>) {
    let _ = runner.poll_holds(&mut Context::from_waker(&stirring(runner.progress())));
}

/// Native pipelines are made where they are asked for; nothing to warm.
pub(in crate::driver::gpu) async fn warm_pipeline(
    _device: &Device,
    _text: &str,
    _pattern: &Pattern,
    _slot_bytes: u64,
) -> Vec<Complaint> {
    Vec::new()
}

/// A text as naga takes it: it has subgroups, but refuses the directive that browsers ask for (delete this when it does not,
/// <https://github.com/gfx-rs/wgpu/issues/5555>). Blanks in its place keep what is behind it where it is.
pub(super) fn for_naga(text: &str) -> String {
    const DIRECTIVE: &str = "enable subgroups;";
    text.replace(DIRECTIVE, &" ".repeat(DIRECTIVE.len()))
}

/// What is wrong with the text of a module.
pub(in crate::driver::gpu) async fn complaints(module: &wgpu::ShaderModule) -> Vec<Complaint> {
    let mut messages = module.get_compilation_info().await.messages;
    messages.retain(|message| message.message_type == wgpu::CompilationMessageType::Error);
    let complaint = |message: wgpu::CompilationMessage| Complaint {
        message: message.message,
        offset: message.location.map(|at| at.offset as usize),
    };
    messages.into_iter().map(complaint).collect()
}

/// Bytes of the workgroup variables that a module's entry point uses, as WebGPU counts them. wgpu hands any number to the
/// driver (delete this when it checks `max_compute_workgroup_storage_size`). `None` where there are none, and for a text that
/// is not valid, which compiling says.
pub(in crate::driver::gpu) fn workgroup_bytes(text: &str) -> Option<u64> {
    let has_variable = text.split("workgroup").any(|before| before.trim_end().ends_with('<'));
    if !has_variable {
        return None;
    }
    let module = naga::front::wgsl::parse_str(&for_naga(text)).ok()?;
    let mut sizes = naga::proc::Layouter::default();
    sizes.update(module.to_ctx()).ok()?;
    let flags = naga::valid::ValidationFlags::empty();
    let info = naga::valid::Validator::new(flags, naga::valid::Capabilities::all()).validate(&module).ok()?;
    let used = info.get_entry_point(0);
    let of_workgroup = module
        .global_variables
        .iter()
        .filter(|(handle, variable)| variable.space == naga::AddressSpace::WorkGroup && !used[*handle].is_empty());
    Some(of_workgroup.map(|(_, variable)| u64::from(sizes[variable.ty].size).next_multiple_of(16)).sum())
}

/// Gives back what dropping does not: nothing, natively.
pub(in crate::driver::gpu) fn release(_device: &Device) {}

/// A mapped buffer.
#[derive(Clone, Debug)]
pub(crate) struct Mapped(wgpu::Buffer);

impl Mapped {
    /// Shows bytes of it.
    pub(in crate::driver::gpu) fn with_bytes(
        &self,
        start: u64,
        len: u64,
        read: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        // Views start at multiples of 8, and have a multiple of 4 bytes.
        let (from, end) = (start / 8 * 8, (start + len).next_multiple_of(4));
        let refused = |error| Error::new(ErrorKind::MapFailed, format!("reading a mapped buffer: {error}"));
        let view = self.0.get_mapped_range(from..end).map_err(refused)?;
        read(&view[(start - from) as usize..(start - from + len) as usize])
    }

    pub(in crate::driver::gpu) fn unmap(self) {
        self.0.unmap();
    }
}

/// Maps the first bytes of a buffer; `then` gets them, or what went wrong.
pub(in crate::driver::gpu) fn map(
    buffer: &wgpu::Buffer,
    len: u64,
    then: impl FnOnce(std::result::Result<Mapped, String>) + Send + 'static,
) {
    let mapped = Mapped(buffer.clone());
    buffer.map_async(wgpu::MapMode::Read, 0..len, move |outcome| {
        then(outcome.map(|()| mapped).map_err(|error| error.to_string()));
    });
}
