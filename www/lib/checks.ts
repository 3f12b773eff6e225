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

/** Throws unless `value` is the id of a pool. */
export function checkPool(poolId: unknown): void {
  checkWholeNumber("a pool's id", poolId, 0, 2 ** 32 - 2);
}

/** Throws unless `value` is an array. */
export function checkList(what: string, value: unknown): asserts value is readonly unknown[] {
  if (Array.isArray(value)) return;
  throw new WgslabError("unsupported", `${what} must be an array: got ${describe(value)}`);
}

/** Throws unless `value` is an object, of whatever class or none. */
export function checkObject(what: string, value: unknown, remedy: string): asserts value is object {
  if (typeof value === "object" && value !== null) return;
  throw new WgslabError("unsupported", `${what} must be an object: got ${describe(value)}; ${remedy}`);
}

/** Throws unless `options` is an object without other properties than those: a misspelt one would be as good as none. */
export function checkOptions(what: string, options: unknown, names: readonly string[]): void {
  checkObject(`${what}: the options`, options, `pass { ${names.join(", ")} }, or leave them out`);
  const strange = Object.keys(options).find((name) => !names.includes(name));
  if (strange === undefined) return;
  throw new WgslabError("unsupported", `${what}: there is no option "${strange}"; there is ${names.join(", ")}`);
}

/** Throws unless `signal` is one, or left out. */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined || typeof signal?.throwIfAborted === "function") return;
  throw new WgslabError("unsupported", `signal must be an AbortSignal: got ${describe(signal)}; pass controller.signal`);
}

/** Throws unless `value` is one of the texts in `choices`. */
export function checkChoice<T extends string>(what: string, value: unknown, choices: readonly T[]): asserts value is T {
  if (choices.includes(value as T)) return;
  const all = choices.map((one) => `"${one}"`).join(" or ");
  throw new WgslabError("unsupported", `${what} must be ${all}: got ${describe(value)}`);
}

/** Throws unless `value` is an object of that class of this package. */
export function checkIs<T>(what: string, value: unknown, type: ClassOf<T>, remedy: string): asserts value is T {
  if (value instanceof (type as unknown as abstract new () => T)) return;
  throw new WgslabError("unsupported", `${what} must be a ${type.name}: got ${describe(value)}; ${remedy}`);
}

// Not a constructor type: those of this package are private.
type ClassOf<T> = { readonly name: string; readonly prototype: T };

/** A value in a message. */
export function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (value === null || typeof value !== "object") return String(value);
  return Array.isArray(value) ? "an array" : `an object of class ${value.constructor?.name ?? "none"}`;
}
