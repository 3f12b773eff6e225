//! Raw kernels on the gpu driver: compiled to modules and pipelines, linked to placements, run as dispatches.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::diagnostic::Diagnostic;
use crate::driver::gpu::builtin::create_pipeline;
use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::{HeapClass, HeapId};
use crate::driver::gpu::open::GpuDev;
use crate::driver::gpu::platform;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::scope::{Caught, one_line, scoped};
use crate::driver::gpu::task::Dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::BufferLoc;
use crate::wgsl::accessors::{module_text, param_slot_bytes};
use crate::wgsl::bind_plan::{BindPlan, Pattern, plan_bindings};
use crate::wgsl::check::{declarations, find, is_closed, position};
use crate::wgsl::spec::{Access, KernelSpec, KernelTensor};

type Pipeline = Arc<wgpu::ComputePipeline>;

/// Pipelines that are alive, by their whole text: two codes with one text share one pipeline.
#[derive(Debug, Default)]
pub(super) struct PipelineCache {
    by_text: Mutex<Vec<(String, Weak<wgpu::ComputePipeline>)>>,
}

impl PipelineCache {
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Weak<wgpu::ComputePipeline>)>> {
        self.by_text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, text: &str) -> Option<Pipeline> {
        self.lock().iter().find(|(known, _)| known == text).and_then(|(_, pipeline)| pipeline.upgrade())
    }

    fn insert(&self, text: String, pipeline: &Pipeline) {
        let mut by_text = self.lock();
        by_text.retain(|(_, pipeline)| pipeline.strong_count() > 0);
        by_text.push((text, Arc::downgrade(pipeline)));
    }
}

/// A compiled kernel. It keeps the pipelines of the patterns that were linked.
pub struct GpuKernel {
    spec: Arc<KernelSpec>,
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
}

/// Compiles a kernel for the pattern that almost every link has: all tensors in one heap.
pub(super) async fn compile(runner: Arc<GpuRunner>, dev: GpuDev, spec: Arc<KernelSpec>) -> Result<GpuKernel> {
    runner.progress().check_alive()?;
    let pattern = Pattern::one_heap(spec.tensors.len());
    let kernel = GpuKernel { spec, variants: Mutex::default() };
    pipeline_for(&runner, &dev, &kernel, &pattern).await?;
    Ok(kernel)
}

/// The pipeline of a pattern, made if it is not there.
async fn pipeline_for(runner: &GpuRunner, dev: &GpuDev, kernel: &GpuKernel, pattern: &Pattern) -> Result<Pipeline> {
    let known = |variants: &[(Pattern, Pipeline)]| {
        variants.iter().find(|(known, _)| known == pattern).map(|(_, pipeline)| pipeline.clone())
    };
    if let Some(pipeline) = known(&kernel.variants()) {
        return Ok(pipeline);
    }
    let text = module_text(&kernel.spec, pattern);
    let pipeline = match runner.pipelines.get(&text) {
        Some(pipeline) => pipeline,
        None => {
            let pipeline = Arc::new(create(runner, dev, &kernel.spec, pattern, &text).await?);
            runner.pipelines.insert(text, &pipeline);
            pipeline
        }
    };
    let mut variants = kernel.variants();
    // Two links may have made it at the same time; one is kept.
    if known(&variants).is_none() {
        variants.push((pattern.clone(), pipeline.clone()));
    }
    Ok(pipeline)
}

