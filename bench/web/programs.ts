// The group `programs`: each row on this package, by hand on WebGPU, and on the peers, in turn.

import type { Device } from "wgslab";
import { Gpu } from "./programs/gpu.ts";
import { type ProgramResult, measureRow } from "./programs/measure-row.ts";
import { type Peaks, type Share, higher, peaksOf, shareOf } from "./programs/peaks.ts";
import { rawLibrary } from "./programs/raw.ts";
import { ROWS, type RowSpec } from "./programs/rows.ts";
import type { Library } from "./programs/side.ts";
import { wgslabLibrary } from "./programs/wgslab.ts";

/** What to measure. */
export interface ProgramOptions {
  /** Names of rows. */
  rows: readonly string[];
  /** Of jax, tf, ort. */
  peers: readonly string[];
  /** Whether this package measures its schedules first. */
  tune: "off" | "quick" | "full";
  /** For how long each row is timed, about. */
  seconds: number;
  say: (line: string) => void;
}

/** What the group came to; `missing` says why a peer could not be opened. */
export interface ProgramResults {
  peaks: Peaks;
  rows: (ProgramResult & { share: Share })[];
  control: ProgramResult & { share: Share };
  missing: Record<string, string>;
}

// Apart, so that a page that runs none of them loads none of them.
const PEERS: Readonly<Record<string, () => Promise<Library>>> = {
  jax: async () => (await import("./programs/jax.ts")).jaxLibrary(),
  tf: async () => (await import("./programs/tf.ts")).tfLibrary(),
  ort: async () => (await import("./programs/ort.ts")).ortLibrary(),
};

export async function programs(device: Device, { rows, peers, tune, seconds, say }: ProgramOptions): Promise<ProgramResults> {
  const gpu = await Gpu.open();
  const before = await peaksOf(gpu);
  const raw = rawLibrary(gpu);
  const libraries = [raw, wgslabLibrary(device, tune)];
  const missing: Record<string, string> = {};
  for (const peer of peers) {
    try {
      libraries.push(await PEERS[peer]!());
    } catch (error) {
      missing[peer] = String(error).split("\n")[0]!;
      say(`${peer}: ${missing[peer]}`);
    }
  }
  const wanted = ROWS.filter(({ name }) => rows.includes(name));
  const options = { seconds, say };
  const results: [RowSpec, ProgramResult][] = [];
  for (const row of wanted) results.push([row, await measureRow(row, libraries, options)]);

  // The first row once more, by hand on both sides: how far from 1 a ratio is by chance.
  const [first] = wanted as [RowSpec];
  const control = await measureRow(first, [raw, { ...raw, name: "wgslab" }], options);
  control.name = `control: raw against raw, ${control.name}`;
  const peaks = higher(before, await peaksOf(gpu));
  gpu.device.destroy();
  const shared = ([row, result]: [RowSpec, ProgramResult]) => ({ ...result, share: shareOf(row, result, peaks) });
  return { peaks, rows: results.map(shared), control: shared([first, control]), missing };
}
