//! Linked kernels: a compiled kernel with one location per tensor, resolved to bindings and words, run as dispatches.
//!
//! Thousands of tensors may be linked at once, so resolving is one pass with plain arithmetic: what depends on the pool
//! is looked up when the pool changes from one tensor to the next.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::gpu::event::GpuEvent;
use crate::driver::gpu::heaps::{HeapClass, HeapId};
use crate::driver::gpu::kernel::{GpuKernel, pipeline_for};
use crate::driver::gpu::pipelines::Pipeline;
use crate::driver::gpu::runner::{GpuRunner, State};
use crate::driver::gpu::task::Dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::slab::loc::{BufferLoc, PoolId, check_range};
use crate::wgsl::accessors::param_slot_bytes;
use crate::wgsl::bind_plan::BindPlan;

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

/// The bindings and the parameter words of the present placements.
#[derive(Debug)]
struct Placed {
    generation: u64,
    plan: BindPlan,
    words: Vec<u32>,
}

/// Links a kernel to one location per tensor.
pub(super) async fn link(runner: Arc<GpuRunner>, kernel: Arc<GpuKernel>, locs: Vec<BufferLoc>) -> Result<GpuLinked> {
    if runner.heap_gate.is_pending() {
        runner.heap_gate.settled().await;
    }
    let mut placed = gathered(&runner, &kernel, &locs).await?;
    let mut pipeline = pipeline_for(&runner, &runner.dev, &kernel, &placed.plan.pattern).await?;
    let slot_bytes = param_slot_bytes(&kernel.spec);
    let mut state = runner.begin()?;
    if state.generation != placed.generation {
        // Something moved while the pipeline was made.
        let now = runner.placed(&state, &kernel, &locs)?;
        if !now.plan.pattern.is_same(&placed.plan.pattern) {
            pipeline = runner.variant(&mut state, &kernel, &now.plan.pattern);
        }
        placed = now;
    }
    let heaps = runner.bind(&mut state, &placed.plan)?;
    let State { params, layouts, .. } = &mut *state;
    let params = params.group(&runner.dev.device, layouts, slot_bytes);
    drop(state);
    let Placed { generation, plan, words } = placed;
    let resolved = Mutex::new(Resolved { generation, plan, pipeline, heaps, params, words, recorded: None });
    Ok(GpuLinked { kernel, locs, slot_bytes, resolved })
}

/// Where the tensors lie, after moving them together where they lie in more heaps than the kernel may bind. Nothing moves
/// before the new heaps are known to be there.
async fn gathered(runner: &GpuRunner, kernel: &GpuKernel, locs: &[BufferLoc]) -> Result<Placed> {
    let (refusal, gathering) = {
        let mut state = runner.begin()?;
        match runner.placed(&state, kernel, locs) {
            Err(error) if error.kind() == ErrorKind::LimitExceeded => (error, runner.begin_gathering(&mut state, locs)),
            outcome => return outcome,
        }
    };
    let Some(gathering) = gathering else { return Err(refusal) };
    if runner.heap_gate.is_pending() {
        runner.heap_gate.settled().await;
    }
    let mut state = runner.begin()?;
    if runner.end_gathering(&mut state, gathering)? { runner.placed(&state, kernel, locs) } else { Err(refusal) }
}

/// What the tensors of one pool have in common.
#[derive(Clone, Copy, Debug)]
struct PoolPlace {
    pool_id: PoolId,
    size_bytes: u64,
    /// Bytes from the start of the heap.
    offset: u64,
    is_constant: bool,
    binding: u32,
}

