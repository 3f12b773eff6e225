// One opened device.

import type { DType } from "./arrays.ts";
import { type ByHand, rawChild } from "./by-hand.ts";
import { checkChoice, checkList, checkObject, checkOptions, checkPool, checkSignal, checkWholeNumber, describe } from "./checks.ts";
import { Code } from "./code.ts";
import { Context } from "./context.ts";
import { WgslabError } from "./errors.ts";
import { DeviceEvent } from "./event.ts";
import type {
  AdapterInfo,
  Compaction,
  DebugInfo,
  DeviceLimits,
  DeviceLostInfo,
  MemoryReport,
  RunnerStats,
  StaticProperties,
} from "./info.ts";
import { type WasmSource, isLoaded, load } from "./init.ts";
import { type Declared, type Kernel, type KernelSpec, declareKernel } from "./kernel.ts";
import { Lifetime } from "./lifetime.ts";
import { type NodeOptions, TensorNode, checkMode, checkNode } from "./node.ts";
import { type CompileIn, OptimizeCtx } from "./optimize-ctx.ts";
import { type Program, type ProgramSpec, declareProgram } from "./program.ts";
import { type RawCode, type RawContext, RawDevice, type RawSource, call, callAsync } from "./skin.ts";
import { tuned, tunes } from "./tuned.ts";

/** A `GPUDevice`, by its shape: not every version of TypeScript has the type. */
export interface GpuDeviceLike {
  readonly queue: object;
  readonly limits: object;
  createBuffer(descriptor: never): object;
  createComputePipelineAsync(descriptor: never): Promise<object>;
}

const DRIVERS = ["gpu", "host"] as const;
const OPEN_OPTIONS = [
  "device",
  "ordinal",
  "driver",
  "limits",
  "powerPreference",
  "segmentCapBytes",
  "heapBytes",
  "memoryBudgetBytes",
  "wasm",
  "signal",
] satisfies readonly (keyof OpenOptions)[];

/** How to open a device. */
export interface OpenOptions {
  /**
   * A `GPUDevice` that the page has already, for example a renderer's: buffers can be shared with it. It stays the
   * page's: destroying ours gives back what is ours on it and leaves it alive, and errors outside of our calls stay the
   * page's. Its limits are those that it was made with; `limits` and `powerPreference` say nothing about it.
   */
  device?: GpuDeviceLike;
  /** Which adapter to open, where there are several; a browser shows one, 0. With `device`, any number for the name. */
  ordinal?: number;
  /** `gpu` (WebGPU), or `host`: plain memory, everywhere, which runs programs in index notation and no WGSL. `gpu` if left out. */
  driver?: "gpu" | "host";
  /**
   * The adapter's own limits, for large tensors, with subgroups where it has them; or WebGPU's defaults, without optional
   * features. `adapter` if left out.
   */
  limits?: "adapter" | "default";
  /** Which adapter to prefer where there are several. */
  powerPreference?: "low-power" | "high-performance";
  /** The most bytes of one slab; lowers the device's own cap. */
  segmentCapBytes?: number;
  /** Bytes of every heap, for tests that want several; a slab that needs more gets a heap of its size. */
  heapBytes?: number;
  /**
   * What the device's memory may take, in bytes. WebGPU cannot say how much there is, so a page that must leave some says
   * how much it wants; allocations over it reject or throw with `out-of-memory`, and change nothing.
   */
  memoryBudgetBytes?: number;
  /** Where the wasm module comes from, the first time; from beside this package if left out. */
  wasm?: WasmSource;
  /** Rejects with the signal's reason when it fires. */
  signal?: AbortSignal;
}

/** Which driver to ask for its devices. */
export interface DriverOptions {
  /** `gpu` if left out. */
  driver?: "gpu" | "host";
  /** Where the wasm module comes from, the first time; from beside this package if left out. */
  wasm?: WasmSource;
}

