// The device layer function by function, for compilers that drive a device as a backend: under the names of a device
// signature (pools, the device and context records), with integers for pools, offsets and sizes. Devices, contexts and
// nodes are those of the friendly interface, so both mix.
//
//   import * as backend from "wgslab/low-level";

import type { DType } from "./arrays.ts";
import type { RawBuffers } from "./by-hand.ts";
import { checkIs, checkObject, checkPool, checkWholeNumber } from "./checks.ts";
import { Code } from "./code.ts";
import { Context } from "./context.ts";
import { Device, type DriverOptions, type GpuDeviceLike, type OpenOptions, globalDebugInfo } from "./device.ts";
import { DeviceEvent } from "./event.ts";
import type { AdapterInfo, BufferLoc, DebugInfo, DeviceLimits, RunnerStats, StaticProperties } from "./info.ts";
import type { Kernel, KernelSpec } from "./kernel.ts";
import { type MemoryMode, TensorNode, checkNode } from "./node.ts";
import { OptimizeCtx } from "./optimize-ctx.ts";
import type { Program, ProgramSpec } from "./program.ts";
import { type RawDevice, call } from "./skin.ts";

export type { OptimizeCtx };

/** The nodes of a context with their locations: a Map, or a list of pairs. */
export type CtxBuffers = Iterable<readonly [node: TensorNode<DType>, loc: BufferLoc]>;

/** A `GPUBuffer`, by its shape: not every version of TypeScript has the type. */
export interface GpuBufferLike {
  readonly size: number;
  readonly usage: number;
  readonly label: string;
}

/** What is behind a location: the `GPUBuffer` and the offset in it, or on the host driver the pool and the offset there. */
export type BufferPtr =
  | {
      /** The buffer. It holds other nodes, too. */
      readonly buffer: GpuBufferLike;
      /** Bytes from its start. */
      readonly offset: number;
    }
  | {
      /** The pool. */
      readonly poolId: number;
      /** Bytes from its start. */
      readonly offset: number;
    };

/** A device as its driver sees it. */
export interface Dev {
  /** The kind of device. */
  readonly driver: "gpu" | "host";
  /** The adapter behind it. */
  readonly adapter: AdapterInfo;
  /** Its limits. */
  readonly limits: DeviceLimits;
}

/** A runner as it stands. */
export interface Runner {
  /** Whether everything recorded so far is done. */
  readonly isIdle: boolean;
  /** The event of everything recorded so far. */
  readonly lastEvent: DeviceEvent;
  /** Counts of what it has done. */
  readonly stats: RunnerStats;
}

/** The driver's name: `gpu` or `host`. */
export function name(device: Device): "gpu" | "host" {
  return checked(device).driver;
}

/** Whether {@link freePool} gives memory back at once, rather than leaving it to a collector. */
export function freesExplicitly(device: Device): boolean {
  return record(device).freesExplicitly;
}

/** The empty optimization context. */
export function emptyOptimizeCtx(): OptimizeCtx {
  return OptimizeCtx.EMPTY;
}

/**
 * Allocates the slab of a pool; an existing one under the id is freed first. Sizes are rounded up to the device's
 * alignment; `alignment` is a power of two. The contents are unspecified until they are written or zeroed.
 */
export function allocPool(
  device: Device,
  poolId: number,
  sizeBytes: number,
  alignment: number,
  mode?: MemoryMode,
): void {
  checked(device).allocPool(poolId, sizeBytes, mode === undefined ? { alignment } : { alignment, mode });
}

/** Frees the slab of a pool and drops its table entry. */
export function freePool(device: Device, poolId: number): void {
  checked(device).freePool(poolId);
}

/** Queues zeros over exactly these bytes of a pool; neighbours keep theirs. */
export function memsetZero(device: Device, poolId: number, offset: number, sizeBytes: number): DeviceEvent {
  return checked(device).memsetZero(poolId, offset, sizeBytes);
}

