// Measuring schedules in a page, by the rules of `src/backend/tune/measure.rs`: kernels run on nodes of their own, candidates take
// turns, and a middle time counts. What was measured is kept in IndexedDB. A page without it, or one that may not use it, measures
// again after it was loaded again.

import { WgslabError } from "./errors.ts";
import type { Declared } from "./kernel.ts";
import { type RawCode, type RawDevice, type RawRoutine, type RawSource, call, callAsync } from "./skin.ts";

/** Milliseconds that a measurement takes, at least: a page's clock has steps of a tenth of one. */
const SAMPLE_MS = 2;
/** Rounds that do not count: the first run zeroes memory, the second tells how many are to be done at once. */
const WARM_UPS = 2;
/** Runs of a measurement, at most. */
const MOST_RUNS = 256;
/** How much slower than the fastest a schedule may first be, to be measured any further. */
const HOPELESS = 3;
/** What a schedule must take, of what the first takes, to be taken in its place: less is chance. */
const WORTH = 0.97;

type Compile = (sources: RawSource[]) => Promise<RawCode[]>;

/** Devices that know what is kept. */
const loaded = new WeakSet<RawDevice>();
/** Whoever measures; two at once would measure each other. */
let turn: Promise<unknown> = Promise.resolve();

/** Whether one of the programs is to be tuned. */
export function tunes(declared: readonly Declared[]): boolean {
  return declared.some(({ raw: [, , spec] }) => "tune" in spec);
}

/** Compiles, and measures what is not known where that is asked for. */
export async function tuned(
  raw: RawDevice,
  declared: readonly Declared[],
  signal: AbortSignal | undefined,
  compile: Compile,
): Promise<RawCode[]> {
  if (!loaded.has(raw)) {
    const lines = await keptLines();
    call(() => raw.rememberTuned(lines.join("\n")));
    loaded.add(raw);
  }
  const mine = turn.then(() => measureAll(raw, declared, signal, compile));
  turn = mine.catch(() => undefined);
  // On abort it rejects at once, whoever has the turn.
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", abort);
    mine.then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
  });
}

async function measureAll(
  raw: RawDevice,
  declared: readonly Declared[],
  signal: AbortSignal | undefined,
  compile: Compile,
): Promise<RawCode[]> {
  signal?.throwIfAborted();
  const sources = declared.map(({ raw }) => raw);
  const codes = await compile(sources);
  const learned: string[] = [];
  try {
    for (const [at, one] of declared.entries()) {
      learned.push(...(await measureProgram(raw, one, codes[at] as RawCode, signal, compile)));
    }
  } catch (error) {
    codes.forEach((code) => code.free());
    throw error;
  }
  if (learned.length === 0) return codes;
  // Nobody waits for the disk.
  void keep(learned);
  codes.forEach((code) => code.free());
  return compile(sources);
}

/** The lines of what was learned of a program's kernels. */
async function measureProgram(
  raw: RawDevice,
  { raw: [name, text, spec, nodes], tuneBudgetMs }: Declared,
  code: RawCode,
  signal: AbortSignal | undefined,
  compile: Compile,
): Promise<string[]> {
  const isFull = "tune" in spec && spec.tune === "full";
  const end = performance.now() + (tuneBudgetMs ?? (isFull ? 20_000 : 1000));
  const learned: string[] = [];
  for (const [trial, lines] of call(() => raw.untuned(code)).entries()) {
    const [key, ...schedules] = lines.split("\n");
    if (!key) continue;
    if (performance.now() >= end) break;
    try {
      const trials = schedules.map((_, schedule): RawSource => [name, text, { ...spec, trial, schedule }, nodes]);
      const medians = await measure(raw, await compile(trials), isFull ? 7 : 3, end, signal);
      const first = medians[0] as number;
      const least = Math.min(...medians);
      const best = least < first * WORTH ? medians.indexOf(least) : 0;
      const nanoseconds = [medians[best] as number, first].map((ms) => Math.round(ms * 1e6)).join(" ");
      const line = `${key} ${schedules.length} ${nanoseconds} ${schedules[best]}`;
      call(() => raw.rememberTuned(line));
      learned.push(line);
    } catch (error) {
      if (signal?.aborted || (error instanceof WgslabError && error.code === "device-lost")) throw error;
      // Where there is no room to measure, the estimates have to do.
    }
  }
  return learned;
}

/** Middle times of codes that are one kernel each, in milliseconds; frees the codes. */
async function measure(
  raw: RawDevice,
  codes: RawCode[],
  rounds: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<number[]> {
  const root = call(() => raw.context());
  let routines: RawRoutine[] = [];
  try {
    routines = await callAsync(() => root.linkBatch(codes));
    const statics = new Int32Array(call(() => (codes[0] as RawCode).statics()).length);
    const first = codes.map(() => Infinity);
    const times = codes.map((): number[] => []);
    for (let round = 0; round < WARM_UPS + rounds; round += 1) {
      const isWarm = round >= WARM_UPS;
      for (const step of routines.keys()) {
        const at = isWarm ? (step + round) % routines.length : step;
        const known = first[at] as number;
        if (isWarm && at > 0 && known > HOPELESS * Math.min(...first)) continue;
        const runs = Math.ceil(Math.min(Math.max(SAMPLE_MS / Math.max(known, 0.001), 1), MOST_RUNS));
        const start = performance.now();
        for (let run = 0; run < runs; run += 1) call(() => (routines[at] as RawRoutine).run(statics));
        await callAsync(() => raw.eventWait(raw.allWork()));
        const ms = (performance.now() - start) / runs;
        if (isWarm) (times[at] as number[]).push(ms);
        else first[at] = ms;
        signal?.throwIfAborted();
      }
      if (isWarm && performance.now() > end) break;
    }
    return times.map((all) => all.sort((a, b) => a - b)[all.length >> 1] ?? Infinity);
  } finally {
    for (const one of [...routines, root, ...codes]) one.free();
  }
}

const STORE = "tuned";

/** What is kept, line by line. */
function keptLines(): Promise<string[]> {
  return inStore("readonly", async (store) => (await done<unknown[]>(store.getAll())).map(String)).then((lines) => lines ?? []);
}

/** Keeps lines, each by its key. */
async function keep(lines: readonly string[]): Promise<void> {
  await inStore("readwrite", (store) => Promise.all(lines.map((line) => done(store.put(line, line.split(" ", 1)[0])))));
}

/** Uses the store. Whatever goes wrong (there is no IndexedDB, none for this page, no room), the page goes on without. */
async function inStore<T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => Promise<T>): Promise<T | undefined> {
  try {
    const opening = indexedDB.open("wgslab", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    const database = await done(opening);
    try {
      return await use(database.transaction(STORE, mode).objectStore(STORE));
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    // Another page that changes the database would be waited for.
    if ("onblocked" in request) request.onblocked = () => reject(new Error("blocked"));
  });
}