/** How to compile. */
export interface CompileOptions {
  /** The context or code whose virtual nodes programs may read. */
  in?: CompileIn;
  /** Rejects with the signal's reason when it fires. */
  signal?: AbortSignal;
}

/** The devices that all who ask for the device of an ordinal share, by driver and ordinal. */
const shared = new Map<string, Promise<Device>>();

/** One opened device and what this package owns on it. */
export class Device implements Disposable {
  /** `driver:ordinal:id`, unique among the devices of the page: `gpu:0:1`. */
  readonly name: string;
  /** The kind of device. */
  readonly driver: "gpu" | "host";
  /** The adapter behind it. */
  readonly adapter: AdapterInfo;
  /** Its limits. */
  readonly limits: DeviceLimits;
  /** Resolves when the device is gone: lost, or destroyed. Never rejects. */
  readonly lost: Promise<DeviceLostInfo>;
  /** @internal */
  readonly life: Lifetime;
  /** @internal */
  readonly raw: RawDevice;
  /** A context without nodes, which knows none. @internal */
  readonly root: RawContext;
  #contextCount = 0;

  private constructor(raw: RawDevice) {
    this.raw = raw;
    this.root = call(() => raw.context());
    this.name = call(() => raw.name());
    this.driver = this.name.startsWith("gpu:") ? "gpu" : "host";
    this.adapter = Object.freeze(call(() => raw.adapter()));
    this.limits = Object.freeze(call(() => raw.limits()));
    this.life = new Lifetime(`device ${this.name}`);
    this.life.watch(this);
    this.lost = lostInfo(raw, this.life);
  }

  /** Opens a device. The first call loads the wasm module. Rejects with `no-adapter` where there is no WebGPU. */
  static async open(options: OpenOptions = {}): Promise<Device> {
    checkOptions("open", options, OPEN_OPTIONS);
    const { wasm, signal, ...rest } = options;
    checkSignal(signal);
    signal?.throwIfAborted();
    if (rest.ordinal !== undefined) checkWholeNumber("a device's ordinal", rest.ordinal, 0, 2 ** 32 - 1);
    if (rest.device !== undefined) checkGpuDevice(rest);
    if (rest.driver !== "host") requireWebGpu();
    const raw = await callAsync(
      async () => {
        await load(wasm);
        signal?.throwIfAborted();
        return RawDevice.open(rest);
      },
      signal,
      (late) => late.destroy(),
    );
    return new Device(raw);
  }

  /**
   * What the devices of a driver are and can do, by ordinal; none where there is no WebGPU. A browser shows one adapter.
   */
  static async staticProperties({ driver = "gpu", wasm }: DriverOptions = {}): Promise<StaticProperties[]> {
    checkChoice("staticProperties: the driver", driver, DRIVERS);
    await load(wasm);
    return callAsync(() => RawDevice.staticProperties(driver === "host"));
  }

  /** How many devices a driver has. */
  static async count(options: DriverOptions = {}): Promise<number> {
    return (await Device.staticProperties(options)).length;
  }

  /**
   * The device of that ordinal that all who ask here share: opened with default options the first time, and anew once it
   * was destroyed or lost. Who destroys it takes it from all. Rejects with `no-adapter` where there is none.
   */
  static async get(ordinal = 0, { driver = "gpu", wasm }: DriverOptions = {}): Promise<Device> {
    checkChoice("get: the driver", driver, DRIVERS);
    checkWholeNumber("a device's ordinal", ordinal, 0, 2 ** 32 - 1);
    const key = `${driver}:${ordinal}`;
    const known = shared.get(key);
    if (known) {
      const device = await known;
      if (!device.isDisposed) return device;
      if (shared.get(key) === known) shared.delete(key);
      return Device.get(ordinal, { driver });
    }
    if (driver === "host" && ordinal !== 0) {
      throw new WgslabError("no-adapter", `get: the host driver has one device, of ordinal 0, not ${ordinal}; use 0`);
    }
    const opening = Device.open({ driver, ordinal, ...(wasm !== undefined && { wasm }) });
    shared.set(key, opening);
    const forget = (): void => {
      if (shared.get(key) === opening) shared.delete(key);
    };
    opening.then(({ lost }) => lost.then(forget), forget);
    return opening;
  }

