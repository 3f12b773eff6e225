//! Opening around a `GPUDevice` that the page has already.
//!
//! wgpu has no constructor from one (wgpu 30): it asks `navigator.gpu` for an adapter, and the adapter for a device. While
//! it asks, the adapter is a stand-in that gives the page's device. Both questions are answered without the page's own
//! code running in between: `requestAdapter` is replaced for one poll only, and `requestDevice` is the stand-in's.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use wasm_bindgen::prelude::*;

use crate::error::{Error, ErrorKind, Result};

#[wasm_bindgen(inline_js = "
export function lend(device) {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu) return undefined;
  const own = Object.getOwnPropertyDescriptor(gpu, 'requestAdapter');
  const { features, limits, adapterInfo: info = {} } = device;
  const adapter = { features, limits, info, requestDevice: async () => device };
  const isLent = Reflect.defineProperty(gpu, 'requestAdapter', { configurable: true, value: async () => adapter });
  return isLent ? () => {
    if (own) Reflect.defineProperty(gpu, 'requestAdapter', own);
    else delete gpu.requestAdapter;
  } : undefined;
}
export function takeBack(end) { end(); }
")]
extern "C" {
    fn lend(device: &JsValue) -> JsValue;
    #[wasm_bindgen(js_name = takeBack)]
    fn take_back(end: &JsValue);
}

/// Runs `opening`, which asks for an adapter when it is first polled, so that it gets `device`.
pub(super) async fn around<T>(device: &JsValue, opening: impl Future<Output = Result<T>>) -> Result<T> {
    let mut opening = pin!(opening);
    let end = lend(device);
    if end.is_undefined() {
        let message = "navigator.gpu is missing or sealed, and wgpu reaches a device through it; provide it first";
        return Err(Error::new(ErrorKind::NoAdapter, message));
    }
    let first = poll_fn(|cx| Poll::Ready(opening.as_mut().poll(cx))).await;
    take_back(&end);
    match first {
        Poll::Ready(opened) => opened,
        Poll::Pending => opening.await,
    }
}