async fn create(
    runner: &GpuRunner,
    dev: &GpuDev,
    spec: &KernelSpec,
    pattern: &Pattern,
    text: &str,
) -> Result<wgpu::ComputePipeline> {
    let slot_bytes = param_slot_bytes(spec);
    platform::warm_pipeline(&dev.device, text, pattern, slot_bytes).await;
    let ((module, pipeline), verdict) = scoped(&dev.device, || {
        let layout = {
            let mut state = runner.lock();
            state.stats.pipelines_created += 1;
            state.layouts.pipeline(&dev.device, &pattern.read_only, slot_bytes)
        };
        create_pipeline(&dev.device, &spec.name, text, &layout)
    });
    let caught = verdict.caught().await;
    runner.progress().check_alive()?;
    let Some(caught) = caught else { return Ok(pipeline) };
    let info = module.get_compilation_info().await;
    let diagnostics: Vec<_> = info
        .messages
        .iter()
        .filter(|message| message.message_type == wgpu::CompilationMessageType::Error)
        .map(|message| diagnose(spec, text, message))
        .collect();
    if diagnostics.is_empty() {
        return Err(match caught {
            Caught::OutOfMemory(_) => caught.into_error("compiling", ErrorKind::PipelineRejected),
            Caught::Validation(message) => rejected(spec, &message),
        });
    }
    Err(Error::with_diagnostics(ErrorKind::KernelSyntax, "the WGSL text is not valid", diagnostics))
}

/// A driver's message about the module, moved to where the author can read it.
fn diagnose(spec: &KernelSpec, text: &str, message: &wgpu::CompilationMessage) -> Diagnostic {
    let author = &spec.text;
    let said = without_picture(&message.message);
    let Some(at) = &message.location else { return Diagnostic::at(author, 1, 1, with_remedy(spec, &said)) };
    let offset = at.offset as usize;
    if offset <= author.len() {
        let (line, column) = position(text, offset);
        return Diagnostic::at(author, line, column, with_remedy(spec, &said));
    }
    // In the generated part: the author's text declares a name that is generated, or it does not end.
    let line_start = text.as_bytes()[..offset.min(text.len())].iter().rposition(|byte| *byte == b'\n');
    let line = text.get(line_start.map_or(0, |newline| newline + 1)..).and_then(|rest| rest.lines().next());
    let name = line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or("");
    let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if let Some((_, offset)) = declarations(author).into_iter().find(|(declared, _)| *declared == name) {
        let (line, column) = position(author, offset);
        let message = format!("{said}; \"{name}\" is generated for the kernel's tensors: choose another name");
        return Diagnostic::at(author, line, column, message);
    }
    let message = if is_closed(author) {
        format!("{said}; this is about the accessors that are generated from the declared tensors")
    } else {
        format!("{said}; the text ends inside something that is not closed")
    };
    Diagnostic::at(author, u32::MAX, u32::MAX, message)
}

/// naga's message carries a heading, a picture of the module and notes; the picture is of no use to the author, who gets
/// an excerpt of the own text.
fn without_picture(message: &str) -> String {
    let is_picture = |line: &&str| ["│", "┌", "·"].iter().any(|part| find(line, part, 0).is_some());
    let said: Vec<&str> = message.lines().filter(|line| !is_picture(line)).map(plain_line).collect();
    let said: Vec<String> = said.into_iter().map(one_line).filter(|line| !line.is_empty()).collect();
    said.join("; ")
}

/// A line without what naga and its printer put in front.
fn plain_line(line: &str) -> &str {
    let line = line.trim_start();
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
            let accessor = [prefix, name].concat();
            if !given && find_word(said, &accessor).is_some() {
                return format!("{said}; tensor \"{name}\" is declared {access}: declare it {needs} to use {accessor}");
            }
        }
    }
    said.to_owned()
}

/// Where a word stands by itself.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
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
    Error::new(ErrorKind::PipelineRejected, format!("the driver refused kernel \"{}\": {said}", spec.name))
}

/// A kernel linked to locations.
pub struct GpuLinked {
    kernel: Arc<GpuKernel>,
    locs: Vec<BufferLoc>,
    slot_bytes: u64,
    resolved: Mutex<Resolved>,
}

/// What depends on the placements of the moment.
#[derive(Debug)]
struct Resolved {
    generation: u64,
    /// The bindings, with their heaps, and the pipeline for their pattern.
    plan: BindPlan,
    pipeline: Pipeline,
    heaps: Arc<wgpu::BindGroup>,
    params: Arc<wgpu::BindGroup>,
    /// The parameter block: an element offset per tensor, then the statics.
    words: Vec<u32>,
    /// The batch that holds this very block, and where.
    recorded: Option<(u64, u32)>,
}

