// One row of `programs`: every side made ready, checked, then timed in turn.

import { type Spread, ratioOf, spread } from "../measure.ts";
import { type Outputs, differs, differsFromSamples } from "./compare.ts";
import { expectedOf } from "./expected.ts";
import { type RowSpec, inputsOf } from "./rows.ts";
import type { Library, Side } from "./side.ts";

/** One library's part of a row. */
export interface PartResult {
  /** Milliseconds a run; absent where there is none, and then `fault` says why. */
  time?: Spread;
  fault?: string;
  note?: string;
  /** Its time by that of this package, turn by turn. */
  ratio?: number;
}

/** What a row came to. */
export interface ProgramResult {
  name: string;
  unit: "ms";
  parts: Record<string, PartResult>;
  rounds: number;
}

/** What is timed together, so that the calls and the wait at the end are small beside it; one run where a run takes longer. */
const BATCH_MS = 60;
const LARGEST_BATCH = 200;
/** A run, and a round, that is not repeated for the sake of a spread. */
const [LONG_MS, LONG_ROUND_MS] = [1000, 60_000];
/** How a fault starts that is a matter of numbers. */
const WRONG = "wrong:";
const [LEAST_ROUNDS, MOST_ROUNDS] = [3, 21];

interface Ready {
  library: Library;
  side: Side;
  outputs: Outputs;
  /** What is wrong with ways that were tried before. */
  faults: readonly string[];
}

/** Measures a row with about that many seconds of timed runs. `raw` must be among the libraries: the others are checked against it. */
export async function measureRow(
  row: RowSpec,
  libraries: readonly Library[],
  { seconds, say }: { seconds: number; say: (line: string) => void },
): Promise<ProgramResult> {
  const inputs = inputsOf(row);
  const expected = expectedOf(row, inputs);
  const parts: Record<string, PartResult> = {};
  const ready: Ready[] = [];
  for (const library of libraries) {
    const start = performance.now();
    const faults: string[] = [];
    for (const way of library.ways?.(row) ?? [""]) {
      let side: Side | undefined;
      try {
        side = await library.prepare(row, inputs, way);
        await side.run(row.steps ?? 1);
        const outputs = await side.read();
        const fault = differsFromSamples(row, outputs, expected) ?? differs(row, outputs, ready[0]?.outputs ?? {});
        if (fault !== undefined) throw new Error(`${WRONG} ${fault}`);
        ready.push({ library, side, outputs, faults });
        break;
      } catch (error) {
        side?.dispose();
        faults.push([way, faultOf(error)].filter(Boolean).join(": "));
      }
    }
    const isReady = ready.at(-1)?.library === library;
    if (!isReady) parts[library.name] = { fault: faults.join("; ") };
    const state = isReady ? `ready after ${(performance.now() - start).toFixed(0)} ms` : "left out";
    say(`${row.name}: ${library.name} is ${[state, ...faults].join("; ")}`);
  }
  const { samples, rounds } = await inTurns(ready, seconds);
  const ours = samples.get("wgslab");
  for (const { library, side, faults } of ready) {
    const times = samples.get(library.name)!;
    const notes = [side.note, ...faults].filter((note) => note !== undefined);
    parts[library.name] = {
      time: spread(times),
      ...(notes.length > 0 ? { note: notes.join("; ") } : {}),
      ...(ours ? { ratio: ratioOf(times, ours) } : {}),
    };
    side.dispose();
  }
  return { name: row.name, unit: "ms", parts, rounds };
}

function faultOf(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split("\n")[0]!;
}

/** Milliseconds a run of each side, in rounds: each side once a round, and another one first each time. */
async function inTurns(ready: readonly Ready[], seconds: number): Promise<{ samples: Map<string, number[]>; rounds: number }> {
  const samples = new Map<string, number[]>(ready.map(({ library }) => [library.name, []]));
  const batches = new Map<Ready, number>();
  let roundMs = 0;
  for (const one of ready) {
    // The first run meets what the check left. That is little beside a long one.
    let time = await timed(one.side, 1);
    if (time < LONG_MS) time = await timed(one.side, 1);
    const batch = Math.min(Math.max(Math.round(BATCH_MS / time), 1), LARGEST_BATCH);
    batches.set(one, batch);
    roundMs += batch * time;
  }
  const least = roundMs > LONG_ROUND_MS ? 1 : LEAST_ROUNDS;
  const rounds = Math.min(Math.max(Math.floor((seconds * 1000) / roundMs), least), MOST_ROUNDS);
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < ready.length; turn += 1) {
      const one = ready[(round + turn) % ready.length]!;
      const batch = batches.get(one)!;
      samples.get(one.library.name)!.push((await timed(one.side, batch)) / batch);
    }
  }
  return { samples, rounds };
}

async function timed(side: Side, count: number): Promise<number> {
  const start = performance.now();
  await side.run(count);
  return performance.now() - start;
}
