// Explicit lifetimes: dispose once, refuse every later use by name, and warn about what was forgotten.

import { WgslabError } from "./errors.ts";

// Node 20.0 to 20.4 and browsers of before 2025 have no Symbol.dispose; `using`, compiled down, finds this one.
if (typeof Symbol.dispose !== "symbol") {
  Object.defineProperty(Symbol, "dispose", { value: Symbol.for("Symbol.dispose") });
}

// Only a diagnostic: collection may come late or never, and frees no GPU memory by itself.
const forgotten =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry<Lifetime>((lifetime) => {
        if (lifetime.isEnded) return;
        lifetime.noteForgotten();
        console.warn(
          `wgslab: ${lifetime.name} was garbage-collected without dispose, so its memory was kept for longer than it ` +
            "was used; call dispose() or declare it with `using`",
        );
      });

/** How many forgotten objects a device remembers: the newest. */
const REMEMBERED = 100;

/** Whether an object can still be used. It ends with its parent: a context with its device. */
export class Lifetime {
  readonly name: string;
  readonly #parent: Lifetime | undefined;
  #hasEnded = false;
  #forgotten: string[] = [];

  constructor(name: string, parent?: Lifetime) {
    this.name = name;
    this.#parent = parent;
  }

  /** Warns when `owner` is collected before this ends. */
  watch(owner: object): void {
    forgotten?.register(owner, this);
  }

  /** Remembers with the device that this was collected without having ended. */
  noteForgotten(): void {
    let device: Lifetime = this;
    while (device.#parent) device = device.#parent;
    device.#forgotten = [...device.#forgotten, this.name].slice(-REMEMBERED);
  }

  /** Names of what was collected without having ended, the newest last. */
  get forgotten(): readonly string[] {
    return [...this.#forgotten];
  }

  get isEnded(): boolean {
    return this.#hasEnded || (this.#parent?.isEnded ?? false);
  }

  /** Ends this; false if it had ended already. */
  end(): boolean {
    if (this.isEnded) return false;
    this.#hasEnded = true;
    return true;
  }

  /** Throws `disposed`, naming the object, once this has ended. */
  check(): void {
    if (this.#hasEnded) {
      throw new WgslabError("disposed", `${this.name} was disposed; make another, or dispose it after its last use`);
    }
    this.#parent?.check();
  }
}
