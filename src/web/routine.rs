//! Codes, routines and sequences.

use std::cell::Cell;
use std::sync::Arc;

use js_sys::{Array, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::backend::sequence::Sequence;
use crate::error::Result;
use crate::web::either::Either;
use crate::web::error::{bad_argument, seq, texts};
use crate::web::held::{Held, code, keep, keep_all, kept, numbers, routine, sequence};

/// Names of the integers that each run gives, in order.
#[wasm_bindgen(js_name = codeStatics, unchecked_return_type = "string[]")]
pub fn code_statics(handle: u32) -> Array {
    texts(code(handle).statics().iter())
}

/// Names of the nodes, in the order of `codeNodes`.
#[wasm_bindgen(js_name = codeNames, unchecked_return_type = "string[]")]
pub fn code_names(handle: u32) -> Array {
    texts(code(handle).named_nodes().map(|(name, _)| name))
}

/// The nodes that contexts have or get.
#[wasm_bindgen(js_name = codeNodes)]
pub fn code_nodes(handle: u32) -> Uint32Array {
    keep_all(code(handle).named_nodes().map(|(_, node)| Held::Node(node.clone())))
}

/// The ids of the nodes that it reads, or of those that it may change.
#[wasm_bindgen(js_name = codeTouches)]
pub fn code_touches(handle: u32, changes: bool) -> Uint32Array {
    let code = code(handle);
    let nodes = if changes { code.outputs() } else { code.inputs() };
    numbers(nodes.iter().map(|node| node.id().0))
}

/// What became of the tensors, and which kernels were made.
#[wasm_bindgen(js_name = codeExplain, unchecked_return_type = "string")]
pub fn code_explain(handle: u32) -> JsValue {
    code(handle).explain().into()
}

/// The identity.
#[wasm_bindgen(js_name = routineId)]
pub fn routine_id(handle: u32) -> u32 {
    routine(handle).id().0
}

/// The context with the nodes that the routine creates.
#[wasm_bindgen(js_name = routineContext)]
pub fn routine_context(handle: u32) -> u32 {
    keep(Held::Context(routine(handle).context().clone()))
}

/// The routines that must run before: ids and names, one after the other.
#[wasm_bindgen(js_name = routineDeps, unchecked_return_type = "(number | string)[]")]
pub fn routine_deps(handle: u32) -> Array {
    let deps = Array::new();
    for (id, name) in routine(handle).execution_deps() {
        deps.push(&id.0.into());
        deps.push(&name.into());
    }
    deps
}

/// Whether they all have run.
#[wasm_bindgen(js_name = routineCanRun)]
pub fn routine_can_run(handle: u32) -> bool {
    routine(handle).can_run()
}

/// How the tensors are bound.
#[wasm_bindgen(js_name = routineExplain, unchecked_return_type = "string")]
pub fn routine_explain(handle: u32) -> JsValue {
    routine(handle).explain().into()
}

/// Records one run, with values for the statics in order; gives the event's sequence number.
#[wasm_bindgen(js_name = routineRun)]
pub fn routine_run(handle: u32, statics: Option<Vec<i32>>) -> f64 {
    seq(routine(handle).run_values(&statics.unwrap_or_default()))
}

/// Records routines; `statics` has the values of the first one's statics in order, then the second one's, and so on.
#[wasm_bindgen(js_name = sequenceNew)]
pub fn sequence_new(routines: &[u32], statics: &[i32]) -> u32 {
    kept(record(routines, statics), |sequence| Held::Sequence(Arc::new(sequence)))
}

fn record(routines: &[u32], statics: &[i32]) -> Result<Sequence<Either>> {
    let mut rest = statics;
    let mut steps = Vec::new();
    for &handle in routines {
        let routine = routine(handle);
        let Some((values, others)) = rest.split_at_checked(routine.bindings().len()) else {
            return Err(bad_argument("sequence", "there must be a value for each static"));
        };
        rest = others;
        steps.push((routine, values.to_vec()));
    }
    Sequence::record_values(steps)
}

/// Replays it; `statics` has the values for each replay in turn, each in the order of recording, and is the recorded
/// ones if left out. Gives the sequence number of the last event.
#[wasm_bindgen(js_name = sequenceRun)]
pub fn sequence_run(handle: u32, times: u32, statics: Option<Vec<i32>>) -> f64 {
    let next = Cell::new(0);
    // `run_with` asks for the values in the order in which they stand here.
    let value = |_: u32, _: &str, recorded: i32| {
        let index = next.replace(next.get() + 1);
        statics.as_ref().and_then(|values| values.get(index)).copied().unwrap_or(recorded)
    };
    seq(sequence(handle).run_with(times, value))
}
