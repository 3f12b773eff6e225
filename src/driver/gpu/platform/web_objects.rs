//! Web: the few GPU objects that the driver uses are the browser's own.

use std::fmt;

use js_sys::{Array, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::driver::gpu::open::{OpenOptions, PowerPreference};
use crate::driver::gpu::platform::web_tasks::Promised;
use crate::driver::gpu::platform::{Limits, VECTOR_BYTES};
use crate::driver::limits::AdapterInfo;
use crate::error::{Error, ErrorKind, Result};

#[wasm_bindgen(inline_js = "
const infos = new WeakMap();
const info = (of) => of.info ?? infos.get(of) ?? of.adapterInfo ?? {};
export function hasWebgpu() { return typeof navigator !== 'undefined' && !!navigator.gpu; }
export function requestAdapter(powerPreference) { return navigator.gpu.requestAdapter({ powerPreference }); }
export async function requestDevice(adapter, isDefault) {
  const requiredLimits = {};
  if (!isDefault) for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
  const requiredFeatures = !isDefault && adapter.features.has('subgroups') ? ['subgroups'] : [];
  const device = await adapter.requestDevice({ label: 'wgslab', requiredLimits, requiredFeatures });
  infos.set(device, adapter.info);
  return device;
}
export function limits({ limits, features }) {
  const hasSubgroups = features.has('subgroups') && globalThis.navigator?.gpu?.wgslLanguageFeatures?.has('subgroup_id');
  return [limits.maxBufferSize, limits.maxStorageBufferBindingSize, limits.maxUniformBufferBindingSize,
    limits.maxStorageBuffersPerShaderStage, limits.maxComputeWorkgroupsPerDimension,
    limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupStorageSize, +!!hasSubgroups];
}
export function describe(of) {
  const { description, vendor, architecture, device: model } = info(of);
  return description || [vendor, architecture, model].filter(Boolean).join(' ') || 'WebGPU adapter';
}
export function isFallback(of) { return !!(of.isFallbackAdapter || info(of).isFallbackAdapter); }
export function watch(device, withErrors, told) {
  device.lost.then(({ reason, message }) => told(reason === 'destroyed' ? 4 : 3, message));
  const kind = (error) => (
    error instanceof GPUOutOfMemoryError ? 0 : error instanceof GPUValidationError ? 1 : 2);
  if (withErrors) device.addEventListener('uncapturederror', ({ error }) => told(kind(error), error.message));
}
export function pushScopes(device) {
  device.pushErrorScope('validation');
  device.pushErrorScope('out-of-memory');
}
export async function popScopes(device) {
  const popped = await Promise.allSettled([device.popErrorScope(), device.popErrorScope()]);
  return popped.map(({ value }) => value).find(Boolean);
}
export function isMemory(error) { return error instanceof GPUOutOfMemoryError; }
export function createBuffer(device, label, size, usage) { return device.createBuffer({ label, size, usage }); }
export function write(device, buffer, offset, data, start, len) {
  device.queue.writeBuffer(buffer, offset, data, start, len);
}
export async function map(buffer, len) {
  await buffer.mapAsync(1, 0, len);
  return buffer.getMappedRange(0, len);
}
const visibility = 4;
export function heapsLayout(device, readOnly, minBindingSize) {
  return device.createBindGroupLayout({ label: 'wgslab heaps', entries: Array.from(readOnly, (ro, binding) => (
    { binding, visibility, buffer: { type: ro ? 'read-only-storage' : 'storage', minBindingSize } })) });
}
export function paramsLayout(device, minBindingSize) {
  return device.createBindGroupLayout({ label: 'wgslab params', entries: [
    { binding: 0, visibility, buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize } }] });
}
export function pipelineLayout(device, heaps, params) {
  return device.createPipelineLayout({ label: 'wgslab pipeline', bindGroupLayouts: [heaps, params] });
}
export function bind(device, label, layout, buffers, ranges) {
  return device.createBindGroup({ label, layout, entries: buffers.map((buffer, binding) => (
    { binding, resource: { buffer, offset: ranges[2 * binding], size: ranges[2 * binding + 1] } })) });
}
export function createModule(device, label, code) { return device.createShaderModule({ label, code }); }
export function createPipeline(device, label, layout, module) {
  return device.createComputePipeline({ label, layout, compute: { module } });
}
export async function warm(device, code, readOnly, minHeap, slotBytes) {
  // What is wrong but for the text is said by the synchronous creation that follows; here it must not reach the device.
  device.pushErrorScope('validation');
  const layout = pipelineLayout(device, heapsLayout(device, readOnly, minHeap), paramsLayout(device, slotBytes));
  const module = device.createShaderModule({ code });
  const made = device.createComputePipelineAsync({ layout, compute: { module } });
  const popped = device.popErrorScope();
  const [{ reason }] = await Promise.allSettled([made, popped]);
  if (!reason) return [];
  const { messages } = await module.getCompilationInfo();
  const bytes = (end) => new TextEncoder().encode(code.slice(0, end)).length;
  return Array.from(messages).filter(({ type }) => type === 'error').flatMap(({ message, offset, length }) => (
    [message, offset || length ? bytes(offset) : undefined]));
}
export function createEncoder(device, label) { return device.createCommandEncoder({ label }); }
export function beginPass(encoder, label) { return encoder.beginComputePass({ label }); }
export function setParams(pass, params, offset) { pass.setBindGroup(1, params, [offset]); }
export function submit(device, commands) { device.queue.submit(commands ? [commands] : []); }
export function workDone(device) { return device.queue.onSubmittedWorkDone(); }
")]
extern "C" {
    #[wasm_bindgen(js_name = hasWebgpu)]
    fn has_webgpu() -> bool;
    #[wasm_bindgen(js_name = requestAdapter)]
    fn request_adapter(power_preference: Option<&str>) -> Promise;
    #[wasm_bindgen(js_name = requestDevice)]
    fn request_device(adapter: &JsValue, is_default: bool) -> Promise;
    fn limits(of: &JsValue) -> Vec<f64>;
    fn describe(of: &JsValue) -> String;
    #[wasm_bindgen(js_name = isFallback)]
    fn is_fallback(of: &JsValue) -> bool;
    #[wasm_bindgen(js_name = watch)]
    pub(super) fn watch_raw(device: &Gpu, with_errors: bool, told: &JsValue);
    #[wasm_bindgen(js_name = pushScopes)]
    pub(super) fn push_scopes(device: &Gpu);
    #[wasm_bindgen(js_name = popScopes)]
    pub(super) fn pop_scopes(device: &Gpu) -> Promise;
    #[wasm_bindgen(js_name = isMemory)]
    pub(super) fn is_memory(error: &JsValue) -> bool;
    #[wasm_bindgen(js_name = createBuffer)]
    fn create_buffer(device: &Gpu, label: &str, size: f64, usage: u32) -> Gpu;
    #[wasm_bindgen(catch)]
    pub(super) fn write(
        device: &Gpu,
        buffer: &Gpu,
        offset: f64,
        data: &Uint8Array,
        start: f64,
        len: f64,
    ) -> std::result::Result<(), JsValue>;
    #[wasm_bindgen(js_name = write)]
    pub(super) fn write_slice(device: &Gpu, buffer: &Gpu, offset: f64, data: &[u8], start: f64, len: f64);
    #[wasm_bindgen(js_name = map)]
    pub(super) fn map_raw(buffer: &Gpu, len: f64) -> Promise;
    #[wasm_bindgen(js_name = heapsLayout)]
    fn heaps_layout(device: &Gpu, read_only: &[u8], min_bytes: f64) -> Gpu;
    #[wasm_bindgen(js_name = paramsLayout)]
    fn params_layout(device: &Gpu, slot_bytes: f64) -> Gpu;
    #[wasm_bindgen(js_name = pipelineLayout)]
    fn pipeline_layout(device: &Gpu, heaps: &Gpu, params: &Gpu) -> Gpu;
    fn bind(device: &Gpu, label: &str, layout: &Gpu, buffers: &Array, ranges: &[f64]) -> Gpu;
    #[wasm_bindgen(js_name = createModule)]
    fn create_module(device: &Gpu, label: &str, code: &str) -> Gpu;
    #[wasm_bindgen(js_name = createPipeline)]
    fn create_pipeline(device: &Gpu, label: &str, layout: &Gpu, module: &Gpu) -> Gpu;
    pub(super) fn warm(device: &Gpu, code: &str, read_only: &[u8], min_heap: f64, slot_bytes: f64) -> Promise;
    #[wasm_bindgen(js_name = createEncoder)]
    fn create_encoder(device: &Gpu, label: &str) -> Gpu;
    #[wasm_bindgen(js_name = beginPass)]
    fn begin_pass(encoder: &Gpu, label: &str) -> Gpu;
    #[wasm_bindgen(js_name = setParams)]
    fn set_params(pass: &Gpu, params: &Gpu, offset: u32);
    #[wasm_bindgen(js_name = submit)]
    fn submit_raw(device: &Gpu, commands: Option<&Gpu>);
    #[wasm_bindgen(js_name = workDone)]
    fn work_done_raw(device: &Gpu) -> Promise;
}

