// What the wasm module holds for us. It knows things by number; here each is an object that lets go of its number when it is
// freed, or forgotten. An export that fails gives NaN, 0, false or undefined, and `failure` has the error.

import * as glue from "../pkg/wgslab.js";
import type { DType } from "./arrays.ts";
import type { OpenOptions } from "./device.ts";
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

const forgotten =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry<number>((handle) => glue.letGo(handle));

/** A thing of the wasm module. */
class Handle {
  #number: number;

  constructor(number: number) {
    this.#number = number;
    forgotten?.register(this, number, this);
  }

  /** Its number; 0, which the wasm module refuses, once it was freed. */
  get number(): number {
    return this.#number;
  }

  /** Lets go of it, once. */
  free(): void {
    if (this.#number === 0) return;
    forgotten?.unregister(this);
    glue.letGo(this.#number);
    this.#number = 0;
  }
}

/** Throws what the last call failed with, if it did. */
function throwFailure(): void {
  const failure = glue.failure();
  if (failure !== undefined) throw failure;
}

/** A number of bytes, or of an event. */
function counted(count: number): number {
  if (Number.isNaN(count)) throwFailure();
  return count;
}

/** A thing's number. */
function made(number: number): number {
  if (number === 0) throwFailure();
  return number;
}

/** The thing of that number, if there is one. */
function some<T>(type: new (number: number) => T, number: number): T | undefined {
  return made(number) === 0 ? undefined : new type(number);
}

function all<T>(type: new (number: number) => T, numbers: Uint32Array): T[] {
  return Array.from(numbers, (number) => new type(number));
}

function done(isDone: boolean): void {
  if (!isDone) throwFailure();
}

function value<T>(given: unknown): T {
  if (given === undefined) throwFailure();
  return given as T;
}

function numbersOf(handles: readonly Handle[]): Uint32Array {
  return Uint32Array.from(handles, ({ number }) => number);
}

/** A tensor node of the wasm module. */
export class RawNode extends Handle {
  static make(label: string, dtype: string, shape: Uint32Array, mode?: string): RawNode {
    return new RawNode(made(glue.nodeNew(label, dtype, shape, mode)));
  }

  get id(): number {
    return glue.nodeId(this.number);
  }

  facts(): [label: string, dtype: DType, start: number, ...shape: number[]] {
    return glue.nodeFacts(this.number) as [string, DType, number, ...number[]];
  }

  mode(): MemoryMode {
    return glue.nodeMode(this.number) as MemoryMode;
  }

  refineMode(mode: MemoryMode): void {
    done(glue.nodeRefineMode(this.number, mode));
  }

  view(label: string, start: number, shape: Uint32Array): RawNode {
    return new RawNode(glue.nodeView(this.number, label, start, shape));
  }

  base(): RawNode | undefined {
    return some(RawNode, glue.nodeBase(this.number));
  }
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
  /** Names of what is read from the merge buffer. */
  merged: string[];
  /** The number of the way in which long reductions are split. */
  splitting?: number;
  /** Numbers of the kernels' schedules; the first ones if left out. */
  chosen?: number[];
  /** The kernel that is compiled alone, on nodes of its own, to be measured. */
  trial?: number;
}

/** A kernel or a program, as the wasm module takes it. */
export type RawSource = [name: string, text: string, spec: RawKernelSpec | RawProgramSpec, nodes: RawNode[]];

/** The parts of a source in the order in which the wasm module takes them. */
function inOrder([name, text, spec, nodes]: RawSource): unknown[] {
  const numbers = numbersOf(nodes);
  if (!("tensors" in spec)) {
    const { names, outputs, merged, splitting, trial, chosen = [] } = spec;
    return [name, text, numbers, names, undefined, outputs, merged, splitting, trial, Uint32Array.from(chosen)];
  }
  const names = spec.tensors.map((tensor) => tensor.name);
  const accesses = spec.tensors.map(({ access, merged }) => (merged ? undefined : String(access ?? "")));
  return [name, text, numbers, names, accesses, spec.statics, ...spec.grid];
}

/** A device of the wasm module. */
export class RawDevice extends Handle {
  static async open(options: OpenOptions): Promise<RawDevice> {
    const { driver, limits, powerPreference, ordinal, segmentCapBytes, memoryBudgetBytes, heapBytes, device } = options;
    const bytes = [segmentCapBytes, memoryBudgetBytes, heapBytes];
    return new RawDevice(await glue.openDevice([driver, limits, powerPreference, ordinal, ...bytes, device]));
  }

  static staticProperties(isHost: boolean): Promise<StaticProperties[]> {
    return glue.staticProperties(isHost) as Promise<StaticProperties[]>;
  }

  /** Of every device of the page. */
  static debugInfo(): DebugInfo[] {
    return glue.globalDebugInfo() as DebugInfo[];
  }

  name(): string {
    return glue.deviceName(this.number);
  }

  adapter(): AdapterInfo {
    return glue.deviceFacts(this.number, 0) as AdapterInfo;
  }

  limits(): DeviceLimits {
    return glue.deviceFacts(this.number, 1) as DeviceLimits;
  }

  report(): MemoryReport {
    return glue.deviceFacts(this.number, 2) as MemoryReport;
  }

  stats(): RunnerStats {
    return glue.deviceFacts(this.number, 3) as RunnerStats;
  }

  debugInfo(): DebugInfo {
    return glue.deviceFacts(this.number, 4) as DebugInfo;
  }

  lost(): Promise<DeviceLostInfo> {
    return glue.deviceLost(this.number) as Promise<DeviceLostInfo>;
  }

  /** The sequence number to wait for before more is recorded. */
  ready(): number {
    return glue.deviceReady(this.number);
  }

  flush(): void {
    done(glue.deviceFlush(this.number));
  }

  allWork(): number {
    return glue.deviceAllWork(this.number);
  }

  eventIsDone(seq: number): boolean {
    return glue.deviceEventIsDone(this.number, seq);
  }

  eventWait(seq: number): Promise<void> {
    return glue.deviceEventWait(this.number, seq);
  }

  context(): RawContext {
    return new RawContext(glue.deviceContext(this.number));
  }

  async compileBatch(sources: readonly RawSource[], known: RawContext): Promise<RawCode[]> {
    return all(RawCode, await glue.deviceCompileBatch(this.number, sources.map(inOrder), known.number));
  }

  /** A context without nodes that knows the virtual nodes which a code leaves. */
  contextOf(code: RawCode): RawContext {
    return new RawContext(glue.deviceContextOf(this.number, code.number));
  }

  /** Of a program, kernel by kernel: a line for each schedule, and, behind a zero, what a measurement depends on. */
  choices(program: RawSource, known: RawContext): string[] {
    return glue.deviceChoices(this.number, inOrder(program), known.number);
  }

  trim(): number {
    return counted(glue.deviceTrim(this.number));
  }

  /** Bytes moved, bytes given back. */
  compact(): Float64Array {
    return value(glue.deviceCompact(this.number));
  }

  usedMemory(): number {
    return glue.deviceUsedMemory(this.number);
  }

  updatingFor(node: RawNode): number | undefined {
    const seq = glue.deviceUpdatingFor(this.number, node.number);
    return seq < 0 ? undefined : seq;
  }

  /** Ordinal, id, 1 if it frees explicitly, next pool, bytes of the merge buffer, its last writer or -1; then constants. */
  record(): Float64Array {
    return glue.deviceRecord(this.number);
  }

  mergeBufferNode(): RawNode | undefined {
    return some(RawNode, glue.deviceMergeBufferNode(this.number));
  }

  resolvePool(poolId: number, offset: number): [slab: object | number, offset: number] {
    return value(glue.deviceResolvePool(this.number, poolId, offset));
  }

  poolSizeBytes(poolId: number): number {
    return counted(glue.devicePoolSizeBytes(this.number, poolId));
  }

  freeUnusedConstants(): number {
    return glue.deviceFreeUnusedConstants(this.number);
  }

  allocPool(poolId: number, sizeBytes: number, alignment: number, mode?: string): void {
    done(glue.deviceAllocPool(this.number, poolId, sizeBytes, alignment, mode));
  }

  freePool(poolId: number): void {
    done(glue.deviceFreePool(this.number, poolId));
  }

  memsetZero(poolId: number, offset: number, lenBytes: number): number {
    return counted(glue.deviceMemsetZero(this.number, poolId, offset, lenBytes));
  }

  destroy(): void {
    glue.deviceDestroy(this.number);
  }
}

/** A context of the wasm module. */
export class RawContext extends Handle {
  upload(nodes: readonly RawNode[], data: Uint8Array[]): RawContext {
    return new RawContext(made(glue.contextUpload(this.number, numbersOf(nodes), data)));
  }

  zeros(nodes: readonly RawNode[]): RawContext {
    return new RawContext(made(glue.contextExtend(this.number, numbersOf(nodes), false)));
  }

  alias(views: readonly RawNode[]): RawContext {
    return new RawContext(made(glue.contextExtend(this.number, numbersOf(views), true)));
  }

  write(node: RawNode, data: Uint8Array, offsetBytes: number): number {
    return counted(glue.contextWrite(this.number, node.number, data, offsetBytes));
  }

  zero(node: RawNode, offsetBytes: number, lenBytes: number): number {
    return counted(glue.contextZero(this.number, node.number, offsetBytes, lenBytes));
  }

  copy(src: RawNode, srcOffset: number, dst: RawNode, dstOffset: number, lenBytes: number): number {
    return counted(glue.contextCopy(this.number, src.number, srcOffset, dst.number, dstOffset, lenBytes));
  }

  readback(nodes: readonly RawNode[]): Promise<Uint8Array[]> {
    return glue.contextReadback(this.number, numbersOf(nodes));
  }

  writeBlock(node: RawNode, spans: Uint32Array, data: Uint8Array): number {
    return counted(glue.contextWriteBlock(this.number, node.number, spans, data));
  }

  readBlock(node: RawNode, spans: Uint32Array): Promise<Uint8Array[]> {
    return glue.contextReadBlock(this.number, node.number, spans);
  }

  copyBlock(src: RawNode, srcSpans: Uint32Array, dst: RawNode, dstSpans: Uint32Array): number {
    return counted(glue.contextCopyBlock(this.number, src.number, srcSpans, dst.number, dstSpans));
  }

  /** Pool and offset. */
  loc(node: RawNode): Float64Array | undefined {
    const loc = glue.contextLoc(this.number, node.number);
    return loc.length === 0 ? undefined : loc;
  }

  /** Id, pool and offset of each node, one after the other. */
  locs(): Float64Array {
    return glue.contextLocs(this.number);
  }

  nodes(): RawNode[] {
    return all(RawNode, glue.contextNodes(this.number));
  }

  async link(code: RawCode): Promise<RawRoutine> {
    return new RawRoutine(await glue.contextLink(this.number, code.number));
  }

  async linkBatch(codes: readonly RawCode[]): Promise<RawRoutine[]> {
    return all(RawRoutine, await glue.contextLinkBatch(this.number, numbersOf(codes)));
  }

  forecast(code: RawCode): RawForecast {
    return value(glue.contextForecast(this.number, code.number));
  }

  deviceToDevice(node: RawNode, merge: boolean, source: RawContext): RawRoutine | undefined {
    return some(RawRoutine, glue.contextDeviceToDevice(this.number, node.number, merge, source.number));
  }

  initFromDevice(node: RawNode, source: RawContext): RawContext {
    return new RawContext(made(glue.contextInitFromDevice(this.number, node.number, source.number)));
  }

  /** Brings a node to this context, or into the merge buffer; resolves with the event's number. */
  bring(node: RawNode, merge: boolean, source: RawContext): Promise<number> {
    return glue.contextBring(this.number, node.number, merge ? 1 : 0, source.number);
  }

  /** Brings a node to a child. */
  async bringToChild(node: RawNode, source: RawContext): Promise<RawContext> {
    return new RawContext(await glue.contextBring(this.number, node.number, 2, source.number));
  }

  mergeBufferNode(): RawNode | undefined {
    return some(RawNode, glue.contextMergeBufferNode(this.number));
  }

  virtualNodes(): RawNode[] {
    return all(RawNode, glue.contextVirtualNodes(this.number));
  }

  child(
    nodes: readonly RawNode[] | undefined,
    pools: Uint32Array,
    offsets: Float64Array,
    knows: RawContext,
    setsMerge: boolean,
    merge?: RawNode,
  ): RawContext {
    const numbers = nodes && numbersOf(nodes);
    const mine = glue.contextChild(this.number, numbers, pools, offsets, knows.number, setsMerge, merge?.number ?? 0);
    return new RawContext(made(mine));
  }

  parent(): RawContext | undefined {
    return some(RawContext, glue.contextParent(this.number));
  }

  willWaitFor(device: RawDevice, seq: number): void {
    done(glue.contextWillWaitFor(this.number, device.number, seq));
  }

  finalize(): void {
    glue.contextFinalize(this.number);
  }
}

/** Compiled code of the wasm module. */
export class RawCode extends Handle {
  statics(): string[] {
    return glue.codeStatics(this.number);
  }

  /** Names of `nodes`. */
  names(): string[] {
    return glue.codeNames(this.number);
  }

  nodes(): RawNode[] {
    return all(RawNode, glue.codeNodes(this.number));
  }

  /** Ids of the nodes that it reads. */
  inputs(): Uint32Array {
    return glue.codeTouches(this.number, false);
  }

  /** Ids of the nodes that it may change. */
  outputs(): Uint32Array {
    return glue.codeTouches(this.number, true);
  }

  explain(): string {
    return glue.codeExplain(this.number);
  }
}

/** A routine of the wasm module. */
export class RawRoutine extends Handle {
  get id(): number {
    return glue.routineId(this.number);
  }

  context(): RawContext {
    return new RawContext(glue.routineContext(this.number));
  }

  executionDeps(): (number | string)[] {
    return glue.routineDeps(this.number);
  }

  canRun(): boolean {
    return glue.routineCanRun(this.number);
  }

  explain(): string {
    return glue.routineExplain(this.number);
  }

  run(statics?: Int32Array): number {
    return counted(glue.routineRun(this.number, statics));
  }
}

/** A sequence of the wasm module. */
export class RawSequence extends Handle {
  static make(routines: readonly RawRoutine[], statics: Int32Array): RawSequence {
    return new RawSequence(made(glue.sequenceNew(numbersOf(routines), statics)));
  }

  run(times: number, statics?: Int32Array): number {
    return counted(glue.sequenceRun(this.number, times, statics));
  }
}