impl fmt::Debug for GpuLinked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuLinked({:?}, {:?})", self.kernel.spec.name, self.resolved().plan)
    }
}

impl GpuLinked {
    fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The binding plan in words.
    pub(super) fn explain(&self) -> String {
        let (spec, BindPlan { pattern, heaps }) = (&self.kernel.spec, self.resolved().plan.clone());
        let bound: Vec<_> = heaps
            .iter()
            .enumerate()
            .map(|(binding, heap)| {
                let mode = if pattern.read_only[binding] { "read" } else { "read_write" };
                let of_binding = spec.tensors.iter().zip(&pattern.binding_of_tensor);
                let names: Vec<_> =
                    of_binding.filter(|(_, at)| **at as usize == binding).map(|(t, _)| t.name.as_str()).collect();
                format!("binding {binding} ({mode}): heap {heap} with {}", names.join(", "))
            })
            .collect();
        format!(
            "pooled: {} tensors through {} bindings, {} bytes of parameters; {}",
            spec.tensors.len(),
            heaps.len(),
            self.slot_bytes,
            bound.join("; ")
        )
    }
}

/// Links a kernel to one location per tensor.
pub(super) async fn link(runner: Arc<GpuRunner>, kernel: Arc<GpuKernel>, locs: Vec<BufferLoc>) -> Result<GpuLinked> {
    runner.heap_gate.settled().await;
    let spec = kernel.spec.clone();
    let plan = {
        let state = runner.begin()?;
        plan(&runner, &state, &spec, &locs)?
    };
    let pipeline = pipeline_for(&runner, &runner.dev, &kernel, &plan.pattern).await?;
    let slot_bytes = param_slot_bytes(&spec);
    let resolved = {
        let mut state = runner.begin()?;
        let (now, heaps, words) = resolve(&runner, &mut state, &spec, &locs)?;
        // Something may have moved while the pipeline was made.
        let pipeline =
            if now.pattern == plan.pattern { pipeline } else { runner.variant(&mut state, &kernel, &now.pattern) };
        let State { params, layouts, generation, .. } = &mut *state;
        let params = params.group(&runner.dev.device, layouts, slot_bytes);
        Mutex::new(Resolved { generation: *generation, plan: now, pipeline, heaps, params, words, recorded: None })
    };
    Ok(GpuLinked { kernel, locs, slot_bytes, resolved })
}

fn plan(runner: &GpuRunner, state: &State, spec: &KernelSpec, locs: &[BufferLoc]) -> Result<BindPlan> {
    let mut heaps = Vec::with_capacity(locs.len());
    for (tensor, &loc) in spec.tensors.iter().zip(locs) {
        let range = runner.resolve(state, loc, tensor.node.size_bytes()).map_err(|e| e.context(&tensor.node))?;
        let constant = state.heaps.get(range.heap)?.class == HeapClass::Constant;
        if constant && tensor.access.writes() {
            let message = format!(
                "the kernel declares {} as {}, but it is a constant; declare it read, or make the node OnDevice",
                tensor.node, tensor.access
            );
            return Err(Error::new(ErrorKind::KernelInterface, message));
        }
        heaps.push((range.heap.0, constant));
    }
    plan_bindings(&heaps, runner.dev.limits.storage_buffers)
}

/// The bindings, their bind group and the parameter words of the present placements.
fn resolve(
    runner: &GpuRunner,
    state: &mut State,
    spec: &KernelSpec,
    locs: &[BufferLoc],
) -> Result<(BindPlan, Arc<wgpu::BindGroup>, Vec<u32>)> {
    let plan = plan(runner, state, spec, locs)?;
    let mut words = Vec::with_capacity(spec.param_words());
    for (tensor, &loc) in spec.tensors.iter().zip(locs) {
        let range = runner.resolve(state, loc, tensor.node.size_bytes()).map_err(|e| e.context(&tensor.node))?;
        let element = tensor.node.dtype().size_bytes();
        if range.offset % element != 0 {
            let message =
                format!("{} at {loc} does not start at a multiple of its {element}-byte elements", tensor.node);
            return Err(Error::new(ErrorKind::ShapeMismatch, message));
        }
        words.push((range.offset / element) as u32);
    }
    words.resize(spec.param_words(), 0);
    let key: Vec<_> = plan.heaps.iter().zip(&plan.pattern.read_only).map(|(&heap, &ro)| (HeapId(heap), ro)).collect();
    let group = state.heap_group(&runner.dev.device, &key)?;
    Ok((plan, group, words))
}

