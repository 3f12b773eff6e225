// Lifetimes and scale through the npm package: what is disposed is gone, and nothing grows.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
});
after(() => harness?.close());
const inPage = (body) => harness.page.evaluate(body);

test("10,000 cycles of link and dispose do not grow", async () => {
  const { early, late, used } = await inPage(async () => {
    {
      const device = await wgslab.Device.open();
      const { context, code, routine } = await scale(device);
      routine.dispose();
      const cycles = async (count) => {
        for (let cycle = 0; cycle < count; cycle += 1) {
          const linked = await context.link(code);
          if (cycle % 100 === 0) await linked.run({ factor: 1 }).completed;
          linked.dispose();
        }
        await device.awaitIdle();
        const { reservedBytes, heapCount, inUseBytes, stagingBytes } = device.report();
        const { buffersCreated, bindGroupsCreated, pipelinesCreated } = device.stats();
        const counts = { buffersCreated, bindGroupsCreated, pipelinesCreated };
        return { reservedBytes, heapCount, inUseBytes, stagingBytes, ...counts };
      };
      const early = await cycles(100);
      const late = await cycles(9_900);
      context.dispose();
      await device.awaitIdle();
      const used = device.report().inUseBytes;
      device.destroy();
      return { early, late, used };
    }
  });
  assert.ok(Object.values(early).every(Number.isInteger), JSON.stringify(early));
  assert.deepEqual(late, early);
  assert.equal(used, 0);
});

test("dispose may be called again, in any order, and frees what the context brought", async () => {
  const used = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { root, context, code, routine } = await scale(device);
    const before = device.report().inUseBytes;
    for (const object of [context, root, routine, code, routine.context]) {
      object[Symbol.dispose]();
      object[Symbol.dispose]();
      object.dispose();
    }
    await device.awaitIdle();
    const after = device.report().inUseBytes;
    device[Symbol.dispose]();
    device[Symbol.dispose]();
    return { before, after };
  });
  assert.ok(used.before > 0);
  assert.equal(used.after, 0);
});

test("runs that were queued before a dispose still happen", async () => {
  const values = await inPage(async () => {
    const device = await wgslab.Device.open();
    const x = device.node("x", { dtype: "f32", shape: [64] });
    const context = device.context().upload(x, new Float32Array(64).fill(1));
    const code = await device.compile(
      "double",
      `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { store_x(id.x, 2.0 * load_x(id.x)); }`,
      { tensors: { x: { node: x, access: "read_write" } }, grid: [1] },
    );
    const routine = await context.link(code);
    for (let run = 0; run < 5; run += 1) routine.run();
    routine.dispose();
    const read = await context.readback(x);
    device.destroy();
    return [...read.slice(0, 3)];
  });
  assert.deepEqual(values, [32, 32, 32]);
});

test("an upload recorded after a run does not reach that run", async () => {
  const values = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { context, routine, x, y } = await scale(device);
    routine.run({ factor: 2 });
    const data = new Float32Array(64).fill(100);
    context.write(x, data);
    data.fill(-1);
    const [newX, oldY] = await routine.context.readbackAll([x, y]);
    device.destroy();
    return [newX[0], oldY[0]];
  });
  assert.deepEqual(values, [100, 2]);
});

test("an array to read into is filled and returned", async () => {
  const outcome = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { context, x } = await scale(device);
    const into = new Float32Array(70).subarray(3, 67);
    const same = (await context.readback(x, { into })) === into;
    const wrong = await failure(() => context.readback(x, { into: new Float32Array(63) }));
    device.destroy();
    return { same, sum: into.reduce((sum, value) => sum + value), edge: new Float32Array(into.buffer)[2], wrong: wrong.code };
  });
  assert.deepEqual(outcome, { same: true, sum: 64, edge: 0, wrong: "shape-mismatch" });
});

test("a kernel over 40 tensors in as many slabs sums them all, with the default limits", async () => {
  const { sum, plan } = await inPage(async () => {
    const device = await wgslab.Device.open({ limits: "default" });
    const names = Array.from({ length: 40 }, (_, index) => `t${index}`);
    const nodes = names.map((name) => device.node(name, { dtype: "f32", shape: [8] }));
    let context = device.context();
    for (const [index, node] of nodes.entries()) context = context.upload(node, new Float32Array(8).fill(index));
    const out = device.node("out", { dtype: "f32", shape: [8] });
    const code = await device.compile(
      "sum40",
      `@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        store_out(id.x, ${names.map((name) => `load_${name}(id.x)`).join(" + ")});
      }`,
      { tensors: [...nodes.map((node) => ({ node, access: "read" })), { node: out, access: "write" }], grid: [1] },
    );
    const routine = await context.link(code);
    routine.run();
    const sum = await routine.context.readback(out);
    const plan = routine.explain();
    device.destroy();
    return { sum: [...sum], plan };
  });
  assert.deepEqual(sum, new Array(8).fill((39 * 40) / 2));
  assert.ok(plan.length > 0);
});

