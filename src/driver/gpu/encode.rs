//! Tasks to commands: the only place that knows the encoder.
//!
//! Dispatches share a compute pass until something needs the encoder itself; state that is already set is not set
//! again.

use std::sync::Arc;

use crate::driver::gpu::platform::{Commands, Device, Encoder};
use crate::driver::gpu::runner::State;
use crate::driver::gpu::task::{Dispatch, Task};
use crate::error::{Error, Result};

/// Encodes a batch. No tasks (a batch of queue writes only) give no command buffer.
pub(super) fn encode(device: &Device, state: &mut State, tasks: &[Task]) -> Result<Option<Commands>> {
    if tasks.is_empty() {
        return Ok(None);
    }
    let label = format!("wgslab batch {}", state.batch);
    let mut encoder = device.encoder(&label);
    let mut rest = tasks;
    while !rest.is_empty() {
        let run = rest.iter().take_while(|task| matches!(task, Task::Dispatch(_))).count();
        if run > 0 {
            encode_pass(&mut encoder, &rest[..run]);
            state.stats.passes += 1;
        } else {
            encode_command(&mut encoder, state, &rest[0])?;
        }
        rest = &rest[run.max(1)..];
    }
    Ok(Some(encoder.finish()))
}

fn encode_pass(encoder: &mut Encoder, tasks: &[Task]) {
    let mut pass = encoder.pass("wgslab pass");
    let mut set: Option<&Dispatch> = None;
    for task in tasks {
        let Task::Dispatch(dispatch) = task else { continue };
        if set.is_none_or(|set| !Arc::ptr_eq(&set.pipeline, &dispatch.pipeline)) {
            pass.set_pipeline(&dispatch.pipeline);
        }
        if set.is_none_or(|set| !Arc::ptr_eq(&set.heaps, &dispatch.heaps)) {
            pass.set_heaps(&dispatch.heaps);
        }
        if set.is_none_or(|set| {
            set.params_offset != dispatch.params_offset || !Arc::ptr_eq(&set.params, &dispatch.params)
        }) {
            pass.set_params(&dispatch.params, dispatch.params_offset);
        }
        pass.dispatch(dispatch.grid);
        set = Some(dispatch);
    }
}

fn encode_command(encoder: &mut Encoder, state: &State, task: &Task) -> Result<()> {
    match *task {
        Task::Upload { heap, offset, ref source, source_offset, len } => {
            encoder.copy(source, source_offset, &state.heaps.get(heap)?.buffer, offset, len);
        }
        Task::Lift { heap, offset, ref target, target_offset, len } => {
            encoder.copy(&state.heaps.get(heap)?.buffer, offset, target, target_offset, len);
        }
        Task::Zero { heap, offset, len } => {
            encoder.clear(&state.heaps.get(heap)?.buffer, offset, len);
        }
        Task::Copy { src, src_offset, dst, dst_offset, len } => {
            let (src, dst) = (&state.heaps.get(src)?.buffer, &state.heaps.get(dst)?.buffer);
            encoder.copy(src, src_offset, dst, dst_offset, len);
        }
        Task::Stage { heap, offset, len, staging, staging_offset } => {
            let Some(staging) = state.staging.get(staging) else {
                return Err(Error::bug("a readback was recorded without a staging buffer"));
            };
            let source = &state.heaps.get(heap)?.buffer;
            encoder.copy(source, offset, staging.buffer(), staging_offset, len);
        }
        Task::Dispatch(_) => return Err(Error::bug("a dispatch was encoded outside a pass")),
    }
    Ok(())
}
