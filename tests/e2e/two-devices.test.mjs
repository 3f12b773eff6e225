// Two devices that merge their gradients must become what one device becomes: in the page, and natively on both drivers.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { trainOnTwoInBrowser, trainOnTwoNatively } from "../../scripts/start.mjs";

const SIDES = {
  browser: trainOnTwoInBrowser,
  "native gpu": () => trainOnTwoNatively(),
  "native host": () => trainOnTwoNatively("--driver", "host"),
};

// The losses of two adapters, at every reported step.
const LOSS_RELATIVE = 1e-3;

const results = {};
before(async () => {
  for (const [name, train] of Object.entries(SIDES)) results[name] = await train();
});

for (const name of Object.keys(SIDES)) {
  test(`two devices have the same weights, and those of one device up to rounding: ${name}`, () => {
    const { devices, between_devices, to_joined, tolerance, agrees, test_accuracy } = results[name];
    assert.equal(new Set(devices.map((device) => device.name)).size, 2, "two devices");
    assert.deepEqual(between_devices, { absolute: 0, relative: 0 });
    assert.ok(to_joined.relative <= tolerance.to_joined, `${to_joined.relative} is over ${tolerance.to_joined}`);
    assert.ok(to_joined.absolute > 0, "another order of sums rounds otherwise: were they compared at all?");
    assert.equal(agrees, true);
    assert.equal(test_accuracy.devices[0], test_accuracy.devices[1]);
    assert.ok(test_accuracy.devices[0] > 0.93, `${test_accuracy.devices[0]}`);
  });
}

test("the page and both native drivers have the same losses on the way", () => {
  const [first, ...others] = Object.values(results).map(({ losses }) => losses);
  assert.equal(first.length, 5);
  for (const losses of others) {
    assert.deepEqual(losses.map(({ step }) => step), first.map(({ step }) => step));
    for (const [index, { devices, joined }] of losses.entries()) {
      const want = first[index];
      const pairs = [[joined, want.joined], ...devices.map((loss, device) => [loss, want.devices[device]])];
      for (const [got, wanted] of pairs) assert.ok(Math.abs(got - wanted) <= LOSS_RELATIVE * wanted, `${got}, not ${wanted}`);
    }
  }
});
