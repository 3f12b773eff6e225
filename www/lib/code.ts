// A kernel or program, compiled: its nodes and the handle that contexts link.

import { checkIs } from "./checks.ts";
import type { Device } from "./device.ts";
import { KernelError, WgslabError } from "./errors.ts";
import type { Access, Declared, NamedTensor } from "./kernel.ts";
import { Lifetime } from "./lifetime.ts";
import { TensorNode } from "./node.ts";
import { OptimizeCtx } from "./optimize-ctx.ts";
import { type RawCode, call } from "./skin.ts";
import { notesOf } from "./tuned.ts";

/** Compiled code. It knows no context, so it can be linked into many. */
export class Code implements Disposable {
  /** The name given to `compile`. */
  readonly name: string;
  /** The device that it was compiled for. */
  readonly device: Device;
  /**
   * The tensors of a kernel, in the order of the spec; of a program the nodes that it reads or writes, without its own
   * temporaries.
   */
  readonly tensors: readonly NamedTensor[];
  /** The nodes by their names in the kernel's accessors, or in the program: those given, and those that linking creates. */
  readonly nodes: Readonly<Record<string, TensorNode>>;
  /** Names of the integers that each run gives anew, in order. */
  readonly statics: readonly string[];
  readonly #raw: RawCode;
  readonly #isProgram: boolean;
  readonly #life: Lifetime;

  private constructor(raw: RawCode, { name, kernel, merged = [] }: Declared, device: Device) {
    this.name = name;
    this.device = device;
    const { nodes, tensors, statics } = kernel ? { ...kernel, nodes: named(kernel.tensors) } : partsOf(raw, merged);
    this.nodes = Object.freeze(nodes);
    this.tensors = Object.freeze(tensors);
    this.statics = Object.freeze(statics);
    this.#isProgram = kernel === undefined;
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

  /** The node under a name of the kernel's, or of the program's: one that was given, or that linking creates. */
  node(name: string): TensorNode {
    const node = this.nodes[name];
    if (node !== undefined) return node;
    const names = Object.keys(this.nodes).map((one) => `"${one}"`).join(", ");
    const remedy = this.#isProgram ? `; compile with outputs: ["${name}"] to keep a temporary of the program` : "";
    throw new WgslabError("unknown-node", `code "${this.name}" has no tensor "${name}"; it has ${names || "none"}${remedy}`);
  }

  /**
   * What compiling made, in words: where each tensor is (on the device, local to a run, or virtual) and why; then each kernel
   * with its workgroups, how its points are spread, the bytes that it reads and writes, its operations, and its schedule: how
   * many there are, and whether it was estimated or measured; then, where it was to be tuned, which kernel was not measured, and why.
   */
  explain(): string {
    this.#life.check();
    return call(() => this.#raw.explain()) + notesOf(this.#raw);
  }

  /**
   * The virtual nodes that were known when it was compiled, and those that it leaves: what `compile` takes as `in` for a program
   * that is to be linked behind it.
   */
  get optimizeCtx(): OptimizeCtx {
    this.#life.check();
    return OptimizeCtx.make(call(() => this.device.raw.contextOf(this.#raw)), this.device);
  }

  /** The nodes that a context has once the code is linked there. @internal */
  *placed(): Generator<TensorNode> {
    const merged = this.mergeInput;
    for (const node of Object.values(this.nodes)) if (node !== merged) yield node;
    // A node can be both merged and the context's own.
    if (merged && this.tensors.some(({ node, merged: isMerged }) => node === merged && !isMerged)) yield merged;
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
  checkIs(what, value, Code, "make one with await device.compile(name, text, spec)");
}

/** A record of tensors' nodes. Without a prototype: a name like `constructor` is no node. */
function named(tensors: readonly Pick<NamedTensor, "name" | "node">[]): Record<string, TensorNode> {
  const nodes: Record<string, TensorNode> = Object.create(null);
  for (const { name, node } of tensors) nodes[name] = node;
  return nodes;
}

/** What the wasm module knows of a program; `merged` names what it reads from the merge buffer. */
function partsOf(raw: RawCode, merged: readonly string[]): Pick<Code, "nodes" | "tensors" | "statics"> {
  const names = call(() => raw.names());
  const all = call(() => raw.nodes()).map((raw, at) => ({ name: names[at] as string, node: TensorNode.of(raw) }));
  const [reads, writes] = [call(() => raw.inputs()), call(() => raw.outputs())];
  const tensors = all.flatMap(({ name, node }): NamedTensor[] => {
    if (merged.includes(name)) return [{ name, node, access: "read", merged: true }];
    const access = accessOf(reads.includes(node.id), writes.includes(node.id));
    return access === undefined ? [] : [{ name, node, access, merged: false }];
  });
  return { nodes: named(all), tensors, statics: call(() => raw.statics()) };
}

function accessOf(isRead: boolean, isWritten: boolean): Access | undefined {
  if (isRead) return isWritten ? "read_write" : "read";
  return isWritten ? "write" : undefined;
}
