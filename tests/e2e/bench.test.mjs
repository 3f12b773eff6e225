// The harness of `npm run bench`, run over its smallest rows: that it measures and checks, not how fast anything is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../../scripts/lib/proc.mjs";

test("the smallest rows are measured in the browser, checked, and shown", async () => {
  const flags = ["--browser", "--json", "--rows", "compile,training", "--peers", "jax", "--seconds", "0"];
  const { code, stdout, output } = await run(process.execPath, ["scripts/bench.mjs", ...flags]);
  assert.equal(code, 0, output);
  const { Chromium } = JSON.parse(stdout);
  assert.deepEqual(
    Chromium.rows.map(({ name }) => name),
    ["compile the attention block from its text", "link the attention block"],
  );
  const [row] = Chromium.programs.rows;
  assert.equal(row.name, "digits training step");
  assert.deepEqual(Object.keys(row.parts).map((part) => part.split(" ")[0]), ["raw", "wgslab", "jax-js"]);
  for (const [part, { time, fault, ratio }] of Object.entries(row.parts)) {
    assert.ok(time.low > 0 && time.low <= time.median && time.median <= time.high, `${part}: ${fault}`);
    assert.ok(ratio > 0, part);
  }
  assert.ok(Chromium.programs.peaks.bytesPerSecond > 0 && Chromium.programs.peaks.flopsPerSecond > 0);
});
