// A tensor's identity.

import { DTYPES, type DType, elementBytes } from "./arrays.ts";
import { checkIs, checkList, checkObject, checkText, checkWholeNumber, describe } from "./checks.ts";
import { WgslabError } from "./errors.ts";
import { RawNode, call } from "./skin.ts";

/** The memory modes, as the crate names them. */
const MEMORY_MODES = ["on_device", "constant", "local", "virtual"] as const;

/**
 * How the bytes of a node are kept. `on_device`: in the context that brought it. `constant`: never written after its
 * upload. `local`: in scratch memory of the routines of one link or batch, which nodes share that are not needed at the same
 * time; no context has it. `virtual`: never stored; kernels of WGSL cannot have one.
 */
export type MemoryMode = (typeof MEMORY_MODES)[number];

/** What a node is made of. */
export interface NodeOptions<D extends DType = DType> {
  /** The type of one element. */
  dtype: D;
  /** The extents, row-major; `[]` is a scalar. */
  shape: readonly number[];
  /** How its bytes are kept; undecided if left out, and then `on_device` from when a context places it. */
  mode?: MemoryMode;
}

/** Which part of a node a view is. */
export interface ViewOptions {
  /** The first element; 0 if left out. */
  offset?: number;
  /** The extents of the view, row-major; `[]` is a scalar. */
  shape: readonly number[];
}

const LARGEST_EXTENT = 2 ** 32 - 1;

// The one object of each node, so that a node that comes back from the wasm module is the object that was given to it.
const known = new Map<number, WeakRef<TensorNode<DType>>>();
const collected = new FinalizationRegistry<number>((id) => {
  // The node may be back, in another object.
  if (known.get(id)?.deref() === undefined) known.delete(id);
});

/**
 * The identity of a tensor: label, dtype, shape, memory mode. It owns no storage; a context says where its bytes are.
 * Made by `device.node` or `context.node`, and by {@link view}.
 */
export class TensorNode<D extends DType = DType> {
  /** Unique in the page, in the order of creation. */
  readonly id: number;
  /** The name that messages, reports and kernels use. */
  readonly label: string;
  /** The type of one element. */
  readonly dtype: D;
  /** The extents, row-major. */
  readonly shape: readonly number[];
  /** The number of elements. */
  readonly length: number;
  /** The number of bytes, without padding. */
  readonly byteLength: number;
  /** @internal */
  readonly raw: RawNode;

  private constructor(raw: RawNode, label: string, dtype: D, shape: readonly number[]) {
    this.id = raw.id;
    this.label = label;
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    this.length = lengthOf(shape);
    this.byteLength = this.length * elementBytes(dtype);
    this.raw = raw;
    known.set(this.id, new WeakRef(this));
    collected.register(this, this.id);
  }

  /** @internal */
  static make<D extends DType>(label: string, options: NodeOptions<D>): TensorNode<D> {
    checkText("a node's label", label);
    checkObject(`node "${label}": the options`, options, 'pass { dtype: "f32", shape: [2, 3] }, for example');
    const { dtype, shape, mode } = options;
    if (mode !== undefined) checkMode(`node "${label}"`, mode);
    if (!DTYPES.includes(dtype)) {
      throw new WgslabError("dtype-mismatch", `node "${label}": unknown dtype "${dtype}"; use ${DTYPES.join(", ")}`);
    }
    checkShape(label, shape);
    const raw = call(() => RawNode.make(label, dtype, Uint32Array.from(shape), mode));
    return new TensorNode(raw, label, dtype, shape);
  }

  /** The node of a handle that came from the wasm module: the same object as ever. @internal */
  static of(raw: RawNode): TensorNode {
    const node = known.get(raw.id)?.deref();
    if (node === undefined) {
      const [label, dtype, , ...shape] = raw.facts();
      return new TensorNode(raw, label, dtype, shape);
    }
    raw.free();
    return node;
  }

  /** The nodes with those ids; `raws` gives the handles of all, for those that JavaScript has forgotten. @internal */
  static all(ids: readonly number[], raws: () => RawNode[]): TensorNode[] {
    const nodes = ids.map((id) => known.get(id)?.deref());
    return nodes.every((node) => node !== undefined) ? nodes : raws().map((raw) => TensorNode.of(raw));
  }

  /**
   * A part of this node as a node of its own, with the same dtype: no bytes are copied. A context has it after
   * `context.alias`, and whoever writes to one writes to both.
   */
  view(label: string, { offset = 0, shape }: ViewOptions): TensorNode<D> {
    checkText("a view's label", label);
    checkShape(label, shape);
    checkWholeNumber(`view "${label}" of ${this}: the first element`, offset);
    const end = offset + lengthOf(shape);
    if (end > this.length) {
      const message = `view "${label}" has elements ${offset} to ${end} of ${this}, which has ${this.length}; shorten the view`;
      throw new WgslabError("shape-mismatch", message);
    }
    const raw = call(() => this.raw.view(label, offset, Uint32Array.from(shape)));
    return new TensorNode(raw, label, this.dtype, shape);
  }

  /** How its bytes are kept; `on_device` while that is undecided. A view is kept as its base is. */
  get mode(): MemoryMode {
    return call(() => this.raw.mode());
  }

  /**
   * Decides how its bytes are kept, which can be done once, before a context places it. Deciding the same again does
   * nothing; throws `unsupported` where another mode was decided, or for a view, which is kept as its base is.
   */
  refineMode(mode: MemoryMode): void {
    checkMode(`node ${this}`, mode);
    call(() => this.raw.refineMode(mode));
  }

  /** What this node is a view of, and its first element there; undefined for a node that is no view. */
  get base(): { readonly node: TensorNode<D>; readonly offset: number } | undefined {
    const raw = call(() => this.raw.base());
    return raw && { node: TensorNode.of(raw) as TensorNode<D>, offset: this.raw.facts()[2] };
  }

  /** The node in messages: `n12"weights"`. */
  toString(): string {
    return `n${this.id}"${this.label}"`;
  }
}

/** Throws unless `value` is a node. */
export function checkNode(what: string, value: unknown): asserts value is TensorNode {
  checkIs(what, value, TensorNode, "make one with device.node(label, { dtype, shape })");
}

/** Throws unless `mode` is a memory mode. */
export function checkMode(what: string, mode: MemoryMode): void {
  if (MEMORY_MODES.includes(mode)) return;
  throw new WgslabError("unsupported", `${what}: unknown memory mode ${describe(mode)}; use ${MEMORY_MODES.join(", ")}`);
}

/** The handles of nodes, once they are nodes. */
export function rawNodes(what: string, nodes: readonly TensorNode<DType>[]): RawNode[] {
  checkList(`${what}: the nodes`, nodes);
  return nodes.map((node) => {
    checkNode(what, node);
    return node.raw;
  });
}

function lengthOf(shape: readonly number[]): number {
  return shape.reduce((length, extent) => length * extent, 1);
}

function checkShape(label: string, shape: readonly number[]): void {
  checkList(`node "${label}": the shape`, shape);
  for (const extent of shape) {
    if (Number.isInteger(extent) && extent >= 0 && extent <= LARGEST_EXTENT) continue;
    throw new WgslabError(
      "shape-mismatch",
      `node "${label}": extent ${extent} of shape [${shape.join(", ")}] is no integer from 0 to ${LARGEST_EXTENT}`,
    );
  }
}
