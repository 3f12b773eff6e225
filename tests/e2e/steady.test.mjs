// Steady loops in a page: after the first turns nothing is made anew, and what a step is on the device can be counted.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
  await harness.page.evaluate(() => {
    /** What the body did on the device. */
    globalThis.counted = async (device, body) => {
      const before = device.stats();
      await body();
      return Object.fromEntries(Object.entries(device.stats()).map(([name, count]) => [name, count - before[name]]));
    };
    globalThis.values = (count) => Float32Array.from({ length: count }, (_, at) => ((at * 7) % 11) / 11);
  });
});
after(() => harness?.close());

const isNothingNew = ({ pipelinesCreated, bindGroupsCreated, buffersCreated }) =>
  assert.deepEqual({ pipelinesCreated, bindGroupsCreated, buffersCreated }, { pipelinesCreated: 0, bindGroupsCreated: 0, buffersCreated: 0 });

for (const tune of ["off", "quick"]) {
  test(`a training loop makes nothing anew, and its steps go together: tune ${tune}`, async () => {
    const { counts, kernels, losses } = await harness.page.evaluate(async (tune) => {
      const device = await wgslab.Device.open();
      const node = (label, shape) => device.node(label, { dtype: "f32", shape });
      const [x, y, w] = [node("x", [4, 16, 8]), node("y", [4, 16]), node("w", [8])];
      const root = device.context().upload(x, values(512)).upload(y, values(64)).upload(w, new Float32Array(8));
      const text = "e[n] = y[@batch, n] - sum[p](x[@batch, n, p] * w[p])\nloss = sum[n](e[n] * e[n])";
      const code = await device.compile("gradient", text, { nodes: [x, y, w], outputs: ["e", "loss"], tune });
      const gradient = await root.link(code);
      const change = "w[p] += sum[n](x[@batch, n, p] * e[n]) * 0.01";
      const next = await device.compile("update", change, { nodes: [x, w, code.node("e")], tune });
      const update = await gradient.context.link(next);
      const kernels = [code, next].map((code) => Number(/: (\d+) kernel/.exec(code.explain())[1])).reduce((a, b) => a + b);
      const epochs = async (count) => {
        for (let step = 0; step < count * 4; step += 1) {
          gradient.run({ batch: step % 4 });
          update.run({ batch: step % 4 });
        }
        await device.awaitIdle();
      };
      const loss = async () => (await gradient.context.readback("loss"))[0];
      await epochs(1);
      const losses = [await loss()];
      const counts = await counted(device, () => epochs(25));
      losses.push(await loss());
      device.destroy();
      return { counts, kernels, losses };
    }, tune);
    isNothingNew(counts);
    assert.equal(counts.dispatches, 100 * kernels);
    assert.deepEqual([counts.uploads, counts.copies, counts.zeros], [0, 0, 0]);
    assert.equal(counts.passes, counts.submissions);
    assert.ok(counts.submissions <= 4, JSON.stringify(counts));
    assert.ok(losses[1] < losses[0], "it learns");
  });
}

test("an inference loop of upload, run and readback makes nothing anew", async () => {
  const { counts, outputs } = await harness.page.evaluate(async () => {
    const device = await wgslab.Device.open();
    const node = (label, shape) => device.node(label, { dtype: "f32", shape });
    const [x, w] = [node("x", [64]), node("w", [64, 10])];
    const root = device.context().upload(x, new Float32Array(64)).upload(w, values(640));
    const code = await device.compile("layer", "y[j] +=! x[i] * w[i, j]\nz[j] = max(y[j], 0)", { nodes: [x, w] });
    const routine = await root.link(code);
    const infer = async (step) => {
      root.write(x, new Float32Array(64).fill(step));
      routine.run();
      return (await routine.context.readback("z"))[3];
    };
    for (let step = 0; step < 4; step += 1) await infer(step);
    const outputs = [];
    const counts = await counted(device, async () => {
      for (let step = 0; step < 50; step += 1) outputs.push(await infer(step));
    });
    device.destroy();
    return { counts, outputs };
  });
  isNothingNew(counts);
  assert.equal(counts.readbacks, 50);
  assert.equal(counts.uploads, 50);
  assert.ok(counts.submissions <= 100, JSON.stringify(counts));
  const one = outputs[1];
  outputs.forEach((output, step) => assert.ok(Math.abs(output - step * one) <= Math.abs(step * one) * 1e-5, `${step}: ${output}`));
});

test("nothing went wrong outside of what was awaited", () => {
  assert.deepEqual(harness.faults, []);
});
