// Checks of arguments that JavaScript does not make: what reaches the wasm module is of the type that it takes.

import { WgslabError } from "./errors.ts";

/** Throws unless `value` is a string. */
export function checkText(what: string, value: unknown): asserts value is string {
  if (typeof value === "string") return;
  throw new WgslabError("unsupported", `${what} must be a string: got ${describe(value)}`);
}

/** Throws unless `value` is a whole number from `least` to `most`. */
export function checkWholeNumber(what: string, value: unknown, least = 0, most = Number.MAX_SAFE_INTEGER): void {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return;
  throw new WgslabError("shape-mismatch", `${what} must be a whole number from ${least} to ${most}: got ${describe(value)}`);
}

function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
