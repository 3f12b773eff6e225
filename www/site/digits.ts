// The trainer: uploads the digits once, links the programs, and queues steps. The host reads the losses every
// few steps, without waiting for them before it queues more.

import type { AdapterInfo, Context, Device, MemoryReport, Routine, TensorNode } from "../lib/index.ts";
import { type Digits, inputsOf } from "./data.ts";
import { breathe, openDevice } from "./open.ts";
import { type Kernel, PROGRAM, get, link, makeNodes, stepCount } from "./program.ts";

// One read is on its way while the next steps run; a third would only grow the queue.
const READS_IN_FLIGHT = 2;

/** What training tells on its way. */
export interface Watcher {
  /** There is no GPU, and what that means. */
  fellBack(notice: string): void;
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
  predictions: Int32Array;
  confidence: Float32Array;
  /** How often each digit, a row of ten, was read as which, a column. */
  confusion: Int32Array;
}

/** Trains from the first weights and tests. Opens a device of its own and gives it back. */
export async function train(digits: Digits, watcher: Watcher): Promise<{ result: Result; reading: Reading }> {
  using device = await openDevice((notice) => watcher.fellBack(notice));
  watcher.opened(device.adapter);

  const steps = stepCount();
  const batches = { count: steps, rows: PROGRAM.hyperparameters.batch };
  const nodes = makeNodes(device, PROGRAM.nodes, batches);
  const node = (name: string): TensorNode => get(nodes, name);
  const inputs = inputsOf(digits, batches);
  let context = device
    .context()
    .uploadAll(PROGRAM.inputs.map((name) => [node(name), inputs[name] as ArrayBufferView] as const))
    .zeros(PROGRAM.state.map(node));
  const linkNext = async (kernels: Kernel[]): Promise<Routine[]> => {
    const linked = await link(context, kernels, nodes);
    context = linked.context;
    return linked.routines;
  };
  const setup = await linkNext(PROGRAM.setup);
  const step = await linkNext(PROGRAM.step);
  const test = await linkNext(PROGRAM.test);
  watcher.placed(device.report());

  for (const routine of setup) routine.run({ seed: PROGRAM.hyperparameters.seed });
  const { losses, seconds } = await runSteps(device, context, step, node("losses"), steps, watcher);

  for (const routine of test) routine.run();
  const [accuracy, confusion, predictions, confidence] = (await context.readbackAll(PROGRAM.outputs.map(node))) as [
    Float32Array,
    Int32Array,
    Int32Array,
    Float32Array,
  ];
  const result: Result = {
    driver: device.driver,
    adapter: device.adapter,
    test_accuracy: accuracy[0] as number,
    losses,
    steps_per_second: steps / seconds,
    buffer_locs: Object.fromEntries(context.locs().map(({ label, poolId, offset }) => [label, [poolId, offset]])),
    peak_bytes: device.report().peakBytes,
  };
  return { result, reading: { predictions, confidence, confusion } };
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
    for (const routine of routines) routine.run({ batch: step });
    if (step + 1 - first < PROGRAM.read_loss_every && step + 1 < steps) continue;
    const next = read(first, step);
    next.catch(() => {}); // Awaited later; until then a failure is nobody's.
    reads.push(next);
    first = step + 1;
    if (reads.length >= READS_IN_FLIGHT) await arrive();
    await device.ready();
    await breathe(device);
  }
  while (reads.length > 0) await arrive();
  return { losses, seconds: elapsed() };

  async function read(from: number, to: number): Promise<{ step: number; loss: number }> {
    const all = (await context.readback(lossNode)) as Float32Array;
    const fresh = all.slice(from, to + 1);
    watcher.progressed({ step: to, steps, losses: fresh, seconds: elapsed() });
    return { step: to, loss: fresh[fresh.length - 1] as number };
  }
}
