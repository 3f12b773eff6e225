// Typed arrays in and out: which array holds which dtype, and the checks in between.

import { WgslabError } from "./errors.ts";

/** The element types, as the crate names them. */
export const DTYPES = ["f32", "f16", "bf16", "i32", "u32", "i8", "u8", "bool"] as const;

/** The type of one element. Kernels see `f16` and `bf16` as f32, `i8` as i32, `u8` as u32. */
export type DType = (typeof DTYPES)[number];

/** The array that holds each dtype: `f16` and `bf16` as bits, `bool` as bytes 0 and 1. */
export interface ArrayTypes {
  f32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  i32: Int32Array;
  u32: Uint32Array;
  i8: Int8Array;
  u8: Uint8Array;
  bool: Uint8Array;
}

/** The array of a dtype. */
export type ArrayOf<D extends DType> = ArrayTypes[D];

/** Any array that holds a tensor. */
export type TensorArray = ArrayTypes[DType];

/** An array that is taken for a dtype: for `f16` also Float16Array, where the runtime has it. */
export type DataOf<D extends DType> = ArrayOf<D> | (D extends "f16" ? Float16Data : never);

/** A Float16Array, by its shape: not every runtime and not every version of TypeScript has the type. */
export interface Float16Data extends ArrayBufferView {
  readonly length: number;
  readonly BYTES_PER_ELEMENT: number;
  readonly [Symbol.toStringTag]: "Float16Array";
}

/** What the checks need of a node. */
interface NodeLike {
  readonly dtype: DType;
  readonly length: number;
  toString(): string;
}

const CONSTRUCTORS = {
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
} as const;

/** Bytes of one element. */
export function elementBytes(dtype: DType): number {
  return CONSTRUCTORS[dtype].BYTES_PER_ELEMENT;
}

/** The bytes of `data`, once it is an array of the node's dtype. Not a copy, unless the buffer is resizable. */
export function bytesOf(node: NodeLike, data: ArrayBufferView): Uint8Array {
  checkType(node, data);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  // WebGPU takes no view of a buffer whose size may change.
  return isResizable(data.buffer) ? bytes.slice() : bytes;
}

function isResizable(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  return resizable === true || growable === true;
}

/** The bytes of `data`, once it is an array of the node's dtype and length. Not a copy. */
export function wholeBytesOf(node: NodeLike, data: ArrayBufferView): Uint8Array {
  const bytes = bytesOf(node, data);
  checkLength(node, data);
  return bytes;
}

/** An array of the node's dtype over bytes that nobody else has; or `into`, filled. */
export function arrayFrom<D extends DType>(
  node: NodeLike & { readonly dtype: D },
  bytes: Uint8Array,
  into?: DataOf<D>,
): ArrayOf<D> {
  if (into !== undefined) {
    checkWhole(node, into);
    new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(bytes);
    return into as ArrayOf<D>;
  }
  const Type = CONSTRUCTORS[node.dtype];
  const own = bytes.byteOffset % Type.BYTES_PER_ELEMENT === 0 ? bytes : bytes.slice();
  return new Type(own.buffer as ArrayBuffer, own.byteOffset, own.byteLength / Type.BYTES_PER_ELEMENT) as ArrayOf<D>;
}

/** Throws unless `data` is an array of the node's dtype and length. */
export function checkWhole(node: NodeLike, data: ArrayBufferView): void {
  checkType(node, data);
  checkLength(node, data);
}

/** Elements of `data`. */
export function lengthOf(data: ArrayBufferView): number {
  return (data as Uint8Array).length;
}

// By tag and not by `instanceof`: arrays of another realm, such as an iframe's, are as good.
function checkType(node: NodeLike, data: ArrayBufferView): void {
  const want = CONSTRUCTORS[node.dtype].name;
  const got = ArrayBuffer.isView(data) ? (data as Uint8Array)[Symbol.toStringTag] : undefined;
  if (got === want || (got as string) === (node.dtype === "f16" ? "Float16Array" : want)) return;
  throw new WgslabError(
    "dtype-mismatch",
    `${node} is ${node.dtype}: got ${got ?? describe(data)}, want ${want}; convert the array or change the dtype`,
  );
}

function checkLength(node: NodeLike, data: ArrayBufferView): void {
  const got = lengthOf(data);
  if (got === node.length) return;
  throw new WgslabError("shape-mismatch", `${node} has ${node.length} elements: the array has ${got}; make them equal`);
}

function describe(value: unknown): string {
  if (value === null || typeof value !== "object") return String(value);
  return value.constructor?.name ?? "an object";
}
