// A kernel, compiled: its declaration and the handle that contexts link.

import type { DType } from "./arrays.ts";
import { KernelError, WgslabError } from "./errors.ts";
import { Lifetime } from "./lifetime.ts";
import type { TensorNode } from "./node.ts";
import { type RawCode, type RawKernelSpec, call } from "./skin.ts";

/** How a kernel uses a tensor, and so which accessors it gets. */
export type Access = "read" | "write" | "read_write" | "atomic";

/** A tensor of a kernel. */
export interface KernelTensor {
  /** The node. One node may stand under several names. */
  node: TensorNode<DType>;
  /** How the kernel uses it. A `write` node that the context has not is made by linking. */
  access: Access;
  /** Its name in the kernel's accessors; the node's label if left out. */
  name?: string;
}

/** What a kernel declares. */
export interface KernelSpec {
  /** Its tensors: a list, or a record by name. */
  tensors: readonly KernelTensor[] | Readonly<Record<string, Omit<KernelTensor, "name">>>;
  /** Names of integers that each run gives anew. */
  statics?: readonly string[];
  /** Workgroups along x, y and z; y and z are 1 if left out. */
  grid: readonly [x: number, y?: number, z?: number];
  /** Rejects with the signal's reason when it fires. */
  signal?: AbortSignal;
}

/** A tensor of a kernel, under its name. */
export interface NamedTensor {
  /** Its name in the kernel's accessors. */
  readonly name: string;
  /** The node. */
  readonly node: TensorNode<DType>;
  /** How the kernel uses it. */
  readonly access: Access;
}

const LARGEST_GRID = 2 ** 32 - 1;

/** The tensors of a spec, each under its name. */
export function namedTensors({ tensors }: KernelSpec): readonly NamedTensor[] {
  const list: readonly KernelTensor[] = isList(tensors)
    ? tensors
    : Object.entries(tensors).map(([name, tensor]) => ({ ...tensor, name }));
  return list.map(({ node, access, name = node.label }) => ({ name, node, access }));
}

/** The spec as the wasm module takes it, beside its nodes. */
export function rawSpec(kernel: string, spec: KernelSpec, tensors: readonly NamedTensor[]): RawKernelSpec {
  const [x, y = 1, z = 1] = spec.grid;
  for (const extent of [x, y, z]) {
    if (Number.isInteger(extent) && extent >= 0 && extent <= LARGEST_GRID) continue;
    const message = `compile "${kernel}": grid [${x}, ${y}, ${z}]: ${extent} is no whole number of workgroups`;
    throw new KernelError("kernel-interface", message, []);
  }
  return {
    tensors: tensors.map(({ name, access }) => ({ name, access })),
    statics: [...(spec.statics ?? [])],
    grid: [x, y, z],
  };
}

function isList(tensors: KernelSpec["tensors"]): tensors is readonly KernelTensor[] {
  return Array.isArray(tensors);
}

/** Compiled code. It knows no context, so it can be linked into many. */
export class Code implements Disposable {
  /** The name given to `compile`. */
  readonly name: string;
  /** The tensors, in the order of the spec. */
  readonly tensors: readonly NamedTensor[];
  readonly #raw: RawCode;
  readonly #life: Lifetime;

  private constructor(raw: RawCode, name: string, tensors: readonly NamedTensor[], device: Lifetime) {
    this.name = name;
    this.tensors = tensors;
    this.#raw = raw;
    this.#life = new Lifetime(`code "${name}"`, device);
  }

  /** @internal */
  static make(raw: RawCode, name: string, tensors: readonly NamedTensor[], device: Lifetime): Code {
    return new Code(raw, name, tensors, device);
  }

  /** @internal */
  get raw(): RawCode {
    this.#life.check();
    return this.#raw;
  }

  /** The node under a name of the kernel's. */
  node(name: string): TensorNode {
    const tensor = this.tensors.find((one) => one.name === name);
    if (tensor) return tensor.node;
    const names = this.tensors.map((one) => `"${one.name}"`).join(", ");
    throw new WgslabError("unknown-node", `code "${this.name}" has no tensor "${name}"; it has ${names}`);
  }

  /** Frees the code. Routines linked from it go on. */
  dispose(): void {
    if (this.#life.end()) call(() => this.#raw.free());
  }

  /** {@link dispose} */
  [Symbol.dispose](): void {
    this.dispose();
  }
}
