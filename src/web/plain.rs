//! Structured values as JavaScript sees them: objects, their names in camel case. By hand: a serializer is 2 KB more after
//! brotli.
//!
//! Inline scripts are three in the crate: wasm-bindgen's test runner serves four files at once, and a fifth never.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::backend::forecast::Forecast;
use crate::device::registry::{DebugInfo, StaticProperties};
use crate::diagnostic::Diagnostic;
use crate::driver::limits::{AdapterInfo, DeviceLimits, RunnerStats};
use crate::slab::report::{MemoryReport, NodeReport, PoolReport};

#[wasm_bindgen(inline_js = "
export function object(names, numbers, others) {
  const values = [...numbers, ...others];
  return Object.fromEntries(names.split(' ').map((name, at) => [name, values[at]]));
}
export function error(message, code, retryable, diagnostics) {
  return Object.assign(new Error(message), { code, retryable, diagnostics });
}
")]
extern "C" {
    #[wasm_bindgen(js_name = object)]
    fn make(names: &str, numbers: &[f64], others: &Array) -> JsValue;
    pub(super) fn error(message: &str, code: &str, retryable: bool, diagnostics: &JsValue) -> JsValue;
}

/// An object of numbers, then other values, by their names, which are apart by spaces.
pub(super) fn object(names: &str, numbers: &[f64], others: &[JsValue]) -> JsValue {
    let list = Array::new();
    for other in others {
        list.push(other);
    }
    make(names, numbers, &list)
}

/// A list of objects.
pub(super) fn list<T>(items: &[T], item: fn(&T) -> JsValue) -> JsValue {
    items.iter().map(item).collect::<Array>().into()
}

pub(super) fn limits(limits: &DeviceLimits) -> JsValue {
    let values = [
        limits.segment_cap_bytes as f64,
        limits.alignment_bytes as f64,
        limits.storage_buffers.into(),
        limits.workgroups_per_dimension.into(),
        limits.invocations_per_workgroup.into(),
        limits.workgroup_storage_bytes.into(),
        limits.uniform_binding_bytes as f64,
    ];
    let names = "segmentCapBytes alignmentBytes storageBuffers workgroupsPerDimension invocationsPerWorkgroup \
                 workgroupStorageBytes uniformBindingBytes hasSubgroups";
    object(names, &values, &[limits.has_subgroups.into()])
}

pub(super) fn adapter(info: &AdapterInfo) -> JsValue {
    let AdapterInfo { name, backend, driver, device_type } = info;
    object("name backend driver deviceType", &[], &[name.into(), backend.into(), driver.into(), device_type.into()])
}

pub(super) fn stats(stats: &RunnerStats) -> JsValue {
    let values = [
        stats.submissions,
        stats.passes,
        stats.dispatches,
        stats.uploads,
        stats.copies,
        stats.zeros,
        stats.readbacks,
        stats.maps,
        stats.buffers_created,
        stats.bind_groups_created,
        stats.pipelines_created,
    ];
    let names = "submissions passes dispatches uploads copies zeros readbacks maps buffersCreated bindGroupsCreated \
                 pipelinesCreated";
    object(names, &values.map(|count| count as f64), &[])
}

fn node(node: &NodeReport) -> JsValue {
    object("offset sizeBytes label", &[node.offset as f64, node.size_bytes as f64], &[(&node.label).into()])
}

fn pool(pool: &PoolReport) -> JsValue {
    let values = [pool.pool_id.0.into(), pool.size_bytes as f64, pool.padding_bytes as f64];
    object("poolId sizeBytes paddingBytes nodes", &values, &[list(&pool.nodes, node)])
}

pub(super) fn memory(report: &MemoryReport) -> JsValue {
    let values = [
        report.reserved_bytes,
        report.heap_count as u64,
        report.in_use_bytes,
        report.padding_bytes,
        report.peak_bytes,
        report.staging_bytes,
    ];
    let names = "reservedBytes heapCount inUseBytes paddingBytes peakBytes stagingBytes pools";
    object(names, &values.map(|count| count as f64), &[list(&report.pools, pool)])
}

pub(super) fn debug_info(info: &DebugInfo) -> JsValue {
    let values = [
        info.recorded_seq as f64,
        info.merge_buffer_capacity as f64,
        info.constant_count as f64,
        info.next_pool_id.into(),
    ];
    let others = [
        (&info.name).into(),
        adapter(&info.adapter),
        limits(&info.limits),
        memory(&info.memory),
        stats(&info.stats),
        info.is_idle.into(),
        info.merge_buffer.as_ref().map_or(JsValue::NULL, JsValue::from),
    ];
    let names =
        "recordedSeq mergeBufferCapacity constantCount nextPoolId name adapter limits memory stats isIdle mergeBuffer";
    object(names, &values, &others)
}

pub(super) fn properties(device: &StaticProperties) -> JsValue {
    object("ordinal adapter limits", &[device.ordinal.into()], &[adapter(&device.adapter), limits(&device.limits)])
}

pub(super) fn forecast(forecast: &Forecast) -> JsValue {
    let others = [
        list(&forecast.nodes, |label| label.into()),
        list(&forecast.slab_sizes_bytes, |bytes| (*bytes as f64).into()),
        forecast.budget_bytes.map_or(JsValue::NULL, |bytes| (bytes as f64).into()),
    ];
    object("inUseAfterBytes nodes slabSizesBytes budgetBytes", &[forecast.in_use_after_bytes as f64], &others)
}

pub(super) fn diagnostic(diagnostic: &Diagnostic) -> JsValue {
    let Diagnostic { line, column, message, excerpt } = diagnostic;
    object("line column message excerpt", &[(*line).into(), (*column).into()], &[message.into(), excerpt.into()])
}