#[wasm_bindgen]
extern "C" {
    /// An object of the browser's WebGPU.
    #[derive(Clone, Debug)]
    pub(in crate::driver::gpu) type Gpu;
    #[wasm_bindgen(method)]
    fn destroy(this: &Gpu);
    #[wasm_bindgen(method)]
    pub(super) fn unmap(this: &Gpu);
    #[wasm_bindgen(method, js_name = copyBufferToBuffer)]
    fn copy(this: &Gpu, src: &Gpu, src_at: f64, dst: &Gpu, dst_at: f64, len: f64);
    #[wasm_bindgen(method, js_name = clearBuffer)]
    fn clear(this: &Gpu, buffer: &Gpu, offset: f64, len: f64);
    #[wasm_bindgen(method, js_name = setPipeline)]
    fn set_pipeline(this: &Gpu, pipeline: &Gpu);
    #[wasm_bindgen(method, js_name = setBindGroup)]
    fn set_group(this: &Gpu, index: u32, group: &Gpu);
    #[wasm_bindgen(method, js_name = dispatchWorkgroups)]
    fn dispatch(this: &Gpu, x: u32, y: u32, z: u32);
    #[wasm_bindgen(method)]
    fn end(this: &Gpu);
    #[wasm_bindgen(method)]
    fn finish(this: &Gpu) -> Gpu;
}

