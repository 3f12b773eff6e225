// What `npm run bench` measures by its words, and what it says of results: it must be able to call a result wrong or slow.

import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { GROUPS, faultsOf, select, selectPeers, shortfallsOf, tables } from "../../scripts/lib/bench.mjs";
import { bundle } from "../../scripts/lib/bundle.mjs";
import { ROOT } from "../../scripts/lib/proc.mjs";

const NAMES = ["matrix product 512", "matrix product 1024", "softmax"];

test("words are groups, or parts of the names of rows", () => {
  assert.deepEqual(select(undefined, NAMES), { groups: GROUPS, rows: NAMES });
  assert.deepEqual(select("upload,record", NAMES), { groups: ["record", "upload"], rows: [] });
  assert.deepEqual(select("programs", NAMES), { groups: ["programs"], rows: NAMES });
  assert.deepEqual(select("Matrix", NAMES), { groups: ["programs"], rows: NAMES.slice(0, 2) });
  assert.deepEqual(select("compile, 1024", NAMES), { groups: ["compile", "programs"], rows: [NAMES[1]] });
});

test("a word that is neither is an error that names what there is", () => {
  for (const words of ["matrox", "", "softmax,nothing"]) {
    assert.throws(() => select(words, NAMES), /no group and no row ".*"; groups: record, .*; rows: matrix product 512/);
  }
  assert.throws(() => selectPeers("torch"), /no peer torch; choose among jax, tf, ort, or none/);
  assert.deepEqual(selectPeers("none"), []);
});

const time = (median) => ({ time: { median, low: median, high: median } });
const row = (parts) => ({ name: "softmax", unit: "ms", rounds: 3, share: { of: "bandwidth", wgslab: 0.5 }, parts });
const result = (parts) => {
  const good = { raw: { ...time(1), ratio: 1 }, wgslab: { ...time(1), ratio: 1, note: "1 kernel" } };
  const peaks = { bytesPerSecond: 1e9, flopsPerSecond: 2e9 };
  const control = { ...row(good), name: "control" };
  return { adapter: { name: "a", backend: "b", deviceType: "cpu" }, rows: [], programs: { peaks, rows: [row({ ...good, ...parts })], control } };
};

test("a fault of ours, and a peer's wrong result, are faults; a peer without the row is none, but is shown", () => {
  assert.deepEqual(faultsOf(result({})), []);
  assert.deepEqual(faultsOf(result({ wgslab: { fault: "no" } })), ["softmax: wgslab: no"]);
  assert.deepEqual(faultsOf(result({ "jax-js 1": { fault: "wrong: y[0] is 0, not 1" } })), [
    "softmax: jax-js 1: wrong: y[0] is 0, not 1",
  ]);
  const without = result({ "jax-js 1": { fault: "has no softmax" } });
  assert.deepEqual(faultsOf(without), []);
  const text = tables("Chromium", without);
  assert.match(text, /Chromium: a, b \(cpu\)/);
  assert.match(text, /softmax +1 ms \(1 to 1\) +1 ms \(1 to 1\) +1\.00 +-\n/);
  assert.match(text, /jax-js 1: has no softmax/);
  assert.match(text, /wgslab: 1 kernel, 50 % of the bandwidth peak/);
});

test("rows that are slower than they should be are listed", () => {
  assert.deepEqual(shortfallsOf(result({})), []);
  const slow = result({ raw: { ...time(0.7), ratio: 0.7 }, "jax-js 1": { ...time(0.5), ratio: 0.5 }, "TensorFlow.js 2": { ...time(2), ratio: 2 } });
  assert.deepEqual(shortfallsOf(slow), ["softmax: 0.70 of the hand-written kernels' speed, 0.50 of the speed of jax-js 1"]);
  assert.match(tables("Chromium", result({})), /Every row reaches the goals/);
  const training = result({ "jax-js 1": { ...time(2), ratio: 2 }, "TensorFlow.js 2": { ...time(30), ratio: 30 } });
  training.programs.rows[0].name = "digits training step";
  assert.deepEqual(shortfallsOf(training), ["digits training step: 2.00 times the speed of jax-js 1, not 3"]);
  assert.match(tables("Chromium", training), /Short of the goals:\n  digits training step/);
});

// The page's own modules, as Node can read them.
const OUT = join(ROOT, "target/bench-modules");
let compare, expected, rows;
before(async () => {
  const entries = ["compare", "expected", "rows"].map((name) => join(ROOT, `bench/web/programs/${name}.ts`));
  await bundle(entries, OUT);
  [compare, expected, rows] = await Promise.all(
    ["compare", "expected", "rows"].map((name) => import(pathToFileURL(join(OUT, `${name}.js`)).href)),
  );
});
after(() => rm(OUT, { recursive: true, force: true }));

test("one element that is off is a difference, and so are NaN, a missing output and a missing element", () => {
  const spec = { tolerance: { absolute: 1e-3, relative: 0 } };
  const good = { y: Float32Array.of(1, 2, 3) };
  const { differs, differsFromSamples } = compare;
  assert.equal(differs(spec, { y: Float32Array.of(1, 2.0005, 3) }, good), undefined);
  assert.equal(differs(spec, { y: Float32Array.of(1, 2.25, 3) }, good), "y[1] is 2.25, not 2");
  assert.equal(differs(spec, { y: Float32Array.of(1, 2, NaN) }, good), "y[2] is NaN, not 3");
  assert.equal(differs(spec, { y: Float32Array.of(1, 2) }, good), "y has 2 elements, not 3");
  assert.equal(differs(spec, {}, good), "y has undefined elements, not 3");
  assert.equal(differsFromSamples(spec, good, { y: [[2, 3]] }), undefined);
  assert.equal(differsFromSamples(spec, good, { y: [[2, 4]] }), "y[2] is 3, not 4");
  assert.equal(differsFromSamples(spec, {}, { y: [[2, 4]] }), "y is missing");
});

test("every row has expected values that are finite and not all alike, and kernels that are there", async () => {
  assert.equal(rows.ROWS.length, 11);
  // Names are listed with commas between them.
  for (const { name } of rows.ROWS) assert.ok(!name.includes(","), name);
  for (const row of rows.ROWS) {
    // The largest inputs take seconds to make, and are no different.
    if (row.bytes > 2 ** 25) continue;
    const samples = expected.expectedOf(row, rows.inputsOf(row));
    assert.deepEqual(Object.keys(samples), row.outputs, row.name);
    for (const [output, values] of Object.entries(samples)) {
      const numbers = values.map(([, value]) => value);
      assert.ok(numbers.every(Number.isFinite), `${row.name}: ${output}`);
      assert.ok(numbers.length === 1 || new Set(numbers).size > 1, `${row.name}: ${output}`);
    }
  }
  const kernels = rows.ROWS.flatMap(({ raw }) => Object.values(raw).flat()).map(({ kernel }) => kernel);
  for (const kernel of new Set(kernels)) await readFile(join(ROOT, `bench/kernels/${kernel}.wgsl`));
});
