// Measuring schedules in a page, by the rules of `src/backend/tune/measure.rs`: kernels run on nodes of their own, candidates take
// turns, and a middle time counts. What was measured is kept in IndexedDB. A page without it, or one that may not use it, measures
// again after it was loaded again.

import { WgslabError } from "./errors.ts";
import type { Declared } from "./kernel.ts";
import type { RawCode, RawContext, RawDevice, RawProgramSpec, RawRoutine, RawSource } from "./skin.ts";
import { call, callAsync } from "./skin.ts";

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

/** Ways in which long reductions are split: as the wasm module estimates, and others. */
const SPLITTINGS = 4;

/** What was measured of a kernel. */
interface Entry {
  /** Schedules that were measured: those with the least estimates. */
  count: number;
  /** Nanoseconds of the fastest, and of the one with the least estimate. */
  own: number;
  first: number;
  /** The fastest. */
  schedule: string;
}

/** How long opening and using the store may take: browsers have let that wait for ever. */
const STORE_MS = 2000;

/** What the page knows, by key: what was kept when it first looked, and what it learned since. */
const known = new Map<string, Entry>();
let loading: Promise<void> | undefined;
/** Whoever measures; two at once would measure each other. */
let turn: Promise<unknown> = Promise.resolve();
/** What was measured of a code, what could not be, and why, a line each. */
const notes = new WeakMap<RawCode, string>();

/** What was measured of a code, what could not be, and why: for the end of what it explains. */
export function notesOf(code: RawCode): string {
  return notes.get(code) ?? "";
}

/**
 * Forgets which schedules were measured, here and in IndexedDB: programs that are tuned are measured again. For measurements
 * that were taken while something else kept the machine busy.
 */
export async function forgetTuned(): Promise<void> {
  await turn;
  known.clear();
  await inStore("readwrite", (store) => done(store.clear()));
}

/** Whether one of the programs is to be tuned. */
export function tunes(declared: readonly Declared[]): boolean {
  return declared.some(({ tune }) => tune !== undefined);
}

/** What is measured, on which device, and until when. */
interface Job {
  raw: RawDevice;
  /** What programs may read. */
  context: RawContext;
  /** The adapter: what is measured on one is nothing on another. */
  adapter: string;
  compile: Compile;
  signal: AbortSignal | undefined;
}

