// Which tensor is where: an immutable map from nodes to locations, extended by children.

import {
  type ArrayOf,
  type DType,
  type DataOf,
  type TensorArray,
  arrayFrom,
  bytesOf,
  checkWhole,
  elementBytes,
  lengthOf,
  wholeBytesOf,
} from "./arrays.ts";
import { type ByHand, rawChild } from "./by-hand.ts";
import { checkChoice, checkIs, checkList, checkOptions } from "./checks.ts";
import { Code, checkCode } from "./code.ts";
import type { Device } from "./device.ts";
import { WgslabError } from "./errors.ts";
import { DeviceEvent } from "./event.ts";
import type { BufferLoc, Forecast } from "./info.ts";
import { Lifetime } from "./lifetime.ts";
import { type NodeOptions, TensorNode, checkNode, rawNodes } from "./node.ts";
import { OptimizeCtx } from "./optimize-ctx.ts";
import { type BlockRanges, type CopyRange, type ElementRange, checkRange, spansOf } from "./ranges.ts";
import { Routine } from "./routine.ts";
import { type RawContext, type RawRoutine, call, callAsync } from "./skin.ts";

/** Where a copy from another context lands: in the node, or in the merge buffer of this device. */
export type Landing = "node" | "merge-buffer";

const LANDINGS = ["node", "merge-buffer"] as const;

/** What a context brought, for look-ups by label: nodes, and codes that stand for theirs. */
type Brought = readonly (TensorNode | Code)[];

/** An immutable map from nodes to locations. What adds nodes returns a child. */
export class Context implements Disposable {
  /** The device it is on. */
  readonly device: Device;
  /** The context that it extends; undefined for a root. */
  readonly parent: Context | undefined;
  readonly #raw: RawContext;
  readonly #brought: Brought;
  readonly #life: Lifetime;

  private constructor(raw: RawContext, device: Device, parent: Context | undefined, brought: Brought) {
    this.device = device;
    this.parent = parent;
    this.#raw = raw;
    this.#brought = brought;
    this.#life = new Lifetime(device.nextContextName(), device.life);
  }

  /** @internal */
  static make(raw: RawContext, device: Device, parent?: Context, brought: Brought = []): Context {
    return new Context(raw, device, parent, brought);
  }