pub(in crate::driver::gpu) type BindGroup = Gpu;
pub(in crate::driver::gpu) type BindGroupLayout = Gpu;
pub(in crate::driver::gpu) type Commands = Gpu;
pub(in crate::driver::gpu) type Pipeline = Gpu;
pub(in crate::driver::gpu) type PipelineLayout = Gpu;
pub(in crate::driver::gpu) type ShaderModule = Gpu;
/// The browser numbers no submissions.
#[derive(Debug)]
pub(in crate::driver::gpu) struct Submission;

/// A buffer. Dropping a handle frees nothing.
#[derive(Clone)]
pub struct Buffer {
    pub(super) raw: Gpu,
    size: u64,
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.size)
    }
}

impl Buffer {
    /// The `GPUBuffer`.
    pub fn as_js(&self) -> &JsValue {
        &self.raw
    }

    pub(in crate::driver::gpu) fn size(&self) -> u64 {
        self.size
    }

    pub(in crate::driver::gpu) fn destroy(&self) {
        self.raw.destroy();
    }
}

/// An opened device with its queue. Clones are the same device.
#[derive(Clone, Debug)]
pub(crate) struct Device(pub(super) Gpu);

async fn adapter(power_preference: Option<&str>) -> Option<JsValue> {
    if !has_webgpu() {
        return None;
    }
    Promised::new(request_adapter(power_preference)).await.ok().filter(|adapter| !adapter.is_null())
}

