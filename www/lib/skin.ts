// The seam to the wasm module: its types, and the two ways to call it. Nothing else imports the generated glue.
//
// A trap (a panic in Rust, memory exhausted) leaves the module in an unknown state: from then on every call throws
// one clear error, and every promise still open rejects with it.

import init, * as glue from "../pkg/wgslab.js";
import { WgslabError, fromSkin } from "./errors.ts";
import type { DType } from "./arrays.ts";
import type {
  AdapterInfo,
  DebugInfo,
  DeviceLimits,
  DeviceLostInfo,
  MemoryReport,
  RawForecast,
  RunnerStats,
  StaticProperties,
} from "./info.ts";
import type { MemoryMode } from "./node.ts";

/** A tensor node of the wasm module. */
export interface RawNode {
  readonly id: number;
  facts(): [label: string, dtype: DType, start: number, ...shape: number[]];
  mode(): MemoryMode;
  refineMode(mode: MemoryMode): void;
  view(label: string, start: number, shape: Uint32Array): RawNode;
  base(): RawNode | undefined;
  share(): RawNode;
  free(): void;
}

/** A device of the wasm module. */
export interface RawDevice {
  name(): string;
  adapter(): AdapterInfo;
  limits(): DeviceLimits;
  report(): MemoryReport;
  stats(): RunnerStats;
  debugInfo(): DebugInfo;
  lost(): Promise<DeviceLostInfo>;
  /** The sequence number to wait for before more is recorded. */
  ready(): number;
  flush(): void;
  allWork(): number;
  eventIsDone(seq: number): boolean;
  eventWait(seq: number): Promise<void>;
  context(): RawContext;
  compileBatch(sources: RawSource[], known: RawContext): Promise<RawCode[]>;
  /** A context without nodes that knows the virtual nodes which a code leaves. */
  contextOf(code: RawCode): RawContext;
  /** Takes lines of schedules that were measured: key, how many, nanoseconds of the fastest and of the first, and the fastest. */
  rememberTuned(lines: string): void;
  /** What is to be measured, kernel by kernel: nothing, or the key, and a line for each schedule. */
  untuned(code: RawCode): string[];
  trim(): number;
  /** Bytes moved, bytes given back. */
  compact(): Float64Array;
  usedMemory(): number;
  updatingFor(node: RawNode): number | undefined;
  /** Ordinal, id, 1 if it frees explicitly, next pool, bytes of the merge buffer, its last writer or -1; then constants. */
  record(): Float64Array;
  mergeBufferNode(): RawNode | undefined;
  resolvePool(poolId: number, offset: number): [slab: object | number, offset: number];
  poolSizeBytes(poolId: number): number;
  freeUnusedConstants(): number;
  allocPool(poolId: number, sizeBytes: number, alignment: number, mode?: string): void;
  freePool(poolId: number): void;
  memsetZero(poolId: number, offset: number, lenBytes: number): number;
  destroy(): void;
}

/** What a kernel declares, without its nodes. */
export interface RawKernelSpec {
  tensors: { name: string; access: string; merged: boolean }[];
  statics: string[];
  grid: [number, number, number];
}

/** What a program is given, without the nodes. */
export interface RawProgramSpec {
  /** Names of the nodes. */
  names: string[];
  outputs: string[];
  tune?: "quick" | "full";
  /** The kernel that is compiled alone, and the number of its schedule, to be measured on nodes of its own. */
  trial?: number;
  schedule?: number;
}

/** A kernel or a program, as the wasm module takes it. */
export type RawSource = [name: string, text: string, spec: RawKernelSpec | RawProgramSpec, nodes: RawNode[]];

/** A context of the wasm module. */
export interface RawContext {
  upload(nodes: RawNode[], data: Uint8Array[]): RawContext;
  zeros(nodes: RawNode[]): RawContext;
  write(node: RawNode, data: Uint8Array, offsetBytes: number): number;
  zero(node: RawNode, offsetBytes: number, lenBytes: number): number;
  copy(src: RawNode, srcOffset: number, dst: RawNode, dstOffset: number, lenBytes: number): number;
  readback(nodes: RawNode[]): Promise<Uint8Array[]>;
  writeBlock(node: RawNode, spans: Uint32Array, data: Uint8Array): number;
  readBlock(node: RawNode, spans: Uint32Array): Promise<Uint8Array[]>;
  copyBlock(src: RawNode, srcSpans: Uint32Array, dst: RawNode, dstSpans: Uint32Array): number;
  /** Pool and offset. */
  loc(node: RawNode): Float64Array | undefined;
  /** Id, pool and offset of each node, one after the other. */
  locs(): Float64Array;
  nodes(): RawNode[];
  alias(views: RawNode[]): RawContext;
  link(code: RawCode): Promise<RawRoutine>;
  linkBatch(codes: RawCode[]): Promise<RawRoutine[]>;
  forecast(code: RawCode): RawForecast;
  deviceToDevice(node: RawNode, merge: boolean, source: RawContext): RawRoutine | undefined;
  initFromDevice(node: RawNode, source: RawContext): RawContext;
  /** To this context (0), into the merge buffer (1): the event's number; to a child (2). */
  bring(node: RawNode, into: 0 | 1, source: RawContext): Promise<number>;
  bring(node: RawNode, into: 2, source: RawContext): Promise<RawContext>;
  mergeBufferNode(): RawNode | undefined;
  virtualNodes(): RawNode[];
  /** Takes `merge`, the handle, for itself. */
  child(
    nodes: RawNode[] | undefined,
    pools: Uint32Array,
    offsets: Float64Array,
    knows: RawContext,
    setsMerge: boolean,
    merge?: RawNode,
  ): RawContext;
  parent(): RawContext | undefined;
  willWaitFor(device: RawDevice, seq: number): void;
  finalize(): void;
  free(): void;
}

/** Compiled code of the wasm module. */
export interface RawCode {
  statics(): string[];
  /** Names of `nodes`. */
  names(): string[];
  nodes(): RawNode[];
  /** Ids of the nodes that it reads. */
  inputs(): Uint32Array;
  /** Ids of the nodes that it may change. */
  outputs(): Uint32Array;
  explain(): string;
  /** Another handle, for the wasm module. */
  share(): RawCode;
  free(): void;
}

/** A routine of the wasm module. */
export interface RawRoutine {
  readonly id: number;
  context(): RawContext;
  executionDeps(): (number | string)[];
  canRun(): boolean;
  explain(): string;
  run(statics?: Int32Array): number;
  /** Another handle, for the wasm module. */
  share(): RawRoutine;
  free(): void;
}

/** A sequence of the wasm module. */
export interface RawSequence {
  run(times: number, statics?: Int32Array): number;
  free(): void;
}

interface Skin {
  openDevice(options: object): Promise<RawDevice>;
  staticProperties(isHost: boolean): Promise<StaticProperties[]>;
  globalDebugInfo(): DebugInfo[];
  RawNode: new (label: string, dtype: string, shape: Uint32Array, mode?: string) => RawNode;
  RawSequence: new (routines: RawRoutine[], statics: Int32Array) => RawSequence;
}

/** The wasm module's exports, typed by hand: the generated types say `any` where objects cross. */
export const skin = glue as unknown as Skin;

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
