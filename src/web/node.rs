//! Nodes and lists of them.

use js_sys::Array;
use wasm_bindgen::convert::TryFromJsValue;
use wasm_bindgen::prelude::*;

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::node::{MemoryMode, TensorNode};
use crate::web::error::{bad_argument, js};

/// A tensor node.
#[wasm_bindgen(js_name = RawNode)]
#[derive(Clone, Debug)]
pub struct RawNode {
    pub(super) node: TensorNode,
}

#[wasm_bindgen(js_class = RawNode)]
impl RawNode {
    /// A new node; `mode` is `on_device` (the default) or `constant`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        label: String,
        dtype: &str,
        shape: Vec<u32>,
        mode: Option<String>,
    ) -> std::result::Result<RawNode, JsValue> {
        js(Self::make(label, dtype, shape, mode.as_deref()))
    }

    fn make(label: String, dtype: &str, shape: Vec<u32>, mode: Option<&str>) -> Result<RawNode> {
        let dtype: DType = dtype.parse()?;
        let mode = match mode {
            None | Some("on_device") => MemoryMode::OnDevice,
            Some("constant") => MemoryMode::Constant,
            Some(other) => {
                let message = format!("unknown memory mode \"{other}\"; use on_device or constant");
                return Err(crate::error::Error::new(ErrorKind::Unsupported, message));
            }
        };
        Ok(RawNode { node: TensorNode::with_mode(label, dtype, shape, mode) })
    }

    /// The identity.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> u32 {
        self.node.id().0
    }

    /// The label.
    #[wasm_bindgen(getter)]
    pub fn label(&self) -> String {
        self.node.label().to_owned()
    }

    /// The name of the element type.
    #[wasm_bindgen(getter)]
    pub fn dtype(&self) -> String {
        self.node.dtype().name().to_owned()
    }

    /// The extents.
    #[wasm_bindgen(getter)]
    pub fn shape(&self) -> Vec<u32> {
        self.node.shape().to_vec()
    }

    /// Bytes of its elements.
    #[wasm_bindgen(getter, js_name = byteLength)]
    pub fn byte_length(&self) -> f64 {
        self.node.size_bytes() as f64
    }

    /// Another handle of the same node. Lists of nodes are read through it, since passing a handle by value would take
    /// it away from its owner.
    pub fn share(&self) -> RawNode {
        self.clone()
    }
}

#[wasm_bindgen]
extern "C" {
    type Shared;
    #[wasm_bindgen(method, catch)]
    fn share(this: &Shared) -> std::result::Result<JsValue, JsValue>;
}

/// The nodes of a JavaScript array of `RawNode`s, which stay their owner's.
pub(super) fn nodes(array: &Array) -> Result<Vec<TensorNode>> {
    array
        .iter()
        .map(|item| {
            let shared = item.unchecked_into::<Shared>().share();
            let raw = shared.ok().and_then(|value| RawNode::try_from_js_value(value).ok());
            raw.map(|raw| raw.node).ok_or_else(|| bad_argument("list of nodes", &["an item is not a live RawNode"]))
        })
        .collect()
}