  #live(): RawDevice {
    this.life.check();
    return this.raw;
  }

  /** A name for the next context, for messages. @internal */
  nextContextName(): string {
    this.#contextCount += 1;
    return `context ${this.#contextCount} of ${this.name}`;
  }

  /** A root context: empty, without a parent. */
  context(): Context {
    const raw = this.#live();
    return Context.make(call(() => raw.context()), this);
  }

  /** A context without a parent that has those parts. @internal */
  contextWith(parts: ByHand): Context {
    this.life.check();
    // A child of an empty context is as good as none's.
    return Context.make(rawChild(this.root, parts), this, undefined, parts.buffers?.nodes);
  }

  /** A new node: an identity, not yet in any context. */
  node<const D extends DType>(label: string, options: NodeOptions<D>): TensorNode<D> {
    this.life.check();
    return TensorNode.make(label, options);
  }

  /**
   * Compiles a program in index notation, for example `y[i] = 2 * x[i]`, which runs on every driver. Nodes that are
   * neither given nor declared in the text are created; virtual nodes that it reads are those of `in`. Rejects with
   * {@link NotationError} where the text is wrong.
   */
  async compile(name: string, program: string, spec?: ProgramSpec): Promise<Code>;
  /**
   * Compiles a WGSL kernel with one `@compute` entry point. For each tensor `x` it can use `len_x`, `dim_x_0` and so
   * on, and by access `load_x(i)`, `store_x(i, v)`, `atomic_add_x(i, v)` and so on; for each static `s`, `static_s()`.
   * Rejects with {@link KernelError} where the text or the declaration is wrong.
   */
  async compile(name: string, wgsl: string, spec: KernelSpec): Promise<Code>;
  async compile(name: string, text: string, spec: ProgramSpec | KernelSpec = {}): Promise<Code> {
    this.life.check();
    const declared = isKernel(spec) ? declareKernel(name, text, spec) : declareProgram(name, text, spec);
    const [code] = await this.#compile(`compile "${name}"`, [declared], spec);
    return code as Code;
  }

  /**
   * Compiles many programs and kernels concurrently, each distinct text once: see {@link compile}. The codes come in the
   * order given. All are compiled in the same context: what one of them leaves, the others do not know. Rejects with the
   * first error in that order.
   */
  async compileBatch(sources: readonly (Program | Kernel)[], options: CompileOptions = {}): Promise<Code[]> {
    this.life.check();
    checkList("compileBatch: the programs and kernels", sources);
    checkOptions("compileBatch", options, ["in", "signal"]);
    return this.#compile("compileBatch", sources.map(declaredOf), options);
  }

  async #compile(verb: string, declared: readonly Declared[], { in: given, signal }: CompileOptions): Promise<Code[]> {
    const known = given === undefined ? this.root : optimizeCtxOf(verb, given).rawFor(verb, this);
    const raws = declared.map(({ raw }) => raw);
    const discard = (late: RawCode[]): void => late.forEach((code) => code.free());
    const compile = (raws: RawSource[]): Promise<RawCode[]> =>
      callAsync(() => this.raw.compileBatch(raws, known), signal, discard);
    const isTuned = this.driver !== "host" && tunes(declared);
    const codes = await (isTuned ? tuned(this.raw, known, declared, signal, compile) : compile(raws));
    return codes.map((code, index) => Code.make(code, declared[index] as Declared, this));
  }

  /** The event of all work queued so far. */
  allWork(): DeviceEvent {
    const raw = this.#live();
    return DeviceEvent.make(raw, call(() => raw.allWork()));
  }

  /** Resolves when all work queued so far is done; rejects if some of it failed. */
  async awaitIdle({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const raw = this.#live();
    return callAsync(() => raw.eventWait(raw.allWork()), signal);
  }

  /** Whether no work is pending. */
  get isIdle(): boolean {
    const raw = this.#live();
    return call(() => raw.eventIsDone(raw.allWork()));
  }

  /** Resolves when the queue has room: await it between batches of a long stream of runs. */
  async ready({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const raw = this.#live();
    return callAsync(() => raw.eventWait(raw.ready()), signal);
  }

  /** Submits what is recorded, without waiting. Awaiting and reading back do so themselves. */
  flush(): void {
    const raw = this.#live();
    call(() => raw.flush());
  }

  /** The event of the last work that writes to that node; undefined if nothing on this device has written to it. */
  updatingFor(node: TensorNode<DType>): DeviceEvent | undefined {
    const raw = this.#live();
    checkNode("updatingFor", node);
    const seq = call(() => raw.updatingFor(node.raw));
    return seq === undefined ? undefined : DeviceEvent.make(raw, seq);
  }

  /** Gives back to the system what holds no slab: empty heaps, idle staging buffers. Returns the bytes. */
  trim(): number {
    const raw = this.#live();
    return call(() => raw.trim());
  }

  /**
   * Moves slabs together, so that what is free is in one piece and fewer buffers hold the slabs; empty buffers go back to
   * the system. Every location stays as it is, and work that was queued is not disturbed. An allocation that would be
   * refused compacts by itself. Buffers that are not yet known to be there take no part: await {@link awaitIdle} before.
   */
  compact(): Compaction {
    const raw = this.#live();
    const [movedBytes, freedBytes] = call(() => raw.compact()) as Iterable<number> as [number, number];
    return { movedBytes, freedBytes };
  }

  /** Bytes of all slabs. */
  get usedMemory(): number {
    const raw = this.#live();
    return call(() => raw.usedMemory());
  }

  /**
   * Frees the constants that no context uses any more, and returns the bytes of their pools. Without it they stay with
   * the device, ready for the next context.
   */
  freeUnusedConstants(): number {
    const raw = this.#live();
    return call(() => raw.freeUnusedConstants());
  }

  /** Memory: reserved, in use, padding, peak, and every pool with its nodes. */
  report(): MemoryReport {
    const raw = this.#live();
    return call(() => raw.report());
  }

  /** Counts of what the runner has done. */
  stats(): RunnerStats {
    const raw = this.#live();
    return call(() => raw.stats());
  }

  /** The state of the device, for a bug report: a plain record. */
  debugInfo(): DebugInfo {
    const raw = this.#live();
    return call(() => raw.debugInfo());
  }

  /** Allocates a pool's slab by hand; an earlier one under the id is freed. Contexts do this by themselves. */
  allocPool(poolId: number, sizeBytes: number, options: { alignment?: number; mode?: NodeOptions["mode"] } = {}): void {
    const raw = this.#live();
    const { alignment = this.limits.alignmentBytes, mode } = options;
    checkPool(poolId);
    checkWholeNumber("the size of a pool, in bytes,", sizeBytes);
    checkWholeNumber("the alignment of a pool, in bytes,", alignment, 1);
    if (mode !== undefined) checkMode(`pool ${poolId}`, mode);
    call(() => raw.allocPool(poolId, sizeBytes, alignment, mode));
  }

  /** Frees a pool's slab by hand. */
  freePool(poolId: number): void {
    const raw = this.#live();
    checkPool(poolId);
    call(() => raw.freePool(poolId));
  }

  /** Queues zeros over exactly these bytes of a pool. */
  memsetZero(poolId: number, offset: number, lenBytes: number): DeviceEvent {
    const raw = this.#live();
    checkPool(poolId);
    checkWholeNumber("the offset of a range, in bytes,", offset);
    checkWholeNumber("the length of a range, in bytes,", lenBytes);
    return DeviceEvent.make(raw, call(() => raw.memsetZero(poolId, offset, lenBytes)));
  }

  /**
   * Names of contexts, routines and sequences that were garbage-collected without `dispose`, the newest hundred: each kept
   * its memory for longer than it was used. The console has warned about each.
   */
  get undisposed(): readonly string[] {
    return this.life.forgotten;
  }

  /** Whether the device was destroyed here. A device lost otherwise says so in {@link lost}. */
  get isDisposed(): boolean {
    return this.life.isEnded;
  }

  /**
   * Gives all its memory back at once. Pending promises reject with `device-lost`. A `GPUDevice` that it was opened around
   * lives on.
   */
  destroy(): void {
    // The handle itself stays: events can still be asked how they ended.
    if (this.life.end()) call(() => this.raw.destroy());
  }

  /** {@link destroy} */
  [Symbol.dispose](): void {
    this.destroy();
  }
}

/**
 * The state of every device of the page, in the order in which they were opened, for a bug report. A device that was
 * destroyed is among them for as long as the page keeps the object.
 */
export function globalDebugInfo(): DebugInfo[] {
  return isLoaded() ? call(() => RawDevice.debugInfo()) : [];
}

/** Whether options are a kernel's: only those have tensors. */
function isKernel(spec: ProgramSpec | KernelSpec): spec is KernelSpec {
  return "tensors" in Object(spec);
}

/** What is known there of virtual nodes. */
function optimizeCtxOf(verb: string, given: CompileIn): OptimizeCtx {
  if (given instanceof OptimizeCtx) return given;
  if (given instanceof Context || given instanceof Code) return given.optimizeCtx;
  const message = `${verb}: \`in\` must be a Context, Code or OptimizeCtx: got ${describe(given)}; pass the context to link into`;
  throw new WgslabError("unsupported", message);
}

/** What is compiled of one item of a batch. */
function declaredOf(source: Program | Kernel, index: number): Declared {
  const what = `compileBatch: item ${index}`;
  checkObject(what, source, "pass { name, program, spec } or { name, wgsl, spec }");
  const isProgram = "program" in source;
  if (isProgram === "wgsl" in source) {
    const message = `${what} must have either a program or wgsl, and has ${isProgram ? "both" : "neither"}; pass one text`;
    throw new WgslabError("unsupported", message);
  }
  if (Object(source.spec).in !== undefined) {
    throw new WgslabError("unsupported", `${what} has an \`in\` of its own; pass one for all: compileBatch(list, { in })`);
  }
  return isProgram
    ? declareProgram(source.name, source.program, source.spec)
    : declareKernel(source.name, (source as Kernel).wgsl, (source as Kernel).spec);
}

// Not a method: what the pending promise holds on to must not be the device.
async function lostInfo(raw: RawDevice, life: Lifetime): Promise<DeviceLostInfo> {
  const info = await call(() => raw.lost());
  return life.isEnded ? { ...info, reason: "destroyed" } : info;
}

function checkGpuDevice({ device, driver }: OpenOptions): void {
  const { queue, createComputePipelineAsync } = Object(device) as Partial<GpuDeviceLike>;
  if (typeof queue !== "object" || typeof createComputePipelineAsync !== "function") {
    const message = `open: the device must be a GPUDevice: got ${describe(device)}; pass what requestDevice() gave`;
    throw new WgslabError("unsupported", message);
  }
  if (driver !== "host") return;
  throw new WgslabError("unsupported", 'open: the host driver uses no GPUDevice; leave out the device, or driver: "host"');
}

function requireWebGpu(): void {
  const { navigator, isSecureContext } = globalThis as { navigator?: { gpu?: unknown }; isSecureContext?: boolean };
  if (navigator?.gpu) return;
  const why =
    isSecureContext === false
      ? "WebGPU needs a secure context: serve the page over https or from localhost"
      : "this runtime has no WebGPU: use a browser that has it, or in Node make navigator.gpu with the package `webgpu`";
  throw new WgslabError("no-adapter", `open: no navigator.gpu; ${why}, or open { driver: "host" }`);
}
