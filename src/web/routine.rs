//! Codes and routines. They are the gpu driver's: a kernel runs on the host driver by its twin, a Rust function, which
//! JavaScript cannot give.

use wasm_bindgen::prelude::*;

use crate::backend::compile::Code;
use crate::backend::routine::Routine;
use crate::driver::gpu::Gpu;
use crate::node::TensorNode;
use crate::web::On;
use crate::web::context::RawContext;
use crate::web::error::js;

/// A compiled kernel.
#[wasm_bindgen(js_name = RawCode)]
#[derive(Debug)]
pub struct RawCode {
    pub(super) code: Code<Gpu>,
}

#[wasm_bindgen(js_class = RawCode)]
impl RawCode {
    /// The kernel's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.code.name().to_owned()
    }
}

/// A linked kernel.
#[wasm_bindgen(js_name = RawRoutine)]
#[derive(Debug)]
pub struct RawRoutine {
    pub(super) routine: Routine<Gpu>,
}

#[wasm_bindgen(js_class = RawRoutine)]
impl RawRoutine {
    /// The kernel's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.routine.name().to_owned()
    }

    /// The context with the nodes that the routine creates.
    pub fn context(&self) -> RawContext {
        RawContext::new(On::Gpu(self.routine.context().clone()))
    }

    /// The names of the statics, in order.
    pub fn statics(&self) -> Vec<String> {
        self.routine.bindings().to_vec()
    }

    /// Labels of the nodes that it looks at.
    pub fn inputs(&self) -> Vec<String> {
        labels(self.routine.inputs())
    }

    /// Labels of the nodes that it may change.
    pub fn outputs(&self) -> Vec<String> {
        labels(self.routine.outputs())
    }

    /// How the tensors are bound.
    pub fn explain(&self) -> String {
        self.routine.explain()
    }

    /// Records one run, with values in the order of `statics()`; gives the event's sequence number.
    pub fn run(&self, statics: Option<Vec<i32>>) -> std::result::Result<f64, JsValue> {
        js(self.routine.run_values(&statics.unwrap_or_default()).map(|event| event.seq() as f64))
    }
}

fn labels(nodes: &[TensorNode]) -> Vec<String> {
    nodes.iter().map(|node| node.label().to_owned()).collect()
}
