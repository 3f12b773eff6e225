// Routines recorded once, replayed with one call.

import { checkList, checkOptions, checkWholeNumber } from "./checks.ts";
import { KernelError, WgslabError } from "./errors.ts";
import { DeviceEvent } from "./event.ts";
import { Lifetime } from "./lifetime.ts";
import { type Routine, type Statics, checkRoutine } from "./routine.ts";
import { type RawDevice, RawSequence, call } from "./skin.ts";

/** A routine of a sequence, with values for its statics if it has any. */
export type SequenceStep = Routine | readonly [routine: Routine, statics?: Statics];

/** How to replay a sequence. */
export interface ReplayOptions {
  /** How often; once if left out, and a million times at most. Each replay is recorded before this returns. */
  times?: number;
  /**
   * The value of a static in a replay, counted from 0; `recorded` is the value that it was recorded with. Called once for
   * each static of each routine in each replay, in their order, before anything runs. The recorded values if left out.
   */
  statics?: (replay: number, name: string, recorded: number, routine: Routine) => number;
}

// A second or so of recording, which the page waits for.
const MOST_REPLAYS = 1_000_000;
// What one replay call may take for values of statics, in bytes.
const LARGEST_VALUES = 2 ** 30;

/** Routines of one device, checked once and replayed with one call. They stay their owner's, and must outlive it. */
export class Sequence implements Disposable {
  /** The routines, in order. */
  readonly routines: readonly Routine[];
  readonly #raw: RawSequence;
  readonly #device: RawDevice;
  readonly #life: Lifetime;
  /** The recorded values of all statics, in order. */
  readonly #recorded: Int32Array;

  private constructor(raw: RawSequence, routines: readonly Routine[], recorded: Int32Array) {
    const { device } = (routines[0] as Routine).context;
    this.routines = Object.freeze(routines);
    this.#raw = raw;
    this.#device = device.raw;
    this.#recorded = recorded;
    this.#life = new Lifetime(`sequence of ${routines.length} routines`, device.life);
    this.#life.watch(this);
  }

  /** Records routines of one device, each alone or with its statics: `[routine, { step: 0 }]`. */
  static record(steps: readonly SequenceStep[]): Sequence {
    checkList("a sequence's steps", steps);
    const routines: Routine[] = [];
    const values: number[] = [];
    for (const step of steps) {
      const [routine, statics = {}] = Array.isArray(step) ? (step as [Routine, Statics?]) : [step as Routine];
      checkRoutine("a sequence's step", routine);
      checkSameDevice(routines[0] ?? routine, routine);
      values.push(...routine.pack(statics));
      routines.push(routine);
    }
    if (routines.length === 0) {
      throw new KernelError("kernel-interface", "a sequence of no routines; record one at least", []);
    }
    const recorded = Int32Array.from(values);
    const raws = routines.map(({ raw }) => raw);
    return new Sequence(call(() => RawSequence.make(raws, recorded)), routines, recorded);
  }

  /** How many routines a replay runs. */
  get length(): number {
    return this.routines.length;
  }

  /**
   * Queues replays, `times` in a row, and gives the event of the last run. Throws `not-run`, and runs nothing, where a
   * routine depends on one that neither ran nor comes before it here.
   */
  run(options: ReplayOptions = {}): DeviceEvent {
    this.#life.check();
    checkOptions("a sequence's run", options, ["times", "statics"]);
    const { times = 1, statics } = options;
    checkWholeNumber("a sequence's times", times, 0, 2 ** 32 - 1);
    if (times > MOST_REPLAYS) {
      const message = `${this.#life.name}: ${times} replays are more than the ${MOST_REPLAYS} of one call; replay in parts`;
      throw new WgslabError("limit-exceeded", message);
    }
    const values = statics && this.#values(times, statics);
    return DeviceEvent.make(this.#device, call(() => this.#raw.run(times, values)));
  }

  /** The values of all replays in one array, which crosses into the wasm module once. */
  #values(times: number, statics: NonNullable<ReplayOptions["statics"]>): Int32Array {
    const count = this.#recorded.length;
    if (times * count * 4 > LARGEST_VALUES) {
      const message = `${this.#life.name}: ${times} replays of ${count} statics are too many for one call; replay in parts`;
      throw new WgslabError("limit-exceeded", message);
    }
    const values = new Int32Array(times * count);
    let at = 0;
    for (let replay = 0; replay < times; replay++) {
      for (const routine of this.routines) {
        for (const name of routine.statics) {
          const value = statics(replay, name, this.#recorded[at % count] as number, routine);
          if ((value | 0) !== value) throw routine.badStatic(name, value);
          values[at++] = value;
        }
      }
    }
    return values;
  }

  /** Whether the sequence, or its device, was disposed. */
  get isDisposed(): boolean {
    return this.#life.isEnded;
  }

  /** Frees the sequence, not its routines. Runs already queued go on. */
  dispose(): void {
    if (this.#life.end()) call(() => this.#raw.free());
  }

  /** {@link dispose} */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

function checkSameDevice(first: Routine, other: Routine): void {
  const [here, there] = [first.context.device, other.context.device];
  if (here === there) return;
  const message =
    `a sequence runs on one device, but "${first.name}" is on ${here.name} and "${other.name}" on ${there.name}; ` +
    "record one for each";
  throw new KernelError("kernel-interface", message, []);
}