/// What the browser's adapter is, and the limits of its own.
pub(in crate::driver::gpu) async fn adapters() -> Vec<(AdapterInfo, Limits)> {
    let adapter = adapter(None).await;
    adapter.iter().map(|adapter| (info_of(adapter), limits_of(adapter))).collect()
}

impl Device {
    /// A `GPUDevice` that the page has already.
    pub(crate) fn lent(device: JsValue) -> Self {
        Self(device.unchecked_into())
    }

    /// Opens the device of an adapter.
    pub(in crate::driver::gpu) async fn open(options: &OpenOptions) -> Result<Self> {
        if !has_webgpu() {
            return Err(Error::new(
                ErrorKind::NoAdapter,
                "this JavaScript environment has no WebGPU (navigator.gpu is missing); use a browser with WebGPU in a \
                 secure context (https or localhost), or open the host driver: Device.open({ driver: \"host\" })",
            ));
        }
        let preference = match (options.ordinal, options.power_preference) {
            (Some(_), _) => None,
            (None, PowerPreference::HighPerformance) => Some("high-performance"),
            (None, PowerPreference::LowPower) => Some("low-power"),
        };
        let adapter = adapter(preference).await;
        if let Some(ordinal) = options.ordinal
            && (ordinal > 0 || adapter.is_none())
        {
            return Err(super::no_such_adapter(ordinal, usize::from(adapter.is_some())));
        }
        let adapter = adapter.ok_or_else(super::no_adapter)?;
        let device = Promised::new(request_device(&adapter, options.is_default_limits())).await;
        let refused = |error| super::refused_device(&describe(&adapter), &message_of(&error));
        device.map(Self::lent).map_err(refused)
    }

    pub(in crate::driver::gpu) fn info(&self) -> AdapterInfo {
        info_of(&self.0)
    }

    pub(in crate::driver::gpu) fn limits(&self) -> Limits {
        limits_of(&self.0)
    }

    pub(in crate::driver::gpu) fn destroy(&self) {
        self.0.destroy();
    }

    /// A buffer for those [`usage`](super::usage)s.
    pub(in crate::driver::gpu) fn create_buffer(&self, label: &str, size: u64, usage: u32) -> Buffer {
        Buffer { raw: create_buffer(&self.0, label, size as f64, usage), size }
    }

    /// Group 0: one storage binding per heap, which is as large as a vector at least.
    pub(in crate::driver::gpu) fn heaps_layout(&self, read_only: &[bool]) -> BindGroupLayout {
        heaps_layout(&self.0, bytemuck::cast_slice(read_only), VECTOR_BYTES as f64)
    }

    /// Group 1: the parameter block, at a dynamic offset.
    pub(in crate::driver::gpu) fn params_layout(&self, slot_bytes: u64) -> BindGroupLayout {
        params_layout(&self.0, slot_bytes as f64)
    }

    pub(in crate::driver::gpu) fn pipeline_layout(
        &self,
        heaps: &BindGroupLayout,
        params: &BindGroupLayout,
    ) -> PipelineLayout {
        pipeline_layout(&self.0, heaps, params)
    }

    /// Binds a range of each buffer, from a byte on and so many, or all of each.
    pub(in crate::driver::gpu) fn bind(
        &self,
        label: &str,
        layout: &BindGroupLayout,
        buffers: &[&Buffer],
        ranges: &[(u64, u64)],
    ) -> BindGroup {
        let array = Array::new();
        for buffer in buffers {
            array.push(buffer.as_js());
        }
        let mut flat = Vec::new();
        for (start, len) in ranges {
            flat.push(*start as f64);
            flat.push(*len as f64);
        }
        bind(&self.0, label, layout, &array, &flat)
    }

