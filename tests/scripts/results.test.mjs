// What `npm start` concludes from two sides: it must be able to go red for every reason that it names.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agreement, table } from "../../scripts/lib/results.mjs";

const side = (changes = {}) => ({
  driver: "gpu",
  adapter: { name: "llvmpipe", backend: "vulkan" },
  test_accuracy: 0.97,
  losses: [2.3, 0.5, 0.1],
  steps_per_second: 1000,
  buffer_locs: [{ label: "x", poolId: 1, offset: 0 }],
  peak_bytes: 1_000_000,
  ...changes,
});
const problems = (a, b) => agreement({ browser: side(a), native: side(b) }).problems.join("; ");

test("equal sides agree, and the table says so", () => {
  const sides = { browser: side(), native: side() };
  const verdict = agreement(sides);
  assert.equal(verdict.ok, true);
  assert.match(table(sides, verdict), /BufferLocs identical +yes/);
});

test("losses within 1e-3 relative or 1e-4 absolute agree", () => {
  assert.equal(problems({ losses: [2.3, 0.5, 0.0001] }, { losses: [2.302, 0.5004, 0.00019] }), "");
});

test("losses further apart, at other steps, or not numbers do not", () => {
  assert.match(problems({}, { losses: [2.3, 0.51, 0.1] }), /step 1: loss 0\.5 \(browser\) and 0\.51 \(native\)/);
  assert.match(problems({}, { losses: [2.3, 0.5] }), /different steps/);
  assert.match(problems({}, { losses: [2.3, null, 0.1] }), /step 1/);
  assert.match(problems({ losses: [] }, { losses: [] }), /different steps/);
  assert.match(problems({ losses: [[0, 1]] }, { losses: [[5, 1]] }), /different steps/);
});

test("one moved tensor is a problem", () => {
  assert.match(problems({}, { buffer_locs: [{ label: "x", poolId: 1, offset: 256 }] }), /BufferLocs/);
});

test("a side that learned too little or failed is a problem, alone too", () => {
  assert.match(problems({ test_accuracy: 0.9 }, {}), /browser: test accuracy 0\.9 is under/);
  const failed = { native: { error: "native: no adapter" } };
  assert.equal(agreement(failed).ok, false);
  assert.match(table(failed, agreement(failed)), /FAILED: native/);
  assert.equal(agreement({ native: side({ test_accuracy: undefined }) }).ok, false);
});

test("a side without a GPU says so below the table, and only that side", () => {
  const sides = { browser: side(), native: side({ driver: "host", adapter: { name: "host memory", backend: "host" } }) };
  const text = table(sides, agreement(sides));
  assert.match(text, /^native: no GPU adapter was found, so it ran on the host driver, the CPU$/m);
  assert.doesNotMatch(text, /^browser: no GPU/m);
});
