// The data of case files as typed arrays of the package's kinds, and back to numbers.
// Half-precision numbers in a case are exact in their type, so a number that is not is a mistake in the case.

import type { DType } from "wgslab";

/** A number of a case file. */
export type CaseNumber = number | string | boolean;

/** What the package takes and gives for a node. */
export type Bits = Float32Array | Int32Array | Uint32Array | Int8Array | Uint8Array | Uint16Array;

/** The value that a case file means. */
export function toNumber(value: CaseNumber): number {
  if (typeof value !== "string") return Number(value);
  const named: Record<string, number> = { inf: Infinity, "-inf": -Infinity, nan: NaN };
  const number = named[value] ?? Number(value);
  if (Number.isNaN(number) && value !== "nan") throw new Error(`case: "${value}" is no number`);
  return number;
}

/** Case data in the array that the package takes for that dtype. */
export function encode(dtype: DType, data: readonly CaseNumber[]): Bits {
  const numbers = data.map(toNumber);
  switch (dtype) {
    case "f32":
      return Float32Array.from(numbers);
    case "f16":
      return Uint16Array.from(numbers, f16Bits);
    case "bf16":
      return Uint16Array.from(numbers, bf16Bits);
    case "i32":
      return Int32Array.from(numbers);
    case "u32":
      return Uint32Array.from(numbers);
    case "i8":
      return Int8Array.from(numbers);
    case "u8":
    case "bool":
      return Uint8Array.from(numbers);
  }
}

/** What the package gave, as numbers. */
export function decode(dtype: DType, bits: Bits): number[] {
  if (dtype === "f16") return Array.from(bits, (value) => f16(value));
  if (dtype === "bf16") return Array.from(bits, (value) => bf16(value));
  return Array.from(bits);
}

function f16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

function bf16(bits: number): number {
  return new Float32Array(Uint32Array.of(bits << 16).buffer)[0]!;
}

// Every f16 by its value; a map takes 0 and -0 for the same key, so the sign of zero is put back below.
const F16_BITS = new Map(Array.from({ length: 0x10000 }, (_, bits) => [f16(bits), bits] as const));
const F16_NAN = 0x7e00;

function f16Bits(value: number): number {
  if (Number.isNaN(value)) return F16_NAN;
  if (value === 0) return Object.is(value, -0) ? 0x8000 : 0;
  const bits = F16_BITS.get(value);
  if (bits === undefined) throw new Error(`case: ${value} is not exact in f16`);
  return bits;
}

function bf16Bits(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0]! >>> 16;
  if (!Number.isNaN(value) && bf16(bits) !== value) throw new Error(`case: ${value} is not exact in bf16`);
  return bits;
}
