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
import type { Code } from "./code.ts";
import type { Device } from "./device.ts";
import { WgslabError } from "./errors.ts";
import { DeviceEvent } from "./event.ts";
import type { BufferLoc } from "./info.ts";
import { Lifetime } from "./lifetime.ts";
import { type NodeOptions, TensorNode } from "./node.ts";
import { Routine } from "./routine.ts";
import { type RawContext, type RawRoutine, call, callAsync } from "./skin.ts";

/** A range of elements. */
export interface ElementRange {
  /** The first element; 0 if left out. */
  offset?: number;
  /** How many; up to the end if left out. */
  length?: number;
}

/** Ranges of a copy, in elements. */
export interface CopyRange {
  /** The first element read; 0 if left out. */
  srcOffset?: number;
  /** The first element written; 0 if left out. */
  dstOffset?: number;
  /** How many; up to the end of the source if left out. */
  length?: number;
}

/** An immutable map from nodes to locations. What adds nodes returns a child. */
export class Context implements Disposable {
  /** The device it is on. */
  readonly device: Device;
  /** The context that it extends; undefined for a root. */
  readonly parent: Context | undefined;
  readonly #raw: RawContext;
  readonly #nodes: readonly TensorNode[];
  readonly #life: Lifetime;

  private constructor(raw: RawContext, device: Device, parent: Context | undefined, nodes: readonly TensorNode[]) {
    this.device = device;
    this.parent = parent;
    this.#raw = raw;
    this.#nodes = nodes;
    this.#life = new Lifetime(device.nextContextName(), device.life);
  }

  /** `nodes`: those that it brought, for look-ups by label. @internal */
  static make(raw: RawContext, device: Device, parent?: Context, nodes: readonly TensorNode[] = []): Context {
    return new Context(raw, device, parent, nodes);
  }

  #live(): RawContext {
    this.#life.check();
    return this.#raw;
  }

  /** A child that owns new memory, so that forgetting it is worth a warning. */
  #extend(raw: RawContext, nodes: readonly TensorNode[]): Context {
    const child = Context.make(raw, this.device, this, nodes);
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
    const nodes = pairs.map(([node]) => node);
    const bytes = pairs.map(([node, data]) => wholeBytesOf(node, data));
    return this.#extend(call(() => raw.upload(rawOf(nodes), bytes)), nodes);
  }

  /** A child context with these nodes, which this one must not have, in one slab, filled with zeros. */
  zeros(nodes: readonly TensorNode<DType>[]): Context {
    const raw = this.#live();
    return this.#extend(call(() => raw.zeros(rawOf(nodes))), nodes);
  }

  /** Queues a write of `data`, copied before this returns, over a node's elements from `offset` on. */
  write<D extends DType>(node: TensorNode<D>, data: DataOf<D>, { offset = 0 }: { offset?: number } = {}): DeviceEvent {
    const raw = this.#live();
    const bytes = bytesOf(node, data);
    checkRange(node, offset, lengthOf(data), "write");
    const seq = call(() => raw.write(node.raw, bytes, offset * elementBytes(node.dtype)));
    return DeviceEvent.make(this.device.raw, seq);
  }

  /** Queues zeros over a range of a node's elements; over all of them if no range is given. */
  zero(node: TensorNode<DType>, { offset = 0, length = node.length - offset }: ElementRange = {}): DeviceEvent {
    const raw = this.#live();
    checkRange(node, offset, length, "zero");
    const size = elementBytes(node.dtype);
    return DeviceEvent.make(this.device.raw, call(() => raw.zero(node.raw, offset * size, length * size)));
  }

  /** Queues a copy of elements from one node of this context to another of the same dtype. */
  copy<D extends DType>(src: TensorNode<D>, dst: TensorNode<D>, range: CopyRange = {}): DeviceEvent {
    const raw = this.#live();
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
    { signal, into }: { signal?: AbortSignal; into?: ArrayBufferView } = {},
  ): Promise<TensorArray> {
    const [node] = this.#find([which]);
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
    return which.map((one) => (typeof one === "string" ? this.#labelled(one) : one));
  }

  #labelled(label: string): TensorNode {
    const found = new Set<TensorNode>();
    for (let context: Context | undefined = this; context; context = context.parent) {
      for (const node of context.#nodes) if (node.label === label) found.add(node);
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
    return callAsync(() => raw.readback(rawOf(nodes)), signal);
  }

  /** Where a node's bytes are; undefined if this context has it not. */
  loc(node: TensorNode<DType>): BufferLoc | undefined {
    const raw = this.#live();
    const loc = call(() => raw.loc(node.raw));
    return loc && { poolId: loc.poolId, offset: loc.offset };
  }

  /** Every node of this context, by id, with its location. */
  locs(): ({ id: number; label: string } & BufferLoc)[] {
    const raw = this.#live();
    return call(() => raw.locs());
  }

  /**
   * Links code: checks that this context has what the code reads, places what it only writes, zero-filled, in one
   * slab, and makes the pipeline. The routine's context is a child of this one.
   */
  async link(code: Code, { signal }: { signal?: AbortSignal } = {}): Promise<Routine> {
    const raw = this.#live();
    const rawCode = code.raw;
    const routine = await callAsync(() => raw.link(rawCode), signal, discardRoutine);
    const context = Context.make(
      call(() => routine.context()),
      this.device,
      this,
      code.tensors.map(({ node }) => node),
    );
    return Routine.make(routine, code.name, context);
  }

  /** A child context with the same nodes. */
  child(): Context {
    const raw = this.#live();
    return Context.make(call(() => raw.child()), this.device, this);
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

function rawOf(nodes: readonly TensorNode[]): TensorNode["raw"][] {
  return nodes.map((node) => node.raw);
}

/** A link that finished after its caller had given up. */
function discardRoutine(routine: RawRoutine): void {
  const context = routine.context();
  context.finalize();
  context.free();
  routine.free();
}

// Whole numbers alone: whether the range is within the node is the crate's to say, with the same words everywhere.
function checkRange(node: TensorNode, offset: number, length: number, verb: string): void {
  const isRange = [offset, length].every((value) => Number.isSafeInteger(value) && value >= 0);
  if (isRange) return;
  throw new WgslabError(
    "shape-mismatch",
    `${verb} ${node}: ${length} elements from ${offset} on are no range; use whole numbers from 0 to ${node.length}`,
  );
}
