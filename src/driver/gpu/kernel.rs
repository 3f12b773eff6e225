//! Raw kernels on the gpu driver: compiled to modules and pipelines, one per pattern of heaps.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::diagnostic::Diagnostic;
use crate::driver::gpu::open::GpuDev;
use crate::driver::gpu::pipelines::{Claim, Pipeline};
use crate::driver::gpu::platform;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::scope::{Caught, Complaint, one_line, scoped};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{MemoryMode, add_part, joined, parts, words};
use crate::wgsl::accessors::{module_text, param_slot_bytes};
use crate::wgsl::bind_plan::Pattern;
use crate::wgsl::check::{Named, find, is_closed, is_of_word, named};
use crate::wgsl::spec::{Access, KernelSpec, KernelTensor};

/// A compiled kernel. It keeps the pipelines of the patterns that were linked.
pub struct GpuKernel {
    pub(super) spec: Arc<KernelSpec>,
    /// Per tensor of the spec: an element has two to this many bytes.
    pub(super) element_shifts: Vec<u8>,
    variants: Mutex<Vec<(Pattern, Pipeline)>>,
}

impl fmt::Debug for GpuKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuKernel({:?})", self.spec.name)
    }
}

impl GpuKernel {
    fn variants(&self) -> MutexGuard<'_, Vec<(Pattern, Pipeline)>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pipeline of a pattern, if it is there.
    fn variant(&self, pattern: &Pattern) -> Option<Pipeline> {
        self.variants().iter().find(|(known, _)| known.is_same(pattern)).map(|(_, pipeline)| pipeline.clone())
    }

    fn keep(&self, pattern: &Pattern, pipeline: &Pipeline) {
        let mut variants = self.variants();
        // Two links may have made it at the same time; one is kept.
        if !variants.iter().any(|(known, _)| known.is_same(pattern)) {
            variants.push((pattern.clone(), pipeline.clone()));
        }
    }
}

/// Compiles a kernel for the pattern that almost every link has: all tensors in one heap, or each with a binding if it is to.
pub(super) async fn compile(runner: Arc<GpuRunner>, dev: GpuDev, spec: Arc<KernelSpec>) -> Result<GpuKernel> {
    runner.progress().check_alive()?;
    let pattern = if spec.wants_direct() && spec.tensors.len() <= dev.limits.storage_buffers as usize {
        let mut read_only = Vec::new();
        for tensor in &spec.tensors {
            read_only.push(tensor.node.mode() == MemoryMode::Constant);
        }
        Pattern::direct(read_only)
    } else {
        Pattern::one_heap(spec.tensors.len())
    };
    let mut element_shifts = Vec::new();
    for tensor in &spec.tensors {
        element_shifts.push(tensor.node.dtype().size_bytes().trailing_zeros() as u8);
    }
    let kernel = GpuKernel { spec, element_shifts, variants: Mutex::default() };
    pipeline_for(&runner, &dev, &kernel, &pattern).await?;
    Ok(kernel)
}

/// The pipeline of a pattern, made if it is not there.
pub(super) async fn pipeline_for(
    runner: &GpuRunner,
    dev: &GpuDev,
    kernel: &GpuKernel,
    pattern: &Pattern,
) -> Result<Pipeline> {
    if let Some(pipeline) = kernel.variant(pattern) {
        return Ok(pipeline);
    }
    let text = module_text(&kernel.spec, pattern);
    let pipeline = match runner.pipelines.claim(&text).await {
        Claim::Made(pipeline) => pipeline,
        Claim::Ours(making) => {
            let pipeline = Arc::new(create(runner, dev, &kernel.spec, pattern, &text).await?);
            making.done(&pipeline);
            pipeline
        }
    };
    kernel.keep(pattern, &pipeline);
    Ok(pipeline)
}

impl GpuRunner {
    /// The pipeline of a pattern for a kernel that is linked already, when its slabs moved: made at once if it is not
    /// there. The same text was compiled for another pattern, so a failure is the driver's, and fails what follows.
    pub(super) fn variant(&self, state: &mut State, kernel: &GpuKernel, pattern: &Pattern) -> Pipeline {
        if let Some(pipeline) = kernel.variant(pattern) {
            return pipeline;
        }
        let (device, spec) = (&self.dev.device, &kernel.spec);
        let text = module_text(spec, pattern);
        let layout = state.layouts.pipeline(device, &pattern.read_only, param_slot_bytes(spec));
        let ((_, pipeline), verdict) = scoped(device, || device.create_pipeline(&spec.name, &text, &layout));
        state.stats.pipelines_created += 1;
        let (progress, name) = (self.progress().clone(), spec.name.clone());
        platform::settle(verdict, move |caught| {
            if let Some(caught) = caught {
                let doing = format!("compiling \"{name}\" for slabs that moved");
                progress.fail_unsettled(caught.into_error(&doing, ErrorKind::PipelineRejected));
            }
        });
        let pipeline = Arc::new(pipeline);
        kernel.keep(pattern, &pipeline);
        pipeline
    }
}

