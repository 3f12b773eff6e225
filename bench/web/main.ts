// `npm run bench` in the browser; `window.wgslabBench` is the promise of its results.

import { Device } from "wgslab";
import { compile } from "./compile.ts";
import { LAYER } from "./layer.ts";
import type { Row } from "./measure.ts";
import { type ProgramOptions, type ProgramResults, programs } from "./programs.ts";
import { Raw } from "./raw.ts";

/** What bench.mjs asks for. */
interface Wanted extends Omit<ProgramOptions, "rows" | "say"> {
  groups: readonly string[];
  /** Rows of the group `programs`. */
  programs: readonly string[];
}

async function bench(): Promise<object> {
  const wanted: Wanted = JSON.parse(new URLSearchParams(location.search).get("wanted")!);
  const say = (globalThis as unknown as { benchSays: (line: string) => void }).benchSays;
  using device = await Device.open();
  const raw = await Raw.open();
  const rows: Row[] = [];
  let results: ProgramResults | undefined;
  for (const group of wanted.groups) {
    say(group);
    if (group === "compile") rows.push(...(await compile(device)));
    else if (group === "programs") results = await programs(device, { ...wanted, rows: wanted.programs, say });
    else rows.push(...(await LAYER[group]!(device, raw)));
  }
  return { driver: device.driver, adapter: device.adapter, rows, ...(results ? { programs: results } : {}) };
}

Object.assign(globalThis, { wgslabBench: bench() });