impl GpuRunner {
    /// Where the tensors of a kernel lie now.
    fn placed(&self, state: &State, kernel: &GpuKernel, locs: &[BufferLoc]) -> Result<Placed> {
        let spec = &kernel.spec;
        let mut plan = BindPlan::with_capacity(locs.len());
        let mut words = Vec::with_capacity(spec.param_words());
        // Tensors come in runs of one pool, or from two by turns.
        let (mut last, mut before): (Option<PoolPlace>, Option<PoolPlace>) = (None, None);
        let mut misaligned = None;
        for (index, (&loc, tensor)) in locs.iter().zip(&kernel.tensors).enumerate() {
            if last.is_none_or(|last| last.pool_id != loc.pool_id) {
                std::mem::swap(&mut last, &mut before);
            }
            let place = match last {
                Some(last) if last.pool_id == loc.pool_id => last,
                _ => {
                    let found = self.pool_place(state, &mut plan, loc.pool_id);
                    *last.insert(found.map_err(|error| error.context(&spec.tensors[index].node))?)
                }
            };
            check_range(loc, tensor.size_bytes, place.size_bytes)
                .map_err(|error| error.context(&spec.tensors[index].node))?;
            if place.is_constant && tensor.is_written {
                return Err(constant_written(kernel, index));
            }
            let offset = place.offset + loc.offset;
            let word = offset >> tensor.element_shift;
            if misaligned.is_none() && word << tensor.element_shift != offset {
                misaligned = Some(index);
            }
            plan.pattern.binding_of_tensor.push(place.binding);
            words.push(word as u32);
        }
        plan.check(self.dev.limits.storage_buffers)?;
        if let Some(index) = misaligned {
            let (node, loc) = (&spec.tensors[index].node, locs[index]);
            let element = node.dtype().size_bytes();
            let message = format!("{node} at {loc} does not start at a multiple of its {element}-byte elements");
            return Err(Error::new(ErrorKind::ShapeMismatch, message));
        }
        words.resize(spec.param_words(), 0);
        Ok(Placed { generation: state.generation, plan, words })
    }

    fn pool_place(&self, state: &State, plan: &mut BindPlan, pool_id: PoolId) -> Result<PoolPlace> {
        let slab = self.slab(state, pool_id)?;
        let is_constant = state.heaps.get(slab.heap)?.class == HeapClass::Constant;
        let binding = plan.binding_of(slab.heap.0, is_constant);
        Ok(PoolPlace { pool_id, size_bytes: slab.size_bytes, offset: slab.offset, is_constant, binding })
    }

    /// The bind group of a plan's heaps.
    fn bind(&self, state: &mut State, plan: &BindPlan) -> Result<Arc<wgpu::BindGroup>> {
        let read_only = &plan.pattern.read_only;
        let key: Vec<_> = plan.heaps.iter().zip(read_only).map(|(&heap, &ro)| (HeapId(heap), ro)).collect();
        state.heap_group(&self.dev.device, &key)
    }

    /// Records one run. The hot path: no allocation, no look-up by name, no new GPU object.
    pub(super) fn run(self: &Arc<Self>, linked: &GpuLinked, statics: &[i32]) -> Result<GpuEvent> {
        let mut state = self.begin()?;
        let mut resolved = linked.resolved();
        if resolved.generation != state.generation {
            self.resolve_again(&mut state, linked, &mut resolved)?;
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

    fn resolve_again(&self, state: &mut State, linked: &GpuLinked, resolved: &mut Resolved) -> Result<()> {
        let Placed { generation, plan, mut words } = match self.placed(state, &linked.kernel, &linked.locs) {
            Err(error) if error.kind() == ErrorKind::LimitExceeded => {
                let gathering = self.begin_gathering(state, &linked.locs);
                let gathering = gathering.ok_or(error)?;
                self.end_gathering(state, gathering)?;
                self.placed(state, &linked.kernel, &linked.locs)?
            }
            outcome => outcome?,
        };
        let first_static = linked.locs.len();
        words[first_static..].copy_from_slice(&resolved.words[first_static..]);
        let heaps = self.bind(state, &plan)?;
        if !plan.pattern.is_same(&resolved.plan.pattern) {
            resolved.pipeline = self.variant(state, &linked.kernel, &plan.pattern);
        }
        (resolved.generation, resolved.plan, resolved.heaps) = (generation, plan, heaps);
        (resolved.words, resolved.recorded) = (words, None);
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
    let message = format!(
        "the kernel declares {} as {}, but it is a constant; declare it read, or make the node OnDevice",
        tensor.node, tensor.access
    );
    Error::new(ErrorKind::KernelInterface, message)
}
