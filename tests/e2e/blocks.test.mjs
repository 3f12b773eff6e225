// Blocks: rectangular, stepped parts of nodes, through the npm package on both drivers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
});
after(() => harness?.close());
const inPage = (body, argument) => harness.page.evaluate(body, argument);

for (const driver of ["gpu", "host"]) {
  test(`${driver}: ranges mean what they mean in NumPy`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const x = device.node("x", { dtype: "i32", shape: [3, 4, 5] });
      const context = device.context().upload(x, Int32Array.from({ length: 60 }, (_, index) => index));
      const read = async (...ranges) => [...(await context.readBlock(x, ranges))];
      const facts = {
        one: await read(2, 3, 4),
        row: await read(1, 2, null),
        column: await read(0, null, 1),
        stepped: await read([0, 3, 2], [1, 4, 2], [0, 5, 3]),
        ended: await read([0, 1], [3, 4], [2, 5]),
        none: await read([1, 1], null, null),
        backwards: await read([2, 1], null, null),
        whole: (await read(null, null, null)).length,
      };
      const scalar = device.node("s", { dtype: "f32", shape: [] });
      facts.scalar = [...(await device.context().upload(scalar, Float32Array.of(7)).readBlock(scalar, []))];
      device.destroy();
      return facts;
    }, driver);
    assert.deepEqual(seen.one, [59]);
    assert.deepEqual(seen.row, [30, 31, 32, 33, 34]);
    assert.deepEqual(seen.column, [1, 6, 11, 16]);
    assert.deepEqual(seen.stepped, [5, 8, 15, 18, 45, 48, 55, 58]);
    assert.deepEqual(seen.ended, [17, 18, 19]);
    assert.deepEqual([seen.none, seen.backwards, seen.whole, seen.scalar], [[], [], 60, [7]]);
  });

  test(`${driver}: a block is written and copied, and what lies between keeps its own`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const x = device.node("x", { dtype: "u8", shape: [4, 5] });
      const y = device.node("y", { dtype: "u8", shape: [5, 1] });
      const context = device.context().uploadAll([
        [x, new Uint8Array(20)],
        [y, Uint8Array.of(1, 2, 3, 4, 5)],
      ]);
      const data = Uint8Array.of(10, 11, 12, 13);
      const written = context.writeBlock(x, [[1, 3], [0, 4, 3]], data);
      data.fill(99);
      const copied = context.copyBlock(y, [[0, 5, 2], 0], x, [[0, 3], 4]);
      const facts = { order: copied.seq > written.seq, x: [...(await context.readback(x))] };
      await copied.completed;
      facts.isDone = written.isDone;
      // As if at once, although the blocks overlap.
      context.copyBlock(y, [[0, 4], null], y, [[1, 5], null]);
      facts.y = [...(await context.readback(y))];
      device.destroy();
      return facts;
    }, driver);
    assert.deepEqual([seen.order, seen.isDone], [true, true]);
    assert.deepEqual(seen.x, [0, 0, 0, 0, 1, 10, 0, 0, 11, 3, 12, 0, 0, 13, 5, 0, 0, 0, 0, 0]);
    assert.deepEqual(seen.y, [1, 1, 2, 3, 4]);
  });

  test(`${driver}: blocks that do not fit are refused, and change nothing`, async () => {
    const { errors, x } = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const x = device.node("x", { dtype: "f32", shape: [2, 3] });
      const n = device.node("n", { dtype: "i32", shape: [2, 3] });
      const context = device.context().uploadAll([
        [x, Float32Array.of(0, 1, 2, 3, 4, 5)],
        [n, new Int32Array(6)],
      ]);
      const bodies = {
        axes: () => context.readBlock(x, [0]),
        outside: () => context.readBlock(x, [null, [1, 4]]),
        index: () => context.readBlock(x, [2, null]),
        step: () => context.readBlock(x, [null, [0, 3, 0]]),
        negative: () => context.readBlock(x, [-1, null]),
        fraction: () => context.writeBlock(x, [0.5, null], new Float32Array(3)),
        range: () => context.readBlock(x, [null, "1:3"]),
        list: () => context.readBlock(x, null),
        length: () => context.writeBlock(x, [0, null], new Float32Array(2)),
        array: () => context.writeBlock(x, [0, null], new Int32Array(3)),
        dtypes: () => context.copyBlock(n, [0, null], x, [1, null]),
        extents: () => context.copyBlock(x, [0, [0, 2]], x, [1, null]),
        node: () => context.copyBlock(x, [0, null], "x", [1, null]),
      };
      const errors = {};
      for (const [name, body] of Object.entries(bodies)) {
        const { code, message } = await failure(body);
        errors[name] = [code, message];
      }
      const values = [...(await context.readback(x))];
      device.destroy();
      return { errors, x: values };
    }, driver);
    const wanted = {
      axes: ["shape-mismatch", /needs 2 spans, one per axis, not 1/],
      outside: ["shape-mismatch", /leaves axis 1: 1:4 .* ends after 3; shorten the span/],
      index: ["shape-mismatch", /leaves axis 0: 2:3 /],
      step: ["shape-mismatch", /has a step of 0 on axis 1/],
      negative: ["shape-mismatch", /readBlock n\d+"x": .*axis 0 must be a whole number from 0 to 4294967295: got -1/],
      fraction: ["shape-mismatch", /axis 0 must be a whole number .* got 0\.5/],
      range: ["unsupported", /axis 1 must be an array: got "1:3"/],
      list: ["unsupported", /the ranges must be an array: got null/],
      length: ["shape-mismatch", /has 3 elements \(12 bytes\), but the array has 2 \(8 bytes\)/],
      array: ["dtype-mismatch", /is f32: got Int32Array, want Float32Array/],
      dtypes: ["dtype-mismatch", /run a cast kernel/],
      extents: ["shape-mismatch", /give blocks of the same extents/],
      node: ["unsupported", /copyBlock must be a TensorNode: got "x"/],
    };
    for (const [name, [code, words]] of Object.entries(wanted)) {
      assert.equal(errors[name][0], code, `${name}: ${errors[name][1]}`);
      assert.match(errors[name][1], words, name);
    }
    assert.deepEqual(x, [0, 1, 2, 3, 4, 5]);
  });
}

test("a signal ends the wait for a block", async () => {
  const [code, later] = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { node, context } = counted(device, "x", 8);
    const controller = new AbortController();
    const reading = context.readBlock(node, [[0, 8, 2]], { signal: controller.signal });
    controller.abort();
    const outcome = await reading.catch((error) => error.name);
    const later = [...(await context.readBlock(node, [[1, 8, 3]]))];
    device.destroy();
    return [outcome, later];
  });
  assert.equal(code, "AbortError");
  assert.deepEqual(later, [1, 4, 7]);
});

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));