impl GpuRunner {
    /// The pipeline of a pattern for a kernel that is linked already, when its slabs moved: made at once if it is not
    /// there. The same text was compiled for another pattern, so a failure is the driver's, and fails what follows.
    fn variant(&self, state: &mut State, kernel: &GpuKernel, pattern: &Pattern) -> Pipeline {
        let mut variants = kernel.variants();
        if let Some((_, pipeline)) = variants.iter().find(|(known, _)| known == pattern) {
            return pipeline.clone();
        }
        let (device, spec) = (&self.dev.device, &kernel.spec);
        let text = module_text(spec, pattern);
        let layout = state.layouts.pipeline(device, &pattern.read_only, param_slot_bytes(spec));
        let ((_, pipeline), verdict) = scoped(device, || create_pipeline(device, &spec.name, &text, &layout));
        state.stats.pipelines_created += 1;
        let (progress, name) = (self.progress().clone(), spec.name.clone());
        platform::settle(verdict, move |caught| {
            if let Some(caught) = caught {
                let doing = format!("compiling \"{name}\" for slabs that moved");
                progress.fail_unsettled(caught.into_error(&doing, ErrorKind::PipelineRejected));
            }
        });
        let pipeline = Arc::new(pipeline);
        variants.push((pattern.clone(), pipeline.clone()));
        pipeline
    }

    /// Records one run. The hot path: no allocation, no look-up by name, no new GPU object.
    pub(super) fn run(self: &Arc<Self>, linked: &GpuLinked, statics: &[i32]) -> Result<GpuEvent> {
        let mut state = self.begin()?;
        let mut resolved = linked.resolved();
        if resolved.generation != state.generation {
            let spec = &linked.kernel.spec;
            let (plan, heaps, mut words) = resolve(self, &mut state, spec, &linked.locs)?;
            let first_static = spec.tensors.len();
            words[first_static..].copy_from_slice(&resolved.words[first_static..]);
            if plan.pattern != resolved.plan.pattern {
                resolved.pipeline = self.variant(&mut state, &linked.kernel, &plan.pattern);
            }
            resolved.generation = state.generation;
            (resolved.plan, resolved.heaps, resolved.words, resolved.recorded) = (plan, heaps, words, None);
        }
        if linked.kernel.spec.grid.contains(&0) {
            state.advance();
            return self.recorded(state);
        }
        let params_offset = self.block(&mut state, &mut resolved, linked, statics)?;
        let dispatch = Dispatch {
            pipeline: resolved.pipeline.clone(),
            heaps: resolved.heaps.clone(),
            params: resolved.params.clone(),
            params_offset,
            grid: linked.kernel.spec.grid,
        };
        state.push_dispatch(dispatch, resolved.plan.heaps.iter().map(|&heap| HeapId(heap)));
        drop(resolved);
        state.advance();
        self.recorded(state)
    }

    /// The offset of the parameter block of this run: that of the last run, where it is in the open batch and equal.
    fn block(&self, state: &mut State, resolved: &mut Resolved, linked: &GpuLinked, statics: &[i32]) -> Result<u32> {
        let statics: &[u32] = bytemuck::cast_slice(statics);
        let first_static = linked.kernel.spec.tensors.len();
        if let Some((batch, offset)) = resolved.recorded
            && batch == state.batch
            && resolved.words[first_static..] == *statics
        {
            return Ok(offset);
        }
        resolved.words[first_static..].copy_from_slice(statics);
        if !state.params.has_room(linked.slot_bytes) {
            self.flush_state(state)?;
        }
        let offset = state.params.push(&resolved.words, linked.slot_bytes);
        resolved.recorded = Some((state.batch, offset));
        Ok(offset)
    }
}
