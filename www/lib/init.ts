// Loading the wasm module, once, on the first `Device.open`.

import { WgslabError } from "./errors.ts";
import { instantiate } from "./skin.ts";

/** Where the wasm module comes from: its address, its bytes, or the compiled module. */
export type WasmSource = URL | string | BufferSource | WebAssembly.Module;

let loading: Promise<void> | undefined;
let hasLoaded = false;

/** Whether the wasm module is there. */
export function isLoaded(): boolean {
  return hasLoaded;
}

/**
 * Loads the wasm module, from beside this file if no source is given. It is loaded once: later sources are ignored.
 * After a failure the next call tries again.
 */
export function load(source?: WasmSource): Promise<void> {
  loading ??= start(source).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function start(source: WasmSource = new URL("./wgslab_bg.wasm", import.meta.url)): Promise<void> {
  try {
    await instantiate(await readable(source));
    hasLoaded = true;
  } catch (cause) {
    const where = source instanceof URL || typeof source === "string" ? ` at ${source}` : "";
    const message = `open: cannot load the wasm module${where} (${String(cause)}); pass its address or bytes as { wasm }`;
    throw new WgslabError("unsupported", message, { retryable: true, cause });
  }
}

/** The source, or its bytes where `fetch` cannot reach it: Node does not fetch files. */
async function readable(source: WasmSource): Promise<WasmSource> {
  if (!(source instanceof URL) || source.protocol !== "file:" || !isNode()) return source;
  // Not a literal, and marked: bundlers for the web must leave this import alone.
  const fs = "node:fs/promises";
  const { readFile } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ fs)) as {
    readFile(path: URL): Promise<Uint8Array<ArrayBuffer>>;
  };
  return readFile(source);
}

function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined;
}
