// The trainer: uploads the digits once, links the program's kernels, and queues steps. The host reads the losses every
// few steps, without waiting for them before it queues more.

import { type AdapterInfo, type Context, Device, type MemoryReport, type Routine, type TensorNode } from "../lib/index.ts";
import type { Digits } from "./data.ts";
import { KERNELS, type Kernel, PROGRAM, stepCount } from "./program.ts";

// One read is on its way while the next steps run; a third would only grow the queue.
const READS_IN_FLIGHT = 2;

/** What training tells on its way. */
export interface Watcher {
  /** The device is open. */
  opened(adapter: AdapterInfo): void;
  /** Everything has its place in memory. */
  placed(report: MemoryReport): void;
  /** A read of the losses arrived: those of steps up to and with `step`, since the last read. */
  progressed(progress: { step: number; steps: number; losses: Float32Array; seconds: number }): void;
}

/** The result, under the names that the native example's JSON has. */
export interface Result {
  driver: string;
  adapter: AdapterInfo;
  test_accuracy: number;
  losses: { step: number; loss: number }[];
  steps_per_second: number;
  buffer_locs: Record<string, [pool: number, offset: number]>;
  peak_bytes: number;
}

/** What the network says about the test rows, in their order. */
export interface Reading {
  labels: Uint32Array;
  predictions: Uint32Array;
  confidence: Float32Array;
}

/** Trains from the first weights and tests. Opens a device of its own and gives it back. */
export async function train(digits: Digits, watcher: Watcher): Promise<{ result: Result; reading: Reading }> {
  using device = await Device.open();
  watcher.opened(device.adapter);

  const nodes = new Map(PROGRAM.nodes.map(({ name, dtype, shape }) => [name, device.node(name, { dtype, shape })]));
  const node = (name: string): TensorNode => nodes.get(name) as TensorNode;
  const { learning_rate, momentum, seed } = PROGRAM.hyperparameters;
  const inputs: Record<string, ArrayBufferView> = {
    pixels: digits.pixels,
    labels: digits.labels,
    train_order: digits.trainOrder,
    test_order: digits.testOrder,
    settings: new Float32Array([learning_rate, momentum]),
  };

  let context = device
    .context()
    .uploadAll(PROGRAM.inputs.map((name) => [node(name), inputs[name] as ArrayBufferView] as const))
    .zeros(PROGRAM.state.map(node));
  const link = async (kernels: Kernel[]): Promise<Routine[]> => {
    const codes = await Promise.all(
      kernels.map(({ name, file, tensors, statics, grid }) =>
        device.compile(name, KERNELS[file] as string, {
          tensors: tensors.map((tensor) => ({ ...tensor, node: node(tensor.node) })),
          statics,
          grid,
        }),
      ),
    );
    const routines: Routine[] = [];
    for (const code of codes) {
      const routine = await context.link(code);
      context = routine.context;
      routines.push(routine);
    }
    return routines;
  };
  const setup = await link(PROGRAM.setup);
  const step = await link(PROGRAM.step);
  const test = await link(PROGRAM.test);
  watcher.placed(device.report());

  run(setup, { seed });
  const steps = stepCount();
  const { losses, seconds } = await runSteps(device, context, step, node("losses"), steps, watcher);

  run(test, { step: 0 });
  const [labels, predictions, confidence] = (await context.readbackAll(PROGRAM.outputs.map(node))) as [
    Uint32Array,
    Uint32Array,
    Float32Array,
  ];
  const right = predictions.filter((prediction, row) => prediction === labels[row]).length;
  const result: Result = {
    driver: device.driver,
    adapter: device.adapter,
    test_accuracy: right / predictions.length,
    losses,
    steps_per_second: steps / seconds,
    buffer_locs: Object.fromEntries(context.locs().map(({ label, poolId, offset }) => [label, [poolId, offset]])),
    peak_bytes: device.report().peakBytes,
  };
  return { result, reading: { labels, predictions, confidence } };
}

/** Queues each routine once; each takes those of the statics that it declares. */
function run(routines: Routine[], statics: Record<string, number>): void {
  for (const routine of routines) {
    routine.run(Object.fromEntries(routine.statics.map((name) => [name, statics[name] as number])));
  }
}

async function runSteps(
  device: Device,
  context: Context,
  routines: Routine[],
  lossNode: TensorNode,
  steps: number,
  watcher: Watcher,
): Promise<{ losses: Result["losses"]; seconds: number }> {
  const start = performance.now();
  const elapsed = (): number => (performance.now() - start) / 1000;
  const losses: Result["losses"] = [];
  const reads: Promise<Result["losses"][number]>[] = [];
  const arrive = async (): Promise<void> => {
    const oldest = reads.shift();
    if (oldest) losses.push(await oldest);
  };
  let first = 0;
  for (let step = 0; step < steps; step++) {
    run(routines, { step });
    if (step + 1 - first < PROGRAM.read_loss_every && step + 1 < steps) continue;
    const next = read(first, step);
    next.catch(() => {}); // Awaited later; until then a failure is nobody's.
    reads.push(next);
    first = step + 1;
    if (reads.length >= READS_IN_FLIGHT) await arrive();
    await device.ready();
  }
  while (reads.length > 0) await arrive();
  return { losses, seconds: elapsed() };

  // The losses lie round and round in their node.
  async function read(from: number, to: number): Promise<{ step: number; loss: number }> {
    const all = (await context.readback(lossNode)) as Float32Array;
    const fresh = Float32Array.from({ length: to + 1 - from }, (_, index) => all[(from + index) % all.length] as number);
    watcher.progressed({ step: to, steps, losses: fresh, seconds: elapsed() });
    return { step: to, loss: fresh[fresh.length - 1] as number };
  }
}
