// What compiling may know of virtual nodes: how those are computed that were left before.

import type { Code } from "./code.ts";
import type { Context } from "./context.ts";
import type { Device } from "./device.ts";
import { WgslabError } from "./errors.ts";
import { TensorNode } from "./node.ts";
import { type RawContext, call } from "./skin.ts";

/**
 * What a program is compiled in: the context that it is to be linked into, or a code that is to be linked before it. It may read
 * the virtual nodes whose computations are known there.
 */
export type CompileIn = Context | Code | OptimizeCtx;

/**
 * The computations of virtual nodes that programs which are compiled in it may read: `context.optimizeCtx`, `code.optimizeCtx`.
 * A value that holds no memory of the device: what gave it can be disposed.
 */
export class OptimizeCtx {
  /** The one that knows no virtual node. @internal */
  static readonly EMPTY = new OptimizeCtx(undefined, undefined, []);
  /** The virtual nodes whose computations it has. */
  readonly nodes: readonly TensorNode[];
  // The wasm module has it as a context without nodes that knows those.
  readonly #raw: RawContext | undefined;
  readonly #device: Device | undefined;

  private constructor(raw: RawContext | undefined, device: Device | undefined, nodes: readonly TensorNode[]) {
    this.nodes = Object.freeze(nodes);
    this.#raw = raw;
    this.#device = device;
  }

  /** What the context of that handle knows; takes the handle. @internal */
  static make(raw: RawContext, device: Device): OptimizeCtx {
    const nodes = call(() => raw.virtualNodes()).map((node) => TensorNode.of(node));
    if (nodes.length > 0) return new OptimizeCtx(raw, device, nodes);
    raw.free();
    return OptimizeCtx.EMPTY;
  }

  /** How many computations it has. */
  get size(): number {
    return this.nodes.length;
  }

  /** The handle, for use on `device`; throws where it is of another. @internal */
  rawFor(verb: string, device: Device): RawContext {
    if (this.#raw === undefined || this.#device === undefined) return device.root;
    if (this.#device === device) return this.#raw;
    const where = `the optimization context is of ${this.#device.name}, not of ${device.name}`;
    throw new WgslabError("unsupported", `${verb}: ${where}; pass one of a context or code there`);
  }
}