/**
 * What is behind a location, valid until the next allocation, freeing or trimming. Work that is recorded is not in the
 * buffer before it is submitted: `device.flush()` first, then use the buffer on the same `GPUDevice`.
 */
export function resolvePool(device: Device, loc: BufferLoc): BufferPtr {
  const raw = live(device);
  checkLoc("resolvePool: the location", loc);
  const [slab, offset] = call(() => raw.resolvePool(loc.poolId, loc.offset));
  return typeof slab === "number" ? { poolId: slab, offset } : { buffer: slab as GpuBufferLike, offset };
}

/** Bytes of a pool's slab. */
export function poolSizeBytes(device: Device, poolId: number): number {
  const raw = live(device);
  checkPool(poolId);
  return call(() => raw.poolSizeBytes(poolId));
}

/**
 * A device around a `GPUDevice` that the page has already, which lives on when it is destroyed; `ordinal` is the middle
 * part of its name. Other options as in `Device.open`.
 */
export async function makeDevice(
  dev: GpuDeviceLike,
  ordinal = 0,
  options: Omit<OpenOptions, "device" | "driver" | "ordinal"> = {},
): Promise<Device> {
  return Device.open({ ...options, device: dev, ordinal });
}

/** What the devices of a driver are and can do, by ordinal. */
export async function staticProperties(
  driver: "gpu" | "host",
  options: Omit<DriverOptions, "driver"> = {},
): Promise<StaticProperties[]> {
  return Device.staticProperties({ ...options, driver });
}

/** How many devices a driver has. */
export async function numDevices(driver: "gpu" | "host", options: Omit<DriverOptions, "driver"> = {}): Promise<number> {
  return Device.count({ ...options, driver });
}

/** The device of that ordinal that all who ask here share. */
export async function getDevice(
  driver: "gpu" | "host",
  ordinal: number,
  options: Omit<DriverOptions, "driver"> = {},
): Promise<Device> {
  return Device.get(ordinal, { ...options, driver });
}

/** Bytes of all slabs of a device. */
export function getUsedMemory(device: Device): number {
  return checked(device).usedMemory;
}

/** The state of a device, for a bug report. */
export function getDebugInfo(device: Device): DebugInfo {
  return checked(device).debugInfo();
}

/** The state of every device of the page, in the order in which they were opened. */
export function getGlobalDebugInfo(): DebugInfo[] {
  return globalDebugInfo();
}

/** The device's name, `driver:ordinal:deviceId`. */
export function getName(device: Device): string {
  return checked(device).name;
}

/** A context without a parent. The pools behind its locations stay whose they are. */
export function makeContext(
  device: Device,
  { ctxBuffers, optimizeCtx }: { ctxBuffers?: CtxBuffers; optimizeCtx?: OptimizeCtx } = {},
): Context {
  const verb = "makeContext";
  return checked(device).contextWith({
    buffers: rawBuffers(ctxBuffers ?? []),
    ...(optimizeCtx !== undefined && { knows: checkedKnown(verb, optimizeCtx).rawFor(verb, device) }),
  });
}

/**
 * A child of a context. What is left out is the parent's: its locations (which `ctxBuffers` replaces, all of them), its
 * optimization context, its merge buffer's node (null for none).
 */
export function makeChild(
  parent: Context,
  {
    ctxBuffers,
    optimizeCtx,
    mergeBufferNode,
  }: { ctxBuffers?: CtxBuffers; optimizeCtx?: OptimizeCtx; mergeBufferNode?: TensorNode<DType> | null } = {},
): Context {
  const verb = "makeChild";
  const { device } = checkedContext(parent);
  if (mergeBufferNode) checkNode("makeChild: the merge buffer's node", mergeBufferNode);
  return parent.childWith({
    ...(ctxBuffers && { buffers: rawBuffers(ctxBuffers) }),
    ...(optimizeCtx !== undefined && { knows: checkedKnown(verb, optimizeCtx).rawFor(verb, device) }),
    ...(mergeBufferNode !== undefined && { mergeBufferNode }),
  });
}

