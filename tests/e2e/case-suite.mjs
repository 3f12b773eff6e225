// The shared cases through the npm package in a browser, as tests: on both drivers, with WebGPU's default limits and with
// the adapter's.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ROOT } from "../../scripts/lib/proc.mjs";
import { openHarness, readCases, runCases } from "./harness.mjs";
import { spoil } from "./spoil.mjs";

const WAYS = [
  ["the limits of WebGPU's defaults", { limits: "default" }],
  ["the limits of the adapter", { limits: "adapter" }],
  ["the host driver", { driver: "host" }],
];

/**
 * Declares the tests for `chromium` or `firefox`. The comparisons themselves, which are the same everywhere, are tested with
 * all wrong expectations where `spoilsAll`, else with those of the host driver.
 */
export async function caseSuite(browser, { spoilsAll = false } = {}) {
  const cases = await readCases(join(ROOT, "tests/cases"));
  let harness;
  before(async () => {
    harness = await openHarness(browser);
  });
  after(() => harness?.close());

  test("there are cases of each kind", () => {
    for (const kind of ["program", "wgsl", "steps"]) assert.ok(cases.some((one) => one[kind] !== undefined), kind);
  });

  test(`it is ${browser}`, async () => {
    const agent = await harness.page.evaluate("navigator.userAgent");
    assert.match(agent, browser === "firefox" ? /Firefox/ : /Chrome/);
  });

  for (const [way, options] of WAYS) {
    describe(`with ${way}`, () => {
      const results = new Map();
      before(() => runCases(harness.page, cases, options, (result) => results.set(result.case, result)));
      for (const { name } of cases) {
        test(`case ${name}`, () => {
          assert.ok(results.has(name), "it did not run");
          assert.equal(results.get(name).error, null);
        });
      }
    });
  }

  const onHost = cases.filter(({ program }) => program !== undefined);
  const controls = [["a program", onHost, { driver: "host" }]];
  if (spoilsAll) controls.push(["a case", cases, {}]);
  for (const [what, honest, options] of controls) {
    test(`${what} with one wrong expectation fails, whatever it expects: ${options.driver ?? "gpu"}`, async () => {
      const spoiled = honest.flatMap(spoil);
      assert.ok(spoiled.length >= honest.length, `only ${spoiled.length} ways to spoil ${honest.length} cases`);
      const results = await runCases(harness.page, spoiled, options);
      const green = results.filter(({ pass }) => pass).map((result) => result.case);
      assert.deepEqual(green, [], "these comparisons cannot go red");
    });
  }

  test("nothing went wrong in the page beside the cases", () => assert.deepEqual(harness.faults, []));
}
