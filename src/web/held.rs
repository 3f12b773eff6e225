//! What JavaScript holds: numbers, from 1 on, of things in a table. wasm-bindgen's own handles of structures count borrows
//! in every export, for each of its arguments: 5 KB after brotli.

use std::cell::RefCell;
use std::sync::Arc;

use js_sys::Uint32Array;
use wasm_bindgen::prelude::*;

use crate::backend::compile::Code;
use crate::backend::routine::Routine;
use crate::backend::sequence::Sequence;
use crate::context::Context;
use crate::device::Device;
use crate::error::Result;
use crate::node::TensorNode;
use crate::web::either::Either;
use crate::web::error::fail;

/// What a number stands for.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// It was let go.
    Nothing,
    Device(Device<Either>),
    Context(Context<Either>),
    Node(TensorNode),
    Code(Code<Either>),
    Routine(Routine<Either>),
    Sequence(Arc<Sequence<Either>>),
}

#[derive(Debug)]
struct Table {
    slots: Vec<Held>,
    /// Numbers that were let go, to be given out again.
    free: Vec<u32>,
}

thread_local! {
    static TABLE: RefCell<Table> = const { RefCell::new(Table { slots: Vec::new(), free: Vec::new() }) };
}

/// What a number stands for; a clone, so that nothing is borrowed while the export works.
fn get(handle: u32) -> Held {
    TABLE.with_borrow(|table| table.slots.get((handle as usize).wrapping_sub(1)).cloned().unwrap_or(Held::Nothing))
}

macro_rules! of_a_kind {
    ($($name:ident: $kind:ident, $type:ty;)*) => {$(
        pub(super) fn $name(handle: u32) -> $type {
            if let Held::$kind(held) = get(handle) { held } else { no_handle() }
        }
    )*};
}

of_a_kind! {
    device: Device, Device<Either>;
    context: Context, Context<Either>;
    node: Node, TensorNode;
    code: Code, Code<Either>;
    routine: Routine, Routine<Either>;
    sequence: Sequence, Arc<Sequence<Either>>;
}

/// The package's classes let go once and use nothing afterwards: our TypeScript is wrong, or was bypassed.
fn no_handle() -> ! {
    wasm_bindgen::throw_str("no such handle")
}

/// A number for this, until it is let go.
pub(super) fn keep(held: Held) -> u32 {
    TABLE.with_borrow_mut(|table| {
        let Some(handle) = table.free.pop() else {
            table.slots.push(held);
            return table.slots.len() as u32;
        };
        if let Some(slot) = table.slots.get_mut(handle as usize - 1) {
            *slot = held;
        }
        handle
    })
}

/// A number for what a call gave; 0 for an error, which `failure` has.
pub(super) fn kept<T>(result: Result<T>, held: fn(T) -> Held) -> u32 {
    match result {
        Ok(made) => keep(held(made)),
        Err(error) => {
            fail(&error);
            0
        }
    }
}

/// A number for what there may be; 0 for nothing.
pub(super) fn kept_some<T>(some: Option<T>, held: fn(T) -> Held) -> u32 {
    some.map_or(0, |made| keep(held(made)))
}

/// As `kept`, for a promise.
pub(super) fn promised<T>(result: Result<T>, held: fn(T) -> Held) -> Result<JsValue> {
    result.map(|made| keep(held(made)).into())
}

/// Numbers for a list.
pub(super) fn keep_all(list: impl Iterator<Item = Held>) -> Uint32Array {
    numbers(list.map(keep))
}

/// An array of numbers.
pub(super) fn numbers(list: impl Iterator<Item = u32>) -> Uint32Array {
    Uint32Array::new_from_slice(&list.collect::<Vec<_>>())
}

/// The nodes of a list.
pub(super) fn nodes(handles: &[u32]) -> Vec<TensorNode> {
    handles.iter().map(|&handle| node(handle)).collect()
}

/// Lets go of what a number stands for.
#[wasm_bindgen(js_name = letGo)]
pub fn let_go(handle: u32) {
    let held = TABLE.with_borrow_mut(|table| {
        let Some(slot) = table.slots.get_mut((handle as usize).wrapping_sub(1)) else { return Held::Nothing };
        table.free.push(handle);
        std::mem::replace(slot, Held::Nothing)
    });
    // Out here, for what ends with it may come back to the table.
    drop(held);
}