/**
 * Compiles a program that may read the virtual nodes whose computations `optimizeCtx` has, or a kernel, to which they are nothing:
 * see `device.compile`.
 */
export async function compile(
  device: Device,
  optimizeCtx: OptimizeCtx,
  name: string,
  program: string,
  spec?: Omit<ProgramSpec, "in">,
): Promise<Code>;
export async function compile(
  device: Device,
  optimizeCtx: OptimizeCtx,
  name: string,
  wgsl: string,
  spec: Omit<KernelSpec, "in">,
): Promise<Code>;
export async function compile(
  device: Device,
  optimizeCtx: OptimizeCtx,
  name: string,
  text: string,
  spec: Omit<ProgramSpec | KernelSpec, "in"> = {},
): Promise<Code> {
  const known = checkedKnown("compile", optimizeCtx);
  checkObject(`compile "${name}": the options`, spec, "pass { nodes, outputs } for a program, { tensors, grid } for WGSL");
  return checked(device).compile(name, text, { ...spec, in: known });
}

/** Compiles many programs and kernels concurrently: see {@link compile} and `device.compileBatch`. */
export async function compileBatch(
  device: Device,
  optimizeCtx: OptimizeCtx,
  sources: readonly (Program | Kernel)[],
  options: { signal?: AbortSignal } = {},
): Promise<Code[]> {
  const known = checkedKnown("compileBatch", optimizeCtx);
  return checked(device).compileBatch(sources, { ...options, in: known });
}

/** The driver's own view of a device. */
export function dev(device: Device): Dev {
  const { driver, adapter, limits } = checked(device);
  return { driver, adapter, limits };
}

/** Which of its driver's devices this is. */
export function ordinal(device: Device): number {
  return record(device).ordinal;
}

/** Unique over all devices of all drivers in the page. */
export function deviceId(device: Device): number {
  return record(device).deviceId;
}

/** The device's FIFO as it stands. */
export function runner(device: Device): Runner {
  return { isIdle: checked(device).isIdle, lastEvent: device.allWork(), stats: device.stats() };
}

/** The node that the merge buffer holds, and where; undefined while it holds none. */
export function mergeBuffer(device: Device): { node: TensorNode; loc: BufferLoc } | undefined {
  const raw = live(device);
  const node = call(() => raw.mergeBufferNode());
  return node && { node: TensorNode.of(node), loc: { poolId: 0, offset: 0 } };
}

/** Bytes of the merge buffer, pool 0. */
export function mergeBufferCapacity(device: Device): number {
  return record(device).mergeBufferCapacity;
}

/** The event of the last work that writes to a node; undefined if nothing on this device has written to it. */
export function updatingFor(device: Device, node: TensorNode<DType>): DeviceEvent | undefined {
  return checked(device).updatingFor(node);
}

/** The event of the last work that writes to the merge buffer. */
export function updatingForMergeBuffer(device: Device): DeviceEvent | undefined {
  const seq = record(device).mergeWriter;
  return seq < 0 ? undefined : DeviceEvent.make(device.raw, seq);
}

/** Where the constants are that the device shares between contexts, by the id of the node. */
export function constantBufferCache(device: Device): Map<number, BufferLoc> {
  const { constants } = record(device);
  const cache = new Map<number, BufferLoc>();
  for (let at = 0; at < constants.length; at += 3) {
    const [nodeId, poolId, offset] = constants.slice(at, at + 3) as [number, number, number];
    cache.set(nodeId, { poolId, offset });
  }
  return cache;
}

/** The pool that the next slab will get. */
export function nextPoolId(device: Device): number {
  return record(device).nextPoolId;
}

/** The device that a context is on. */
export function device(context: Context): Device {
  return checkedContext(context).device;
}

/** The context that a context extends; undefined for one without a parent. */
export function parent(context: Context): Context | undefined {
  return checkedContext(context).parent;
}

