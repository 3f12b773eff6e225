// Code linked into a context: what runs.

import type { Context } from "./context.ts";
import { KernelError } from "./errors.ts";
import { DeviceEvent } from "./event.ts";
import { Lifetime } from "./lifetime.ts";
import { type RawDevice, type RawRoutine, call, checkTrap, thrownBySkin } from "./skin.ts";

/** Code linked into a context. Running it records one dispatch and returns at once. */
export class Routine implements Disposable {
  /** The name of its code. */
  readonly name: string;
  /** A child of the context it was linked into, with the nodes that linking made. Disposed with the routine. */
  readonly context: Context;
  /** Names of the integers that `run` takes. */
  readonly statics: readonly string[];
  /** Names of the tensors it reads. */
  readonly inputs: readonly string[];
  /** Names of the tensors it writes. */
  readonly outputs: readonly string[];
  readonly #raw: RawRoutine;
  readonly #device: RawDevice;
  readonly #life: Lifetime;
  readonly #values: Int32Array;

  private constructor(raw: RawRoutine, name: string, context: Context) {
    this.#raw = raw;
    this.#device = context.device.raw;
    this.#life = new Lifetime(`routine "${name}"`, context.device.life);
    this.#life.watch(this);
    this.name = name;
    this.context = context;
    this.statics = Object.freeze(call(() => raw.statics()));
    this.inputs = Object.freeze(call(() => raw.inputs()));
    this.outputs = Object.freeze(call(() => raw.outputs()));
    this.#values = new Int32Array(this.statics.length);
  }

  /** @internal */
  static make(raw: RawRoutine, name: string, context: Context): Routine {
    return new Routine(raw, name, context);
  }

  /**
   * Queues one run. `statics` gives each static its value, a whole number of 32 bits with sign. Batches of runs are
   * submitted together: when someone awaits or reads back, and at bounds by count and bytes.
   */
  run(statics?: Readonly<Record<string, number>>): DeviceEvent {
    this.#life.check();
    checkTrap();
    const values = statics === undefined && this.statics.length === 0 ? undefined : this.#pack(statics ?? {});
    try {
      return DeviceEvent.make(this.#device, this.#raw.run(values));
    } catch (thrown) {
      throw thrownBySkin(thrown);
    }
  }

  /** The values in the order of the names. The wasm module copies them, so one array serves every run. */
  #pack(statics: Readonly<Record<string, number>>): Int32Array {
    const names = this.statics;
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string;
      const value = statics[name];
      if (value === undefined || (value | 0) !== value) throw this.#badStatic(name, value);
      this.#values[index] = value;
    }
    for (const name in statics) if (!names.includes(name)) throw this.#badStatic(name, statics[name]);
    return this.#values;
  }

  #badStatic(name: string, value: number | undefined): KernelError {
    const problem = !this.statics.includes(name)
      ? `has no static "${name}"; it has ${this.statics.map((one) => `"${one}"`).join(", ") || "none"}`
      : `needs a 32-bit integer for static "${name}", got ${value}; pass { ${name}: 0 }, for example`;
    return new KernelError("kernel-interface", `run: routine "${this.name}" ${problem}`, []);
  }

  /** The binding plan that linking chose, in words. */
  explain(): string {
    this.#life.check();
    return call(() => this.#raw.explain());
  }

  /** Whether the routine, or its device, was disposed. */
  get isDisposed(): boolean {
    return this.#life.isEnded;
  }

  /** Frees the routine and disposes its context, with the nodes that linking made. Runs already queued go on. */
  dispose(): void {
    if (!this.#life.end()) return;
    this.context.dispose();
    call(() => this.#raw.free());
  }

  /** {@link dispose} */
  [Symbol.dispose](): void {
    this.dispose();
  }
}
