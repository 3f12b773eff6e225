//! Contexts.

use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::backend::merge::Landing;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::bytes::Bytes;
use crate::driver::gpu::GpuReadback;
use crate::error::Result;
use crate::node::TensorNode;
use crate::transfer::check_len;
use crate::web::device::RawDevice;
use crate::web::either::{Either, Of};
use crate::web::error::{bad_argument, js, promise, seq};
use crate::web::node::{RawNode, block, ctx_buffers, nodes, shared};
use crate::web::plain;
use crate::web::routine::{RawCode, RawRoutine};

/// A context.
#[wasm_bindgen(js_name = RawContext)]
#[derive(Debug)]
pub struct RawContext {
    pub(super) context: Context<Either>,
}

impl RawContext {
    fn of(context: Context<Either>) -> Self {
        Self { context }
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
            return Err(bad_argument("upload", "there must be an array for each node"));
        }
        let pairs: Vec<_> = nodes.iter().zip(data.iter().map(Bytes::Js)).collect();
        self.context.init_bytes(&pairs).map(Self::of)
    }

    /// A child that has these nodes too, filled with zeros.
    pub fn zeros(&self, #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array) -> JsResult<RawContext> {
        let zeros = || {
            let nodes = nodes(&list)?;
            let nodes: Vec<_> = nodes.iter().collect();
            self.context.init_zeros(&nodes).map(Self::of)
        };
        js(zeros())
    }

    /// Writes bytes of a node from `offset_bytes` on; gives the event's sequence number.
    pub fn write(&self, node: &RawNode, data: &Uint8Array, offset_bytes: f64) -> JsResult<f64> {
        js(self.write_at(&node.node, data, offset_bytes as u64))
    }

    fn write_at(&self, node: &TensorNode, data: &Uint8Array, offset: u64) -> Result<f64> {
        let len = u64::from(data.length());
        if offset == 0 && len > node.size_bytes() {
            check_len(node, len)?;
        }
        self.context.require_writable(node)?;
        seq(self.context.write_bytes(node, offset, Bytes::Js(data)))
    }

    /// Zeroes bytes of a node; gives the event's sequence number.
    pub fn zero(&self, node: &RawNode, offset_bytes: f64, len_bytes: f64) -> JsResult<f64> {
        js(seq(self.context.zero(&node.node, offset_bytes as u64, len_bytes as u64)))
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
        js(seq(self.context.copy_bytes(&src.node, from, &dst.node, to, len)))
    }

    /// Reads nodes in one transfer; resolves with a fresh array for each.
    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array[]>")]
    pub fn readback(&self, #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array) -> Promise {
        let stage = || {
            let nodes = nodes(&list)?;
            let ranges: Vec<_> = nodes.iter().map(|node| (node, 0, node.size_bytes())).collect();
            self.context.stage(&ranges)
        };
        arrays(stage(), list.length())
    }

    /// Writes a block of a node, given as `block` takes it; gives the event's sequence number.
    #[wasm_bindgen(js_name = writeBlock)]
    pub fn write_block(&self, node: &RawNode, spans: &[u32], data: &Uint8Array) -> JsResult<f64> {
        js(block(node, spans).and_then(|block| seq(self.context.write_block(&node.node, &block, Bytes::Js(data)))))
    }

    /// Reads a block of a node; resolves with an array of one array.
    #[wasm_bindgen(js_name = readBlock, unchecked_return_type = "Promise<Uint8Array[]>")]
    pub fn read_block(&self, node: &RawNode, spans: &[u32]) -> Promise {
        arrays(block(node, spans).and_then(|block| self.context.stage_block(&node.node, &block)), 1)
    }

    /// Copies a block of a node to one of another; gives the event's sequence number.
    #[wasm_bindgen(js_name = copyBlock)]
    pub fn copy_block(&self, src: &RawNode, src_spans: &[u32], dst: &RawNode, dst_spans: &[u32]) -> JsResult<f64> {
        let copy = || {
            let (from, to) = (block(src, src_spans)?, block(dst, dst_spans)?);
            seq(self.context.copy_block(&src.node, &from, &dst.node, &to))
        };
        js(copy())
    }

    /// Where a node is: its pool and offset.
    pub fn loc(&self, node: &RawNode) -> Option<Vec<f64>> {
        self.context.loc(&node.node).map(|loc| vec![f64::from(loc.pool_id.0), loc.offset as f64])
    }

    /// Every node's id, pool and offset, one after the other.
    pub fn locs(&self) -> Vec<f64> {
        self.context
            .locs()
            .iter()
            .flat_map(|(node, loc)| [node.id().0.into(), loc.pool_id.0.into(), loc.offset as f64])
            .collect()
    }

    /// Every node, in the order of `locs`.
    pub fn nodes(&self) -> Vec<RawNode> {
        self.context.locs().into_iter().map(|(node, _)| RawNode { node }).collect()
    }

    /// A child that has these views too.
    pub fn alias(&self, #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array) -> JsResult<RawContext> {
        let alias = || {
            let nodes = nodes(&list)?;
            let views: Vec<_> = nodes.iter().collect();
            self.context.alias(&views).map(Self::of)
        };
        js(alias())
    }

    /// Links a code; resolves with a `RawRoutine`.
    #[wasm_bindgen(unchecked_return_type = "Promise<RawRoutine>")]
    pub fn link(&self, code: &RawCode) -> Promise {
        let (context, code) = (self.context.clone(), code.code.clone());
        promise(async move { context.link(&code).await.map(|routine| RawRoutine { routine }) })
    }

    /// Links codes, one behind the other; resolves with the `RawRoutine`s.
    #[wasm_bindgen(js_name = linkBatch, unchecked_return_type = "Promise<RawRoutine[]>")]
    pub fn link_batch(&self, #[wasm_bindgen(unchecked_param_type = "RawCode[]")] list: Array) -> Promise {
        let (context, codes) = (self.context.clone(), shared::<RawCode>(&list));
        promise(async move {
            let codes = codes?;
            let codes: Vec<_> = codes.iter().map(|raw| &raw.code).collect();
            let routines = context.link_batch(&codes).await?;
            Ok(routines.into_iter().map(|routine| JsValue::from(RawRoutine { routine })).collect::<Array>())
        })
    }

    /// What linking a code would allocate.
    pub fn forecast(&self, code: &RawCode) -> JsResult<JsValue> {
        js(self.context.forecast(&code.code).map(|forecast| plain::forecast(&forecast)))
    }

    /// A routine that copies a node from a context of the same device to this one, or into the merge buffer.
    #[wasm_bindgen(js_name = deviceToDevice)]
    pub fn device_to_device(&self, node: &RawNode, merge: bool, source: &RawContext) -> JsResult<Option<RawRoutine>> {
        let copy = self.context.device_to_device(&node.node, landing(merge), &source.context);
        js(copy.map(|copy| copy.map(|routine| RawRoutine { routine })))
    }

    /// A child that has a node too, with the bytes that it has in a context of the same device.
    #[wasm_bindgen(js_name = initFromDevice)]
    pub fn init_from_device(&self, node: &RawNode, source: &RawContext) -> JsResult<RawContext> {
        js(self.context.init_from_device(&node.node, &source.context).map(Self::of))
    }

    /// Brings a node over from a context of any device: to this one (`into` 0), into the merge buffer (1), or to a child
    /// that has it (2). Resolves with the sequence number of the event, or with the child.
    #[wasm_bindgen(unchecked_return_type = "Promise<number | RawContext>")]
    pub fn bring(&self, node: &RawNode, into: u32, source: &RawContext) -> Promise {
        let (to, from, node) = (self.context.clone(), source.context.clone(), node.node.clone());
        promise(async move {
            if into == 2 {
                return to.init_from_other(&node, &from).await.map(|context| Self::of(context).into());
            }
            seq(to.copy_from(&node, landing(into == 1), &from).await).map(JsValue::from)
        })
    }

    /// The node that the merge buffer will hold when the work through this context is done.
    #[wasm_bindgen(js_name = mergeBufferNode)]
    pub fn merge_buffer_node(&self) -> Option<RawNode> {
        self.context.merge_buffer_node().map(|node| RawNode { node: node.clone() })
    }

    /// The virtual nodes that compiling in this context knows.
    #[wasm_bindgen(js_name = virtualNodes)]
    pub fn virtual_nodes(&self) -> Vec<RawNode> {
        self.context.optimize_ctx().nodes().map(|node| RawNode { node: node.clone() }).collect()
    }

    /// A child that knows the virtual nodes that `knows` knows, which can be this context; its nodes are the same without
    /// `list`, its merge buffer's node without `sets_merge`.
    pub fn child(
        &self,
        #[wasm_bindgen(unchecked_param_type = "RawNode[] | undefined")] list: Option<Array>,
        pools: Vec<u32>,
        offsets: Vec<f64>,
        knows: &RawContext,
        sets_merge: bool,
        merge: Option<RawNode>,
    ) -> JsResult<RawContext> {
        let merge = merge.map(|raw| raw.node);
        let child = || {
            let buffers = list.map(|list| ctx_buffers(&list, &pools, &offsets)).transpose()?;
            let mut builder = self.context.child().optimize_ctx(knows.context.optimize_ctx().clone());
            if let Some(buffers) = buffers {
                builder = builder.ctx_buffers(buffers);
            }
            if sets_merge {
                builder = builder.merge_buffer_node(merge);
            }
            Ok(Self::of(builder.build()))
        };
        js(child())
    }

    /// The context that this one extends.
    pub fn parent(&self) -> Option<RawContext> {
        self.context.parent().cloned().map(Self::of)
    }

    /// Work of this context's device from here on starts after that event of any device.
    #[wasm_bindgen(js_name = willWaitFor)]
    pub fn will_wait_for(&self, device: &RawDevice, seq: f64) -> JsResult<()> {
        js(self.context.will_wait_for(&device.device.event(seq as u64)))
    }

    /// Frees what the context minted.
    pub fn finalize(&self) {
        self.context.finalize();
    }
}

fn landing(merge: bool) -> Landing {
    if merge { Landing::MergeBuffer } else { Landing::Node }
}

/// Resolves with a fresh array for each part.
fn arrays(staged: Result<<Either as Driver>::Staged>, count: u32) -> Promise {
    promise(async move {
        let arrived = staged?.await?;
        let array = |part| match &arrived {
            Of::Gpu(arrived) => from_gpu(arrived, part),
            Of::Host(arrived) => arrived.part(part).map(Uint8Array::from),
        };
        (0..count as usize).map(array).collect::<Result<Array>>()
    })
}

/// A fresh array of a part, copied from the mapping without passing through wasm memory.
fn from_gpu(arrived: &GpuReadback, part: usize) -> Result<Uint8Array> {
    let part = arrived.part(part)?;
    Ok(part.map_or_else(|| Uint8Array::new_with_length(0), |(mapped, start, len)| mapped.fresh(start, len)))
}
