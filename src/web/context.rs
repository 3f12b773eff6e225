//! Contexts.

use js_sys::{Array, Float64Array, Promise, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::backend::merge::Landing;
use crate::driver::Driver;
use crate::driver::bytes::Bytes;
use crate::driver::gpu::GpuReadback;
use crate::error::Result;
use crate::node::TensorNode;
use crate::transfer::check_len;
use crate::web::either::{Either, Of};
use crate::web::error::{bad_argument, done, fail, promise, seq, value};
use crate::web::held::{Held, code, context, device, keep_all, kept, kept_some, node, nodes, promised};
use crate::web::node::{block, ctx_buffers};
use crate::web::plain;

/// A child that has these nodes too, with these bytes.
#[wasm_bindgen(js_name = contextUpload)]
pub fn context_upload(handle: u32, list: &[u32], data: Vec<Uint8Array>) -> u32 {
    let nodes = nodes(list);
    let child = if nodes.len() == data.len() {
        let pairs: Vec<_> = nodes.iter().zip(data.iter().map(Bytes::Js)).collect();
        context(handle).init_bytes(&pairs)
    } else {
        Err(bad_argument("upload", "there must be an array for each node"))
    };
    kept(child, Held::Context)
}

/// A child that has these nodes too: filled with zeros, or views.
#[wasm_bindgen(js_name = contextExtend)]
pub fn context_extend(handle: u32, list: &[u32], are_views: bool) -> u32 {
    let (context, nodes) = (context(handle), nodes(list));
    let nodes: Vec<_> = nodes.iter().collect();
    kept(if are_views { context.alias(&nodes) } else { context.init_zeros(&nodes) }, Held::Context)
}

/// Writes bytes of a node from `offset_bytes` on; gives the event's sequence number.
#[wasm_bindgen(js_name = contextWrite)]
pub fn context_write(handle: u32, of: u32, data: &Uint8Array, offset_bytes: f64) -> f64 {
    let (context, node, offset) = (context(handle), node(of), offset_bytes as u64);
    let write = || {
        let len = u64::from(data.length());
        if offset == 0 && len > node.size_bytes() {
            check_len(&node, len)?;
        }
        context.require_writable(&node)?;
        context.write_bytes(&node, offset, Bytes::Js(data))
    };
    seq(write())
}

/// Zeroes bytes of a node; gives the event's sequence number.
#[wasm_bindgen(js_name = contextZero)]
pub fn context_zero(handle: u32, of: u32, offset_bytes: f64, len_bytes: f64) -> f64 {
    seq(context(handle).zero(&node(of), offset_bytes as u64, len_bytes as u64))
}

/// Copies bytes between nodes; gives the event's sequence number.
#[wasm_bindgen(js_name = contextCopy)]
pub fn context_copy(handle: u32, src: u32, src_offset: f64, dst: u32, dst_offset: f64, len_bytes: f64) -> f64 {
    let (from, to, len) = (src_offset as u64, dst_offset as u64, len_bytes as u64);
    seq(context(handle).copy_bytes(&node(src), from, &node(dst), to, len))
}

/// Reads nodes in one transfer; resolves with a fresh array for each.
#[wasm_bindgen(js_name = contextReadback, unchecked_return_type = "Promise<Uint8Array[]>")]
pub fn context_readback(handle: u32, list: &[u32]) -> Promise {
    let nodes = nodes(list);
    let ranges: Vec<_> = nodes.iter().map(|node| (node, 0, node.size_bytes())).collect();
    arrays(context(handle).stage(&ranges), nodes.len())
}

/// Writes a block of a node, given as `block` takes it; gives the event's sequence number.
#[wasm_bindgen(js_name = contextWriteBlock)]
pub fn context_write_block(handle: u32, of: u32, spans: &[u32], data: &Uint8Array) -> f64 {
    let (context, node) = (context(handle), node(of));
    seq(block(&node, spans).and_then(|block| context.write_block(&node, &block, Bytes::Js(data))))
}

/// Reads a block of a node; resolves with an array of one array.
#[wasm_bindgen(js_name = contextReadBlock, unchecked_return_type = "Promise<Uint8Array[]>")]
pub fn context_read_block(handle: u32, of: u32, spans: &[u32]) -> Promise {
    let (context, node) = (context(handle), node(of));
    arrays(block(&node, spans).and_then(|block| context.stage_block(&node, &block)), 1)
}

/// Copies a block of a node to one of another; gives the event's sequence number.
#[wasm_bindgen(js_name = contextCopyBlock)]
pub fn context_copy_block(handle: u32, src: u32, src_spans: &[u32], dst: u32, dst_spans: &[u32]) -> f64 {
    let (context, src, dst) = (context(handle), node(src), node(dst));
    let copy = || {
        let (from, to) = (block(&src, src_spans)?, block(&dst, dst_spans)?);
        context.copy_block(&src, &from, &dst, &to)
    };
    seq(copy())
}

/// Where a node is: its pool and offset; nothing if it is not here.
#[wasm_bindgen(js_name = contextLoc)]
pub fn context_loc(handle: u32, of: u32) -> Float64Array {
    let loc = context(handle).loc(&node(of)).map(|loc| [loc.pool_id.0.into(), loc.offset as f64]);
    Float64Array::new_from_slice(loc.as_slice().as_flattened())
}

/// Every node's id, pool and offset, one after the other.
#[wasm_bindgen(js_name = contextLocs)]
pub fn context_locs(handle: u32) -> Float64Array {
    let mut fields = Vec::new();
    for (node, loc) in context(handle).locs() {
        fields.extend([node.id().0.into(), loc.pool_id.0.into(), loc.offset as f64]);
    }
    Float64Array::new_from_slice(&fields)
}

/// Every node, in the order of `contextLocs`.
#[wasm_bindgen(js_name = contextNodes)]
pub fn context_nodes(handle: u32) -> Uint32Array {
    keep_all(context(handle).locs().into_iter().map(|(node, _)| Held::Node(node)))
}

/// Links a code; resolves with the routine.
#[wasm_bindgen(js_name = contextLink, unchecked_return_type = "Promise<number>")]
pub fn context_link(handle: u32, of: u32) -> Promise {
    let (context, code) = (context(handle), code(of));
    promise(async move { promised(context.link(&code).await, Held::Routine) })
}

/// Links codes, one behind the other; resolves with the routines.
#[wasm_bindgen(js_name = contextLinkBatch, unchecked_return_type = "Promise<Uint32Array>")]
pub fn context_link_batch(handle: u32, list: &[u32]) -> Promise {
    let (context, codes) = (context(handle), list.iter().map(|&of| code(of)).collect::<Vec<_>>());
    promise(async move {
        let codes: Vec<_> = codes.iter().collect();
        let routines = context.link_batch(&codes).await?;
        Ok(keep_all(routines.into_iter().map(Held::Routine)).into())
    })
}

/// What linking a code would allocate.
#[wasm_bindgen(js_name = contextForecast)]
pub fn context_forecast(handle: u32, of: u32) -> JsValue {
    value(context(handle).forecast(&code(of)).map(|forecast| plain::forecast(&forecast)))
}

/// A routine that copies a node from a context of the same device to this one, or into the merge buffer; 0 for nothing.
#[wasm_bindgen(js_name = contextDeviceToDevice)]
pub fn context_device_to_device(handle: u32, of: u32, merge: bool, source: u32) -> u32 {
    match context(handle).device_to_device(&node(of), landing(merge), &context(source)) {
        Ok(copy) => kept_some(copy, Held::Routine),
        Err(error) => {
            fail(&error);
            0
        }
    }
}

/// A child that has a node too, with the bytes that it has in a context of the same device.
#[wasm_bindgen(js_name = contextInitFromDevice)]
pub fn context_init_from_device(handle: u32, of: u32, source: u32) -> u32 {
    kept(context(handle).init_from_device(&node(of), &context(source)), Held::Context)
}

/// Brings a node over from a context of any device: to this one (`into` 0), into the merge buffer (1), or to a child
/// that has it (2). Resolves with the sequence number of the event, or with the child.
#[wasm_bindgen(js_name = contextBring, unchecked_return_type = "Promise<number>")]
pub fn context_bring(handle: u32, of: u32, into: u32, source: u32) -> Promise {
    let (to, from, node) = (context(handle), context(source), node(of));
    promise(async move {
        if into == 2 {
            return promised(to.init_from_other(&node, &from).await, Held::Context);
        }
        Ok((to.copy_from(&node, landing(into == 1), &from).await?.seq() as f64).into())
    })
}

/// The node that the merge buffer will hold when the work through this context is done; 0 for none.
#[wasm_bindgen(js_name = contextMergeBufferNode)]
pub fn context_merge_buffer_node(handle: u32) -> u32 {
    kept_some(context(handle).merge_buffer_node().cloned(), Held::Node)
}

/// The virtual nodes that compiling in this context knows.
#[wasm_bindgen(js_name = contextVirtualNodes)]
pub fn context_virtual_nodes(handle: u32) -> Uint32Array {
    keep_all(context(handle).optimize_ctx().nodes().map(|node| Held::Node(node.clone())))
}

/// A child that knows the virtual nodes that `knows` knows, which can be this context; its nodes are the same without
/// `list`, its merge buffer's node without `sets_merge`, where 0 is none.
#[wasm_bindgen(js_name = contextChild)]
pub fn context_child(
    handle: u32,
    list: Option<Vec<u32>>,
    pools: &[u32],
    offsets: &[f64],
    knows: u32,
    sets_merge: bool,
    merge: u32,
) -> u32 {
    let mut builder = context(handle).child().optimize_ctx(context(knows).optimize_ctx().clone());
    if let Some(list) = list {
        builder = builder.ctx_buffers(ctx_buffers(&list, pools, offsets));
    }
    if sets_merge {
        let merge: Option<TensorNode> = if merge == 0 { None } else { Some(node(merge)) };
        builder = builder.merge_buffer_node(merge);
    }
    kept(Ok(builder.build()), Held::Context)
}

/// The context that this one extends; 0 for a root.
#[wasm_bindgen(js_name = contextParent)]
pub fn context_parent(handle: u32) -> u32 {
    kept_some(context(handle).parent().cloned(), Held::Context)
}

/// Work of this context's device from here on starts after that event of any device.
#[wasm_bindgen(js_name = contextWillWaitFor)]
pub fn context_will_wait_for(handle: u32, of: u32, seq: f64) -> bool {
    done(context(handle).will_wait_for(&device(of).event(seq as u64)))
}

/// Frees what the context minted.
#[wasm_bindgen(js_name = contextFinalize)]
pub fn context_finalize(handle: u32) {
    context(handle).finalize();
}

fn landing(merge: bool) -> Landing {
    if merge { Landing::MergeBuffer } else { Landing::Node }
}

/// Resolves with a fresh array for each part.
fn arrays(staged: Result<<Either as Driver>::Staged>, count: usize) -> Promise {
    promise(async move {
        let arrived = staged?.await?;
        let arrays = Array::new();
        for part in 0..count {
            arrays.push(&match &arrived {
                Of::Gpu(arrived) => from_gpu(arrived, part)?.into(),
                Of::Host(arrived) => Uint8Array::from(arrived.part(part)?).into(),
            });
        }
        Ok(arrays.into())
    })
}

/// A fresh array of a part, copied from the mapping without passing through wasm memory.
fn from_gpu(arrived: &GpuReadback, part: usize) -> Result<Uint8Array> {
    let part = arrived.part(part)?;
    Ok(part.map_or_else(|| Uint8Array::new_with_length(0), |(mapped, start, len)| mapped.fresh(start, len)))
}
