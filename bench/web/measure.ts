// How a row is measured: both sides in turn, several times, and the middle with its spread.

/** The middle of the repeats, and the quartiles around it. */
export interface Spread {
  median: number;
  low: number;
  high: number;
}

/** One row: this package's time, raw WebGPU's for the same work if it has any, and their ratio. The native rows look the same. */
export interface Row {
  name: string;
  unit: string;
  wgslab?: Spread;
  raw?: Spread;
  ratio?: number;
  note?: string;
}

/** The middle and the quartiles of some numbers. */
export function spread(samples: readonly number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.round(part * (sorted.length - 1))]!;
  return { median: at(0.5), low: at(0.25), high: at(0.75) };
}

/**
 * Runs two measurements in turn, so that a busy moment of the machine meets both, after some turns to warm up.
 * The side that goes first changes with every turn.
 */
export async function inTurn<T>(
  turns: number,
  first: () => Promise<T>,
  second: () => Promise<T>,
): Promise<[T[], T[]]> {
  const results: [T[], T[]] = [[], []];
  const warmUp = Math.ceil(turns / 4);
  for (let turn = 0; turn < warmUp + turns; turn += 1) {
    const sides = [[first, results[0]] as const, [second, results[1]] as const];
    if (turn % 2 === 1) sides.reverse();
    for (const [measure, kept] of sides) {
      const sample = await measure();
      if (turn >= warmUp) kept.push(sample);
    }
  }
  return results;
}

/** A row of two sides. */
export function row(name: string, unit: string, wgslab: readonly number[], raw: readonly number[], note?: string): Row {
  const sides = { wgslab: spread(wgslab), raw: spread(raw) };
  return { name, unit, ...sides, ratio: ratioOf(wgslab, raw), ...(note ? { note } : {}) };
}

/** The middle of the ratios turn by turn: what slows a turn down slows both of its sides. */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): number {
  return spread(ours.map((sample, turn) => sample / theirs[turn]!)).median;
}
