//! Devices.

use std::sync::Arc;

use js_sys::{Array, Promise, Reflect};
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
use crate::notation::spec::{ProgramSpec, Tune};
use crate::slab::loc::{BufferLoc, PoolId};
use crate::web::context::RawContext;
use crate::web::either::{Either, Of};
use crate::web::error::{bad_argument, js, promise, seq};
use crate::web::node::{RawNode, nodes};
use crate::web::plain;
use crate::web::routine::RawCode;
use crate::wgsl::spec::KernelSpec;

/// Opens a device; resolves with a `RawDevice`.
#[wasm_bindgen(js_name = openDevice, unchecked_return_type = "Promise<RawDevice>")]
pub fn open_device(options: JsValue) -> Promise {
    promise(async move { open_with(&options).await.map(|device| RawDevice { device }) })
}

/// A property of an options object; `undefined` where there is none.
fn field(object: &JsValue, key: &str) -> JsValue {
    Reflect::get(object, &key.into()).unwrap_or(JsValue::UNDEFINED)
}

fn bad_option(name: &str, value: &str, choices: &str) -> Error {
    Error::say(ErrorKind::Unsupported, format_args!("option {name}: \"{value}\"; use {choices}"))
}

async fn open_with(options_object: &JsValue) -> Result<Device<Either>> {
    let text = |key| field(options_object, key).as_string();
    let bytes = |key| field(options_object, key).as_f64().map(|bytes| bytes.max(0.0) as u64);
    let segment_cap_bytes = bytes("segmentCapBytes");
    let memory_budget_bytes = bytes("memoryBudgetBytes");
    let chosen = bytes("ordinal").map(|ordinal| ordinal as u32);
    let ordinal = chosen.unwrap_or(0);
    match text("driver").as_deref() {
        Some("host") => {
            let (dev, runner) = host::open(&host::OpenOptions { segment_cap_bytes, memory_budget_bytes })?;
            Ok(Device::new(Of::Host(dev), Of::Host(Arc::new(runner)), ordinal))
        }
        None | Some("gpu") => {
            let limits = match text("limits").as_deref() {
                None | Some("adapter") => LimitsChoice::Adapter,
                Some("default") => LimitsChoice::Default,
                Some(other) => return Err(bad_option("limits", other, "adapter or default")),
            };
            let power_preference = match text("powerPreference").as_deref() {
                Some("low-power") => PowerPreference::LowPower,
                _ => PowerPreference::HighPerformance,
            };
            let heap_bytes = bytes("heapBytes");
            let lent = Some(field(options_object, "device"))
                .filter(|device| !device.is_undefined())
                .map(gpu::open::Lent::lent);
            let options = gpu::OpenOptions {
                ordinal: chosen,
                limits,
                power_preference,
                segment_cap_bytes,
                heap_bytes,
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

/// A device.
#[wasm_bindgen(js_name = RawDevice)]
#[derive(Debug)]
pub struct RawDevice {
    pub(super) device: Device<Either>,
}

#[wasm_bindgen(js_class = RawDevice)]
impl RawDevice {
    /// `driver:ordinal:device_id`.
    pub fn name(&self) -> String {
        self.device.name().to_owned()
    }

    /// What the device runs on.
    pub fn adapter(&self) -> JsValue {
        plain::adapter(self.device.adapter())
    }

    /// The limits that planning and linking respect.
    pub fn limits(&self) -> JsValue {
        plain::limits(self.device.limits())
    }

    /// The memory report.
    pub fn report(&self) -> JsValue {
        plain::memory(&self.device.report())
    }

    /// Counters since the device was opened.
    pub fn stats(&self) -> JsValue {
        plain::stats(&self.device.stats())
    }

    /// The state of the device, for a bug report.
    #[wasm_bindgen(js_name = debugInfo)]
    pub fn debug_info(&self) -> JsValue {
        plain::debug_info(&self.device.debug_info())
    }

    /// Resolves when the device is lost.
    #[wasm_bindgen(unchecked_return_type = "Promise<{ reason: string; message: string }>")]
    pub fn lost(&self) -> Promise {
        let lost = self.device.lost();
        promise(async move {
            let error = lost.await;
            let fields = [("reason", error.kind().code().into()), ("message", error.to_string().into())];
            Ok(plain::object("", &[], &fields))
        })
    }

    /// The sequence number that is to be awaited before more is recorded, so that few enough batches are in flight.
    pub fn ready(&self) -> f64 {
        Either::ready(self.device.runner()).seq() as f64
    }

    /// Hands everything recorded so far to the device.
    pub fn flush(&self) -> std::result::Result<(), JsValue> {
        js(self.device.flush())
    }

    /// The sequence number of everything recorded so far.
    #[wasm_bindgen(js_name = allWork)]
    pub fn all_work(&self) -> f64 {
        self.device.all_work().seq() as f64
    }

    /// Whether the runner has passed that sequence number.
    #[wasm_bindgen(js_name = eventIsDone)]
    pub fn event_is_done(&self, seq: f64) -> bool {
        self.device.event(seq as u64).is_done()
    }

    /// Resolves when the runner has passed that sequence number.
    #[wasm_bindgen(js_name = eventWait, unchecked_return_type = "Promise<void>")]
    pub fn event_wait(&self, seq: f64) -> Promise {
        let event = self.device.event(seq as u64);
        promise(async move { event.await.map(|()| JsValue::UNDEFINED) })
    }

    /// A root context.
    pub fn context(&self) -> RawContext {
        RawContext { context: Context::root(&self.device) }
    }

    /// Compiles kernels and programs: `[name, text, spec, nodes]` each, where `nodes[i]` is the node of `spec.tensors[i]` of a
    /// kernel, and of `spec.names[i]` of a program. They may read the virtual nodes that `known` knows. Resolves with the
    /// `RawCode`s. One is a batch, too: another machinery would be 1 KB more.
    #[wasm_bindgen(js_name = compileBatch, unchecked_return_type = "Promise<RawCode[]>")]
    pub fn compile_batch(&self, sources: Array, known: &RawContext) -> Promise {
        let (device, specs) = (self.device.clone(), sources.iter().map(source).collect::<Result<Vec<_>>>());
        let known = known.context.optimize_ctx().clone();
        promise(async move {
            let codes = device.compile_batch_in(&known, specs?).await?;
            Ok(codes.into_iter().map(|code| JsValue::from(RawCode { code })).collect::<Array>())
        })
    }

    /// A context without nodes that knows the virtual nodes which a code leaves.
    #[wasm_bindgen(js_name = contextOf)]
    pub fn context_of(&self, code: &RawCode) -> RawContext {
        RawContext { context: Context::builder(&self.device).optimize_ctx(code.code.optimize_ctx()).build() }
    }

    /// Frees the constants that no context uses; gives their bytes.
    #[wasm_bindgen(js_name = freeUnusedConstants)]
    pub fn free_unused_constants(&self) -> f64 {
        self.device.free_unused_constants() as f64
    }

    /// Gives back to the system what holds no slab; gives the bytes.
    pub fn trim(&self) -> std::result::Result<f64, JsValue> {
        js(self.device.trim().map(|bytes| bytes as f64))
    }

    /// Moves slabs together; gives the bytes moved and the bytes given back.
    pub fn compact(&self) -> std::result::Result<Vec<f64>, JsValue> {
        js(self.device.compact().map(|done| vec![done.moved_bytes as f64, done.freed_bytes as f64]))
    }

    /// Bytes of all slabs.
    #[wasm_bindgen(js_name = usedMemory)]
    pub fn used_memory(&self) -> f64 {
        self.device.used_memory() as f64
    }

    /// The sequence number of the last work that writes to a node.
    #[wasm_bindgen(js_name = updatingFor)]
    pub fn updating_for(&self, node: &RawNode) -> Option<f64> {
        self.device.updating_for(node.node.id()).map(|event| event.seq() as f64)
    }

    /// The fields of the record: see `record`.
    pub fn record(&self) -> Vec<f64> {
        record(&self.device)
    }

    /// The node that the merge buffer holds.
    #[wasm_bindgen(js_name = mergeBufferNode)]
    pub fn merge_buffer_node(&self) -> Option<RawNode> {
        self.device.merge_buffer().map(|(node, _)| RawNode { node })
    }

    /// What is behind a location: the `GPUBuffer`, or the pool's id on the host driver, and the offset there.
    #[wasm_bindgen(js_name = resolvePool)]
    pub fn resolve_pool(&self, pool_id: u32, offset: f64) -> std::result::Result<Array, JsValue> {
        let loc = BufferLoc { pool_id: PoolId(pool_id), offset: offset as u64 };
        let resolved = resolve_pool(&self.device, loc).map(|SlabRef { slab, offset }| match slab {
            Of::Gpu(slab) => (slab.as_js().clone(), offset),
            Of::Host(pool_id) => (pool_id.0.into(), offset),
        });
        js(resolved.map(|(slab, offset)| Array::of2(&slab, &(offset as f64).into())))
    }

    /// Bytes of the slab of a pool.
    #[wasm_bindgen(js_name = poolSizeBytes)]
    pub fn pool_size_bytes(&self, pool_id: u32) -> std::result::Result<f64, JsValue> {
        js(pool_size_bytes(&self.device, PoolId(pool_id)).map(|bytes| bytes as f64))
    }

    /// Allocates the slab of a pool.
    #[wasm_bindgen(js_name = allocPool)]
    pub fn alloc_pool(
        &self,
        pool_id: u32,
        size_bytes: f64,
        alignment: f64,
        mode: Option<String>,
    ) -> std::result::Result<(), JsValue> {
        let mode = js(mode.map(|mode| mode.parse()).transpose())?;
        js(alloc_pool(&self.device, PoolId(pool_id), size_bytes as u64, alignment as u64, mode))
    }

    /// Frees the slab of a pool.
    #[wasm_bindgen(js_name = freePool)]
    pub fn free_pool(&self, pool_id: u32) -> std::result::Result<(), JsValue> {
        js(free_pool(&self.device, PoolId(pool_id)))
    }

    /// Zeroes exactly those bytes of a pool; gives the event's sequence number.
    #[wasm_bindgen(js_name = memsetZero)]
    pub fn memset_zero(&self, pool_id: u32, offset: f64, len_bytes: f64) -> std::result::Result<f64, JsValue> {
        js(seq(memset_zero(&self.device, PoolId(pool_id), offset as u64, len_bytes as u64)))
    }

    /// Destroys the device.
    pub fn destroy(&self) {
        self.device.destroy();
    }
}

#[cfg(feature = "notation")]
#[wasm_bindgen(js_class = RawDevice)]
impl RawDevice {
    /// Takes lines of schedules that were measured: key, how many, nanoseconds of the fastest and of the first, and the fastest.
    #[wasm_bindgen(js_name = rememberTuned)]
    pub fn remember_tuned(&self, lines: &str) {
        self.device.remember_tuned(lines);
    }

    /// What is to be measured of a code, kernel by kernel: nothing, or the key, and a line for each schedule.
    pub fn untuned(&self, code: &RawCode) -> Vec<String> {
        code.code.all_untuned(&self.device)
    }
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

/// What is compiled: a kernel if its spec has tensors, else a program.
fn source(parts: JsValue) -> Result<Source> {
    let parts: Array = parts.unchecked_into();
    let text = |at| parts.get(at).as_string().unwrap_or_default();
    let (name, text, spec, nodes) = (text(0), text(1), parts.get(2), nodes(&Array::from(&parts.get(3)))?);
    if field(&spec, "tensors").is_undefined() {
        program(name, text, &spec, &nodes)
    } else {
        kernel_spec(name, text, &spec, &nodes).map(Source::Kernel)
    }
}

/// The texts of a list in an options object.
fn strings(object: &JsValue, key: &str) -> Vec<String> {
    Array::from(&field(object, key)).iter().filter_map(|item| item.as_string()).collect()
}

#[cfg(feature = "notation")]
fn program(name: String, text: String, spec: &JsValue, nodes: &[TensorNode]) -> Result<Source> {
    let names = strings(spec, "names");
    if nodes.len() != names.len() {
        return Err(bad_argument("program", "there must be a name for each node"));
    }
    let mut program = ProgramSpec::new(name, text).outputs(strings(spec, "outputs"));
    program.given = names.into_iter().zip(nodes.iter().cloned()).collect();
    program.merged = strings(spec, "merged");
    let number = |key| field(spec, key).as_f64().map(|number| number as u32);
    program.tune = match field(spec, "tune").as_string().as_deref() {
        Some("quick") => Tune::Quick,
        Some("full") => Tune::Full,
        _ => Tune::Off,
    };
    program.trial = number("trial").zip(number("schedule"));
    Ok(Source::Program(program))
}

#[cfg(not(feature = "notation"))]
fn program(name: String, _: String, _: &JsValue, _: &[TensorNode]) -> Result<Source> {
    let message = ["compile \"", &name, "\": this build has no index notation; build it with the feature `notation`"];
    Err(Error::new(ErrorKind::Unsupported, message.concat()))
}

fn kernel_spec(name: String, text: String, spec: &JsValue, nodes: &[TensorNode]) -> Result<KernelSpec> {
    let tensors = Array::from(&field(spec, "tensors"));
    if nodes.len() != tensors.length() as usize {
        return Err(bad_argument("kernel", "there must be a node for each tensor"));
    }
    let grid = Array::from(&field(spec, "grid"));
    let groups = |axis| grid.get(axis).as_f64().map_or(1, |groups| groups as u32);
    let mut spec =
        KernelSpec::new(name, text).statics(strings(spec, "statics")).grid([groups(0), groups(1), groups(2)]);
    for (tensor, node) in tensors.iter().zip(nodes) {
        let name = field(&tensor, "name").as_string().unwrap_or_else(|| node.label().to_owned());
        let access = field(&tensor, "access").as_string().unwrap_or_default().parse()?;
        let merged = field(&tensor, "merged").is_truthy();
        spec = if merged { spec.merge_tensor(name, node) } else { spec.tensor(name, node, access) };
    }
    Ok(spec)
}
