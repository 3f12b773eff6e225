//! Nodes and lists of them.

use js_sys::Array;
use wasm_bindgen::convert::TryFromJsValue;
use wasm_bindgen::prelude::*;

use crate::context::CtxBuffers;
use crate::dtype::DType;
use crate::error::Result;
use crate::node::TensorNode;
use crate::slab::block::{Block, Span};
use crate::slab::loc::{BufferLoc, PoolId};
use crate::web::error::{bad_argument, js};

/// A tensor node.
#[wasm_bindgen(js_name = RawNode)]
#[derive(Clone, Debug)]
pub struct RawNode {
    pub(super) node: TensorNode,
}

#[wasm_bindgen(js_class = RawNode)]
impl RawNode {
    /// A new node; its memory mode is undecided if there is none.
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
        let node = match mode {
            Some(mode) => TensorNode::with_mode(label, dtype, shape, mode.parse()?),
            None => TensorNode::new(label, dtype, shape),
        };
        Ok(RawNode { node })
    }

    /// The identity.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> u32 {
        self.node.id().0
    }

    /// The label, the name of the element type, the element of its base at which it starts, and the extents.
    #[wasm_bindgen(unchecked_return_type = "[string, string, number, ...number[]]")]
    pub fn facts(&self) -> Array {
        let node = &self.node;
        let start = node.base().map_or(0, |(_, start)| start);
        let facts = Array::of3(&node.label().into(), &node.dtype().name().into(), &(start as f64).into());
        for &extent in node.shape() {
            facts.push(&extent.into());
        }
        facts
    }

    /// The memory mode.
    pub fn mode(&self) -> String {
        self.node.mode().name().to_owned()
    }

    /// Decides the memory mode.
    #[wasm_bindgen(js_name = refineMode)]
    pub fn refine_mode(&self, mode: &str) -> std::result::Result<(), JsValue> {
        js(mode.parse().and_then(|mode| self.node.refine_mode(mode)))
    }

    /// A part of this node as a node of its own, from element `start` on.
    pub fn view(&self, label: String, start: f64, shape: Vec<u32>) -> RawNode {
        RawNode { node: TensorNode::view(label, &self.node, start as u64, shape) }
    }

    /// What it is a view of.
    pub fn base(&self) -> Option<RawNode> {
        self.node.base().map(|(base, _)| RawNode { node: base.clone() })
    }

    /// Another handle of the same node: see `shared`.
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

/// What is behind the handles of a JavaScript array, which stay their owner's: passing a handle by value would take it
/// away, so each gives another of its own.
pub(super) fn shared<T: TryFromJsValue>(array: &Array) -> Result<Vec<T>> {
    let take =
        |item: JsValue| item.unchecked_into::<Shared>().share().ok().and_then(|other| T::try_from_js_value(other).ok());
    array.iter().map(|item| take(item).ok_or_else(|| bad_argument("list", "an item is no live handle"))).collect()
}

/// The nodes of a JavaScript array of `RawNode`s.
pub(super) fn nodes(array: &Array) -> Result<Vec<TensorNode>> {
    Ok(shared::<RawNode>(array)?.into_iter().map(|raw| raw.node).collect())
}

/// A block of a node: first index, count and step of each axis.
pub(super) fn block(node: &RawNode, spans: &[u32]) -> Result<Block> {
    let span = |span: &[u32; 3]| Span { start: span[0], extent: span[1], step: span[2] };
    Block::new(&node.node, &spans.as_chunks().0.iter().map(span).collect::<Vec<_>>())
}

/// The nodes and locations of a context that is made by hand.
pub(super) fn ctx_buffers(list: &Array, pools: &[u32], offsets: &[f64]) -> Result<CtxBuffers> {
    let locs =
        pools.iter().zip(offsets).map(|(&pool, &offset)| BufferLoc { pool_id: PoolId(pool), offset: offset as u64 });
    Ok(nodes(list)?.into_iter().zip(locs).collect())
}
