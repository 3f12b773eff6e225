// What the adapter can do at most, by kernels that do nothing else: what a row's time is a share of.

import type { Gpu, Step } from "./gpu.ts";
import type { ProgramResult } from "./measure-row.ts";
import type { RowSpec } from "./rows.ts";

/** Bytes and additions or multiplications a second. */
export interface Peaks {
  bytesPerSecond: number;
  flopsPerSecond: number;
}

/** Which part of a peak is reached: of the one that bounds the row. */
export interface Share {
  of: "bandwidth" | "arithmetic";
  wgslab?: number;
  raw?: number;
}

const COPIED_VEC4S = 1 << 22;
const COPIERS = 1 << 18;
const ADDERS = 1 << 14;
const LOOPS = 512;
/** Floats that an invocation multiplies and adds in one loop. */
const FLOATS_A_LOOP = 64;
/** For how long each kernel is repeated; the fastest time counts. */
const SECONDS = 1;

export async function peaksOf(gpu: Gpu): Promise<Peaks> {
  const buffers = {
    source: gpu.buffer(COPIED_VEC4S * 4),
    copy: gpu.buffer(COPIED_VEC4S * 4),
    factors: gpu.buffer(8, Float32Array.of(0.5, 0.25, 0.125, 0.75, 1, 2, 3, 4)),
    sums: gpu.buffer(ADDERS * 4),
  };
  const copy = await gpu.step(
    {
      kernel: "peak_copy",
      constants: { COUNT: `${COPIED_VEC4S}u`, STRIDE: `${COPIERS}u` },
      tensors: ["source", "copy"],
      groups: [COPIERS / 256, 1, 1],
    },
    buffers,
  );
  const add = await gpu.step(
    {
      kernel: "peak_arithmetic",
      constants: { LOOPS: `${LOOPS}u` },
      tensors: ["factors", "sums"],
      groups: [ADDERS / 64, 1, 1],
    },
    buffers,
  );
  const peaks = {
    bytesPerSecond: (2 * 16 * COPIED_VEC4S) / (await leastSeconds(gpu, copy)),
    flopsPerSecond: (ADDERS * LOOPS * FLOATS_A_LOOP * 2) / (await leastSeconds(gpu, add)),
  };
  Object.values(buffers).forEach((buffer) => buffer.destroy());
  return peaks;
}

/** The higher of two measurements: a busy machine lowers one. */
export function higher(one: Peaks, other: Peaks): Peaks {
  return {
    bytesPerSecond: Math.max(one.bytesPerSecond, other.bytesPerSecond),
    flopsPerSecond: Math.max(one.flopsPerSecond, other.flopsPerSecond),
  };
}

/** What this package and the hand-written kernels reach. */
export function shareOf({ bytes, flops }: RowSpec, { parts }: ProgramResult, peaks: Peaks): Share {
  const [moving, computing] = [bytes / peaks.bytesPerSecond, flops / peaks.flopsPerSecond];
  const share: Share = { of: moving > computing ? "bandwidth" : "arithmetic" };
  for (const part of ["wgslab", "raw"] as const) {
    const time = parts[part]?.time;
    if (time) share[part] = (Math.max(moving, computing) * 1000) / time.median;
  }
  return share;
}

async function leastSeconds(gpu: Gpu, step: Step): Promise<number> {
  await gpu.run([step], 1);
  let least = Infinity;
  // As many at once as take long beside what a submission costs.
  const count = 4;
  const end = performance.now() + SECONDS * 1000;
  do {
    const start = performance.now();
    await gpu.run([step], count);
    least = Math.min(least, performance.now() - start);
  } while (performance.now() < end);
  return least / 1000 / count;
}
