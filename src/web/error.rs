//! Errors as JavaScript sees them: an `Error` with `code`, `retryable` and `diagnostics`.

use js_sys::{Error as JsError, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::driver::maybe_send::BoxFuture;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::web::either::Either;
use crate::web::plain;

pub(super) fn to_js(error: &Error) -> JsValue {
    let js = JsError::new(&error.to_string());
    let fields = [
        ("code", error.kind().code().into()),
        ("retryable", error.is_retryable().into()),
        ("diagnostics", plain::list(error.diagnostics(), plain::diagnostic)),
    ];
    plain::set(&js, &fields);
    js.into()
}

/// The result of a synchronous export.
pub(super) fn js<T>(result: Result<T>) -> std::result::Result<T, JsValue> {
    result.map_err(|error| to_js(&error))
}

/// An event as JavaScript holds it: its sequence number.
pub(super) fn seq(event: Result<Event<Either>>) -> Result<f64> {
    event.map(|event| event.seq() as f64)
}

/// The result of an asynchronous export.
pub(super) fn promise<T: Into<JsValue>>(work: impl Future<Output = Result<T>> + 'static) -> Promise {
    boxed_promise(Box::pin(async move { work.await.map(Into::into) }))
}

/// The machinery of a promise, once for all of them.
fn boxed_promise(work: BoxFuture<Result<JsValue>>) -> Promise {
    future_to_promise(async move { js(work.await) })
}

/// A JavaScript value that is not what the export wants: our TypeScript is wrong, or was bypassed.
pub(super) fn bad_argument(what: &str, said: &str) -> Error {
    Error::say(ErrorKind::Bug, format_args!("bad {what}: {said}"))
}

/// Every error code, for the test against the TypeScript union.
#[wasm_bindgen(js_name = errorCodes)]
pub fn error_codes() -> Vec<String> {
    ErrorKind::ALL.iter().map(|kind| kind.code().to_owned()).collect()
}
