//! Codes, routines and sequences.

use std::cell::Cell;

use js_sys::{Array, Int32Array};
use wasm_bindgen::prelude::*;

use crate::backend::compile::Code;
use crate::backend::routine::Routine;
use crate::backend::sequence::Sequence;
use crate::error::Result;
use crate::web::context::RawContext;
use crate::web::either::Either;
use crate::web::error::{bad_argument, js, seq};
use crate::web::node::{RawNode, shared};

type JsResult<T> = std::result::Result<T, JsValue>;

/// A compiled kernel or program.
#[wasm_bindgen(js_name = RawCode)]
#[derive(Debug)]
pub struct RawCode {
    pub(super) code: Code<Either>,
}

#[wasm_bindgen(js_class = RawCode)]
impl RawCode {
    /// Names of the integers that each run gives, in order.
    pub fn statics(&self) -> Vec<String> {
        self.code.statics().to_vec()
    }

    /// Names of the nodes, in the order of `nodes`.
    pub fn names(&self) -> Vec<String> {
        self.code.named_nodes().map(|(name, _)| name.to_owned()).collect()
    }

    /// The nodes that contexts have or get.
    pub fn nodes(&self) -> Vec<RawNode> {
        self.code.named_nodes().map(|(_, node)| RawNode { node: node.clone() }).collect()
    }

    /// The ids of the nodes that it reads.
    pub fn inputs(&self) -> Vec<u32> {
        self.code.inputs().iter().map(|node| node.id().0).collect()
    }

    /// The ids of the nodes that it may change.
    pub fn outputs(&self) -> Vec<u32> {
        self.code.outputs().iter().map(|node| node.id().0).collect()
    }

    /// What became of the tensors, and which kernels were made.
    pub fn explain(&self) -> String {
        self.code.explain()
    }

    /// Another handle of the same code.
    pub fn share(&self) -> RawCode {
        RawCode { code: self.code.clone() }
    }
}

/// Something linked: a kernel or a copy.
#[wasm_bindgen(js_name = RawRoutine)]
#[derive(Clone, Debug)]
pub struct RawRoutine {
    pub(super) routine: Routine<Either>,
}

#[wasm_bindgen(js_class = RawRoutine)]
impl RawRoutine {
    /// The identity.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> u32 {
        self.routine.id().0
    }

    /// The context with the nodes that the routine creates.
    pub fn context(&self) -> RawContext {
        RawContext { context: self.routine.context().clone() }
    }

    /// The routines that must run before: ids and names, one after the other.
    #[wasm_bindgen(js_name = executionDeps, unchecked_return_type = "(number | string)[]")]
    pub fn execution_deps(&self) -> Array {
        let deps = self.routine.execution_deps();
        deps.iter().flat_map(|(id, name)| [JsValue::from(id.0), name.into()]).collect()
    }

    /// Whether they all have run.
    #[wasm_bindgen(js_name = canRun)]
    pub fn can_run(&self) -> bool {
        self.routine.can_run()
    }

    /// How the tensors are bound.
    pub fn explain(&self) -> String {
        self.routine.explain()
    }

    /// Records one run, with values for the statics in order; gives the event's sequence number.
    pub fn run(&self, statics: Option<Vec<i32>>) -> JsResult<f64> {
        let statics = statics.unwrap_or_default();
        js(seq(self.routine.run_values(&statics)))
    }

    /// Another handle of the same routine.
    pub fn share(&self) -> RawRoutine {
        self.clone()
    }
}

/// A recorded list of routines.
#[wasm_bindgen(js_name = RawSequence)]
#[derive(Debug)]
pub struct RawSequence {
    sequence: Sequence<Either>,
}

#[wasm_bindgen(js_class = RawSequence)]
impl RawSequence {
    /// Records routines; `statics` has the values of the first one's statics in order, then the second one's, and so on.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "RawRoutine[]")] list: Array,
        statics: Vec<i32>,
    ) -> JsResult<RawSequence> {
        js(Self::record(&list, &statics))
    }

    fn record(list: &Array, statics: &[i32]) -> Result<RawSequence> {
        let mut rest = statics;
        let mut steps = Vec::new();
        for RawRoutine { routine } in shared::<RawRoutine>(list)? {
            let Some((values, others)) = rest.split_at_checked(routine.bindings().len()) else {
                return Err(bad_argument("sequence", "there must be a value for each static"));
            };
            rest = others;
            steps.push((routine, values.to_vec()));
        }
        Ok(RawSequence { sequence: Sequence::record_values(steps)? })
    }

    /// Replays it; `statics` has the values for each replay in turn, each in the order of recording, and is the recorded
    /// ones if left out. Gives the sequence number of the last event.
    pub fn run(&self, times: u32, statics: Option<Int32Array>) -> JsResult<f64> {
        let values = statics.map(|array| array.to_vec());
        let next = Cell::new(0);
        // `run_with` asks for the values in the order in which they stand here.
        let value = |_: u32, _: &str, recorded: i32| {
            let index = next.replace(next.get() + 1);
            values.as_ref().and_then(|values| values.get(index)).copied().unwrap_or(recorded)
        };
        js(seq(self.sequence.run_with(times, value)))
    }
}
