//! Nodes and lists of them.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::context::CtxBuffers;
use crate::dtype::DType;
use crate::error::Result;
use crate::node::TensorNode;
use crate::slab::block::{Block, Span};
use crate::slab::loc::{BufferLoc, PoolId};
use crate::web::error::done;
use crate::web::held::{Held, keep, kept, kept_some, node, nodes};

/// A new node; its memory mode is undecided if there is none.
#[wasm_bindgen(js_name = nodeNew)]
pub fn node_new(label: String, dtype: &str, shape: Vec<u32>, mode: Option<String>) -> u32 {
    kept(make(label, dtype, shape, mode), Held::Node)
}

fn make(label: String, dtype: &str, shape: Vec<u32>, mode: Option<String>) -> Result<TensorNode> {
    let dtype: DType = dtype.parse()?;
    Ok(match mode {
        Some(mode) => TensorNode::with_mode(label, dtype, shape, mode.parse()?),
        None => TensorNode::new(label, dtype, shape),
    })
}

/// The identity.
#[wasm_bindgen(js_name = nodeId)]
pub fn node_id(handle: u32) -> u32 {
    node(handle).id().0
}

/// The label, the name of the element type, the element of its base at which it starts, and the extents.
#[wasm_bindgen(js_name = nodeFacts, unchecked_return_type = "[string, string, number, ...number[]]")]
pub fn node_facts(handle: u32) -> Array {
    let node = node(handle);
    let start = node.base().map_or(0, |(_, start)| start);
    let facts = Array::of3(&node.label().into(), &node.dtype().name().into(), &(start as f64).into());
    for &extent in node.shape() {
        facts.push(&extent.into());
    }
    facts
}

/// The memory mode.
#[wasm_bindgen(js_name = nodeMode, unchecked_return_type = "string")]
pub fn node_mode(handle: u32) -> JsValue {
    node(handle).mode().name().into()
}

/// Decides the memory mode.
#[wasm_bindgen(js_name = nodeRefineMode)]
pub fn node_refine_mode(handle: u32, mode: &str) -> bool {
    done(mode.parse().and_then(|mode| node(handle).refine_mode(mode)))
}

/// A part of this node as a node of its own, from element `start` on.
#[wasm_bindgen(js_name = nodeView)]
pub fn node_view(handle: u32, label: String, start: f64, shape: Vec<u32>) -> u32 {
    keep(Held::Node(TensorNode::view(label, &node(handle), start as u64, shape)))
}

/// What it is a view of; 0 if it is none.
#[wasm_bindgen(js_name = nodeBase)]
pub fn node_base(handle: u32) -> u32 {
    kept_some(node(handle).base().map(|(base, _)| base.clone()), Held::Node)
}

/// A block of a node: first index, count and step of each axis.
pub(super) fn block(node: &TensorNode, spans: &[u32]) -> Result<Block> {
    let span = |span: &[u32; 3]| Span { start: span[0], extent: span[1], step: span[2] };
    Block::new(node, &spans.as_chunks().0.iter().map(span).collect::<Vec<_>>())
}

/// The nodes and locations of a context that is made by hand.
pub(super) fn ctx_buffers(list: &[u32], pools: &[u32], offsets: &[f64]) -> CtxBuffers {
    let locs =
        pools.iter().zip(offsets).map(|(&pool, &offset)| BufferLoc { pool_id: PoolId(pool), offset: offset as u64 });
    nodes(list).into_iter().zip(locs).collect()
}
