// Whether a side computed what the row is about: a benchmark of something wrong is none.

import type { RowSpec } from "./rows.ts";

/** Outputs by name. */
export type Outputs = Readonly<Record<string, Float32Array>>;

/** The first difference between the outputs of a side and single expected elements, in words. */
export function differsFromSamples(
  { tolerance }: RowSpec,
  outputs: Outputs,
  expected: Readonly<Record<string, readonly (readonly [at: number, value: number])[]>>,
): string | undefined {
  for (const [name, samples] of Object.entries(expected)) {
    const output = outputs[name];
    if (!output) return `${name} is missing`;
    for (const [at, value] of samples) {
      if (!isClose(output[at], value, tolerance)) return `${name}[${at}] is ${output[at]}, not ${value}`;
    }
  }
  return undefined;
}

/** The first difference between the outputs of two sides, in words. */
export function differs({ tolerance }: RowSpec, outputs: Outputs, others: Outputs): string | undefined {
  for (const [name, other] of Object.entries(others)) {
    const output = outputs[name];
    if (output?.length !== other.length) return `${name} has ${output?.length} elements, not ${other.length}`;
    const at = other.findIndex((value, index) => !isClose(output[index], value, tolerance));
    if (at >= 0) return `${name}[${at}] is ${output[at]}, not ${other[at]}`;
  }
  return undefined;
}

/** NaN is close to nothing. */
function isClose(value: number | undefined, wanted: number, { absolute, relative }: RowSpec["tolerance"]): boolean {
  return value !== undefined && Math.abs(value - wanted) <= absolute + relative * Math.abs(wanted);
}
