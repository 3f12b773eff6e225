// Two devices train one network: each takes half of every batch, and the gradients of the other come into its merge
// buffer. Beside them, one device with whole batches, by the same kernels. As examples/two_devices, step for step.

import { type AdapterInfo, type Context, Device, type Routine, Sequence, type TensorNode } from "../lib/index.ts";
import type { Digits } from "./data.ts";
import { PROGRAM } from "./program.ts";
import { type PlannedKernel, STEPS, TRAINING, plannedNodes, textOf } from "./two-program.ts";

// Invocations of a workgroup, in every kernel that has one invocation per element.
const WORKGROUP = 64;

/** Who trains: both devices together, or one alone. */
export type Side = "two" | "joined";

/** What training tells on its way. */
export interface Watcher {
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

type Nodes = ReadonlyMap<string, TensorNode>;

/** Nodes for a device that takes so many rows of each batch; alone, it has nothing to merge. */
function makeNodes(device: Device, rows: number, isAlone: boolean): Nodes {
  const nodes = new Map<string, TensorNode>();
  for (const { name, dtype, shape } of plannedNodes(rows)) nodes.set(name, device.node(name, { dtype, shape }));
  for (const { name, of, start, shape } of TRAINING.views) {
    nodes.set(name, get(nodes, of).view(name, { offset: start, shape }));
  }
  if (isAlone) nodes.set(TRAINING.exchange.merged_into, get(nodes, TRAINING.exchange.node));
  return nodes;
}

function get(nodes: Nodes, name: string): TensorNode {
  const node = nodes.get(name);
  if (!node) throw new Error(`program.json: there is no node "${name}"`);
  return node;
}

/** A device's part: the data, its own weights, and the routines of its steps. */
class Trainer {
  readonly device: Device;
  readonly nodes: Nodes;
  /** The end of the line of contexts, which has everything. */
  context: Context;
  #setup: Routine[] = [];
  #step: Sequence | undefined;
  #update: Sequence | undefined;
  #test: Sequence | undefined;

  constructor(device: Device, nodes: Nodes, digits: Digits) {
    const { learning_rate, momentum } = PROGRAM.hyperparameters;
    const inputs: Record<string, ArrayBufferView> = {
      pixels: digits.pixels,
      labels: digits.labels,
      train_order: digits.trainOrder,
      test_order: digits.testOrder,
      settings: new Float32Array([learning_rate, momentum]),
    };
    this.device = device;
    this.nodes = nodes;
    // The weights are one node, and each layer's a view of it; so are the gradients, which travel in one piece.
    this.context = device
      .context()
      .uploadAll(PROGRAM.inputs.map((name) => [this.node(name), inputs[name] as ArrayBufferView] as const))
      .zeros(TRAINING.state.map((name) => this.node(name)))
      .alias(TRAINING.views.map(({ name }) => this.node(name)));
  }

  node(name: string): TensorNode {
    return get(this.nodes, name);
  }

  /** Links the kernels up to the gradients. */
  async linkStep(): Promise<Context> {
    this.#setup = await this.#link(PROGRAM.setup);
    this.#step = sequence(await this.#link(TRAINING.step));
    return this.context;
  }

  /** Links what changes the weights: by the mean of both gradients where there is another device, else by the own. */
  async linkUpdate(other?: Context): Promise<void> {
    const routines: Routine[] = [];
    if (other) {
      const copy = this.context.deviceToDevice(this.node(TRAINING.exchange.node), other, { into: "merge-buffer" });
      if (!copy) throw new Error("nothing to copy between the devices");
      // The context of the copy carries the node that the merge buffer holds: who merges it is linked there.
      this.context = copy.context;
      routines.push(copy, ...(await this.#link(TRAINING.merge)));
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
    const read = await this.context.readbackAll(PROGRAM.outputs.map((name) => this.node(name)));
    const [labels, predictions] = read as unknown as [Uint32Array, Uint32Array];
    return predictions.filter((prediction, row) => prediction === labels[row]).length / labels.length;
  }

  async #link(kernels: readonly PlannedKernel[]): Promise<Routine[]> {
    const compiled = kernels.map((kernel) => this.#compile(kernel));
    const routines: Routine[] = [];
    for (const code of await Promise.all(compiled)) {
      const routine = await this.context.link(code);
      this.context = routine.context;
      routines.push(routine);
    }
    return routines;
  }

  #compile(kernel: PlannedKernel): ReturnType<Device["compile"]> {
    const { name, grid, statics, tensors } = kernel;
    const workgroups = (over: string[]): number =>
      Math.ceil(over.reduce((sum, node) => sum + this.node(node).length, 0) / WORKGROUP);
    return this.device.compile(name, textOf(kernel), {
      tensors: tensors.map((tensor) => ({ ...tensor, node: this.node(tensor.node) })),
      statics,
      grid: "over" in grid ? [workgroups(grid.over)] : (grid as [number, number, number]),
    });
  }
}

/** Routines as one call; the number of the batch is the only static that they have. */
function sequence(routines: Routine[]): Sequence {
  return Sequence.record(routines.map((routine) => [routine, routine.statics.length > 0 ? { step: 0 } : {}]));
}

/** Trains on two devices together, then on the first alone, and compares. */
export async function trainOnTwo(digits: Digits, watcher: Watcher): Promise<Result> {
  using one = await Device.open();
  using other = await Device.open();
  const devices = [one, other].map(({ name, adapter }) => ({ name, adapter }));
  watcher.opened(devices);
  const { batch } = PROGRAM.hyperparameters;

  const halves = makeNodes(one, batch / 2, false);
  const pair = [new Trainer(one, halves, digits), new Trainer(other, halves, digits)] as const;
  const [here, there] = [await pair[0].linkStep(), await pair[1].linkStep()];
  await pair[0].linkUpdate(there);
  await pair[1].linkUpdate(here);
  const two = await train(pair, "two", watcher);

  const alone = new Trainer(one, makeNodes(one, batch, true), digits);
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
  }
  await onItsWay;
  return { losses, seconds: (performance.now() - start) / 1000 };

  // The losses lie round and round in their nodes, that of batch b at b.
  async function read(from: number, to: number): Promise<void> {
    const all = await Promise.all(trainers.map((trainer) => trainer.losses()));
    const at = (step: number): number[] =>
      all.map((values, index) => values[(count * step + index) % values.length] as number);
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