test("a kernel over the nodes of 60 chained contexts binds at most 8 buffers", async () => {
  const { values, storageBuffers } = await inPage(async () => {
    const device = await wgslab.Device.open({ limits: "default" });
    const step = `@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) { store_y(id.x, load_x(id.x) + 1.0); }`;
    const shape = [8];
    const nodes = [device.node("n0", { dtype: "f32", shape })];
    let context = device.context().upload(nodes[0], new Float32Array(8));
    for (let link = 1; link < 60; link += 1) {
      nodes.push(device.node(`n${link}`, { dtype: "f32", shape }));
      const tensors = { x: { node: nodes[link - 1], access: "read" }, y: { node: nodes[link], access: "write" } };
      const routine = await context.link(await device.compile("step", step, { tensors, grid: [1] }));
      routine.run();
      context = routine.context;
    }
    const out = device.node("out", { dtype: "f32", shape });
    const code = await device.compile(
      "all60",
      `@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        store_out(id.x, ${nodes.map((node) => `load_${node.label}(id.x)`).join(" + ")});
      }`,
      { tensors: [...nodes.map((node) => ({ node, access: "read" })), { node: out, access: "write" }], grid: [1] },
    );
    const routine = await context.link(code);
    routine.run();
    const values = [...(await routine.context.readback(out))];
    const { storageBuffers } = device.limits;
    device.destroy();
    return { values, storageBuffers };
  });
  assert.equal(storageBuffers, 8);
  assert.deepEqual(values, new Array(8).fill((59 * 60) / 2));
});

test("1,000 runs make at most 10 submissions", async () => {
  const submissions = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { routine } = await scale(device);
    await device.awaitIdle();
    const before = device.stats().submissions;
    for (let run = 0; run < 1000; run += 1) routine.run({ factor: run });
    await device.awaitIdle();
    const submissions = device.stats().submissions - before;
    device.destroy();
    return submissions;
  });
  assert.ok(submissions <= 10, `${submissions} submissions`);
});

test("BufferLocs are the same on the gpu and the host driver, and on every run", async () => {
  const [gpu, again, host] = await inPage(async () => {
    const place = async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const node = (label, dtype, shape) => device.node(label, { dtype, shape });
      const context = device
        .context()
        .uploadAll([
          [node("a", "u8", [3]), Uint8Array.of(1, 2, 3)],
          [node("b", "f16", [5]), new Uint16Array(5)],
          [node("c", "f32", [100]), new Float32Array(100)],
        ])
        .zeros([node("d", "i32", [7])]);
      const locs = context.locs().map(({ label, poolId, offset }) => ({ label, poolId, offset }));
      device.destroy();
      return locs;
    };
    return [await place("gpu"), await place("gpu"), await place("host")];
  });
  assert.equal(gpu.length, 4);
  assert.deepEqual(again, gpu);
  assert.deepEqual(host, gpu);
});

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));

test("memory that the browser cannot give refuses the link, and leaves the device as it was", async () => {
  // Chromium's software adapter promises 1 GiB and has less.
  const { kind, message, before, after, values } = await inPage(async () => {
    const device = await wgslab.Device.open();
    const x = device.node("x", { dtype: "f32", shape: [4] });
    const y = device.node("y", { dtype: "f32", shape: [device.limits.segmentCapBytes / 4] });
    const context = device.context().upload(x, new Float32Array([1, 2, 3, 4]));
    const code = await device.compile("large", "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u)); }", {
      tensors: { x: { node: x, access: "read" }, y: { node: y, access: "write" } },
      grid: [1],
    });
    const sizes = () => [device.report().reservedBytes, device.report().inUseBytes, device.report().pools.length];
    const before = sizes();
    const error = await context.link(code).catch((error) => error);
    const after = sizes();
    const values = [...(await context.readback(x))];
    device.destroy();
    return { kind: error.code, message: error.message, before, after, values };
  });
  assert.equal(kind, "out-of-memory", message);
  assert.match(message, /^link "large": n\d+"y": allocating a heap of 1073741824 bytes: .* finalize contexts and try again$/);
  assert.deepEqual(after, before);
  assert.deepEqual(values, [1, 2, 3, 4]);
});
