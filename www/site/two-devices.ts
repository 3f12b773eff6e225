// Two devices train one network: each takes half of every batch, and the gradients of the other come into its merge
// buffer. Beside them, one device with whole batches, by the same programs. As examples/two_devices, step for step.

import { type AdapterInfo, type Context, type Device, type Routine, Sequence, type TensorNode } from "../lib/index.ts";
import { type Digits, inputsOf } from "./data.ts";
import { breathe, openDevice } from "./open.ts";
import { type Batches, type Kernel, type Nodes, PROGRAM, get, link, makeNodes } from "./program.ts";
import { PLANNED_NODES, STEPS, TRAINING } from "./two-program.ts";

/** Who trains: both devices together, or one alone. */
export type Side = "two" | "joined";

/** What training tells on its way. */
export interface Watcher {
  /** There is no GPU, and what that means. */
  fellBack(notice: string): void;
  /** Both devices are open. */
  opened(devices: Result["devices"]): void;
  /** A read of the losses arrived: of whole batches, up to and with `step`, since the last read of that side. */
  progressed(progress: { side: Side; step: number; losses: Float32Array }): void;
}

/** How far weights are apart: the largest difference, and that over the largest weight. */
export interface Difference {
  absolute: number;
  relative: number;
}

/** The result, under the names that the native example's JSON has. */
export interface Result {
  driver: string;
  devices: { name: string; adapter: AdapterInfo }[];
  epochs: number;
  steps: number;
  losses: { step: number; devices: number[]; joined: number }[];
  test_accuracy: { devices: number[]; joined: number };
  between_devices: Difference;
  to_joined: Difference;
  tolerance: { between_devices: number; to_joined: number };
  seconds: { two_devices: number; joined: number };
  agrees: boolean;
}

/** What devices that train together have in common: the nodes, so that they can go from one to the other. */
interface Shared {
  batches: Batches;
  nodes: Nodes;
}

function share(device: Device, batches: Batches): Shared {
  const nodes = makeNodes(device, PLANNED_NODES, batches);
  for (const { name, of, start, shape } of TRAINING.views) {
    nodes[name] = get(nodes, of).view(name, { offset: start, shape });
  }
  return { batches, nodes };
}

/** A device's part: the data, its own weights, and the routines of its steps. */
class Trainer {
  readonly device: Device;
  #nodes: Nodes;
  /** The end of the line of contexts, which has everything. */
  context: Context;
  #setup: Routine[] = [];
  #step: Sequence | undefined;
  #update: Sequence | undefined;
  #test: Sequence | undefined;

  constructor(device: Device, { batches, nodes }: Shared, digits: Digits) {
    this.device = device;
    this.#nodes = nodes;
    const inputs = inputsOf(digits, batches);
    // The weights are one node, and each layer's a view of it; so are the gradients, which travel in one piece.
    this.context = device
      .context()
      .uploadAll(PROGRAM.inputs.map((name) => [this.node(name), inputs[name] as ArrayBufferView] as const))
      .zeros(TRAINING.state.map((name) => this.node(name)))
      .alias(TRAINING.views.map(({ name }) => this.node(name)));
  }

