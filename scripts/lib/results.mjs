// What `npm start` concludes from the results of its sides: pure functions of their JSON.
//
// A side is { driver, adapter, test_accuracy, losses, steps_per_second, buffer_locs, peak_bytes } or { error }.

import { isDeepStrictEqual } from "node:util";

/** The accuracy on held-out digits that every side must reach. */
export const MIN_ACCURACY = 0.96;

// Losses of two adapters are equal within either of these, at every reported step.
const LOSS_RELATIVE = 1e-3;
const LOSS_ABSOLUTE = 1e-4;

/**
 * Whether every side succeeded and all sides agree.
 *
 * @param {Record<string, any>} sides
 * @returns {{ ok: boolean, problems: string[], largest_relative_loss_difference: number | null, buffer_locs_identical: boolean | null }}
 */
export function agreement(sides) {
  const problems = [];
  for (const [name, side] of Object.entries(sides)) {
    if (side.error) problems.push(`${name}: ${side.error}`);
    else if (!(side.test_accuracy >= MIN_ACCURACY)) {
      problems.push(`${name}: test accuracy ${side.test_accuracy} is under ${MIN_ACCURACY}`);
    }
  }
  const [[nameA, a], [nameB, b]] = [...Object.entries(sides), [], []];
  let largest = null;
  let identical = null;
  if (a && b && !a.error && !b.error) {
    const [stepsA, stepsB] = [lossSteps(a.losses), lossSteps(b.losses)];
    if (stepsA.length === 0 || !isDeepStrictEqual(stepsA.map(([step]) => step), stepsB.map(([step]) => step))) {
      problems.push(`the sides report losses at different steps: ${stepsA.length} and ${stepsB.length} of them`);
    } else {
      largest = 0;
      for (const [index, [step, lossA]] of stepsA.entries()) {
        const lossB = stepsB[index][1];
        const difference = Math.abs(lossA - lossB);
        const scale = Math.max(Math.abs(lossA), Math.abs(lossB));
        if (!(difference <= LOSS_ABSOLUTE || difference <= LOSS_RELATIVE * scale)) {
          problems.push(`step ${step}: loss ${lossA} (${nameA}) and ${lossB} (${nameB}) differ too much`);
        }
        if (scale > 0) largest = Math.max(largest, difference / scale);
      }
    }
    identical = isDeepStrictEqual(a.buffer_locs, b.buffer_locs);
    if (!identical) problems.push("the sides placed tensors at different BufferLocs");
  }
  return {
    ok: problems.length === 0,
    problems,
    largest_relative_loss_difference: largest,
    buffer_locs_identical: identical,
  };
}

/** Losses as [step, loss] pairs, from numbers, pairs, or { step, loss } records. */
function lossSteps(losses) {
  return (losses ?? []).map((entry, index) => {
    // JSON has no NaN: a loss that is none arrives as null.
    if (entry === null || typeof entry === "number") return [index, entry ?? NaN];
    return Array.isArray(entry) ? entry : [entry.step, entry.loss];
  });
}

/** The sides side by side, then what was compared, then what is wrong. */
export function table(sides, verdict) {
  const names = Object.keys(sides);
  const row = (label, value) => [label, ...names.map((name) => (sides[name].error ? "failed" : value(sides[name])))];
  const rows = [
    ["", ...names],
    row("driver", ({ driver }) => driver),
    row("adapter", ({ adapter }) => adapterName(adapter)),
    row("test accuracy", ({ test_accuracy }) => test_accuracy.toFixed(4)),
    row("final loss", ({ losses }) => lossSteps(losses).at(-1)?.[1].toPrecision(6) ?? "none"),
    row("steps per second", ({ steps_per_second }) => steps_per_second.toFixed(0)),
    row("peak bytes", ({ peak_bytes }) => peak_bytes.toLocaleString("en")),
  ];
  const lines = align(rows);
  if (verdict.buffer_locs_identical !== null) {
    const difference = verdict.largest_relative_loss_difference;
    lines.push(
      "",
      `largest relative loss difference  ${difference === null ? "not comparable" : difference.toExponential(1)}`,
      `BufferLocs identical              ${verdict.buffer_locs_identical ? "yes" : "no"}`,
    );
  }
  for (const name of names.filter((name) => sides[name].driver === "host")) {
    lines.push("", `${name}: no GPU adapter was found, so it ran on the host driver, the CPU`);
  }
  return [...lines, ...verdict.problems.map((problem) => `FAILED: ${problem}`)].join("\n");
}

function adapterName(adapter) {
  if (typeof adapter === "string") return adapter;
  return [adapter.name, adapter.backend].filter(Boolean).join(", ");
}

/** Rows of text as lines with aligned columns. */
export function align(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column] ?? "").length)));
  return rows.map((row) =>
    row.map((cell, column) => String(cell ?? "").padEnd(widths[column])).join("  ").trimEnd(),
  );
}
