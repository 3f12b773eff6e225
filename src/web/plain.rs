//! Structured values as JavaScript sees them: objects, their names in camel case. By hand: a serializer is 2 KB more after
//! brotli.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::backend::forecast::Forecast;
use crate::device::registry::{DebugInfo, StaticProperties};
use crate::diagnostic::Diagnostic;
use crate::driver::limits::{AdapterInfo, DeviceLimits, RunnerStats};
use crate::slab::report::{MemoryReport, NodeReport, PoolReport};

#[wasm_bindgen(inline_js = "
export function numbers(names, values) {
  return Object.fromEntries(names.split(' ').map((name, at) => [name, values[at]]));
}
")]
extern "C" {
    /// An object of numbers, by their names, which are apart by spaces.
    fn numbers(names: &str, values: &[f64]) -> Object;
}

/// Sets properties of an object that was just made.
pub(super) fn set(object: &JsValue, fields: &[(&str, JsValue)]) {
    for (name, value) in fields {
        // Nobody has sealed it.
        let _ = Reflect::set(object, &(*name).into(), value);
    }
}

/// An object of numbers and other values.
pub(super) fn object(names: &str, values: &[f64], fields: &[(&str, JsValue)]) -> JsValue {
    let object = if values.is_empty() { Object::new() } else { numbers(names, values) };
    set(&object, fields);
    object.into()
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
                 workgroupStorageBytes uniformBindingBytes";
    object(names, &values, &[])
}

pub(super) fn adapter(info: &AdapterInfo) -> JsValue {
    let AdapterInfo { name, backend, driver, device_type } = info;
    let fields = [
        ("name", name.into()),
        ("backend", backend.into()),
        ("driver", driver.into()),
        ("deviceType", device_type.into()),
    ];
    object("", &[], &fields)
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
    object("offset sizeBytes", &[node.offset as f64, node.size_bytes as f64], &[("label", (&node.label).into())])
}

fn pool(pool: &PoolReport) -> JsValue {
    let values = [pool.pool_id.0.into(), pool.size_bytes as f64, pool.padding_bytes as f64];
    object("poolId sizeBytes paddingBytes", &values, &[("nodes", list(&pool.nodes, node))])
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
    let names = "reservedBytes heapCount inUseBytes paddingBytes peakBytes stagingBytes";
    object(names, &values.map(|count| count as f64), &[("pools", list(&report.pools, pool))])
}

pub(super) fn debug_info(info: &DebugInfo) -> JsValue {
    let values = [
        info.recorded_seq as f64,
        info.merge_buffer_capacity as f64,
        info.constant_count as f64,
        info.next_pool_id.into(),
    ];
    let fields = [
        ("name", (&info.name).into()),
        ("adapter", adapter(&info.adapter)),
        ("limits", limits(&info.limits)),
        ("memory", memory(&info.memory)),
        ("stats", stats(&info.stats)),
        ("isIdle", info.is_idle.into()),
        ("mergeBuffer", info.merge_buffer.as_ref().map_or(JsValue::NULL, JsValue::from)),
    ];
    object("recordedSeq mergeBufferCapacity constantCount nextPoolId", &values, &fields)
}

pub(super) fn properties(device: &StaticProperties) -> JsValue {
    let fields = [("adapter", adapter(&device.adapter)), ("limits", limits(&device.limits))];
    object("ordinal", &[device.ordinal.into()], &fields)
}

pub(super) fn forecast(forecast: &Forecast) -> JsValue {
    let fields = [
        ("nodes", list(&forecast.nodes, |label| label.into())),
        ("slabSizesBytes", list(&forecast.slab_sizes_bytes, |bytes| (*bytes as f64).into())),
        ("budgetBytes", forecast.budget_bytes.map_or(JsValue::NULL, |bytes| (bytes as f64).into())),
    ];
    object("inUseAfterBytes", &[forecast.in_use_after_bytes as f64], &fields)
}

pub(super) fn diagnostic(diagnostic: &Diagnostic) -> JsValue {
    let Diagnostic { line, column, message, excerpt } = diagnostic;
    let fields = [("message", message.into()), ("excerpt", excerpt.into())];
    object("line column", &[(*line).into(), (*column).into()], &fields)
}
