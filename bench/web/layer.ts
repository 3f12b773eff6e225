// The rows of the layer beneath programs: recording, uploads, readbacks, linking.

import type { Device } from "wgslab";
import { inTurn, row, type Row } from "./measure.ts";
import { Raw } from "./raw.ts";

const RUNS = 1000;
const ELEMENTS = 1024;
const TURNS = 21;
const NODES = 1000;
const NODE_BYTES = 4096;
/** In a row, in one sample: a single one takes little more than the clock's step, and half of that to find its code. */
const CYCLES = 10;
const SIZES = [
  ["4 KiB", 4096],
  ["1 MiB", 1 << 20],
  ["16 MiB", 16 << 20],
] as const;

const SCALE_WGSL = `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  store_x(id.x, load_x(id.x) * f32(static_factor()));
}`;

/** Recording 1,000 routine runs: the time of the calls alone, and until the device has done them. */
async function record(device: Device, raw: Raw): Promise<Row[]> {
  using root = device.context();
  const x = device.node("x", { dtype: "f32", shape: [ELEMENTS] });
  using context = root.zeros([x]);
  const code = await device.compile("scale", SCALE_WGSL, {
    tensors: { x: { node: x, access: "read_write" } },
    statics: ["factor"],
    grid: [ELEMENTS / 64],
  });
  using routine = await context.link(code);
  let submissions = 0;
  const ours = async () => {
    const before = device.stats().submissions;
    const start = performance.now();
    for (let run = 0; run < RUNS; run += 1) routine.run({ factor: 1 });
    const recorded = performance.now() - start;
    await device.awaitIdle();
    const total = performance.now() - start;
    submissions = Math.max(submissions, device.stats().submissions - before);
    return { record: recorded, total };
  };
  const [mine, theirs] = await inTurn(TURNS, ours, await raw.recorder(ELEMENTS, RUNS));
  const perRun = (milliseconds: number) => (milliseconds * 1000) / RUNS;
  const rows = (["record", "total"] as const).map((part) => {
    const what = part === "record" ? "record a run" : "record and do a run";
    const samples = [mine, theirs].map((side) => side.map((sample) => perRun(sample[part])));
    return row(`${what}, of ${RUNS}`, "µs", samples[0]!, samples[1]!);
  });
  rows[0]!.note = `${submissions} submissions for ${RUNS} runs`;
  return rows;
}

/** Writing into a node that is there, until the device has taken it. */
async function upload(device: Device, raw: Raw): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, bytes] of SIZES) {
    const data = new Float32Array(bytes / 4).fill(1);
    using root = device.context();
    const x = device.node("x", { dtype: "f32", shape: [data.length] });
    using context = root.zeros([x]);
    const ours = async () => {
      const start = performance.now();
      context.write(x, data);
      await device.awaitIdle();
      return performance.now() - start;
    };
    const [mine, theirs] = await inTurn(TURNS, ours, raw.uploader(data));
    rows.push(row(`upload ${name}`, "ms", mine, theirs));
  }
  return rows;
}

/** Reading a node into a fresh array. */
async function readback(device: Device, raw: Raw): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, bytes] of SIZES) {
    using root = device.context();
    const x = device.node("x", { dtype: "f32", shape: [bytes / 4] });
    using context = root.zeros([x]);
    const ours = async () => {
      const start = performance.now();
      const copy = await context.readback(x);
      if (copy.byteLength !== bytes) throw new Error("bench: short readback");
      return performance.now() - start;
    };
    const [mine, theirs] = await inTurn(TURNS, ours, raw.reader(bytes));
    rows.push(row(`readback ${name}`, "ms", mine, theirs));
  }
  return rows;
}

/**
 * A kernel with many new nodes linked and disposed, and a context of as many nodes made and disposed, beside as many
 * buffers created and destroyed, several times in a row: until the calls returned, and until the browser is done with all
 * of it.
 */
async function link(device: Device, raw: Raw): Promise<Row[]> {
  const shape = [NODE_BYTES / 4];
  const nodes = Array.from({ length: NODES }, (_, index) => device.node(`n${index}`, { dtype: "f32", shape }));
  using root = device.context();
  using code = await device.compile("many", "@compute @workgroup_size(1) fn main() { store_n0(0u, 1.0); }", {
    tensors: nodes.map((node) => ({ node, access: "write" as const })),
    grid: [1],
  });
  const linked = async () => {
    const start = performance.now();
    for (let cycle = 0; cycle < CYCLES; cycle += 1) (await root.link(code)).dispose();
    return timed(start);
  };
  const made = async () => {
    const start = performance.now();
    for (let cycle = 0; cycle < CYCLES; cycle += 1) root.zeros(nodes).dispose();
    return timed(start);
  };
  const timed = async (start: number) => {
    const calls = performance.now() - start;
    await device.awaitIdle();
    return { calls, done: performance.now() - start };
  };
  const theirs = () => raw.createAndDestroy(CYCLES, NODES, NODE_BYTES);
  const rows: Row[] = [];
  for (const [name, ours] of [
    [`link and dispose a kernel with ${NODES} new nodes`, linked],
    [`make and dispose a context of ${NODES} nodes`, made],
  ] as const) {
    const [mine, others] = await inTurn(TURNS, ours, theirs);
    for (const until of ["calls", "done"] as const) {
      const times = (samples: typeof mine) => samples.map((sample) => sample[until] / CYCLES);
      rows.push(row(`${name}: ${until}`, "ms", times(mine), times(others), `each of ${CYCLES} in a row`));
    }
  }
  return rows;
}

/** Raw WebGPU against itself: how far from 1 a ratio is by chance. */
async function control(_device: Device, raw: Raw): Promise<Row[]> {
  const one = raw.reader(1 << 20);
  const other = raw.reader(1 << 20);
  const [first, second] = await inTurn(TURNS, one, other);
  return [row("control: raw against raw, readback 1 MiB", "ms", first, second)];
}

/** The rows of each group. */
export const LAYER: Readonly<Record<string, (device: Device, raw: Raw) => Promise<Row[]>>> = {
  record,
  upload,
  readback,
  link,
  control,
};
