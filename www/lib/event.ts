// A point in a device's queue of work.

import { type RawDevice, call, callAsync } from "./skin.ts";

/**
 * "The runner has passed this point": returned by everything that queues work. It is not a promise; `completed` is
 * one, made when first asked for, so an event that nobody looks at costs nothing and rejects nowhere. Its failure
 * still surfaces at the next readback and in `device.lost`.
 */
export class DeviceEvent {
  /** The position in the device's order of work: later work has a larger number. */
  readonly seq: number;
  readonly #device: RawDevice;
  #completed: Promise<void> | undefined;

  private constructor(device: RawDevice, seq: number) {
    this.#device = device;
    this.seq = seq;
  }

  /** @internal */
  static make(device: RawDevice, seq: number): DeviceEvent {
    return new DeviceEvent(device, seq);
  }

  /** @internal */
  get device(): RawDevice {
    return this.#device;
  }

  /** Whether the work is done. Never waits. */
  get isDone(): boolean {
    return call(() => this.#device.eventIsDone(this.seq));
  }

  /** Resolves when the work is done; rejects if it, or work that it depends on, failed. */
  get completed(): Promise<void> {
    this.#completed ??= callAsync(() => this.#device.eventWait(this.seq));
    return this.#completed;
  }
}
