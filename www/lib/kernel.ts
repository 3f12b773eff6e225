// A WGSL kernel as it is declared: its tensors, statics and grid.

import type { DType } from "./arrays.ts";
import { checkList, checkObject, checkText } from "./checks.ts";
import { KernelError, WgslabError } from "./errors.ts";
import { type TensorNode, checkNode } from "./node.ts";
import type { CompileIn } from "./optimize-ctx.ts";
import type { RawSource } from "./skin.ts";

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
  /** As for a program. It changes nothing: kernels of WGSL cannot have virtual nodes. */
  in?: CompileIn;
  /** Rejects with the signal's reason when it fires. */
  signal?: AbortSignal;
}

/** A kernel of a batch. */
export interface Kernel {
  /** The name that messages and reports use. */
  name: string;
  /** The WGSL text. */
  wgsl: string;
  /** What it declares. The signal of a batch is its own, and so is what it is compiled in. */
  spec: Omit<KernelSpec, "signal" | "in">;
}

/** A tensor of a kernel or program, under its name. */
export interface NamedTensor {
  /** Its name in the kernel's accessors, or in the program. */
  readonly name: string;
  /** The node. */
  readonly node: TensorNode<DType>;
  /** How it is used. */
  readonly access: Access;
  /** Whether it is read from the merge buffer. */
  readonly merged: boolean;
}

const LARGEST_GRID = 2 ** 32 - 1;

/** What is compiled, as the wasm module takes it, and what only JavaScript knows of it. @internal */
export interface Declared {
  readonly name: string;
  readonly raw: RawSource;
  /** What a kernel declares; what a program uses, its compilation says. */
  readonly kernel?: { readonly tensors: readonly NamedTensor[]; readonly statics: readonly string[] };
  /** Names in a program of what is read from the merge buffer. */
  readonly merged?: readonly string[];
  /** Whether a program's schedules are measured. */
  readonly tune?: "quick" | "full" | undefined;
  /** Milliseconds that measuring a program's schedules may take. */
  readonly tuneBudgetMs?: number | undefined;
}

/** A kernel, once its declaration has the types that the wasm module takes. */
export function declareKernel(name: string, wgsl: string, spec: Omit<KernelSpec, "signal">): Declared {
  checkText("a kernel's name", name);
  checkText(`the WGSL text of "${name}"`, wgsl);
  checkObject(`compile "${name}": the declaration`, spec, "pass { tensors, grid }");
  checkNoProgram(name, spec);
  const tensors = namedTensors(name, spec);
  const { statics = [] } = spec;
  checkList(`compile "${name}": the statics`, statics);
  for (const one of statics) checkText(`compile "${name}": a static's name`, one);
  const raw = {
    tensors: tensors.map(({ name, access, merged }) => ({ name, access, merged })),
    statics: [...statics],
    grid: gridOf(name, spec),
  };
  return { name, raw: [name, wgsl, raw, tensors.map(({ node }) => node.raw)], kernel: { tensors, statics: raw.statics } };
}

function checkNoProgram(kernel: string, spec: object): void {
  const strange = Object.keys(spec).find((key) => ["nodes", "merged", "outputs"].includes(key));
  if (strange === undefined) return;
  const message = `compile "${kernel}": ${strange} are a program's, and tensors a WGSL kernel's; leave out one of the two`;
  throw new WgslabError("unsupported", message);
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
