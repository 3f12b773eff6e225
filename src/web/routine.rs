//! Codes, routines and sequences. Codes are the gpu driver's: a kernel runs on the host driver by its twin, a Rust
//! function, which JavaScript cannot give. Routines are of either driver, since copies are routines.

use std::cell::Cell;

use js_sys::{Array, Int32Array};
use wasm_bindgen::prelude::*;

use crate::backend::compile::Code;
use crate::backend::routine::Routine;
use crate::backend::sequence::Sequence;
use crate::driver::gpu::Gpu;
use crate::driver::host::Host;
use crate::error::Result;
use crate::web::context::RawContext;
use crate::web::error::{bad_argument, js};
use crate::web::node::shared;
use crate::web::{On, map_on, on};

type JsResult<T> = std::result::Result<T, JsValue>;

/// A compiled kernel.
#[wasm_bindgen(js_name = RawCode)]
#[derive(Debug)]
pub struct RawCode {
    pub(super) code: Code<Gpu>,
}

#[wasm_bindgen(js_class = RawCode)]
impl RawCode {
    /// Another handle of the same code.
    pub fn share(&self) -> RawCode {
        RawCode { code: self.code.clone() }
    }
}

/// Something linked: a kernel or a copy.
#[wasm_bindgen(js_name = RawRoutine)]
#[derive(Clone, Debug)]
pub struct RawRoutine {
    pub(super) on: On<Routine<Gpu>, Routine<Host>>,
}

#[wasm_bindgen(js_class = RawRoutine)]
impl RawRoutine {
    /// The identity.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> u32 {
        on!(&self.on, routine => routine.id().0)
    }

    /// The context with the nodes that the routine creates.
    pub fn context(&self) -> RawContext {
        RawContext::new(map_on!(&self.on, routine => routine.context().clone()))
    }

    /// The routines that must run before: ids and names, one after the other.
    #[wasm_bindgen(js_name = executionDeps, unchecked_return_type = "(number | string)[]")]
    pub fn execution_deps(&self) -> Array {
        let deps = on!(&self.on, routine => routine.execution_deps());
        deps.iter().flat_map(|(id, name)| [JsValue::from(id.0), name.into()]).collect()
    }

    /// Whether they all have run.
    #[wasm_bindgen(js_name = canRun)]
    pub fn can_run(&self) -> bool {
        on!(&self.on, routine => routine.can_run())
    }

    /// How the tensors are bound.
    pub fn explain(&self) -> String {
        on!(&self.on, routine => routine.explain())
    }

    /// Records one run, with values for the statics in order; gives the event's sequence number.
    pub fn run(&self, statics: Option<Vec<i32>>) -> JsResult<f64> {
        let statics = statics.unwrap_or_default();
        js(on!(&self.on, routine => routine.run_values(&statics).map(|event| event.seq() as f64)))
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
    on: On<Sequence<Gpu>, Sequence<Host>>,
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
        let (mut gpu, mut host) = (Vec::new(), Vec::new());
        let mut rest = statics;
        for RawRoutine { on } in shared::<RawRoutine>(list)? {
            let count = on!(&on, routine => routine.bindings().len());
            let Some((values, others)) = rest.split_at_checked(count) else {
                return Err(bad_argument("sequence", &["there must be a value for each static"]));
            };
            rest = others;
            match on {
                On::Gpu(routine) => gpu.push((routine, values.to_vec())),
                On::Host(routine) => host.push((routine, values.to_vec())),
            }
        }
        let on = match (gpu.is_empty(), host.is_empty()) {
            (false, false) => return Err(bad_argument("sequence", &["routines of two drivers"])),
            (_, true) => On::Gpu(Sequence::record_values(gpu)?),
            (_, false) => On::Host(Sequence::record_values(host)?),
        };
        Ok(RawSequence { on })
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
        js(on!(&self.on, sequence => sequence.run_with(times, value).map(|event| event.seq() as f64)))
    }
}
