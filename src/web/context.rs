//! Contexts.

use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::backend::merge::Landing;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::bytes::Bytes;
use crate::driver::gpu::{Gpu, GpuReadback};
use crate::driver::host::{Host, HostReadback};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::node::TensorNode;
use crate::transfer::check_len;
use crate::web::device::RawDevice;
use crate::web::error::{bad_argument, js, plain, promise};
use crate::web::node::{RawNode, ctx_buffers, nodes, shared};
use crate::web::routine::{RawCode, RawRoutine};
use crate::web::{On, map_on, on};

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

    /// Where a node is: its pool and offset.
    pub fn loc(&self, node: &RawNode) -> Option<Vec<f64>> {
        let loc = on!(&self.on, context => context.loc(&node.node));
        loc.map(|loc| vec![f64::from(loc.pool_id.0), loc.offset as f64])
    }

    /// Every node's id, pool and offset, one after the other.
    pub fn locs(&self) -> Vec<f64> {
        let locs = on!(&self.on, context => context.locs());
        locs.iter().flat_map(|(node, loc)| [node.id().0.into(), loc.pool_id.0.into(), loc.offset as f64]).collect()
    }

    /// Every node, in the order of `locs`.
    pub fn nodes(&self) -> Vec<RawNode> {
        let locs = on!(&self.on, context => context.locs());
        locs.into_iter().map(|(node, _)| RawNode { node }).collect()
    }

    /// A child that has these views too.
    pub fn alias(&self, #[wasm_bindgen(unchecked_param_type = "RawNode[]")] list: Array) -> JsResult<RawContext> {
        let alias = || {
            let nodes = nodes(&list)?;
            let views: Vec<_> = nodes.iter().collect();
            Ok(Self::new(map_on!(&self.on, context => context.alias(&views)?)))
        };
        js(alias())
    }

    /// Links a code; resolves with a `RawRoutine`.
    #[wasm_bindgen(unchecked_return_type = "Promise<RawRoutine>")]
    pub fn link(&self, code: &RawCode) -> Promise {
        let (context, code) = (self.on.clone(), code.code.clone());
        promise(async move {
            let routine = gpu(&context)?.link(&code).await?;
            Ok(RawRoutine { on: On::Gpu(routine) })
        })
    }

    /// Links codes, one behind the other; resolves with the `RawRoutine`s.
    #[wasm_bindgen(js_name = linkBatch, unchecked_return_type = "Promise<RawRoutine[]>")]
    pub fn link_batch(&self, #[wasm_bindgen(unchecked_param_type = "RawCode[]")] list: Array) -> Promise {
        let (context, codes) = (self.on.clone(), shared::<RawCode>(&list));
        promise(async move {
            let codes = codes?;
            let codes: Vec<_> = codes.iter().map(|raw| &raw.code).collect();
            let routines = gpu(&context)?.link_batch(&codes).await?;
            Ok(routines
                .into_iter()
                .map(|routine| JsValue::from(RawRoutine { on: On::Gpu(routine) }))
                .collect::<Array>())
        })
    }

    /// What linking a code would allocate.
    pub fn forecast(&self, code: &RawCode) -> JsResult<JsValue> {
        js(gpu(&self.on).and_then(|context| context.forecast(&code.code)).map(|forecast| plain(&forecast)))
    }

    /// A routine that copies a node from a context of the same device to this one, or into the merge buffer.
    #[wasm_bindgen(js_name = deviceToDevice)]
    pub fn device_to_device(&self, node: &RawNode, merge: bool, source: &RawContext) -> JsResult<Option<RawRoutine>> {
        let (node, into) = (&node.node, landing(merge));
        js(match (&self.on, &source.on) {
            (On::Gpu(to), On::Gpu(from)) => to.device_to_device(node, into, from).map(|copy| copy.map(On::Gpu)),
            (On::Host(to), On::Host(from)) => to.device_to_device(node, into, from).map(|copy| copy.map(On::Host)),
            _ => Err(two_drivers()),
        })
        .map(|copy| copy.map(|on| RawRoutine { on }))
    }

    /// A child that has a node too, with the bytes that it has in a context of the same device.
    #[wasm_bindgen(js_name = initFromDevice)]
    pub fn init_from_device(&self, node: &RawNode, source: &RawContext) -> JsResult<RawContext> {
        js(match (&self.on, &source.on) {
            (On::Gpu(to), On::Gpu(from)) => to.init_from_device(&node.node, from).map(On::Gpu),
            (On::Host(to), On::Host(from)) => to.init_from_device(&node.node, from).map(On::Host),
            _ => Err(two_drivers()),
        })
        .map(Self::new)
    }

    /// Brings a node over from a context of any device: to this one (`into` 0), into the merge buffer (1), or to a child
    /// that has it (2). Resolves with the sequence number of the event, or with the child.
    #[wasm_bindgen(unchecked_return_type = "Promise<number | RawContext>")]
    pub fn bring(&self, node: &RawNode, into: u32, source: &RawContext) -> Promise {
        let node = node.node.clone();
        on!(self.on.clone(), to => on!(source.on.clone(), from => promise(bring(to, from, node, into))))
    }

    /// The node that the merge buffer will hold when the work through this context is done.
    #[wasm_bindgen(js_name = mergeBufferNode)]
    pub fn merge_buffer_node(&self) -> Option<RawNode> {
        on!(&self.on, context => context.merge_buffer_node().map(|node| RawNode { node: node.clone() }))
    }

    /// A child; its nodes are the same without `list`, its merge buffer's node without `sets_merge`.
    pub fn child(
        &self,
        #[wasm_bindgen(unchecked_param_type = "RawNode[] | undefined")] list: Option<Array>,
        pools: Vec<u32>,
        offsets: Vec<f64>,
        sets_merge: bool,
        merge: Option<RawNode>,
    ) -> JsResult<RawContext> {
        let merge = merge.map(|raw| raw.node);
        let child = || {
            let buffers = list.map(|list| ctx_buffers(&list, &pools, &offsets)).transpose()?;
            Ok(Self::new(map_on!(&self.on, context => {
                let mut builder = context.child();
                if let Some(buffers) = buffers {
                    builder = builder.ctx_buffers(buffers);
                }
                if sets_merge {
                    builder = builder.merge_buffer_node(merge);
                }
                builder.build()
            })))
        };
        js(child())
    }

    /// The context that this one extends.
    pub fn parent(&self) -> Option<RawContext> {
        match &self.on {
            On::Gpu(context) => context.parent().cloned().map(On::Gpu),
            On::Host(context) => context.parent().cloned().map(On::Host),
        }
        .map(Self::new)
    }

    /// Work of this context's device from here on starts after that event of any device.
    #[wasm_bindgen(js_name = willWaitFor)]
    pub fn will_wait_for(&self, device: &RawDevice, seq: f64) -> JsResult<()> {
        js(on!(&self.on, context => on!(&device.on, device => context.will_wait_for(&device.event(seq as u64)))))
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

/// A context that kernels can be linked into.
fn gpu(on: &On<Context<Gpu>, Context<Host>>) -> Result<&Context<Gpu>> {
    match on {
        On::Gpu(context) => Ok(context),
        On::Host(_) => Err(two_drivers()),
    }
}

impl From<Context<Gpu>> for RawContext {
    fn from(context: Context<Gpu>) -> Self {
        Self::new(On::Gpu(context))
    }
}

impl From<Context<Host>> for RawContext {
    fn from(context: Context<Host>) -> Self {
        Self::new(On::Host(context))
    }
}

/// One machinery for each pair of drivers, and not one for each way to bring.
async fn bring<D: Driver, S: Driver>(to: Context<D>, from: Context<S>, node: TensorNode, into: u32) -> Result<JsValue>
where
    RawContext: From<Context<D>>,
{
    if into == 2 {
        return Ok(RawContext::from(to.init_from_other(&node, &from).await?).into());
    }
    Ok((to.copy_from(&node, landing(into == 1), &from).await?.seq() as f64).into())
}

fn two_drivers() -> Error {
    bad_argument("context", &["it is of another driver"])
}

fn landing(merge: bool) -> Landing {
    if merge { Landing::MergeBuffer } else { Landing::Node }
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
