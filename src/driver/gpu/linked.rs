//! Linked kernels: a compiled kernel with the places of its tensors, resolved to bindings and words, run as dispatches.
//!
//! Thousands of tensors may be linked at once, so linking looks at their pools, not at them: where each one is in its pool
//! comes with the slot table. The words of the parameter block are made when the kernel first runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::{HeapClass, HeapId};
use crate::driver::gpu::kernel::{GpuKernel, pipeline_for};
use crate::driver::gpu::pipelines::Pipeline;
use crate::driver::gpu::platform::BindGroup;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::task::Dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::node::joined;
use crate::wgsl::accessors::param_slot_bytes;
use crate::wgsl::bind_plan::BindPlan;
use crate::wgsl::slots::Slots;

/// A kernel linked to the places of its tensors.
pub struct GpuLinked {
    kernel: Arc<GpuKernel>,
    slots: Slots,
    slot_bytes: u64,
    resolved: Mutex<Resolved>,
}

/// What depends on the placements of the moment.
#[derive(Debug)]
struct Resolved {
    placed: Placed,
    /// The pipeline for the pattern of the bindings.
    pipeline: Pipeline,
    heaps: Arc<BindGroup>,
    params: Arc<BindGroup>,
    /// The parameter block: an element offset per tensor, then the statics. Empty until the kernel runs.
    words: Vec<u32>,
    /// The batch that holds this very block, and where.
    recorded: Option<(u64, u32)>,
}

impl fmt::Debug for GpuLinked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuLinked({:?}, {:?})", self.kernel.spec.name, self.resolved().placed.plan)
    }
}

impl GpuLinked {
    fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parameter block, without values of the statics.
    fn words(&self, bases: &[u64]) -> Vec<u32> {
        let mut words = Vec::new();
        for ((pool, offset), shift) in self.slots.table.iter().zip(&self.kernel.element_shifts) {
            words.push(((bases[pool] + offset) >> shift) as u32);
        }
        words.resize(self.kernel.spec.param_words(), 0);
        words
    }

    /// The binding plan in words.
    pub(super) fn explain(&self) -> String {
        let (BindPlan { pattern, heaps, .. }, refusal) = {
            let placed = &self.resolved().placed;
            (placed.plan.clone(), placed.refusal)
        };
        let spec = &self.kernel.spec;
        let (tensors, bindings) = (spec.tensors.len(), heaps.len());
        let bytes = self.slot_bytes;
        let plan = if pattern.is_direct { "direct" } else { "pooled" };
        let (since, why) = refusal.map_or(("", ""), |why| (", not direct, since ", why));
        let mut text =
            format!("{plan}{since}{why}: {tensors} tensors through {bindings} bindings, {bytes} bytes of parameters");
        for (binding, heap) in heaps.iter().enumerate() {
            let mode = if pattern.read_only[binding] { "read" } else { "read_write" };
            let of_binding = spec.tensors.iter().zip(pattern.bindings()).filter(|(_, at)| *at == binding);
            let names = joined(of_binding.map(|(tensor, _)| spec.word_of(tensor)), ", ");
            text.push_str(&format!("; binding {binding} ({mode}): heap {heap} with {names}"));
        }
        text
    }
}

/// The bindings of the present placements.
#[derive(Debug)]
struct Placed {
    generation: u64,
    /// The bindings, with their heaps.
    plan: BindPlan,
    /// Per pool, bytes from the start of its heap.
    bases: Vec<u64>,
    /// Why the plan is not direct, if it was to be.
    refusal: Option<&'static str>,
}

/// Links a kernel to the places of its tensors.
pub(super) async fn link(runner: Arc<GpuRunner>, kernel: Arc<GpuKernel>, slots: Slots) -> Result<GpuLinked> {
    if runner.heap_gate.is_pending() {
        runner.heap_gate.settled().await;
    }
    let mut placed = gathered(&runner, &kernel, &slots).await?;
    let mut pipeline = pipeline_for(&runner, &runner.dev, &kernel, &placed.plan.pattern).await?;
    let slot_bytes = param_slot_bytes(&kernel.spec);
    let mut state = runner.begin()?;
    if state.generation != placed.generation {
        // Something moved while the pipeline was made.
        let now = runner.placed(&state, &kernel, &slots)?;
        if !now.plan.pattern.is_same(&placed.plan.pattern) {
            pipeline = runner.variant(&mut state, &kernel, &now.plan.pattern);
        }
        placed = now;
    }
    let heaps = runner.bind(&mut state, &placed.plan)?;
    let State { params, layouts, .. } = &mut *state;
    let params = params.group(&runner.dev.device, layouts, slot_bytes);
    drop(state);
    let resolved = Mutex::new(Resolved { placed, pipeline, heaps, params, words: Vec::new(), recorded: None });
    Ok(GpuLinked { kernel, slots, slot_bytes, resolved })
}

/// Where the tensors lie, after moving them together where they lie in more heaps than the kernel may bind. Nothing moves
/// before the new heaps are known to be there.
async fn gathered(runner: &GpuRunner, kernel: &GpuKernel, slots: &Slots) -> Result<Placed> {
    let (refusal, gathering) = {
        let mut state = runner.begin()?;
        match runner.placed(&state, kernel, slots) {
            Err(error) if error.kind() == ErrorKind::LimitExceeded => {
                (error, runner.begin_gathering(&mut state, &slots.pools))
            }
            outcome => return outcome,
        }
    };
    let Some(gathering) = gathering else { return Err(refusal) };
    if runner.heap_gate.is_pending() {
        runner.heap_gate.settled().await;
    }
    let mut state = runner.begin()?;
    if runner.end_gathering(&mut state, gathering)? { runner.placed(&state, kernel, slots) } else { Err(refusal) }
}

