//! Devices.

use std::sync::Arc;

use js_sys::{Array, Float64Array, Promise, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::backend::compile::Source;
use crate::context::Context;
use crate::device::Device;
use crate::device::open::{gpu_static_properties, host_static_properties};
use crate::device::pools::{alloc_pool, free_pool, memset_zero, pool_size_bytes, resolve_pool};
use crate::device::registry::global_debug_info;
use crate::driver::event::DriverEvent;
use crate::driver::gpu::{self, LimitsChoice, PowerPreference};
use crate::driver::host;
use crate::driver::{Driver, SlabRef};
use crate::error::{Error, ErrorKind, Result};
use crate::node::TensorNode;
#[cfg(feature = "notation")]
use crate::notation::spec::ProgramSpec;
use crate::slab::loc::{BufferLoc, PoolId};
use crate::web::either::{Either, Of};
#[cfg(feature = "notation")]
use crate::web::error::texts;
use crate::web::error::{bad_argument, done, number, promise, seq, value};
use crate::web::held::{Held, code, context, device, keep, keep_all, kept_some, node, nodes, promised};
use crate::web::plain;
use crate::wgsl::spec::{Access, KernelSpec, KernelTensor};

/// Opens a device; resolves with it. In order: the driver, its limits, the preferred power, the ordinal, then bytes of the
/// largest slab, of all, and of each heap; then a `GPUDevice` that the page has already.
#[wasm_bindgen(js_name = openDevice, unchecked_return_type = "Promise<number>")]
pub fn open_device(options: Array) -> Promise {
    promise(async move { promised(open_with(&options).await, Held::Device) })
}

fn text(list: &Array, at: u32) -> Option<String> {
    list.get(at).as_string()
}

fn whole(list: &Array, at: u32) -> Option<u64> {
    list.get(at).as_f64().map(|number| number as u64)
}

fn bad_option(name: &str, value: &str, choices: &str) -> Error {
    Error::say(ErrorKind::Unsupported, format_args!("option {name}: \"{value}\"; use {choices}"))
}

async fn open_with(options: &Array) -> Result<Device<Either>> {
    let (segment_cap_bytes, memory_budget_bytes) = (whole(options, 4), whole(options, 5));
    let chosen = whole(options, 3).map(|ordinal| ordinal as u32);
    let ordinal = chosen.unwrap_or(0);
    match text(options, 0).as_deref() {
        Some("host") => {
            let (dev, runner) = host::open(&host::OpenOptions { segment_cap_bytes, memory_budget_bytes })?;
            Ok(Device::new(Of::Host(dev), Of::Host(Arc::new(runner)), ordinal))
        }
        None | Some("gpu") => {
            let limits = match text(options, 1).as_deref() {
                None | Some("adapter") => LimitsChoice::Adapter,
                Some("default") => LimitsChoice::Default,
                Some(other) => return Err(bad_option("limits", other, "adapter or default")),
            };
            let power_preference = match text(options, 2).as_deref() {
                Some("low-power") => PowerPreference::LowPower,
                _ => PowerPreference::HighPerformance,
            };
            let lent = options.get(7);
            let lent = if lent.is_undefined() { None } else { Some(gpu::open::Lent::lent(lent)) };
            let options = gpu::OpenOptions {
                ordinal: chosen,
                limits,
                power_preference,
                segment_cap_bytes,
                heap_bytes: whole(options, 6),
                memory_budget_bytes,
            };
            let (dev, runner) = gpu::open::open(options, lent).await?;
            Ok(Device::new(Of::Gpu(dev), Of::Gpu(Arc::new(runner)), ordinal))
        }
        Some(other) => Err(bad_option("driver", other, "gpu or host")),
    }
}

/// What the devices of a driver are and can do; resolves with a list by ordinal.
#[wasm_bindgen(js_name = staticProperties, unchecked_return_type = "Promise<object[]>")]
pub fn static_properties(is_host: bool) -> Promise {
    promise(async move {
        let properties = if is_host { host_static_properties() } else { gpu_static_properties().await };
        Ok(plain::list(&properties, plain::properties))
    })
}

/// The state of every device of the page, in the order in which they were opened.
#[wasm_bindgen(js_name = globalDebugInfo)]
pub fn all_debug_info() -> JsValue {
    plain::list(&global_debug_info(), plain::debug_info)
}

/// What a device is and does, as an object: 0 what it runs on, 1 the limits that planning and linking respect, 2 the memory
/// report, 3 counters since it was opened, 4 its state, for a bug report. One export, for each costs as much as the other.
#[wasm_bindgen(js_name = deviceFacts)]
pub fn device_facts(handle: u32, which: u32) -> JsValue {
    let device = device(handle);
    match which {
        0 => plain::adapter(device.adapter()),
        1 => plain::limits(device.limits()),
        2 => plain::memory(&device.report()),
        3 => plain::stats(&device.stats()),
        _ => plain::debug_info(&device.debug_info()),
    }
}

/// `driver:ordinal:device_id`.
#[wasm_bindgen(js_name = deviceName, unchecked_return_type = "string")]
pub fn device_name(handle: u32) -> JsValue {
    device(handle).name().into()
}

/// Resolves when the device is lost.
#[wasm_bindgen(js_name = deviceLost, unchecked_return_type = "Promise<{ reason: string; message: string }>")]
pub fn device_lost(handle: u32) -> Promise {
    let lost = device(handle).lost();
    promise(async move {
        let error = lost.await;
        Ok(plain::object("reason message", &[], &[error.kind().code().into(), error.to_string().into()]))
    })
}

/// The sequence number that is to be awaited before more is recorded, so that few enough batches are in flight.
#[wasm_bindgen(js_name = deviceReady)]
pub fn device_ready(handle: u32) -> f64 {
    Either::ready(device(handle).runner()).seq() as f64
}

/// Hands everything recorded so far to the device.
#[wasm_bindgen(js_name = deviceFlush)]
pub fn device_flush(handle: u32) -> bool {
    done(device(handle).flush())
}

/// The sequence number of everything recorded so far.
#[wasm_bindgen(js_name = deviceAllWork)]
pub fn device_all_work(handle: u32) -> f64 {
    device(handle).all_work().seq() as f64
}

/// Whether the runner has passed that sequence number.
#[wasm_bindgen(js_name = deviceEventIsDone)]
pub fn device_event_is_done(handle: u32, seq: f64) -> bool {
    device(handle).event(seq as u64).is_done()
}

/// Resolves when the runner has passed that sequence number.
#[wasm_bindgen(js_name = deviceEventWait, unchecked_return_type = "Promise<void>")]
pub fn device_event_wait(handle: u32, seq: f64) -> Promise {
    let event = device(handle).event(seq as u64);
    // What is pending goes to the queue in this turn, not in a microtask of its own; the promise tells the outcome.
    event.is_done();
    promise(async move { event.await.map(|()| JsValue::UNDEFINED) })
}

/// A root context.
#[wasm_bindgen(js_name = deviceContext)]
pub fn device_context(handle: u32) -> u32 {
    keep(Held::Context(Context::root(&device(handle))))
}

/// Compiles kernels and programs, each as `source` takes it. They may read the virtual nodes that the context `known` knows.
/// Resolves with the codes. One is a batch, too: another machinery would be 1 KB more.
#[wasm_bindgen(js_name = deviceCompileBatch, unchecked_return_type = "Promise<Uint32Array>")]
pub fn device_compile_batch(handle: u32, sources: Array, known: u32) -> Promise {
    let (device, specs) = (device(handle), all_sources(&sources));
    let known = context(known).optimize_ctx().clone();
    promise(async move {
        let codes = device.compile_batch_in(&known, specs?).await?;
        Ok(keep_all(codes.into_iter().map(Held::Code)).into())
    })
}

/// A context without nodes that knows the virtual nodes which a code leaves.
#[wasm_bindgen(js_name = deviceContextOf)]
pub fn device_context_of(handle: u32, of: u32) -> u32 {
    keep(Held::Context(Context::builder(&device(handle)).optimize_ctx(code(of).optimize_ctx()).build()))
}

/// Frees the constants that no context uses; gives their bytes.
#[wasm_bindgen(js_name = deviceFreeUnusedConstants)]
pub fn device_free_unused_constants(handle: u32) -> f64 {
    device(handle).free_unused_constants() as f64
}

/// Gives back to the system what holds no slab; gives the bytes.
#[wasm_bindgen(js_name = deviceTrim)]
pub fn device_trim(handle: u32) -> f64 {
    number(device(handle).trim())
}

/// Moves slabs together; gives the bytes moved and the bytes given back.
#[wasm_bindgen(js_name = deviceCompact, unchecked_return_type = "Float64Array | undefined")]
pub fn device_compact(handle: u32) -> JsValue {
    let done = device(handle).compact();
    value(done.map(|done| Float64Array::new_from_slice(&[done.moved_bytes as f64, done.freed_bytes as f64])))
}

/// Bytes of all slabs.
#[wasm_bindgen(js_name = deviceUsedMemory)]
pub fn device_used_memory(handle: u32) -> f64 {
    device(handle).used_memory() as f64
}

/// The sequence number of the last work that writes to a node, or -1.
#[wasm_bindgen(js_name = deviceUpdatingFor)]
pub fn device_updating_for(handle: u32, of: u32) -> f64 {
    device(handle).updating_for(node(of).id()).map_or(-1.0, |event| event.seq() as f64)
}

/// The fields of the record: see `record`.
#[wasm_bindgen(js_name = deviceRecord)]
pub fn device_record(handle: u32) -> Float64Array {
    Float64Array::new_from_slice(&record(&device(handle)))
}

/// The node that the merge buffer holds; 0 for none.
#[wasm_bindgen(js_name = deviceMergeBufferNode)]
pub fn device_merge_buffer_node(handle: u32) -> u32 {
    kept_some(device(handle).merge_buffer().map(|(node, _)| node), Held::Node)
}

/// What is behind a location: the `GPUBuffer`, or the pool's id on the host driver, and the offset there.
#[wasm_bindgen(js_name = deviceResolvePool)]
pub fn device_resolve_pool(handle: u32, pool_id: u32, offset: f64) -> JsValue {
    let loc = BufferLoc { pool_id: PoolId(pool_id), offset: offset as u64 };
    let resolved = resolve_pool(&device(handle), loc).map(|SlabRef { slab, offset }| match slab {
        Of::Gpu(slab) => (slab.as_js().clone(), offset),
        Of::Host(pool_id) => (pool_id.0.into(), offset),
    });
    value(resolved.map(|(slab, offset)| Array::of2(&slab, &(offset as f64).into())))
}

/// Bytes of the slab of a pool.
#[wasm_bindgen(js_name = devicePoolSizeBytes)]
pub fn device_pool_size_bytes(handle: u32, pool_id: u32) -> f64 {
    number(pool_size_bytes(&device(handle), PoolId(pool_id)))
}

/// Allocates the slab of a pool.
#[wasm_bindgen(js_name = deviceAllocPool)]
pub fn device_alloc_pool(handle: u32, pool_id: u32, size_bytes: f64, alignment: f64, mode: Option<String>) -> bool {
    let alloc = || {
        let mode = mode.map(|mode| mode.parse()).transpose()?;
        alloc_pool(&device(handle), PoolId(pool_id), size_bytes as u64, alignment as u64, mode)
    };
    done(alloc())
}

/// Frees the slab of a pool.
#[wasm_bindgen(js_name = deviceFreePool)]
pub fn device_free_pool(handle: u32, pool_id: u32) -> bool {
    done(free_pool(&device(handle), PoolId(pool_id)))
}

/// Zeroes exactly those bytes of a pool; gives the event's sequence number.
#[wasm_bindgen(js_name = deviceMemsetZero)]
pub fn device_memset_zero(handle: u32, pool_id: u32, offset: f64, len_bytes: f64) -> f64 {
    seq(memset_zero(&device(handle), PoolId(pool_id), offset as u64, len_bytes as u64))
}

/// Destroys the device.
#[wasm_bindgen(js_name = deviceDestroy)]
pub fn device_destroy(handle: u32) {
    device(handle).destroy();
}

/// What is to be chosen for a program, kernel by kernel: a line for each schedule, and, behind a zero, all that a measurement
/// depends on beside the adapter. Nothing for an error.
#[cfg(feature = "notation")]
#[wasm_bindgen(js_name = deviceChoices)]
pub fn device_choices(handle: u32, program: Array, known: u32) -> Array {
    let choices = match source(&program) {
        Ok(Source::Program(spec)) => device(handle).choices(&spec, context(known).optimize_ctx().as_ref()),
        Ok(Source::Kernel(_)) | Err(_) => Ok(Vec::new()),
    };
    texts(choices.unwrap_or_default().iter())
}

/// The fields of a device's record: ordinal, id, whether it frees explicitly, the next pool, bytes of the merge buffer, the
/// last writer of that or -1; then node, pool and offset of each cached constant.
fn record(device: &Device<Either>) -> Vec<f64> {
    let merged = device.updating_for_merge_buffer().map_or(-1.0, |event| event.seq() as f64);
    let mut fields = vec![
        device.ordinal().into(),
        device.device_id().0.into(),
        f64::from(u8::from(Either::FREES_EXPLICITLY)),
        device.next_pool_id().0.into(),
        device.merge_buffer_capacity() as f64,
        merged,
    ];
    for (node, loc) in device.constant_buffer_cache() {
        fields.extend([node.0.into(), loc.pool_id.0.into(), loc.offset as f64]);
    }
    fields
}

/// The texts of a list.
fn strings(list: &JsValue) -> Vec<String> {
    let mut texts = Vec::new();
    let list: &Array = list.unchecked_ref();
    for at in 0..list.length() {
        texts.push(text(list, at).unwrap_or_default());
    }
    texts
}

fn all_sources(list: &Array) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for at in 0..list.length() {
        sources.push(source(list.get(at).unchecked_ref())?);
    }
    Ok(sources)
}

