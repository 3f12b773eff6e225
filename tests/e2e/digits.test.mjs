// The main job: what `npm start` does must hold, with the same numbers that it prints.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { agreement, MIN_ACCURACY } from "../../scripts/lib/results.mjs";
import { trainInBrowser, trainNatively } from "../../scripts/start.mjs";

let sides;
before(async () => {
  sides = { browser: await trainInBrowser(), native: await trainNatively() };
});

for (const name of ["browser", "native"]) {
  test(`the classifier reaches ${MIN_ACCURACY} on unseen digits: ${name}`, () => {
    assert.ok(sides[name].test_accuracy >= MIN_ACCURACY, `${sides[name].test_accuracy}`);
  });
}

test("losses and BufferLocs of the browser and the native run agree", () => {
  const { problems, buffer_locs_identical } = agreement(sides);
  assert.deepEqual(problems, []);
  assert.equal(buffer_locs_identical, true);
  assert.ok(Object.keys(sides.browser.buffer_locs).length > 0);
  assert.ok(sides.browser.losses.length > 10);
});
