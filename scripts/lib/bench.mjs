// What `npm run bench` measures by the words it is given, and how it shows what came out: pure functions.

import { align } from "./results.mjs";
import { Failure } from "./proc.mjs";

/** The groups, in order. */
export const GROUPS = ["record", "upload", "readback", "link", "control", "compile", "programs"];

/** The peers of the group `programs`, as `--peers` names them, with the names of their columns. */
export const PEERS = { jax: "jax-js", tf: "TensorFlow.js", ort: "onnxruntime-web" };

/** What a row of the group `programs` should reach: that share of the hand-written kernels' speed, and that of the best peer. */
const GOALS = { raw: 0.8, peer: 1 };
/** What a row should reach beside that, of peers by the starts of their names. */
const ROW_GOALS = { "digits training step": { "jax-js": 3, "TensorFlow.js": 20 } };

/**
 * Which groups and which rows of the group `programs` are meant: each word is the name of a group, or part of the names of
 * rows of `programs`.
 *
 * @param {string | undefined} words separated by commas; everything if undefined
 * @param {string[]} rows the names of all rows
 */
export function select(words, rows) {
  if (words === undefined) return { groups: GROUPS, rows };
  const wanted = words.split(",").map((word) => word.trim().toLowerCase());
  const matched = new Set();
  const groups = new Set();
  for (const word of wanted) {
    const matching = rows.filter((row) => row.toLowerCase().includes(word));
    if (GROUPS.includes(word)) groups.add(word);
    else if (word !== "" && matching.length > 0) matching.forEach((row) => matched.add(row));
    else {
      throw new Failure(`bench: no group and no row "${word}"; groups: ${GROUPS.join(", ")}; rows: ${rows.join(", ")}`, 2);
    }
  }
  const all = groups.has("programs");
  if (matched.size > 0) groups.add("programs");
  return {
    groups: GROUPS.filter((group) => groups.has(group)),
    rows: rows.filter((row) => all || matched.has(row)),
  };
}

/** Which peers are meant: words of PEERS, or `none`. */
export function selectPeers(words) {
  if (words === undefined) return Object.keys(PEERS);
  if (words === "none") return [];
  const wanted = words.split(",").map((word) => word.trim());
  const unknown = wanted.filter((word) => !(word in PEERS));
  if (unknown.length === 0) return wanted;
  throw new Failure(`bench: no peer ${unknown.join(", ")}; choose among ${Object.keys(PEERS).join(", ")}, or none`, 2);
}

/** What is wrong with a result: rows where this package or the hand-written kernels have none, and peers that computed otherwise. */
export function faultsOf({ programs }) {
  if (!programs) return [];
  return [...programs.rows, programs.control].flatMap(({ name, parts }) =>
    Object.entries(parts)
      .filter(([part, { fault }]) => fault !== undefined && (part === "wgslab" || part === "raw" || fault.includes("wrong:")))
      .map(([part, { fault }]) => `${name}: ${part}: ${fault}`),
  );
}

/** The rows in which this package is slower than it should be, in words. */
export function shortfallsOf({ programs }) {
  if (!programs) return [];
  return programs.rows.flatMap(({ name, parts }) => {
    const { raw, wgslab, ...peers } = parts;
    if (!wgslab?.time) return [];
    const short = [];
    if (raw?.ratio < GOALS.raw) short.push(`${raw.ratio.toFixed(2)} of the hand-written kernels' speed`);
    const [best, bestRatio] = Object.entries(peers)
      .filter(([, { ratio }]) => ratio !== undefined)
      .map(([peer, { ratio }]) => [peer, ratio])
      .reduce((one, other) => (other[1] < one[1] ? other : one), ["", Infinity]);
    if (bestRatio < GOALS.peer) short.push(`${bestRatio.toFixed(2)} of the speed of ${best}`);
    for (const [start, goal] of Object.entries(ROW_GOALS[name] ?? {})) {
      const [peer, own] = Object.entries(peers).find(([peer]) => peer.startsWith(start)) ?? [];
      if (own?.ratio < goal) short.push(`${own.ratio.toFixed(2)} times the speed of ${peer}, not ${goal}`);
    }
    return short.length > 0 ? [`${name}: ${short.join(", ")}`] : [];
  });
}

/** The tables of one side: a browser, or native. */
export function tables(side, result) {
  const { adapter, rows, programs } = result;
  const name = typeof adapter === "string" ? adapter : [adapter.name, adapter.backend].filter(Boolean).join(", ");
  const kind = adapter.deviceType ?? adapter.device_type;
  const parts = [`${side}: ${name}${kind ? ` (${kind})` : ""}. Median (quartiles).`];
  if (rows.length > 0) {
    const lines = rows.map((row) => {
      return [row.name, cell(row.wgslab, row.unit), cell(row.raw, row.unit), row.ratio?.toFixed(2), row.note];
    });
    parts.push(align([["", "wgslab", "raw", "ratio", ""], ...lines]).join("\n"));
  }
  if (programs) parts.push(...programTables(programs));
  return parts.join("\n\n");
}

function programTables({ peaks, rows, control, missing = {} }) {
  const all = [...rows, control];
  const named = new Set(all.flatMap(({ parts }) => Object.keys(parts)));
  const peers = Object.values(PEERS).flatMap((peer) => [...named].filter((part) => part.startsWith(peer)));
  const header = ["", "wgslab", "raw", "of raw", ...peers.flatMap((peer) => [peer, "of it"])];
  const lines = all.map(({ name, unit, parts }) => [
    name,
    cell(parts.wgslab?.time, unit) || "-",
    cell(parts.raw?.time, unit) || "-",
    parts.raw?.ratio?.toFixed(2),
    ...peers.flatMap((peer) => [cell(parts[peer]?.time, unit) || (parts[peer] ? "-" : ""), parts[peer]?.ratio?.toFixed(2)]),
  ]);
  const notes = all.flatMap(({ name, parts, rounds, share }) => {
    const percent = (value) => (value === undefined ? "" : `, ${digits(value * 100, 2)} % of the ${share.of} peak`);
    const known = Object.entries(parts).flatMap(([part, { note, fault }]) => {
      const text = [note, fault].filter(Boolean).join("; ");
      return text || share[part] !== undefined ? [`  ${part}: ${text || "1 way"}${percent(share[part])}`] : [];
    });
    return [`${name} (${rounds} ${rounds === 1 ? "round" : "rounds"})`, ...known];
  });
  const shortfalls = shortfallsOf({ programs: { rows } });
  return [
    `Peaks by hand-written kernels: ${(peaks.bytesPerSecond / 1e9).toPrecision(3)} GB/s copied, ` +
      `${(peaks.flopsPerSecond / 1e9).toPrecision(3)} GFLOP/s. "of raw", "of it": wgslab's speed, 1 being equal.`,
    ...Object.entries(missing).map(([peer, why]) => `${PEERS[peer] ?? peer} could not be opened: ${why}`),
    align([header, ...lines]).join("\n"),
    notes.join("\n"),
    shortfalls.length > 0 ? ["Short of the goals:", ...shortfalls].join("\n  ") : "Every row reaches the goals.",
  ];
}

function cell(spread, unit) {
  if (!spread) return "";
  return `${digits(spread.median)} ${unit} (${digits(spread.low)} to ${digits(spread.high)})`;
}

/** That many digits that count, and no exponent for large numbers. */
function digits(value, count = 3) {
  return Number(value.toPrecision(count)).toString();
}