impl GpuRunner {
    /// Where the tensors of a kernel lie now.
    fn placed(&self, state: &State, kernel: &GpuKernel, slots: &Slots) -> Result<Placed> {
        let spec = &kernel.spec;
        let mut plan = BindPlan::new(slots.table.pool_of_tensor.clone());
        let mut bases = Vec::with_capacity(slots.pools.len());
        for (pool, &pool_id) in slots.pools.iter().enumerate() {
            let slab = self.slab(state, pool_id).map_err(|error| error.context(slots.first_node(spec, pool)))?;
            slots.check_fits(spec, pool, slab.size_bytes)?;
            let is_constant = state.heaps.get(slab.heap)?.class == HeapClass::Constant;
            if is_constant && let Some(index) = slots.first_written(pool) {
                return Err(constant_written(kernel, index));
            }
            plan.bind_pool(slab.heap.0, is_constant);
            bases.push(slab.offset);
        }
        plan.check(self.dev.limits.storage_buffers)?;
        // Slabs start at multiples of every element's size.
        if let Some(index) = slots.table.misaligned {
            let (node, loc) = (&spec.tensors[index].node, slots.loc(index));
            let element = node.dtype().size_bytes();
            let message = format_args!("{node} at {loc} does not start at a multiple of its {element}-byte elements");
            return Err(Error::say(ErrorKind::ShapeMismatch, message));
        }
        let mut refusal = None;
        if spec.wants_direct() {
            let starts = slots.table.iter().map(|(pool, offset)| bases[pool] + offset);
            let ranges = starts.zip(&spec.tensors).map(|(start, tensor)| (start, tensor.node.size_bytes()));
            match plan.direct(ranges, self.dev.limits.storage_buffers) {
                Ok(direct) => plan = direct,
                Err(why) => refusal = Some(why),
            }
        }
        Ok(Placed { generation: state.generation, plan, bases, refusal })
    }

    /// The bind group of a plan's heaps, or of its ranges of them.
    fn bind(&self, state: &mut State, plan: &BindPlan) -> Result<Arc<BindGroup>> {
        let key = plan.heaps.iter().zip(&plan.pattern.read_only).map(|(&heap, &ro)| (HeapId(heap), ro)).collect();
        state.heap_group(&self.dev.device, (key, plan.ranges.clone()))
    }

    /// Records one run. The hot path: after the first run no allocation, no look-up by name, no new GPU object.
    pub(super) fn run<'l>(
        self: &Arc<Self>,
        linked: impl Iterator<Item = &'l GpuLinked>,
        statics: &[i32],
    ) -> Result<GpuEvent> {
        let mut state = self.begin()?;
        for linked in linked {
            // A batch that is full goes in the middle of a run: nobody else records meanwhile.
            if state.is_full() {
                self.flush_state(&mut state)?;
            }
            self.run_one(&mut state, linked, statics)?;
        }
        state.advance();
        self.recorded(state)
    }

    fn run_one(&self, state: &mut State, linked: &GpuLinked, statics: &[i32]) -> Result<()> {
        let mut resolved = linked.resolved();
        if resolved.placed.generation != state.generation {
            self.resolve_again(state, linked, &mut resolved)?;
        }
        if linked.kernel.spec.grid.contains(&0) {
            return Ok(());
        }
        let params_offset = self.block(state, &mut resolved, linked, statics)?;
        let dispatch = Dispatch {
            pipeline: resolved.pipeline.clone(),
            heaps: resolved.heaps.clone(),
            params: resolved.params.clone(),
            params_offset,
            grid: linked.kernel.spec.grid,
        };
        state.push_dispatch(dispatch, resolved.placed.plan.heaps.iter().map(|&heap| HeapId(heap)));
        Ok(())
    }

    fn resolve_again(&self, state: &mut State, linked: &GpuLinked, resolved: &mut Resolved) -> Result<()> {
        let GpuLinked { kernel, slots, .. } = linked;
        let placed = match self.placed(state, kernel, slots) {
            Err(error) if error.kind() == ErrorKind::LimitExceeded => {
                let gathering = self.begin_gathering(state, &slots.pools).ok_or(error)?;
                self.end_gathering(state, gathering)?;
                self.placed(state, kernel, slots)?
            }
            outcome => outcome?,
        };
        let heaps = self.bind(state, &placed.plan)?;
        if !placed.plan.pattern.is_same(&resolved.placed.plan.pattern) {
            resolved.pipeline = self.variant(state, kernel, &placed.plan.pattern);
        }
        // Somebody else's slab may have gone, and these be where they were.
        if placed.bases != resolved.placed.bases {
            resolved.words.clear();
        }
        (resolved.placed, resolved.heaps, resolved.recorded) = (placed, heaps, None);
        Ok(())
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
        if resolved.words.is_empty() {
            resolved.words = linked.words(&resolved.placed.bases);
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

fn constant_written(kernel: &GpuKernel, index: usize) -> Error {
    let tensor = &kernel.spec.tensors[index];
    let message = format_args!(
        "the kernel declares {} as {}, but it is a constant; declare it read, or make the node OnDevice",
        tensor.node, tensor.access
    );
    Error::say(ErrorKind::KernelInterface, message)
}
