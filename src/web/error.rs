//! Errors as JavaScript sees them: an `Error` with `code`, `retryable` and `diagnostics`.
//!
//! An export that fails gives NaN, 0, false or `undefined`, and `failure` has the error: results that can be either are
//! passed through memory by wasm-bindgen, in every export.

use std::cell::Cell;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use crate::driver::gpu::platform::web_tasks;
use crate::driver::maybe_send::BoxFuture;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::web::either::Either;
use crate::web::plain;

thread_local! {
    static FAILURE: Cell<JsValue> = const { Cell::new(JsValue::UNDEFINED) };
}

fn to_js(error: &Error) -> JsValue {
    let diagnostics = plain::list(error.diagnostics(), plain::diagnostic);
    plain::error(&error.to_string(), error.kind().code(), error.is_retryable(), &diagnostics)
}

/// The error of an export that fails.
pub(super) fn fail(error: &Error) {
    FAILURE.set(to_js(error));
}

/// What the last export failed with, once; `undefined` if it did not.
#[wasm_bindgen(unchecked_return_type = "Error | undefined")]
pub fn failure() -> JsValue {
    FAILURE.replace(JsValue::UNDEFINED)
}

/// The number that an export gives; NaN for an error.
pub(super) fn number(result: Result<u64>) -> f64 {
    match result {
        Ok(number) => number as f64,
        Err(error) => {
            fail(&error);
            f64::NAN
        }
    }
}

/// An event as JavaScript holds it: its sequence number; NaN for an error.
pub(super) fn seq(event: Result<Event<Either>>) -> f64 {
    number(event.map(|event| event.seq()))
}

/// Whether it was done.
pub(super) fn done(result: Result<()>) -> bool {
    !number(result.map(|()| 0)).is_nan()
}

/// The value that an export gives; `undefined` for an error.
pub(super) fn value<T: Into<JsValue>>(result: Result<T>) -> JsValue {
    match result {
        Ok(value) => value.into(),
        Err(error) => {
            fail(&error);
            JsValue::UNDEFINED
        }
    }
}

/// The result of an asynchronous export.
pub(super) fn promise(work: impl Future<Output = Result<JsValue>> + 'static) -> Promise {
    boxed_promise(Box::pin(work))
}

/// The machinery of a promise, once for all of them.
fn boxed_promise(work: BoxFuture<Result<JsValue>>) -> Promise {
    web_tasks::promise(Box::pin(async move { work.await.map_err(|error| to_js(&error)) }))
}

/// A JavaScript value that is not what the export wants: our TypeScript is wrong, or was bypassed.
pub(super) fn bad_argument(what: &str, said: &str) -> Error {
    Error::say(ErrorKind::Bug, format_args!("bad {what}: {said}"))
}

/// A list of texts.
pub(super) fn texts<T: AsRef<str>>(list: impl Iterator<Item = T>) -> Array {
    list.map(|text| JsValue::from(text.as_ref())).collect()
}

/// Every error code, for the test against the TypeScript union.
#[wasm_bindgen(js_name = errorCodes)]
pub fn error_codes() -> Array {
    texts(ErrorKind::ALL.iter().map(|kind| kind.code()))
}
