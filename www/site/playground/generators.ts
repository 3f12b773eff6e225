// What inputs are filled with.

import type { DType } from "../../lib/index.ts";

/** The names of the generators, as the menus say them. */
export const GENERATORS = {
  noise: "noise",
  uniform: "0 to 1, random",
  bits: "0 or 1, random",
  count: "0, 1, 2, …",
  rings: "rings",
  spots: "spots",
  ones: "ones",
  zeros: "zeros",
} as const;

/** A way to fill a node. */
export type Generator = keyof typeof GENERATORS;

/** Numbers from 0 to 1 that are the same each time (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The values of a node with that shape. */
export function generate(generator: Generator, shape: readonly number[], seed: number): Float64Array {
  const length = shape.reduce((product, extent) => product * extent, 1);
  const [width = 1, height = 1] = [shape.at(-1), shape.at(-2)];
  const next = random(seed);
  const at = (index: number): [x: number, y: number] => [index % width, Math.floor(index / width) % height];
  const far = (index: number): number => {
    const [x, y] = at(index);
    return Math.hypot(x - width / 2, y - height / 2);
  };
  const spots = Array.from({ length: 12 }, () => [next() * width, next() * height] as const);
  const of: Record<Generator, (index: number) => number> = {
    noise: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    uniform: next,
    bits: () => (next() < 0.35 ? 1 : 0),
    count: (index) => index,
    rings: (index) => (Math.sin(far(index) / 5) > 0 ? 1 : 0),
    spots: (index) => {
      const [x, y] = at(index);
      return spots.some((spot) => Math.hypot(x - spot[0], y - spot[1]) < 4) ? 0.5 : 0;
    },
    ones: () => 1,
    zeros: () => 0,
  };
  return Float64Array.from({ length }, (_, index) => of[generator](index));
}

/** Values as bytes of a node's type: whole numbers for integers, 0 or 1 for bool, the upper half of an f32 for bf16. */
export function toArray(dtype: DType, values: Float64Array): ArrayBufferView {
  switch (dtype) {
    case "f32":
      return Float32Array.from(values);
    case "bf16":
      return Uint16Array.from(new Uint32Array(Float32Array.from(values).buffer), (bits) => bits >>> 16);
    case "f16":
      return Uint16Array.from(values, halfBits);
    case "i32":
      return Int32Array.from(values, Math.round);
    case "u32":
      return Uint32Array.from(values, (value) => Math.round(Math.abs(value)));
    case "i8":
      return Int8Array.from(values, Math.round);
    case "u8":
      return Uint8Array.from(values, (value) => Math.round(Math.abs(value)));
    case "bool":
      return Uint8Array.from(values, (value) => (value > 0.5 ? 1 : 0));
  }
}

/** What was read back, as numbers. */
export function toNumbers(dtype: DType, array: ArrayLike<number>): Float64Array {
  if (dtype === "bf16") {
    return Float64Array.from(new Float32Array(Uint32Array.from(array, (bits) => bits << 16).buffer));
  }
  return dtype === "f16" ? Float64Array.from(array, halfValue) : Float64Array.from(array);
}

function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The nearest f16 towards zero: what fills an example needs no better. */
function halfBits(value: number): number {
  const sign = value < 0 ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65504) return sign | 0x7bff;
  if (size < 2 ** -14) return sign | Math.floor(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  return sign | ((exponent + 15) << 10) | Math.floor((size / 2 ** exponent - 1) * 1024);
}
