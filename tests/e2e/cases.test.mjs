// The shared cases through the npm package in Chromium, on both drivers, with WebGPU's default limits and the adapter's.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ROOT } from "../../scripts/lib/proc.mjs";
import { openHarness, readCases, runCases } from "./harness.mjs";
import { spoil } from "./spoil.mjs";

// The package compiles no programs yet; tests/web runs these cases in the browser.
const cases = (await readCases(join(ROOT, "tests/cases"))).filter(({ program }) => program === undefined);
let harness;
before(async () => {
  harness = await openHarness();
});
after(() => harness?.close());

test("there are cases", () => assert.ok(cases.length > 0));

// The host driver executes no kernels yet: it must refuse them, and do all else alike.
const withoutKernels = cases.filter(({ kernels }) => !kernels);
const ways = [
  ["the limits of WebGPU's defaults", { limits: "default" }, cases],
  ["the limits of the adapter", { limits: "adapter" }, cases],
  ["the host driver", { driver: "host" }, withoutKernels],
];

for (const [way, options, own] of ways) {
  describe(`with ${way}`, () => {
    const results = new Map();
    before(() => runCases(harness.page, own, options, (result) => results.set(result.case, result)));
    for (const { name } of own) {
      test(`case ${name}`, () => {
        assert.ok(results.has(name), "it did not run");
        assert.equal(results.get(name).error, null);
      });
    }
  });
}

test("a case with one wrong expectation fails, whatever it expects", async () => {
  const spoiled = cases.flatMap(spoil);
  assert.ok(spoiled.length >= cases.length, `only ${spoiled.length} ways to spoil ${cases.length} cases`);
  const results = await runCases(harness.page, spoiled);
  const green = results.filter(({ pass }) => pass).map((result) => result.case);
  assert.deepEqual(green, [], "these comparisons cannot go red");
});

test("nothing went wrong in the page beside the cases", () => assert.deepEqual(harness.faults, []));
