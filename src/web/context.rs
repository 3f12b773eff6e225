//! Contexts.

use js_sys::{Array, Promise, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::bytes::Bytes;
use crate::driver::gpu::{Gpu, GpuReadback};
use crate::driver::host::{Host, HostReadback};
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::node::TensorNode;
use crate::transfer::check_len;
use crate::web::error::{bad_argument, js, plain, promise};
use crate::web::node::{RawNode, nodes};
use crate::web::routine::{RawCode, RawRoutine};
use crate::web::{On, map_on, on};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlacedNode<'a> {
    id: u32,
    label: &'a str,
    pool_id: u32,
    offset: u64,
}

/// A context of either driver.
#[wasm_bindgen(js_name = RawContext)]
#[derive(Debug)]
pub struct RawContext {
    on: On<Context<Gpu>, Context<Host>>,
}

impl RawContext {
    pub(super) fn new(on: On<Context<Gpu>, Context<Host>>) -> Self {
        Self { on }
    }
}

type JsResult<T> = std::result::Result<T, JsValue>;

#[wasm_bindgen(js_class = RawContext)]
impl RawContext {
    /// A child that has these nodes too, with these bytes.
    pub fn upload(
        &self,
        #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array,
        data: Vec<Uint8Array>,
    ) -> JsResult<RawContext> {
        js(self.upload_all(&list, &data))
    }

    fn upload_all(&self, list: &Array, data: &[Uint8Array]) -> Result<RawContext> {
        let nodes = nodes(list)?;
        if nodes.len() != data.len() {
            return Err(bad_argument("upload", &["there must be an array for each node"]));
        }
        let pairs: Vec<_> = nodes.iter().zip(data.iter().map(Bytes::Js)).collect();
        Ok(Self::new(map_on!(&self.on, context => context.init_bytes(&pairs)?)))
    }

    /// A child that has these nodes too, filled with zeros.
    pub fn zeros(&self, #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array) -> JsResult<RawContext> {
        let zeros = || {
            let nodes = nodes(&list)?;
            let nodes: Vec<_> = nodes.iter().collect();
            Ok(Self::new(map_on!(&self.on, context => context.init_zeros(&nodes)?)))
        };
        js(zeros())
    }

    /// Writes bytes of a node from `offset_bytes` on; gives the event's sequence number.
    pub fn write(&self, node: &RawNode, data: &Uint8Array, offset_bytes: f64) -> JsResult<f64> {
        js(on!(&self.on, context => write(context, &node.node, data, offset_bytes as u64)))
    }

    /// Zeroes bytes of a node; gives the event's sequence number.
    pub fn zero(&self, node: &RawNode, offset_bytes: f64, len_bytes: f64) -> JsResult<f64> {
        js(on!(&self.on, context => seq(context.zero(&node.node, offset_bytes as u64, len_bytes as u64))))
    }

    /// Copies bytes between nodes; gives the event's sequence number.
    pub fn copy(
        &self,
        src: &RawNode,
        src_offset: f64,
        dst: &RawNode,
        dst_offset: f64,
        len_bytes: f64,
    ) -> JsResult<f64> {
        let (from, to, len) = (src_offset as u64, dst_offset as u64, len_bytes as u64);
        js(on!(&self.on, context => seq(context.copy_bytes(&src.node, from, &dst.node, to, len))))
    }

    /// Reads nodes in one transfer; resolves with a fresh array for each.
    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array[]>")]
    pub fn readback(&self, #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array) -> Promise {
        let nodes = nodes(&list);
        let count = list.length() as usize;
        match &self.on {
            On::Gpu(context) => {
                let staged = nodes.and_then(|nodes| stage(context, &nodes));
                promise(async move {
                    let arrived: GpuReadback = staged?.await?;
                    (0..count).map(|part| from_gpu(&arrived, part)).collect::<Result<Array>>()
                })
            }
            On::Host(context) => {
                let staged = nodes.and_then(|nodes| stage(context, &nodes));
                promise(async move {
                    let arrived: HostReadback = staged?.await?;
                    (0..count).map(|part| arrived.part(part).map(Uint8Array::from)).collect::<Result<Array>>()
                })
            }
        }
    }

    /// Where a node is.
    #[wasm_bindgen(unchecked_return_type = "{ poolId: number; offset: number } | undefined")]
    pub fn loc(&self, node: &RawNode) -> JsValue {
        let loc = on!(&self.on, context => context.loc(&node.node));
        loc.map_or(JsValue::UNDEFINED, |loc| {
            plain(&PlacedNode { id: node.id(), label: node.node.label(), pool_id: loc.pool_id.0, offset: loc.offset })
        })
    }

    /// Every node with its location.
    #[wasm_bindgen(unchecked_return_type = "{ id: number; label: string; poolId: number; offset: number }[]")]
    pub fn locs(&self) -> JsValue {
        let locs = on!(&self.on, context => context.locs());
        let placed: Vec<_> = locs
            .iter()
            .map(|(node, loc)| PlacedNode {
                id: node.id().0,
                label: node.label(),
                pool_id: loc.pool_id.0,
                offset: loc.offset,
            })
            .collect();
        plain(&placed)
    }

    /// Links a code; resolves with a `RawRoutine`.
    #[wasm_bindgen(unchecked_return_type = "Promise<RawRoutine>")]
    pub fn link(&self, code: &RawCode) -> Promise {
        let On::Gpu(context) = &self.on else { return promise::<JsValue>(async { Err(other_driver()) }) };
        let (context, code) = (context.clone(), code.code.clone());
        promise(async move { context.link(&code).await.map(|routine| RawRoutine { routine }) })
    }

    /// A child with the same nodes.
    pub fn child(&self) -> RawContext {
        Self::new(map_on!(&self.on, context => context.child().build()))
    }

    /// Frees what the context minted.
    pub fn finalize(&self) {
        on!(&self.on, context => context.finalize());
    }

    /// Whether it was finalized.
    #[wasm_bindgen(js_name = isFinalized)]
    pub fn is_finalized(&self) -> bool {
        on!(&self.on, context => context.is_finalized())
    }
}

fn other_driver() -> Error {
    Error::new(
        ErrorKind::KernelInterface,
        "the code was compiled for a device of another driver; compile it for this one",
    )
}

fn seq<D: Driver>(event: Result<Event<D>>) -> Result<f64> {
    event.map(|event| event.seq() as f64)
}

fn write<D: Driver>(context: &Context<D>, node: &TensorNode, data: &Uint8Array, offset: u64) -> Result<f64> {
    if offset == 0 && u64::from(data.length()) > node.size_bytes() {
        check_len(node, u64::from(data.length()))?;
    }
    context.require_writable(node)?;
    seq(context.write_bytes(node, offset, Bytes::Js(data)))
}

fn stage<D: Driver>(context: &Context<D>, nodes: &[TensorNode]) -> Result<D::Staged> {
    let ranges: Vec<_> = nodes.iter().map(|node| (node, 0, node.size_bytes())).collect();
    context.stage(&ranges)
}

/// A fresh array of a part, copied from the mapping without passing through wasm memory.
fn from_gpu(arrived: &GpuReadback, part: usize) -> Result<Uint8Array> {
    let len = arrived.len_bytes(part) as u32;
    let copied = arrived.with_view(part, |view, skip| view.as_uint8array().slice(skip as u32, skip as u32 + len))?;
    Ok(copied.unwrap_or_else(|| Uint8Array::new_with_length(0)))
}
