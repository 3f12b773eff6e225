//! Web: futures that JavaScript runs, and its promises as futures. By hand: wasm-bindgen's own, with a closure for each end of
//! each promise and for each microtask, is 2 KB of code more.
//!
//! One function of ours, `told`, is all that JavaScript calls: with the number of what waits, or with 0 to run what is ready.

use std::cell::RefCell;
use std::future::Future;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::driver::maybe_send::BoxFuture;

#[wasm_bindgen(inline_js = "
export function isGecko() { return typeof navigator !== 'undefined' && / Gecko\\//.test(navigator.userAgent ?? ''); }
export function now() { return performance.now(); }
export function sleep(ms) { return new Promise((resolve) => setTimeout(resolve, ms)); }
export function soon(told) { queueMicrotask(() => told(0)); }
export function follow(promise, id, told) {
  const seen = { state: 0 };
  const see = (state) => (value) => {
    Object.assign(seen, { state, value });
    told(id);
  };
  promise.then(see(1), see(2));
  return seen;
}
export function stateOf(seen) { return seen.state; }
export function valueOf(seen) { return seen.value; }
export function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
export function promiseOf(deferred) { return deferred.promise; }
export function settle(deferred, isResolved, value) { deferred[isResolved ? 'resolve' : 'reject'](value); }
")]
extern "C" {
    #[wasm_bindgen(js_name = isGecko)]
    pub(super) fn is_gecko() -> bool;
    pub(super) fn now() -> f64;
    pub(super) fn sleep(ms: f64) -> Promise;
    fn soon(told: &JsValue);
    fn follow(promise: &Promise, id: u32, told: &JsValue) -> JsValue;
    #[wasm_bindgen(js_name = stateOf)]
    fn state_of(seen: &JsValue) -> u32;
    #[wasm_bindgen(js_name = valueOf)]
    fn value_of(seen: &JsValue) -> JsValue;
    fn deferred() -> JsValue;
    #[wasm_bindgen(js_name = promiseOf)]
    fn promise_of(deferred: &JsValue) -> Promise;
    fn settle(deferred: &JsValue, is_resolved: bool, value: &JsValue);
}

/// A future that JavaScript runs.
struct Task {
    future: BoxFuture<()>,
    waker: Waker,
}

/// What has a number.
enum Slot {
    /// Free, or a task that is being polled.
    Empty,
    Task(Task),
    /// Who waits for a promise.
    Waiting(Waker),
}

struct Tasks {
    slots: Vec<Slot>,
    /// Numbers to be given out again.
    free: Vec<u32>,
    /// Tasks to be polled, for which a microtask is under way.
    ready: Vec<u32>,
    /// Our function, once it is needed.
    told: JsValue,
}

impl Tasks {
    fn add(&mut self, slot: Slot) -> u32 {
        let Some(id) = self.free.pop() else {
            self.slots.push(slot);
            return self.slots.len() as u32;
        };
        self.put(id, slot);
        id
    }

    /// Leaves another at a number, and gives what was there.
    fn put(&mut self, id: u32, slot: Slot) -> Slot {
        self.slots.get_mut((id as usize).wrapping_sub(1)).map_or(Slot::Empty, |place| std::mem::replace(place, slot))
    }

    fn told(&mut self) -> &JsValue {
        if self.told.is_undefined() {
            self.told = Closure::<dyn FnMut(u32)>::new(told).into_js_value();
        }
        &self.told
    }
}

thread_local! {
    static TASKS: RefCell<Tasks> = const {
        RefCell::new(Tasks { slots: Vec::new(), free: Vec::new(), ready: Vec::new(), told: JsValue::UNDEFINED })
    };
}

fn with<T>(work: impl FnOnce(&mut Tasks) -> T) -> T {
    TASKS.with_borrow_mut(work)
}

/// What JavaScript calls.
fn told(id: u32) {
    if id == 0 {
        for id in with(|tasks| take(&mut tasks.ready)) {
            poll(id);
        }
        return;
    }
    let slot = with(|tasks| {
        tasks.free.push(id);
        tasks.put(id, Slot::Empty)
    });
    if let Slot::Waiting(waker) = slot {
        waker.wake();
    }
}

fn poll(id: u32) {
    let slot = with(|tasks| tasks.put(id, Slot::Empty));
    // A number that was given out again gets a turn too many at worst.
    let Slot::Task(mut task) = slot else {
        with(|tasks| tasks.put(id, slot));
        return;
    };
    let is_pending = task.future.as_mut().poll(&mut Context::from_waker(&task.waker)).is_pending();
    if is_pending {
        with(|tasks| tasks.put(id, Slot::Task(task)));
        return;
    }
    drop(task);
    with(|tasks| tasks.free.push(id));
}

/// Has a task polled when the page's microtasks are.
fn ready(id: u32) {
    with(|tasks| {
        if tasks.ready.contains(&id) {
            return;
        }
        tasks.ready.push(id);
        if tasks.ready.len() == 1 {
            soon(tasks.told());
        }
    });
}

struct TaskWaker(u32);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        ready(self.0);
    }
}

/// Runs a future.
pub(super) fn spawn(future: BoxFuture<()>) {
    let id = with(|tasks| tasks.add(Slot::Empty));
    let waker = Waker::from(Arc::new(TaskWaker(id)));
    with(|tasks| tasks.put(id, Slot::Task(Task { future, waker })));
    ready(id);
}

/// The promise of a future's outcome.
pub(crate) fn promise(work: BoxFuture<Result<JsValue, JsValue>>) -> Promise {
    let deferred = deferred();
    let promise = promise_of(&deferred);
    spawn(Box::pin(async move {
        let outcome = work.await;
        let is_resolved = outcome.is_ok();
        let (Ok(value) | Err(value)) = outcome;
        settle(&deferred, is_resolved, &value);
    }));
    promise
}

/// A promise as a future.
pub(super) struct Promised {
    promise: Promise,
    /// What JavaScript saw of it, once somebody waits, and the number of who does.
    seen: Option<(JsValue, u32)>,
}

impl Promised {
    pub(super) fn new(promise: Promise) -> Self {
        Self { promise, seen: None }
    }
}

impl Future for Promised {
    type Output = Result<JsValue, JsValue>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waiting = Slot::Waiting(cx.waker().clone());
        if let Some((seen, id)) = &self.seen {
            return match state_of(seen) {
                0 => {
                    // Outside of the borrow: the last of a waker lets go of what it woke.
                    drop(with(|tasks| tasks.put(*id, waiting)));
                    Poll::Pending
                }
                1 => Poll::Ready(Ok(value_of(seen))),
                _ => Poll::Ready(Err(value_of(seen))),
            };
        }
        self.seen = Some(with(|tasks| {
            let id = tasks.add(waiting);
            (follow(&self.promise, id, tasks.told()), id)
        }));
        Poll::Pending
    }
}