/// What is compiled. In order: name, text, nodes and their names; then, of a kernel, accesses, statics and the grid; of a
/// program nothing, outputs, names of what is merged, how reductions are split, the kernel that is tried, and the schedules.
fn source(parts: &Array) -> Result<Source> {
    let handles: Uint32Array = parts.get(2).unchecked_into();
    let (nodes, names) = (nodes(&handles.to_vec()), strings(&parts.get(3)));
    if nodes.len() != names.len() {
        return Err(bad_argument("source", "there must be a name for each node"));
    }
    let (name, text) = (text(parts, 0).unwrap_or_default(), text(parts, 1).unwrap_or_default());
    let accesses = parts.get(4);
    if accesses.is_undefined() {
        return program(name, text, parts, names.into_iter().zip(nodes).collect());
    }
    let mut spec = KernelSpec::new(name, text);
    spec.statics = strings(&parts.get(5));
    for (axis, groups) in spec.grid.iter_mut().enumerate() {
        *groups = whole(parts, 6 + axis as u32).unwrap_or(1) as u32;
    }
    let accesses: &Array = accesses.unchecked_ref();
    for (at, (name, node)) in names.into_iter().zip(nodes).enumerate() {
        // What is merged has no text there.
        let access = self::text(accesses, at as u32);
        let merged = access.is_none();
        let access = access.map_or(Ok(Access::Read), |access| access.parse())?;
        spec.tensors.push(KernelTensor { name, node, access, merged });
    }
    Ok(Source::Kernel(spec))
}

#[cfg(feature = "notation")]
fn program(name: String, text: String, parts: &Array, given: Vec<(String, TensorNode)>) -> Result<Source> {
    let mut program = ProgramSpec::new(name, text);
    program.outputs = strings(&parts.get(5));
    program.given = given;
    program.merged = strings(&parts.get(6));
    program.splitting = whole(parts, 7).unwrap_or(0) as usize;
    program.trial = whole(parts, 8).map(|kernel| kernel as usize);
    let chosen: Uint32Array = parts.get(9).unchecked_into();
    program.chosen = chosen.to_vec();
    Ok(Source::Program(program))
}

#[cfg(not(feature = "notation"))]
fn program(name: String, _: String, _: &Array, _: Vec<(String, TensorNode)>) -> Result<Source> {
    let message = ["compile \"", &name, "\": this build has no index notation; build it with the feature `notation`"];
    Err(Error::new(ErrorKind::Unsupported, message.concat()))
}
