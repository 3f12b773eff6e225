// The seam to the wasm module: the two ways to call it. Nothing but this and its handles imports the generated glue.
//
// A trap (a panic in Rust, memory exhausted) leaves the module in an unknown state: from then on every call throws
// one clear error, and every promise still open rejects with it.

import init from "../pkg/wgslab.js";
import { checkSignal } from "./checks.ts";
import { WgslabError, fromSkin } from "./errors.ts";

export * from "./handles.ts";

/** Instantiates the wasm module. */
export async function instantiate(source: URL | string | BufferSource | WebAssembly.Module): Promise<void> {
  await init({ module_or_path: source });
  watchForTraps();
}

let trap: unknown;
let isTrapped = false;
const open = new Set<(error: WgslabError) => void>();

function trapError(): WgslabError {
  return new WgslabError(
    "bug",
    `bug: the wgslab module stopped (${String((trap as Error | undefined)?.message ?? trap)}) and cannot go on; ` +
      "load it anew (reload the page, restart the worker or process) and please report it",
    { cause: trap },
  );
}

function isTrap(thrown: unknown): boolean {
  return thrown instanceof WebAssembly.RuntimeError;
}

function poison(cause: unknown): void {
  if (isTrapped) return;
  isTrapped = true;
  trap = cause;
  const error = trapError();
  for (const reject of open) reject(error);
  open.clear();
}

// A trap inside a pending future reaches no caller: it surfaces as an uncaught error of the page. Ours come through
// this module's glue, which the stack shows.
function watchForTraps(): void {
  const check = (thrown: unknown): void => {
    if (isTrap(thrown) && (thrown as Error).stack?.includes(import.meta.url)) poison(thrown);
  };
  globalThis.addEventListener?.("error", (event) => check(event.error));
  globalThis.addEventListener?.("unhandledrejection", (event) => check(event.reason));
}

/** Throws if the wasm module has trapped. For hot paths that spare the closure of {@link call}. */
export function checkTrap(): void {
  if (isTrapped) throw trapError();
}

/** What a call into the wasm module threw, as an error of this package. */
export function thrownBySkin(thrown: unknown): WgslabError {
  if (!isTrap(thrown)) return fromSkin(thrown);
  poison(thrown);
  return trapError();
}

/** Calls into the wasm module. */
export function call<T>(body: () => T): T {
  checkTrap();
  try {
    return body();
  } catch (thrown) {
    throw thrownBySkin(thrown);
  }
}

/**
 * Calls into the wasm module for a promise. On abort it rejects at once with the signal's reason; what arrives later
 * is given to `discard`.
 */
export function callAsync<T>(
  body: () => Promise<T>,
  signal?: AbortSignal,
  discard?: (late: T) => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    checkSignal(signal);
    signal?.throwIfAborted();
    const work = call(body);
    let isOpen = true;
    const close = (): void => {
      isOpen = false;
      open.delete(fail);
      signal?.removeEventListener("abort", abort);
    };
    const fail = (reason: unknown): void => {
      close();
      reject(reason);
    };
    const abort = (): void => fail(signal?.reason);
    open.add(fail);
    signal?.addEventListener("abort", abort);
    work.then(
      (value) => {
        if (!isOpen) return discard?.(value);
        close();
        resolve(value);
      },
      (thrown) => {
        if (isOpen) fail(thrownBySkin(thrown));
      },
    );
  });
}