    /// The module and the pipeline of a text with one entry point.
    pub(in crate::driver::gpu) fn create_pipeline(
        &self,
        label: &str,
        text: &str,
        layout: &PipelineLayout,
    ) -> (ShaderModule, Pipeline) {
        let module = create_module(&self.0, label, text);
        let pipeline = create_pipeline(&self.0, label, layout, &module);
        (module, pipeline)
    }

    pub(in crate::driver::gpu) fn encoder(&self, label: &str) -> Encoder {
        Encoder(create_encoder(&self.0, label))
    }

    /// Hands commands to the queue, or only what was written to it.
    pub(in crate::driver::gpu) fn submit(&self, commands: Option<Commands>) -> Submission {
        submit_raw(&self.0, commands.as_ref());
        Submission
    }

    /// Resolves when what was submitted is done.
    pub(super) fn work_done(&self) -> Promise {
        work_done_raw(&self.0)
    }
}

/// Commands being encoded.
pub(in crate::driver::gpu) struct Encoder(Gpu);

impl Encoder {
    /// Copies between different buffers.
    pub(in crate::driver::gpu) fn copy(&mut self, src: &Buffer, src_at: u64, dst: &Buffer, dst_at: u64, len: u64) {
        self.0.copy(&src.raw, src_at as f64, &dst.raw, dst_at as f64, len as f64);
    }

    pub(in crate::driver::gpu) fn clear(&mut self, buffer: &Buffer, offset: u64, len: u64) {
        self.0.clear(&buffer.raw, offset as f64, len as f64);
    }

    /// Begins a compute pass, which ends when it is dropped.
    pub(in crate::driver::gpu) fn pass(&mut self, label: &str) -> Pass {
        Pass(begin_pass(&self.0, label))
    }

    pub(in crate::driver::gpu) fn finish(self) -> Commands {
        self.0.finish()
    }
}

/// A compute pass.
pub(in crate::driver::gpu) struct Pass(Gpu);

impl Pass {
    pub(in crate::driver::gpu) fn set_pipeline(&mut self, pipeline: &Pipeline) {
        self.0.set_pipeline(pipeline);
    }

    pub(in crate::driver::gpu) fn set_heaps(&mut self, heaps: &BindGroup) {
        self.0.set_group(0, heaps);
    }

    pub(in crate::driver::gpu) fn set_params(&mut self, params: &BindGroup, offset: u32) {
        set_params(&self.0, params, offset);
    }

    pub(in crate::driver::gpu) fn dispatch(&mut self, [x, y, z]: [u32; 3]) {
        self.0.dispatch(x, y, z);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn info_of(of: &JsValue) -> AdapterInfo {
    AdapterInfo {
        name: describe(of),
        backend: "webgpu".to_owned(),
        driver: String::new(),
        device_type: if is_fallback(of) { "cpu" } else { "other" }.to_owned(),
    }
}

fn limits_of(of: &JsValue) -> Limits {
    let limits = limits(of);
    let limit = |at: usize| limits.get(at).copied().unwrap_or(0.0);
    Limits {
        buffer_bytes: limit(0) as u64,
        storage_binding_bytes: limit(1) as u64,
        uniform_binding_bytes: limit(2) as u64,
        storage_buffers: limit(3) as u32,
        workgroups_per_dimension: limit(4) as u32,
        invocations_per_workgroup: limit(5) as u32,
        workgroup_storage_bytes: limit(6) as u32,
        has_subgroups: limit(7) > 0.0,
    }
}

/// What an error of JavaScript says.
pub(super) fn message_of(error: &JsValue) -> String {
    error.unchecked_ref::<js_sys::Error>().message().into()
}