/** Every node of a context with its location, the parents' included, by the nodes' ids. */
export function ctxBuffers(context: Context): Map<TensorNode, BufferLoc> {
  return new Map(checkedContext(context).entries());
}

/** Whether a context was finalized. */
export function finalized(context: Context): boolean {
  return checkedContext(context).isDisposed;
}

/** The computations of virtual nodes that programs behind a context may read, or behind a code that is to be linked. */
export function optimizeCtx(of: Context | Code): OptimizeCtx {
  return of instanceof Code ? of.optimizeCtx : checkedContext(of).optimizeCtx;
}

/** The node that the merge buffer will hold when the work through a context is done; undefined for none. */
export function mergeBufferNode(context: Context): TensorNode | undefined {
  return checkedContext(context).mergeBufferNode;
}

/** What a value of this signature is, in words, on one line. */
export function describe(
  value: Device | Context | TensorNode<DType> | DeviceEvent | OptimizeCtx | Dev | Runner,
): string {
  if (value instanceof Device) return `Device(${value.name}, ${value.adapter.name})`;
  if (value instanceof TensorNode) return `${value}: ${value.dtype}[${value.shape.join(", ")}]`;
  if (value instanceof DeviceEvent) return `Event(${value.seq}, ${value.isDone ? "done" : "pending"})`;
  if (value instanceof OptimizeCtx) return `OptimizeCtx([${value.nodes.join(", ")}])`;
  if (isDev(value)) return `Dev(${value.driver}, ${value.adapter.name})`;
  if (isRunner(value)) return `Runner(${value.isIdle ? "idle" : "busy"}, ${describe(value.lastEvent)})`;
  if (checkedContext(value).isDisposed) return `finalized Context(${value.device.name})`;
  const places = value.entries().map(([node, { poolId, offset }]) => `${node}@p${poolId}+${offset}`);
  return `Context(${value.device.name}, [${places.join(", ")}])`;
}

function isDev(value: object): value is Dev {
  return "adapter" in Object(value);
}

function isRunner(value: object): value is Runner {
  return "lastEvent" in Object(value);
}

function checked(value: Device): Device {
  checkIs("a device", value, Device, "open one with Device.open or makeDevice");
  return value;
}

function checkedContext(value: Context): Context {
  checkIs("a context", value, Context, "make one with makeContext");
  return value;
}

function live(device: Device): RawDevice {
  checked(device).life.check();
  return device.raw;
}

function record(device: Device) {
  const raw = live(device);
  const [ordinal, deviceId, frees, nextPoolId, mergeBufferCapacity, mergeWriter, ...constants] = call(() =>
    raw.record(),
  ) as Iterable<number> as [number, number, number, number, number, number, ...number[]];
  return { ordinal, deviceId, freesExplicitly: frees === 1, nextPoolId, mergeBufferCapacity, mergeWriter, constants };
}

function rawBuffers(entries: CtxBuffers): RawBuffers {
  const nodes: TensorNode[] = [];
  const pools: number[] = [];
  const offsets: number[] = [];
  for (const [node, loc] of entries) {
    checkNode("ctxBuffers: a key", node);
    checkLoc(`ctxBuffers: the location of ${node}`, loc);
    nodes.push(node);
    pools.push(loc.poolId);
    offsets.push(loc.offset);
  }
  return { nodes, pools: Uint32Array.from(pools), offsets: Float64Array.from(offsets) };
}

function checkLoc(what: string, loc: BufferLoc): void {
  checkIs(what, loc, Object, "pass { poolId, offset }");
  checkPool(loc.poolId);
  checkWholeNumber(`${what}: the offset, in bytes,`, loc.offset);
}

function checkedKnown(verb: string, value: OptimizeCtx): OptimizeCtx {
  checkIs(`${verb}: the optimization context`, value, OptimizeCtx, "pass optimizeCtx(context) or emptyOptimizeCtx()");
  return value;
}
