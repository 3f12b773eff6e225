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

/** How long opening and using the store may take: browsers have let that wait for ever. */
const STORE_MS = 2000;

/** The lines that the page knows: those that were kept, when it first looked, and those that it learned since. */
const known: string[] = [];
let loading: Promise<unknown> | undefined;
/** How many of them a device was told. */
const told = new WeakMap<RawDevice, number>();
/** Whoever measures; two at once would measure each other. */
let turn: Promise<unknown> = Promise.resolve();
/** What could not be measured of a code, and why, a line each. */
const notes = new WeakMap<RawCode, string>();

/** What could not be measured of a code, and why: for the end of what it explains. */
export function notesOf(code: RawCode): string {
  return notes.get(code) ?? "";
}

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
  loading ??= keptLines().then((lines) => known.unshift(...lines));
  const mine = Promise.all([turn, loading]).then(() => measureAll(raw, declared, signal, compile));
  turn = mine.catch(() => undefined);
  // On abort it rejects at once, whoever has the turn.
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", abort);
    const done = (codes: RawCode[]): void => {
      // Nobody waits for them any more.
      if (signal?.aborted) codes.forEach((code) => code.free());
      else resolve(codes);
    };
    mine.then(done, reject).finally(() => signal?.removeEventListener("abort", abort));
  });
}

async function measureAll(
  raw: RawDevice,
  declared: readonly Declared[],
  signal: AbortSignal | undefined,
  compile: Compile,
): Promise<RawCode[]> {
  signal?.throwIfAborted();
  // Another device of the page may have learned something.
  call(() => raw.rememberTuned(known.slice(told.get(raw)).join("\n")));
  told.set(raw, known.length);
  const sources = declared.map(({ raw }) => raw);
  let codes = await compile(sources);
  const before = known.length;
  const [why, measured]: [string[], Set<string>] = [[], new Set()];
  try {
    for (const [at, one] of declared.entries()) {
      why.push(await measureProgram(raw, one, codes[at] as RawCode, measured, signal, compile));
    }
  } catch (error) {
    codes.forEach((code) => code.free());
    throw error;
  } finally {
    // Nobody waits for the disk.
    if (known.length > before) void keep(known.slice(before));
  }
  if (known.length > before) {
    codes.forEach((code) => code.free());
    codes = await compile(sources);
  }
  codes.forEach((code, at) => notes.set(code, why[at] as string));
  return codes;
}

/** Measures a program's kernels, but those of the keys that the batch has measured; what could not be, and why. */
async function measureProgram(
  raw: RawDevice,
  { raw: [name, text, spec, nodes], tuneBudgetMs }: Declared,
  code: RawCode,
  measured: Set<string>,
  signal: AbortSignal | undefined,
  compile: Compile,
): Promise<string> {
  const isFull = "tune" in spec && spec.tune === "full";
  const budget = tuneBudgetMs ?? (isFull ? 20_000 : 1000);
  const end = performance.now() + budget;
  let why = "";
  for (const [trial, lines] of call(() => raw.untuned(code)).entries()) {
    const [key, ...schedules] = lines.split("\n");
    // Another program of the batch may have the same kernel.
    if (!key || measured.has(key)) continue;
    try {
      if (performance.now() >= end) throw new WgslabError("limit-exceeded", `the ${budget} ms for measuring were over`);
      const trials = schedules.map((_, schedule): RawSource => [name, text, { ...spec, trial, schedule }, nodes]);
      const medians = await measure(raw, await compile(trials), isFull ? 7 : 3, end, signal);
      const first = medians[0] as number;
      const least = Math.min(...medians);
      const best = least < first * WORTH ? medians.indexOf(least) : 0;
      const nanoseconds = [medians[best] as number, first].map((ms) => Math.round(ms * 1e6)).join(" ");
      const line = `${key} ${schedules.length} ${nanoseconds} ${schedules[best]}`;
      call(() => raw.rememberTuned(line));
      known.push(line);
      measured.add(key);
    } catch (error) {
      if (signal?.aborted || (error instanceof WgslabError && error.code === "device-lost")) throw error;
      // The estimates have to do.
      why += `\nkernel ${trial + 1} was not measured: ${error instanceof Error ? error.message : error}`;
    }
  }
  return why;
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
  const using = async (): Promise<T> => {
    const opening = indexedDB.open("wgslab", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    const database = await done(opening);
    try {
      return await use(database.transaction(STORE, mode).objectStore(STORE));
    } finally {
      database.close();
    }
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, STORE_MS)));
  return Promise.race([using().catch(() => undefined), late]).finally(() => clearTimeout(timer));
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    // Another page that changes the database would be waited for.
    if ("onblocked" in request) request.onblocked = () => reject(new Error("blocked"));
  });
}