/** Compiles, and measures what is not known where that is asked for. */
export async function tuned(
  raw: RawDevice,
  context: RawContext,
  declared: readonly Declared[],
  signal: AbortSignal | undefined,
  compile: Compile,
): Promise<RawCode[]> {
  const job = { raw, context, adapter: JSON.stringify(call(() => raw.adapter())), compile, signal };
  loading ??= keptLines().then((lines) => lines.forEach(learn));
  const mine = Promise.all([turn, loading]).then(() => tuneAll(job, declared));
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

/** Takes what a line says: key, how many, two times, and the schedule. What is no such line is left out. */
function learn(line: string): void {
  const [, key, count, own, first, schedule] = /^(\w+) (\d+) (\d+) (\d+) (.+)$/.exec(line) ?? [];
  if (key && schedule) known.set(key, { count: Number(count), own: Number(own), first: Number(first), schedule });
}

async function tuneAll(job: Job, declared: readonly Declared[]): Promise<RawCode[]> {
  job.signal?.throwIfAborted();
  const [sources, said]: [RawSource[], string[]] = [[], []];
  for (const one of declared) {
    const [source, note] = one.tune === undefined ? [one.raw, ""] : await tuneProgram(job, one, one.tune === "full");
    sources.push(source);
    said.push(note);
  }
  const codes = await job.compile(sources);
  codes.forEach((code, at) => notes.set(code, said[at] as string));
  return codes;
}

/** A kernel: its key, and the schedules that are to be measured. */
interface Kernel {
  key: string;
  schedules: string[];
}

/** A program with its long reductions split in one way: its kernels, and nanoseconds of all of them where that is known. */
interface Way {
  source: RawSource;
  kernels: Kernel[];
}

/** What is known of a kernel, if it is enough. */
function entryOf({ key, schedules }: Kernel): Entry | undefined {
  const entry = known.get(key);
  return entry && entry.count >= schedules.length && schedules.includes(entry.schedule) ? entry : undefined;
}

/** A program in the schedules that are fastest, and what is to be said of them. */
async function tuneProgram(job: Job, { raw: source, tuneBudgetMs }: Declared, isFull: boolean): Promise<[RawSource, string]> {
  const ways = waysOf(job, source, isFull ? Infinity : 4);
  const budget = tuneBudgetMs ?? (isFull ? 20_000 : 1000);
  const end = performance.now() + budget;
  let note = "";
  for (const [way, { source, kernels }] of ways.entries()) {
    for (const [trial, kernel] of kernels.entries()) {
      if (kernel.schedules.length < 2 || entryOf(kernel)) continue;
      try {
        if (performance.now() >= end) throw new WgslabError("limit-exceeded", `the ${budget} ms for measuring were over`);
        const line = await measureKernel(job, source, trial, kernel, isFull ? 7 : 3, end);
        learn(line);
        // Nobody waits for the disk.
        void keep(line);
      } catch (error) {
        if (job.signal?.aborted || (error instanceof WgslabError && error.code === "device-lost")) throw error;
        // The estimates have to do.
        const why = error instanceof Error ? error.message : error;
        if (way === 0) note += `\nkernel ${trial + 1} was not measured: ${why}`;
      }
    }
  }
  // The fastest of those of which all is known.
  const totals = ways.map(({ kernels }) => kernels.reduce((sum, kernel) => sum + (entryOf(kernel)?.own ?? NaN), 0));
  const estimated = totals[0] as number;
  let [best, least] = [0, estimated * WORTH];
  totals.forEach((total, way) => {
    if (total < least) [best, least] = [way, total];
  });
  const way = ways[best];
  if (way === undefined) return [source, ""];
  const chosen = way.kernels.map((kernel, at) => {
    const entry = entryOf(kernel);
    if (!entry) return 0;
    note += `\nkernel ${at + 1} was tuned: ${entry.own} ns; number 1 of ${entry.count} took ${entry.first} ns`;
    return kernel.schedules.indexOf(entry.schedule);
  });
  if (best > 0) note += `\nlong reductions are split as was measured: ${least} ns, not ${estimated} ns`;
  return [withSpec(way.source, { chosen }), note];
}

/** A program and its kernels, and the same with long reductions split otherwise, where that is another. */
function waysOf({ raw, context, adapter }: Job, source: RawSource, most: number): Way[] {
  const ways: Way[] = [];
  for (let splitting = 0; splitting < SPLITTINGS; splitting += 1) {
    const own = withSpec(source, { splitting });
    try {
      const kernels = call(() => raw.choices(own, context)).map((choices): Kernel => {
        const [schedules, made] = choices.split("\n\0") as [string, string];
        return { key: hash(adapter + made), schedules: schedules.split("\n").slice(0, most) };
      });
      const keys = (kernels: Kernel[]): string => kernels.map(({ key }) => key).join();
      if (!ways.some((way) => keys(way.kernels) === keys(kernels))) ways.push({ source: own, kernels });
    } catch {
      // Compiling says what is wrong.
      break;
    }
  }
  return ways;
}

function withSpec([name, text, spec, nodes]: RawSource, more: Partial<RawProgramSpec>): RawSource {
  return [name, text, { ...(spec as RawProgramSpec), ...more }, nodes];
}

/** A number for a text, of 64 bits (FNV-1a, of two halves). */
function hash(text: string): string {
  let [one, other] = [0x811c9dc5, 0x9747b28c];
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
    other = Math.imul(other ^ text.charCodeAt(at), 0x5bd1e995);
  }
  return [one, other].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The line of what was measured of a kernel. */
async function measureKernel(
  { raw, compile, signal }: Job,
  source: RawSource,
  trial: number,
  { key, schedules }: Kernel,
  rounds: number,
  end: number,
): Promise<string> {
  const trials = schedules.map((_, at) => withSpec(source, { trial, chosen: Array<number>(trial + 1).fill(at) }));
  const medians = await measure(raw, await compile(trials), rounds, end, signal);
  const first = medians[0] as number;
  const least = Math.min(...medians);
  const best = least < first * WORTH ? medians.indexOf(least) : 0;
  const nanoseconds = [medians[best] as number, first].map((ms) => Math.round(ms * 1e6)).join(" ");
  return `${key} ${schedules.length} ${nanoseconds} ${schedules[best]}`;
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

/** Keeps a line by its key. */
async function keep(line: string): Promise<void> {
  await inStore("readwrite", (store) => done(store.put(line, line.split(" ", 1)[0])));
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
