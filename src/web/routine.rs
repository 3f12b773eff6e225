//! Codes and routines.

use wasm_bindgen::prelude::*;

use crate::backend::compile::Code;
use crate::backend::routine::Routine;
use crate::driver::gpu::Gpu;
use crate::driver::host::Host;
use crate::node::TensorNode;
use crate::web::context::RawContext;
use crate::web::error::js;
use crate::web::{On, map_on, on};

/// A compiled kernel of either driver.
#[wasm_bindgen(js_name = RawCode)]
#[derive(Debug)]
pub struct RawCode {
    pub(super) on: On<Code<Gpu>, Code<Host>>,
}

impl RawCode {
    pub(super) fn new(on: On<Code<Gpu>, Code<Host>>) -> Self {
        Self { on }
    }
}

#[wasm_bindgen(js_class = RawCode)]
impl RawCode {
    /// The kernel's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        on!(&self.on, code => code.name().to_owned())
    }
}

/// A linked kernel of either driver.
#[wasm_bindgen(js_name = RawRoutine)]
#[derive(Debug)]
pub struct RawRoutine {
    on: On<Routine<Gpu>, Routine<Host>>,
}

impl RawRoutine {
    pub(super) fn new(on: On<Routine<Gpu>, Routine<Host>>) -> Self {
        Self { on }
    }
}

#[wasm_bindgen(js_class = RawRoutine)]
impl RawRoutine {
    /// The kernel's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        on!(&self.on, routine => routine.name().to_owned())
    }

    /// The context with the nodes that the routine creates.
    pub fn context(&self) -> RawContext {
        RawContext::new(map_on!(&self.on, routine => routine.context().clone()))
    }

    /// The names of the statics, in order.
    pub fn statics(&self) -> Vec<String> {
        on!(&self.on, routine => routine.bindings().to_vec())
    }

    /// Labels of the nodes that it looks at.
    pub fn inputs(&self) -> Vec<String> {
        labels(on!(&self.on, routine => routine.inputs()))
    }

    /// Labels of the nodes that it may change.
    pub fn outputs(&self) -> Vec<String> {
        labels(on!(&self.on, routine => routine.outputs()))
    }

    /// How the tensors are bound.
    pub fn explain(&self) -> String {
        on!(&self.on, routine => routine.explain())
    }

    /// Records one run, with values in the order of `statics()`; gives the event's sequence number.
    pub fn run(&self, statics: Option<Vec<i32>>) -> std::result::Result<f64, JsValue> {
        let values = statics.unwrap_or_default();
        js(on!(&self.on, routine => routine.run_values(&values).map(|event| event.seq() as f64)))
    }
}

fn labels(nodes: &[TensorNode]) -> Vec<String> {
    nodes.iter().map(|node| node.label().to_owned()).collect()
}