  /** The handle of `source`, once it is a context that lives. */
  static #rawOf(verb: string, source: Context): RawContext {
    checkIs(`${verb}: the source`, source, Context, "pass the context that has the node");
    return source.#live();
  }

  #live(): RawContext {
    this.#life.check();
    return this.#raw;
  }

  /** A child that owns new memory, so that forgetting it is worth a warning. */
  #extend(raw: RawContext, brought: Brought): Context {
    const child = Context.make(raw, this.device, this, brought);
    child.#life.watch(child);
    return child;
  }

  /** A new node: an identity, not yet in any context. */
  node<const D extends DType>(label: string, options: NodeOptions<D>): TensorNode<D> {
    this.#life.check();
    return TensorNode.make(label, options);
  }

  /**
   * A child context with `node`, which this one must not have, filled with `data`: an array of the node's dtype and
   * length, copied before this returns.
   */
  upload<D extends DType>(node: TensorNode<D>, data: DataOf<D>): Context {
    return this.uploadAll([[node, data]]);
  }

  /** A child context with all these nodes, in one slab, filled: see {@link upload}. */
  uploadAll(pairs: readonly (readonly [node: TensorNode<DType>, data: ArrayBufferView])[]): Context {
    const raw = this.#live();
    checkList("upload: the pairs", pairs);
    const nodes = pairs.map(([node]) => node);
    const raws = rawNodes("upload", nodes);
    const bytes = pairs.map(([node, data]) => wholeBytesOf(node, data));
    return this.#extend(call(() => raw.upload(raws, bytes)), nodes);
  }

  /** A child context with these nodes, which this one must not have, in one slab, filled with zeros. */
  zeros(nodes: readonly TensorNode<DType>[]): Context {
    const raw = this.#live();
    const raws = rawNodes("zeros", nodes);
    return this.#extend(call(() => raw.zeros(raws)), nodes);
  }

  /**
   * A child context with these views (see {@link TensorNode.view}), each at its place in the node that it is a view of,
   * which this context must have. Nothing is copied; the bytes live as long as the context that brought them, or this
   * child, needs them.
   */
  alias(views: readonly TensorNode<DType>[]): Context {
    const raw = this.#live();
    const raws = rawNodes("alias", views);
    return this.#extend(call(() => raw.alias(raws)), views);
  }

  /** Queues a write of `data`, copied before this returns, over a node's elements from `offset` on. */
  write<D extends DType>(node: TensorNode<D>, data: DataOf<D>, options: { offset?: number } = {}): DeviceEvent {
    const raw = this.#live();
    checkNode("write", node);
    checkOptions(`write ${node}`, options, ["offset"]);
    const { offset = 0 } = options;
    const bytes = bytesOf(node, data);
    checkRange(node, offset, lengthOf(data), "write");
    const seq = call(() => raw.write(node.raw, bytes, offset * elementBytes(node.dtype)));
    return DeviceEvent.make(this.device.raw, seq);
  }

  /** Queues zeros over a range of a node's elements; over all of them if no range is given. */
  zero(node: TensorNode<DType>, range: ElementRange = {}): DeviceEvent {
    const raw = this.#live();
    checkNode("zero", node);
    checkOptions(`zero ${node}`, range, ["offset", "length"]);
    const { offset = 0, length = node.length - offset } = range;
    checkRange(node, offset, length, "zero");
    const size = elementBytes(node.dtype);
    return DeviceEvent.make(this.device.raw, call(() => raw.zero(node.raw, offset * size, length * size)));
  }

  /** Queues a copy of elements from one node of this context to another of the same dtype. */
  copy<D extends DType>(src: TensorNode<D>, dst: TensorNode<D>, range: CopyRange = {}): DeviceEvent {
    const raw = this.#live();
    checkNode("copy", src);
    checkNode("copy", dst);
    checkOptions(`copy ${src} to ${dst}`, range, ["srcOffset", "dstOffset", "length"]);
    const { srcOffset = 0, dstOffset = 0, length = src.length - srcOffset } = range;
    if (src.dtype !== dst.dtype) {
      throw new WgslabError("dtype-mismatch", `copy: ${src} is ${src.dtype}, ${dst} is ${dst.dtype}; make them equal`);
    }
    checkRange(src, srcOffset, length, "copy from");
    checkRange(dst, dstOffset, length, "copy to");
    const size = elementBytes(src.dtype);
    const seq = call(() => raw.copy(src.raw, srcOffset * size, dst.raw, dstOffset * size, length * size));
    return DeviceEvent.make(this.device.raw, seq);
  }

  /**
   * Queues a write of `data`, copied before this returns, over the elements of a block of a node, in row-major order of the
   * block: `writeBlock(x, [0, [2, 8, 2], null], data)` is NumPy's `x[0, 2:8:2, :] = data`. The elements between keep theirs.
   */
  writeBlock<D extends DType>(node: TensorNode<D>, ranges: BlockRanges, data: DataOf<D>): DeviceEvent {
    const raw = this.#live();
    const spans = spansOf("writeBlock", node, ranges);
    const bytes = bytesOf(node, data);
    return DeviceEvent.make(this.device.raw, call(() => raw.writeBlock(node.raw, spans, bytes)));
  }

  /**
   * Queues a copy of a block of one node to a block of another, or of the same, with the same dtype and number of elements
   * along each axis. Blocks that overlap are copied as if at once.
   */
  copyBlock<D extends DType>(
    src: TensorNode<D>,
    srcRanges: BlockRanges,
    dst: TensorNode<D>,
    dstRanges: BlockRanges,
  ): DeviceEvent {
    const raw = this.#live();
    const [from, to] = [spansOf("copyBlock", src, srcRanges), spansOf("copyBlock", dst, dstRanges)];
    return DeviceEvent.make(this.device.raw, call(() => raw.copyBlock(src.raw, from, dst.raw, to)));
  }

  /** Reads a block of a node back, after all work queued so far: a fresh array, in row-major order of the block. */
  async readBlock<D extends DType>(
    node: TensorNode<D>,
    ranges: BlockRanges,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ArrayOf<D>> {
    const raw = this.#live();
    const spans = spansOf("readBlock", node, ranges);
    const [bytes] = await callAsync(() => raw.readBlock(node.raw, spans), signal);
    return arrayFrom(node, bytes as Uint8Array);
  }

  /**
   * Reads a node back, after all work queued so far: a fresh array of its dtype, or `into`, filled. A label stands
   * for the one node of this context that has it.
   */
  async readback<D extends DType>(
    node: TensorNode<D>,
    options?: { signal?: AbortSignal; into?: DataOf<D> },
  ): Promise<ArrayOf<D>>;
  async readback(label: string, options?: { signal?: AbortSignal; into?: ArrayBufferView }): Promise<TensorArray>;
  async readback(
    which: TensorNode<DType> | string,
    options: { signal?: AbortSignal; into?: ArrayBufferView } = {},
  ): Promise<TensorArray> {
    const [node] = this.#find([which]);
    checkOptions(`readback ${node}`, options, ["signal", "into"]);
    const { signal, into } = options;
    if (into !== undefined) checkWhole(node as TensorNode, into);
    const [bytes] = await this.#readBytes([node as TensorNode], signal);
    return arrayFrom(node as TensorNode, bytes as Uint8Array, into as TensorArray | undefined);
  }

  /** Reads many nodes back at once, in one transfer: fresh arrays, in the order asked for. */
  async readbackAll<const N extends readonly (TensorNode<DType> | string)[]>(
    which: N,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ArraysOf<N>> {
    const nodes = this.#find(which);
    const bytes = await this.#readBytes(nodes, signal);
    return nodes.map((node, index) => arrayFrom(node, bytes[index] as Uint8Array)) as unknown as ArraysOf<N>;
  }

  #find(which: readonly (TensorNode<DType> | string)[]): TensorNode[] {
    this.#life.check();
    checkList("readback: the nodes", which);
    return which.map((one) => {
      if (typeof one === "string") return this.#labelled(one);
      checkNode("readback", one);
      return one;
    });
  }

  #labelled(label: string): TensorNode {
    const found = new Set<TensorNode>();
    for (let context: Context | undefined = this; context; context = context.parent) {
      for (const node of nodesOf(context.#brought)) if (node.label === label) found.add(node);
    }
    const [node] = found;
    if (node && found.size === 1) return node;
    const where = this.#life.name;
    throw node
      ? new WgslabError("duplicate-node", `${where}: "${label}" is ${[...found].join(" and ")}; pass the node itself`)
      : new WgslabError("unknown-node", `${where}: no node is labelled "${label}"; upload it, or link what makes it`);
  }

  #readBytes(nodes: readonly TensorNode[], signal?: AbortSignal): Promise<Uint8Array[]> {
    const raw = this.#live();
    return callAsync(() => raw.readback(nodes.map((node) => node.raw)), signal);
  }

  /** Where a node's bytes are; undefined if this context has it not. */
  loc(node: TensorNode<DType>): BufferLoc | undefined {
    const raw = this.#live();
    checkNode("loc", node);
    const loc = call(() => raw.loc(node.raw));
    return loc && { poolId: loc[0] as number, offset: loc[1] as number };
  }

  /** Every node of this context, by id, with its location. */
  locs(): ({ id: number; label: string } & BufferLoc)[] {
    return this.entries().map(([{ id, label }, loc]) => ({ id, label, ...loc }));
  }

  /** The node that the merge buffer will hold when the work through this context is done; undefined for none. */
  get mergeBufferNode(): TensorNode | undefined {
    const raw = this.#live();
    const node = call(() => raw.mergeBufferNode());
    return node && TensorNode.of(node);
  }

  /**
   * How the virtual nodes are computed that the programs linked up to here leave: what `compile` takes as `in` to read them.
   */
  get optimizeCtx(): OptimizeCtx {
    const knows = this.#live();
    return OptimizeCtx.make(rawChild(this.device.root, { knows }), this.device);
  }

  /**
   * Links code: checks that this context has what the code reads, places what it only writes, zero-filled, in one
   * slab, and makes the pipeline. The routine's context is a child of this one.
   */
  async link(code: Code, { signal }: { signal?: AbortSignal } = {}): Promise<Routine> {
    const raw = this.#live();
    checkCode("link: the code", code);
    const rawCode = code.rawFor("link", this.device);
    const routine = await callAsync(() => raw.link(rawCode), signal, (late) => late.free());
    const context = Context.make(call(() => routine.context()), this.device, this, [code]);
    return Routine.make(routine, context, code);
  }

  /**
   * Links many codes, one behind the other: the context of each routine is a child of that of the one before, and a code
   * may read what one before it creates. What they create is allocated together, each node once, in a context that is
   * the parent of the first routine's. It is freed when the last of the routines is disposed, in whatever order they are;
   * a refusal leaves nothing behind.
   */
  async linkBatch(codes: readonly Code[], { signal }: { signal?: AbortSignal } = {}): Promise<Routine[]> {
    const raw = this.#live();
    checkList("linkBatch: the codes", codes);
    const rawCodes = codes.map((code) => {
      checkCode("linkBatch: a code", code);
      return code.rawFor("link", this.device);
    });
    const discard = (late: RawRoutine[]): void => late.forEach((routine) => routine.free());
    const raws = await callAsync(() => raw.linkBatch(rawCodes), signal, discard);
    const rawContexts = raws.map((routine) => call(() => routine.context()));
    const rawShared = rawContexts[0] && call(() => (rawContexts[0] as RawContext).parent());
    if (rawShared === undefined) return [];
    const shared = Context.make(rawShared, this.device, this, [...codes]);
    let alive = raws.length;
    const disposed = (): void => {
      alive -= 1;
      if (alive === 0) shared.dispose();
    };
    let parent = shared;
    return raws.map((routine, index) => {
      const code = codes[index] as Code;
      parent = Context.make(rawContexts[index] as RawContext, this.device, parent, [code]);
      return Routine.make(routine, parent, code, disposed);
    });
  }

  /** What linking that code here would allocate. Nothing is allocated; throws what linking would refuse before it does. */
  forecast(code: Code): Forecast {
    const raw = this.#live();
    checkCode("forecast: the code", code);
    const rawCode = code.rawFor("forecast", this.device);
    const { budgetBytes, ...rest } = call(() => raw.forecast(rawCode));
    return {
      ...rest,
      budgetBytes: budgetBytes ?? undefined,
      sizeBytes: rest.slabSizesBytes.reduce((sum, bytes) => sum + bytes, 0),
      isWithinBudget: rest.inUseAfterBytes <= (budgetBytes ?? Infinity),
    };
  }

  /**
   * A routine that copies `node` from `source` to this context or into the merge buffer; undefined where there is nothing
   * to move. Into the merge buffer, the routine's context has `mergeBufferNode`, and a kernel with that node as a `merged`
   * tensor is linked there.
   *
   * `source` may be on another device of the same driver: then the bytes come through the host. A run takes them as they
   * are there at that point, returns at once, and what is recorded here later waits for them. Between drivers, and for
   * nodes of hundreds of MiB: {@link copyFrom}.
   */
  deviceToDevice(
    node: TensorNode<DType>,
    source: Context,
    { into = "node" }: { into?: Landing } = {},
  ): Routine | undefined {
    const verb = `copy ${node}`;
    const [raw, from] = this.#withSource(verb, node, source);
    checkChoice(`${verb}: into`, into, LANDINGS);
    this.#checkSameDriver(verb, source, "use copyFrom");
    const routine = call(() => raw.deviceToDevice(node.raw, into === "merge-buffer", from));
    if (routine === undefined) return undefined;
    const context = Context.make(call(() => routine.context()), this.device, this);
    // What it reads is another line's, unless both contexts have the node at one place.
    const [here, there] = [this.loc(node), source.loc(node)];
    const isOnePlace = here?.poolId === there?.poolId && here?.offset === there?.offset;
    const isHere = isOnePlace && this.device === source.device;
    const work = { name: `copy ${node.label}`, reads: isHere ? [node] : [], writes: into === "node" ? [node] : [] };
    return Routine.make(routine, context, work);
  }

  /**
   * A child context with `node`, which this one must not have, and the bytes that it has in `source`, on a device of the
   * same driver: see {@link deviceToDevice}.
   */
  initFromDevice(node: TensorNode<DType>, source: Context): Context {
    const verb = `copy ${node}`;
    const [raw, from] = this.#withSource(verb, node, source);
    this.#checkSameDriver(verb, source, "use initFromOther");
    return this.#extend(call(() => raw.initFromDevice(node.raw, from)), [node]);
  }

  /**
   * Copies `node` from `source`, a context of any device and driver, to this one or into the merge buffer of this device,
   * through the host in pieces. What was queued on the other device before this call is seen; the promise gives the
   * event of the last piece's arrival. Until then the node has some pieces and not others. An abort stops the waiting,
   * not the pieces that are on their way.
   */
  async copyFrom(
    node: TensorNode<DType>,
    source: Context,
    { into = "node", signal }: { into?: Landing; signal?: AbortSignal } = {},
  ): Promise<DeviceEvent> {
    const [raw, from] = this.#withSource(`copy ${node}`, node, source);
    checkChoice(`copy ${node}: into`, into, LANDINGS);
    const seq = await callAsync(() => raw.bring(node.raw, into === "merge-buffer", from), signal);
    return DeviceEvent.make(this.device.raw, seq);
  }

  /**
   * A child context with `node`, which this one must not have, and the bytes that it has in `source`, a context of any
   * device and driver: see {@link copyFrom}.
   */
  async initFromOther(
    node: TensorNode<DType>,
    source: Context,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<Context> {
    const [raw, from] = this.#withSource(`copy ${node}`, node, source);
    const child = await callAsync(() => raw.bringToChild(node.raw, from), signal, (late) => late.free());
    return this.#extend(child, [node]);
  }

  /**
   * Work that is queued on this context's device from here on starts after that event, of any device. It returns at once.
   * Whether the other work succeeded does not matter: only the order does. On the host driver, where every task is done
   * when its call returns, an event of another device that is not done cannot be waited for: await its `completed`.
   */
  willWaitFor(event: DeviceEvent): void {
    const raw = this.#live();
    checkIs("willWaitFor: the event", event, DeviceEvent, "pass what a run, a copy or a write returned");
    call(() => raw.willWaitFor(event.device, event.seq));
  }

  #withSource(verb: string, node: TensorNode<DType>, source: Context): [raw: RawContext, source: RawContext] {
    const raw = this.#live();
    checkNode("copy", node);
    return [raw, Context.#rawOf(verb, source)];
  }

  #checkSameDriver(verb: string, source: Context, remedy: string): void {
    if (source.device.driver === this.device.driver) return;
    const where = `the contexts are on ${source.device.name} and ${this.device.name}, of two drivers`;
    throw new WgslabError("unsupported", `${verb}: ${where}; ${remedy}`);
  }

  /** A child context with the same nodes. */
  child(): Context {
    return this.childWith({});
  }

  /** @internal */
  childWith(parts: ByHand): Context {
    return Context.make(rawChild(this.#live(), parts), this.device, this, parts.buffers?.nodes);
  }

  /** Every node with its location, by id. @internal */
  entries(): [TensorNode, BufferLoc][] {
    const raw = this.#live();
    const flat = call(() => raw.locs());
    const nodes = TensorNode.all(
      Array.from({ length: flat.length / 3 }, (_, index) => flat[3 * index] as number),
      () => call(() => raw.nodes()),
    );
    return nodes.map((node, index) => {
      return [node, { poolId: flat[3 * index + 1] as number, offset: flat[3 * index + 2] as number }];
    });
  }

  /** Whether the context, or its device, was disposed. */
  get isDisposed(): boolean {
    return this.#life.isEnded;
  }

  /** Frees the nodes that this context itself brought, not those of its parent. */
  dispose(): void {
    if (!this.#life.end()) return;
    call(() => {
      this.#raw.finalize();
      this.#raw.free();
    });
  }

  /** {@link dispose} */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** The arrays of a list of nodes and labels. */
export type ArraysOf<N extends readonly (TensorNode<DType> | string)[]> = {
  -readonly [I in keyof N]: N[I] extends TensorNode<infer D> ? ArrayOf<D> : TensorArray;
};

function* nodesOf(brought: Brought): Generator<TensorNode> {
  for (const one of brought) {
    if (one instanceof Code) yield* one.placed();
    else yield one;
  }
}