async fn create(
    runner: &GpuRunner,
    dev: &GpuDev,
    spec: &KernelSpec,
    pattern: &Pattern,
    text: &str,
) -> Result<platform::Pipeline> {
    let limit = dev.limits.workgroup_storage_bytes;
    if let Some(bytes) = platform::workgroup_bytes(text).filter(|&bytes| bytes > u64::from(limit)) {
        let message = format_args!(
            "the workgroup variables of kernel \"{}\" take {bytes} bytes, over the device's limit of {limit}; make them \
             smaller",
            spec.name
        );
        return Err(Error::say(ErrorKind::PipelineRejected, message));
    }
    let slot_bytes = param_slot_bytes(spec);
    let complaints = platform::warm_pipeline(&dev.device, text, pattern, slot_bytes).await;
    if !complaints.is_empty() {
        return Err(not_valid(spec, text, &complaints));
    }
    let ((module, pipeline), verdict) = scoped(&dev.device, || {
        let layout = {
            let mut state = runner.lock();
            state.stats.pipelines_created += 1;
            state.layouts.pipeline(&dev.device, &pattern.read_only, slot_bytes)
        };
        dev.device.create_pipeline(&spec.name, text, &layout)
    });
    let caught = verdict.caught().await;
    runner.progress().check_alive()?;
    let Some(caught) = caught else { return Ok(pipeline) };
    let complaints = platform::complaints(&module).await;
    if !complaints.is_empty() {
        return Err(not_valid(spec, text, &complaints));
    }
    Err(match caught {
        Caught::OutOfMemory(_) => caught.into_error("compiling", ErrorKind::PipelineRejected),
        Caught::Validation(message) => rejected(spec, &message),
    })
}

fn not_valid(spec: &KernelSpec, text: &str, complaints: &[Complaint]) -> Error {
    let mut diagnostics = Vec::new();
    for complaint in complaints {
        diagnostics.push(diagnose(spec, text, complaint));
    }
    Error::with_diagnostics(ErrorKind::KernelSyntax, "the WGSL text is not valid", diagnostics)
}

/// A driver's message about the module, moved to where the author can read it.
fn diagnose(spec: &KernelSpec, text: &str, complaint: &Complaint) -> Diagnostic {
    let author = &spec.text;
    let said = without_picture(&complaint.message);
    let Some(offset) = complaint.offset else { return Diagnostic::at(author, 0, with_remedy(spec, &said)) };
    if offset <= author.len() {
        return Diagnostic::at(author, offset, with_remedy(spec, &said));
    }
    // In the generated part: the author's text declares a name that is generated, or it does not end.
    let line_start = text.as_bytes()[..offset.min(text.len())].iter().rposition(|byte| *byte == b'\n');
    let line = text.get(line_start.map_or(0, |newline| newline + 1)..).and_then(|rest| parts(rest, b"\n").next());
    let name = line.and_then(|line| words(line).nth(1)).unwrap_or("");
    let end = name.bytes().position(|byte| !is_of_word(byte)).unwrap_or(name.len());
    let name = name.get(..end).unwrap_or("");
    let declared = named(author).into_iter().find(|declared| !declared.is_attribute && declared.name == name);
    if let Some(Named { at, .. }) = declared {
        let message = format!("{said}; \"{name}\" is generated for the kernel's tensors: choose another name");
        return Diagnostic::at(author, at, message);
    }
    let message = if is_closed(author) {
        format!("{said}; this is about the accessors that are generated from the declared tensors")
    } else {
        format!("{said}; the text ends inside something that is not closed")
    };
    Diagnostic::at(author, usize::MAX, message)
}

/// naga's message carries a heading, a picture of the module and notes; the picture is of no use to the author, who gets
/// an excerpt of the own text.
fn without_picture(message: &str) -> String {
    let mut said = String::new();
    for line in parts(message, b"\n") {
        let is_picture = ["│", "┌", "·"].iter().any(|part| find(line, part, 0).is_some());
        let line = if is_picture { String::new() } else { one_line(plain_line(line)) };
        if !line.is_empty() {
            add_part(&mut said, "; ", &line);
        }
    }
    said
}

/// A line without what naga and its printer put in front.
fn plain_line(line: &str) -> &str {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix("= ").unwrap_or(line);
    ["parsing error:", "validation error:"]
        .into_iter()
        .find_map(|heading| find(line, heading, 0).and_then(|at| line.get(at + heading.len()..)))
        .unwrap_or(line)
}

/// Says what to do where the message names an accessor that the declared access does not give.
fn with_remedy(spec: &KernelSpec, said: &str) -> String {
    for KernelTensor { name, access, .. } in &spec.tensors {
        let lacking = [
            ("load_", Access::ReadWrite, access.reads()),
            ("store_", Access::ReadWrite, access.writes()),
            ("atomic_add_", Access::Atomic, *access == Access::Atomic),
            ("atomic_max_", Access::Atomic, *access == Access::Atomic),
            ("atomic_min_", Access::Atomic, *access == Access::Atomic),
        ];
        for (prefix, needs, given) in lacking {
            let accessor = joined([prefix, name], "");
            if !given && find_word(said, &accessor).is_some() {
                return format!("{said}; tensor \"{name}\" is declared {access}: declare it {needs} to use {accessor}");
            }
        }
    }
    said.to_owned()
}

/// Where a word stands by itself.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_word = |byte: &u8| is_of_word(*byte);
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = find(text, word, from)?;
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        if !before.is_some_and(is_word) && !bytes.get(at + word.len()).is_some_and(is_word) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn rejected(spec: &KernelSpec, message: &str) -> Error {
    let said = one_line(message);
    Error::say(ErrorKind::PipelineRejected, format_args!("the driver refused kernel \"{}\": {said}", spec.name))
}