  node(name: string): TensorNode {
    return get(this.#nodes, name);
  }

  /** Links what computes the gradients. */
  async linkStep(): Promise<Context> {
    this.#setup = await this.#link(PROGRAM.setup);
    this.#step = sequence(await this.#link(TRAINING.step));
    return this.context;
  }

  /** Links what changes the weights: by the mean of both gradients where there is another device, else by the own. */
  async linkUpdate(other?: Context): Promise<void> {
    const { node, merged_as, merged_into } = TRAINING.exchange;
    const gradients = this.node(node);
    const routines: Routine[] = [];
    if (other) {
      const copy = this.context.deviceToDevice(gradients, other, { into: "merge-buffer" });
      if (!copy) throw new Error("nothing to copy between the devices");
      // The context of the copy carries the node that the merge buffer holds: who merges it is linked there.
      this.context = copy.context;
      routines.push(copy, ...(await this.#link(TRAINING.merge, { [merged_as]: gradients })));
    } else {
      // What it has is all there is.
      this.#nodes = { ...this.#nodes, [merged_into]: gradients };
    }
    routines.push(...(await this.#link(TRAINING.update)));
    this.#update = sequence(routines);
    this.#test = sequence(await this.#link(PROGRAM.test));
  }

  /** Gives the weights their first values. */
  start(): void {
    for (const routine of this.#setup) routine.run({ seed: PROGRAM.hyperparameters.seed });
  }

  /** Queues a step up to the gradients, on the batch of that number. */
  queueGradients(batch: number): void {
    this.#step?.run({ statics: () => batch });
  }

  /** Queues the change of the weights. Where there is another device, its gradients are taken as they are now. */
  queueUpdate(): void {
    this.#update?.run();
  }

  async losses(): Promise<Float32Array> {
    return (await this.context.readback(this.node("losses"))) as Float32Array;
  }

  async weights(): Promise<Float32Array> {
    return (await this.context.readback(this.node("weights"))) as Float32Array;
  }

  /** The share of the test rows that are read right. */
  async test(): Promise<number> {
    this.#test?.run();
    const [accuracy] = await this.context.readbackAll(PROGRAM.outputs.map((name) => this.node(name)));
    return Number(accuracy?.[0]);
  }

  async #link(kernels: readonly Kernel[], merged?: Nodes): Promise<Routine[]> {
    const linked = await link(this.context, kernels, this.#nodes, merged);
    this.context = linked.context;
    return linked.routines;
  }
}

/** Routines as one call; the number of the batch is the only static that they have. */
function sequence(routines: Routine[]): Sequence {
  return Sequence.record(routines.map((routine) => [routine, routine.statics.length > 0 ? { batch: 0 } : {}]));
}

/** Trains on two devices together, then on the first alone, and compares. */
export async function trainOnTwo(digits: Digits, watcher: Watcher): Promise<Result> {
  using one = await openDevice((notice) => watcher.fellBack(notice));
  using other = await openDevice(() => {});
  const devices = [one, other].map(({ name, adapter }) => ({ name, adapter }));
  watcher.opened(devices);
  const { batch } = PROGRAM.hyperparameters;

  const halves = share(one, { count: 2 * STEPS, rows: batch / 2 });
  const pair = [new Trainer(one, halves, digits), new Trainer(other, halves, digits)] as const;
  const [here, there] = [await pair[0].linkStep(), await pair[1].linkStep()];
  await pair[0].linkUpdate(there);
  await pair[1].linkUpdate(here);
  const two = await train(pair, "two", watcher);

  const alone = new Trainer(one, share(one, { count: STEPS, rows: batch }), digits);
  await alone.linkStep();
  await alone.linkUpdate();
  const joined = await train([alone], "joined", watcher);

  const [mine, theirs, reference] = [await pair[0].weights(), await pair[1].weights(), await alone.weights()];
  const between = difference(mine, theirs);
  const toJoined = [mine, theirs].map((weights) => difference(weights, reference));
  const furthest = toJoined.reduce((most, each) => (each.relative > most.relative ? each : most));
  const isOneAdapter = JSON.stringify(one.adapter) === JSON.stringify(other.adapter);
  // Devices of one adapter do the same with the same numbers.
  const tolerance = { between_devices: isOneAdapter ? 0 : TRAINING.tolerance, to_joined: TRAINING.tolerance };
  return {
    driver: one.driver,
    devices,
    epochs: TRAINING.epochs,
    steps: STEPS,
    losses: two.losses.map(({ step, losses }, index) => {
      return { step, devices: losses, joined: joined.losses[index]?.losses[0] as number };
    }),
    test_accuracy: { devices: [await pair[0].test(), await pair[1].test()], joined: await alone.test() },
    between_devices: between,
    to_joined: furthest,
    tolerance,
    seconds: { two_devices: two.seconds, joined: joined.seconds },
    agrees: between.relative <= tolerance.between_devices && toJoined.every(({ relative }) => relative <= tolerance.to_joined),
  };
}

/** Trains from the first weights; the losses of the steps at which they were read, and how long it took. */
async function train(
  trainers: readonly Trainer[],
  side: Side,
  watcher: Watcher,
): Promise<{ losses: { step: number; losses: number[] }[]; seconds: number }> {
  const start = performance.now();
  const count = trainers.length;
  for (const trainer of trainers) trainer.start();
  const losses: { step: number; losses: number[] }[] = [];
  let onItsWay: Promise<void> | undefined;
  let first = 0;
  for (let step = 0; step < STEPS; step++) {
    // Device d of n reads batch n step + d, of batches that are the nth part of a whole one: the same rows.
    trainers.forEach((trainer, index) => trainer.queueGradients(count * step + index));
    // The gradients of this step are there until the next: each device takes the other's before.
    for (const trainer of trainers) trainer.queueUpdate();
    if (step + 1 - first < PROGRAM.read_loss_every && step + 1 < STEPS) continue;
    // The reads are queued now, and awaited when the next steps are queued too: no device idles.
    const next = read(first, step);
    next.catch(() => {}); // Awaited later; until then a failure is nobody's.
    first = step + 1;
    await onItsWay;
    onItsWay = next;
    for (const { device } of trainers) await breathe(device);
  }
  await onItsWay;
  return { losses, seconds: (performance.now() - start) / 1000 };

  // The loss of batch b is at b.
  async function read(from: number, to: number): Promise<void> {
    const all = await Promise.all(trainers.map((trainer) => trainer.losses()));
    const at = (step: number): number[] => all.map((values, index) => values[count * step + index] as number);
    const mean = (step: number): number => at(step).reduce((sum, loss) => sum + loss, 0) / count;
    losses.push({ step: to, losses: at(to) });
    const fresh = Float32Array.from({ length: to + 1 - from }, (_, index) => mean(from + index));
    watcher.progressed({ side, step: to, losses: fresh });
  }
}

/** How far weights are from others. A NaN is the largest of all: it must not pass for a small difference. */
export function difference(weights: Float32Array, reference: Float32Array): Difference {
  let [absolute, largest] = [0, 0];
  weights.forEach((weight, index) => {
    const apart = Math.abs(weight - (reference[index] as number));
    if (!(apart <= absolute)) absolute = apart;
    largest = Math.max(largest, Math.abs(reference[index] as number));
  });
  return { absolute, relative: absolute === 0 ? 0 : absolute / largest };
}
