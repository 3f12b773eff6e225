// A kernel, compiled: its declaration and the handle that contexts link.

import type { DType } from "./arrays.ts";
import { checkIs, checkList, checkText } from "./checks.ts";
import type { Device } from "./device.ts";
import { KernelError, WgslabError } from "./errors.ts";
import { Lifetime } from "./lifetime.ts";
import { type TensorNode, checkNode } from "./node.ts";
import { type RawCode, type RawKernelSpec, type RawNode, call } from "./skin.ts";

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
  /**
   * Whether it is read from the device's merge buffer instead of the context, which need not have it: access `read`, one
   * such tensor a kernel at most. The copy that puts it there is `context.deviceToDevice` with `into: "merge-buffer"`;
   * link behind that copy.
   */
  merged?: boolean;
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

/** A kernel of a batch. */
export interface Kernel {
  /** The name that messages and reports use. */
  name: string;
  /** The WGSL text. */
  wgsl: string;
  /** What it declares. The signal of a batch is its own. */
  spec: Omit<KernelSpec, "signal">;
}

/** A tensor of a kernel, under its name. */
export interface NamedTensor {
  /** Its name in the kernel's accessors. */
  readonly name: string;
  /** The node. */
  readonly node: TensorNode<DType>;
  /** How the kernel uses it. */
  readonly access: Access;
  /** Whether it is read from the merge buffer. */
  readonly merged: boolean;
}

const LARGEST_GRID = 2 ** 32 - 1;

/** A kernel as the wasm module takes it, and what JavaScript keeps of it. @internal */
export interface Declared {
  readonly name: string;
  readonly wgsl: string;
  readonly tensors: readonly NamedTensor[];
  readonly raw: RawKernelSpec;
  readonly nodes: RawNode[];
}

/** A kernel, once its declaration has the types that the wasm module takes. */
export function declare(name: string, wgsl: string, spec: Omit<KernelSpec, "signal">): Declared {
  checkText("a kernel's name", name);
  checkText(`the WGSL text of "${name}"`, wgsl);
  const tensors = namedTensors(name, spec);
  const { statics = [] } = spec;
  checkList(`compile "${name}": the statics`, statics);
  for (const one of statics) checkText(`compile "${name}": a static's name`, one);
  const raw = {
    tensors: tensors.map(({ name, access, merged }) => ({ name, access, merged })),
    statics: [...statics],
    grid: gridOf(name, spec),
  };
  return { name, wgsl, tensors, raw, nodes: tensors.map(({ node }) => node.raw) };
}

/** The tensors of a spec, each under its name. */
function namedTensors(kernel: string, { tensors }: Pick<KernelSpec, "tensors">): readonly NamedTensor[] {
  const list: readonly KernelTensor[] = isList(tensors)
    ? tensors
    : Object.entries(tensors ?? {}).map(([name, tensor]) => ({ ...tensor, name }));
  return list.map((tensor) => {
    checkNode(`compile "${kernel}": a tensor's node`, tensor?.node);
    const { node, access, name = node.label, merged = false } = tensor;
    checkText(`compile "${kernel}": a tensor's name`, name);
    if (merged && access !== "read") {
      const message = `compile "${kernel}": merged tensor "${name}" has access "${access}"; the merge buffer can only be read`;
      throw new KernelError("kernel-interface", message, []);
    }
    return { name, node, access, merged };
  });
}

function gridOf(kernel: string, { grid }: Pick<KernelSpec, "grid">): [number, number, number] {
  checkList(`compile "${kernel}": the grid`, grid);
  const [x, y = 1, z = 1] = grid;
  for (const extent of [x, y, z]) {
    if (Number.isInteger(extent) && extent >= 0 && extent <= LARGEST_GRID) continue;
    const message = `compile "${kernel}": grid [${x}, ${y}, ${z}]: ${extent} is no whole number of workgroups`;
    throw new KernelError("kernel-interface", message, []);
  }
  return [x, y, z];
}

function isList(tensors: KernelSpec["tensors"]): tensors is readonly KernelTensor[] {
  return Array.isArray(tensors);
}

/** Compiled code. It knows no context, so it can be linked into many. */
export class Code implements Disposable {
  /** The name given to `compile`. */
  readonly name: string;
  /** The device that it was compiled for. */
  readonly device: Device;
  /** The tensors, in the order of the spec. */
  readonly tensors: readonly NamedTensor[];
  /** Names of the integers that each run gives anew, in order. */
  readonly statics: readonly string[];
  readonly #raw: RawCode;
  readonly #life: Lifetime;

  private constructor(raw: RawCode, { name, tensors, raw: { statics } }: Declared, device: Device) {
    this.name = name;
    this.device = device;
    this.tensors = Object.freeze(tensors);
    this.statics = Object.freeze(statics);
    this.#raw = raw;
    this.#life = new Lifetime(`code "${name}"`, device.life);
  }

  /** @internal */
  static make(raw: RawCode, declared: Declared, device: Device): Code {
    return new Code(raw, declared, device);
  }

  /** The handle, for a context of `device`; throws where the code is of another. @internal */
  rawFor(verb: string, device: Device): RawCode {
    this.#life.check();
    if (this.device === device) return this.#raw;
    const message =
      `${verb} "${this.name}": the code was compiled for ${this.device.name}, but the context is on ${device.name}; ` +
      "compile it there";
    throw new KernelError("kernel-interface", message, []);
  }

  /** The node that is read from the merge buffer; undefined where none is. */
  get mergeInput(): TensorNode | undefined {
    return this.tensors.find(({ merged }) => merged)?.node;
  }

  /** The node under a name of the kernel's. */
  node(name: string): TensorNode {
    const tensor = this.tensors.find((one) => one.name === name);
    if (tensor) return tensor.node;
    const names = this.tensors.map((one) => `"${one.name}"`).join(", ");
    throw new WgslabError("unknown-node", `code "${this.name}" has no tensor "${name}"; it has ${names}`);
  }

  /** Whether the code, or its device, was disposed. */
  get isDisposed(): boolean {
    return this.#life.isEnded;
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

/** Throws unless `value` is a code. */
export function checkCode(what: string, value: unknown): asserts value is Code {
  checkIs(what, value, Code, "make one with await device.compile(name, wgsl, spec)");
}
