// Code linked into a context, or a copy: what runs.

import { checkIs, describe } from "./checks.ts";
import type { Code } from "./code.ts";
import type { Context } from "./context.ts";
import { KernelError } from "./errors.ts";
import { DeviceEvent } from "./event.ts";
import { Lifetime } from "./lifetime.ts";
import type { TensorNode } from "./node.ts";
import { type RawDevice, type RawRoutine, call, checkTrap, thrownBySkin } from "./skin.ts";

/** Values of statics, by name: whole numbers of 32 bits with sign. */
export type Statics = Readonly<Record<string, number>>;

/** A routine that must run before another. */
export interface ExecutionDep {
  /** Its {@link Routine.id}. */
  readonly id: number;
  /** Its name. */
  readonly name: string;
}

/** What a routine is made of: a code, or the nodes that a copy reads and writes. @internal */
export type Work = Code | { readonly name: string; readonly reads: readonly TensorNode[]; readonly writes: readonly TensorNode[] };

const NO_STATICS: readonly string[] = Object.freeze([]);

/** Code linked into a context, or a copy between contexts. Running it records one task and returns at once. */
export class Routine implements Disposable {
  /** Unique in the page, in the order of linking. */
  readonly id: number;
  /** The name of its code; a copy is called for its node. */
  readonly name: string;
  /** A child of the context it was linked into, with the nodes that linking made. Disposed with the routine. */
  readonly context: Context;
  /** The code that was linked; undefined for a copy. */
  readonly code: Code | undefined;
  readonly #work: Work;
  readonly #raw: RawRoutine;
  readonly #device: RawDevice;
  readonly #life: Lifetime;
  readonly #values: Int32Array;
  readonly #onDispose: (() => void) | undefined;
  #inputs: readonly string[] | undefined;
  #outputs: readonly string[] | undefined;

  // Linking costs nothing per tensor: what is known of the code is looked up when it is asked for.
  private constructor(raw: RawRoutine, context: Context, work: Work, onDispose?: () => void) {
    this.#raw = raw;
    this.#device = context.device.raw;
    this.#work = work;
    this.#onDispose = onDispose;
    this.id = raw.id;
    this.name = work.name;
    this.context = context;
    this.code = "tensors" in work ? work : undefined;
    this.#life = new Lifetime(`routine "${work.name}"`, context.device.life);
    this.#life.watch(this);
    this.#values = new Int32Array(this.statics.length);
  }

  /** `onDispose` comes after the context's disposal. @internal */
  static make(raw: RawRoutine, context: Context, work: Work, onDispose?: () => void): Routine {
    return new Routine(raw, context, work, onDispose);
  }

  /** @internal */
  get raw(): RawRoutine {
    this.#life.check();
    return this.#raw;
  }

  /** Names of the integers that `run` takes. */
  get statics(): readonly string[] {
    return this.code?.statics ?? NO_STATICS;
  }

  /** Labels of the nodes of its context that it reads. */
  get inputs(): readonly string[] {
    this.#inputs ??= labels(this.#work, "reads", (access) => access !== "write");
    return this.#inputs;
  }

  /** Labels of the nodes of its context that it may change. */
  get outputs(): readonly string[] {
    this.#outputs ??= labels(this.#work, "writes", (access) => access !== "read");
    return this.#outputs;
  }

  /** The node that the merge buffer must hold when it runs; undefined for one that merges nothing. */
  get mergeBufferInput(): TensorNode | undefined {
    return this.code?.mergeInput;
  }

  /**
   * The routines that must run before this one may, and have not yet: those linked before it, in its line of contexts,
   * that write what it reads, or touch what it writes.
   */
  get executionDeps(): readonly ExecutionDep[] {
    const flat = call(() => this.raw.executionDeps());
    const deps: ExecutionDep[] = [];
    for (let at = 0; at < flat.length; at += 2) deps.push({ id: flat[at] as number, name: flat[at + 1] as string });
    return deps;
  }

  /** Whether everything that must run before has run. */
  get canRun(): boolean {
    return call(() => this.raw.canRun());
  }

  /**
   * Queues one run. `statics` gives each static its value, a whole number of 32 bits with sign. Batches of runs are
   * submitted together: when someone awaits or reads back, and at bounds by count and bytes.
   */
  run(statics?: Statics): DeviceEvent {
    this.#life.check();
    checkTrap();
    const values = statics === undefined && this.statics.length === 0 ? undefined : this.pack(statics ?? {});
    try {
      return DeviceEvent.make(this.#device, this.#raw.run(values));
    } catch (thrown) {
      throw thrownBySkin(thrown);
    }
  }

  /** The values in the order of the names, in an array that the next call fills anew. @internal */
  pack(statics: Statics): Int32Array {
    const names = this.statics;
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string;
      const value = statics[name];
      if (value === undefined || (value | 0) !== value) throw this.badStatic(name, value);
      this.#values[index] = value;
    }
    for (const name in statics) if (!names.includes(name)) throw this.badStatic(name, statics[name]);
    return this.#values;
  }

  /** @internal */
  badStatic(name: string, value: number | undefined): KernelError {
    const problem = !this.statics.includes(name)
      ? `has no static "${name}"; it has ${this.statics.map((one) => `"${one}"`).join(", ") || "none"}`
      : `needs a 32-bit integer for static "${name}", got ${describe(value)}; pass { ${name}: 0 }, for example`;
    return new KernelError("kernel-interface", `run: routine "${this.name}" ${problem}`, []);
  }

  /** The binding plan that linking chose, in words. */
  explain(): string {
    return call(() => this.raw.explain());
  }

  /** Whether the routine, or its device, was disposed. */
  get isDisposed(): boolean {
    return this.#life.isEnded;
  }

  /**
   * Frees the routine and disposes its context, with the nodes that linking made; those of a batch go with the last
   * routine of it. Runs already queued go on.
   */
  dispose(): void {
    if (!this.#life.end()) return;
    this.context.dispose();
    call(() => this.#raw.free());
    this.#onDispose?.();
  }

  /** {@link dispose} */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Throws unless `value` is a routine. */
export function checkRoutine(what: string, value: unknown): asserts value is Routine {
  checkIs(what, value, Routine, "make one with await context.link(code)");
}

/** The labels of a work's nodes with such an access, each node once; not the merge buffer's. */
function labels(work: Work, side: "reads" | "writes", wanted: (access: string) => boolean): readonly string[] {
  const nodes =
    "tensors" in work
      ? new Set(work.tensors.filter(({ access, merged }) => !merged && wanted(access)).map(({ node }) => node))
      : work[side];
  return Object.freeze(Array.from(nodes, (node) => node.label));
}
