// Whether what a case gave is what it expected: values with tolerances, and failures with their words and place.

import type { KernelError } from "wgslab";
import { toNumber } from "./case-data.ts";
import type { CaseFailure, CaseValues } from "./case-types.ts";

const FLOATS = new Set(["f32", "f16", "bf16"]);

/** The largest error of one tensor; throws at the first element that is out of tolerance. */
export function compareValues(name: string, want: Omit<CaseValues, "shape">, got: readonly number[]): number {
  if (got.length !== want.data.length) {
    throw new Error(`${name}: ${got.length} elements came, ${want.data.length} were expected`);
  }
  const exact = !FLOATS.has(want.dtype);
  const rtol = exact ? 0 : (want.rtol ?? 0);
  const atol = exact ? 0 : (want.atol ?? 0);
  let largest = 0;
  for (const [index, value] of want.data.entries()) {
    const expected = toNumber(value);
    const actual = got[index]!;
    // A decimal stands for the nearest value of the type.
    if (want.dtype === "f32" && actual === Math.fround(expected)) continue;
    // Equal infinities and equal NaNs are equal; their difference is not a number.
    if (actual === expected || (Number.isNaN(actual) && Number.isNaN(expected))) continue;
    const error = Math.abs(actual - expected);
    if (!(error <= atol + rtol * Math.abs(expected))) {
      throw new Error(`${name}[${index}] is ${actual}, expected ${expected} (rtol ${rtol}, atol ${atol})`);
    }
    largest = Math.max(largest, error);
  }
  return largest;
}

/** Throws unless an error of the package has the kind, the words and the place that it must have. */
export function compareFailure(want: CaseFailure, error: unknown): void {
  const { code, message, diagnostics } = error as Partial<KernelError>;
  const problem = (what: string) => new Error(`${what}; it failed with ${code}: ${message}`);
  if (code === undefined) throw problem("the failure is not one of the package's errors");
  if (want.kind !== undefined && code !== want.kind) throw problem(`its kind should be ${want.kind}`);
  // What Rust finalizes, JavaScript disposes.
  const words = want.contains?.replace("was finalized", "was disposed");
  if (words !== undefined && !message?.includes(words)) throw problem(`its message should contain "${words}"`);
  if (want.line === undefined) return;
  const at = diagnostics?.[0];
  const places = [[want.line, want.column] as const, ...(want.also ?? [])];
  const isThere = places.some(([line, column]) => at?.line === line && (column ?? at.column) === at.column);
  if (!isThere) throw problem(`its first diagnostic is at ${at?.line}:${at?.column}, not at ${places.join(" or ")}`);
}
