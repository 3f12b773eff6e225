// The counting behind `npm test`'s last line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lint, parseCargo, parseNode, verdict } from "../../scripts/lib/counts.mjs";

test("cargo's results are summed over all test binaries", () => {
  const output = [
    "running 3 tests",
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    "test result: FAILED. 4 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
  ].join("\n");
  assert.deepEqual(parseCargo({ output }), { passed: 7, failed: 2, skipped: 1 });
});

test("node's totals count cancelled tests as failed", () => {
  const output = "ℹ tests 9\nℹ suites 1\nℹ pass 5\nℹ fail 1\nℹ cancelled 2\nℹ skipped 1\nℹ todo 0\n";
  assert.deepEqual(parseNode({ output }), { passed: 5, failed: 3, skipped: 1 });
});

test("a stage that breaks, tests nothing or skips is a failure", () => {
  assert.equal(verdict({ passed: 4, failed: 0, skipped: 0 }, 101).failed, 1);
  assert.equal(verdict({ passed: 0, failed: 0, skipped: 0 }, 0).failed, 1);
  assert.equal(verdict({ passed: 4, failed: 0, skipped: 2 }, 0).failed, 2);
  assert.equal(verdict({ passed: 4, failed: 0, skipped: 0 }, 0).failed, 0);
  assert.equal(verdict(lint({ code: 1 }), 1).failed, 1);
});
