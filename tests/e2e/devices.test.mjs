// Devices: which there are, what they say of themselves, and compaction, through the npm package on both drivers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
});
after(() => harness?.close());
const inPage = (body, argument) => harness.page.evaluate(body, argument);

// First, while the page has opened none.
test("before a device is opened there is no state of any", async () => {
  assert.deepEqual(await inPage(() => [wgslab.globalDebugInfo(), lowLevel.getGlobalDebugInfo()]), [[], []]);
});

for (const driver of ["gpu", "host"]) {
  test(`${driver}: what the driver has is what opening gives`, async () => {
    const { properties, count, opened, low } = await inPage(async (driver) => {
      const properties = await wgslab.Device.staticProperties({ driver });
      const count = await wgslab.Device.count({ driver });
      const low = [await lowLevel.staticProperties(driver), await lowLevel.numDevices(driver)];
      const device = await wgslab.Device.open({ driver, ordinal: 0 });
      const opened = { adapter: device.adapter, limits: device.limits };
      device.destroy();
      return { properties, count, opened, low };
    }, driver);
    assert.equal(count, 1);
    assert.deepEqual(low, [properties, count]);
    assert.equal(properties[0].ordinal, 0);
    assert.deepEqual(properties[0].limits, opened.limits);
    assert.deepEqual(Object.keys(properties[0].adapter), Object.keys(opened.adapter));
    assert.equal(properties[0].adapter.backend, opened.adapter.backend);
  });

  test(`${driver}: those who ask for an ordinal share a device until it is destroyed`, async () => {
    const seen = await inPage(async (driver) => {
      const [one, same] = await Promise.all([wgslab.Device.get(0, { driver }), wgslab.Device.get(0, { driver })]);
      const again = await lowLevel.getDevice(driver, 0);
      const own = await wgslab.Device.open({ driver });
      const facts = { shared: [one === same, one === again, one === own], names: [one.name, own.name] };
      one.destroy();
      const next = await wgslab.Device.get(0, { driver });
      facts.next = [next === one, next.isDisposed, one.isDisposed, own.isDisposed];
      const missing = await failure(() => wgslab.Device.get(3, { driver }));
      facts.missing = [missing.code, missing.message];
      const wrong = await failure(() => wgslab.Device.get(0.5, { driver }));
      facts.wrong = wrong.code;
      next.destroy();
      own.destroy();
      return facts;
    }, driver);
    assert.deepEqual(seen.shared, [true, true, false]);
    assert.ok(seen.names.every((name) => name.startsWith(`${driver}:0:`)), seen.names.join());
    assert.notEqual(seen.names[0], seen.names[1]);
    assert.deepEqual(seen.next, [false, false, true, false]);
    assert.equal(seen.missing[0], "no-adapter", seen.missing[1]);
    assert.match(seen.missing[1], /ordinal/);
    assert.equal(seen.wrong, "shape-mismatch");
  });

  test(`${driver}: a device says in one record how it stands, and all of them in a list`, async () => {
    const { info, same, other, used, all } = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const k = device.node("k", { dtype: "f32", shape: [64], mode: "constant" });
      const { node, context } = counted(device, "x", 100);
      context.upload(k, new Float32Array(64)).deviceToDevice(node, context, { into: "merge-buffer" }).run();
      await device.awaitIdle();
      const info = device.debugInfo();
      const same = [lowLevel.getDebugInfo(device), { ...info }].map((one) => JSON.stringify(one));
      const other = await wgslab.Device.open({ driver: driver === "gpu" ? "host" : "gpu" });
      const used = [device.usedMemory, lowLevel.getUsedMemory(device), device.report().inUseBytes];
      const all = wgslab.globalDebugInfo().map(({ name }) => name);
      const names = [device.name, other.name];
      device.destroy();
      other.destroy();
      return { info: { ...info, ownName: names[0] }, same, other: names[1], used, all };
    }, driver);
    assert.equal(info.name, info.ownName);
    assert.equal(info.isIdle, true);
    assert.match(info.mergeBuffer, /^n\d+"x"$/);
    assert.ok(info.mergeBufferCapacity >= 400, `${info.mergeBufferCapacity}`);
    assert.equal(info.constantCount, 1);
    assert.equal(info.nextPoolId, 3);
    assert.ok(info.recordedSeq > 0 && info.stats.uploads === 2, JSON.stringify(info));
    assert.equal(info.limits.alignmentBytes, 256);
    assert.equal(typeof info.adapter.name, "string");
    const labels = info.memory.pools.flatMap(({ nodes }) => nodes.map(({ label }) => label));
    assert.ok(labels.includes("x") && labels.includes("k"), labels.join());
    assert.equal(same[0], same[1]);
    assert.deepEqual(used, [info.memory.inUseBytes, info.memory.inUseBytes, info.memory.inUseBytes]);
    const [mine, its] = [all.indexOf(info.name), all.indexOf(other)];
    assert.ok(mine >= 0 && its > mine, `${all.join()}: in the order of opening`);
  });
}

test("gpu: there are subgroups where the adapter has them, but under WebGPU's own limits", async () => {
  const { opened, plain, have, sums } = await inPage(async () => {
    const [adapter, device] = [await navigator.gpu.requestAdapter(), await wgslab.Device.open()];
    const other = await wgslab.Device.open({ limits: "default" });
    const [opened, plain] = [device, other].map(({ limits }) => limits.hasSubgroups);
    const have = adapter.features.has("subgroups") && navigator.gpu.wgslLanguageFeatures.has("subgroup_id");
    const text = `enable subgroups;
      @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) lane: u32) {
        store_y(lane, subgroupAdd(1u)); }`;
    const y = device.node("y", { dtype: "u32", shape: [64] });
    const compiling = device.compile("sums", text, { grid: [1], tensors: { y: { node: y, access: "write" } } });
    const code = have ? await compiling : await failure(() => compiling);
    let sums = code.code;
    if (have) {
      const routine = await device.context().link(code);
      routine.run();
      sums = [...(await routine.context.readback(y))];
    }
    device.destroy();
    other.destroy();
    return { opened, plain, have, sums };
  });
  assert.deepEqual([opened, plain], [have, false]);
  assert.ok(have ? sums.every((sum) => sum === sums[0] && 64 % sum === 0) : sums === "kernel-syntax", `${sums}`);
});

test("a merge buffer without a node says so", async () => {
  const merge = await inPage(async () => {
    const device = await wgslab.Device.open({ driver: "host" });
    const { mergeBuffer } = device.debugInfo();
    device.destroy();
    return mergeBuffer;
  });
  assert.equal(merge, null);
});

test("compaction moves bytes, gives buffers back, and keeps every location", async () => {
  const seen = await inPage(async () => {
    const device = await wgslab.Device.open({ heapBytes: 64 * 1024 });
    const made = Array.from({ length: 8 }, (_, at) => counted(device, `x${at}`, 6000, 1000 * at));
    const before = device.report();
    const locs = () => made.filter((_, at) => at % 2 === 1).map(({ node, context }) => context.loc(node));
    const placed = locs();
    made.forEach(({ context }, at) => at % 2 === 0 && context.dispose());
    // Buffers that are not yet known to be there take no part.
    await device.awaitIdle();
    const { movedBytes, freedBytes } = device.compact();
    const after = device.report();
    const values = [];
    for (const { node, context } of made.filter((_, at) => at % 2 === 1)) {
      const array = await context.readback(node);
      values.push([array[0], array[5999]]);
    }
    const again = device.compact();
    const host = await wgslab.Device.open({ driver: "host" });
    const facts = { placed, now: locs(), movedBytes, freedBytes, values, again, host: host.compact() };
    facts.heaps = [before.heapCount, after.heapCount, before.reservedBytes - after.reservedBytes];
    device.destroy();
    host.destroy();
    facts.gone = (await failure(() => device.compact())).code;
    return facts;
  });
  assert.deepEqual(seen.now, seen.placed);
  assert.deepEqual(seen.values, [1, 3, 5, 7].map((at) => [1000 * at, 1000 * at + 5999]));
  assert.ok(seen.movedBytes > 0 && seen.movedBytes % 256 === 0, `${seen.movedBytes}`);
  const [before, after, reserved] = seen.heaps;
  assert.ok(after < before, `${before} heaps, then ${after}`);
  assert.ok(seen.freedBytes >= reserved && reserved > 0, `${seen.freedBytes} and ${reserved}`);
  assert.deepEqual(seen.again, { movedBytes: 0, freedBytes: 0 });
  assert.deepEqual(seen.host, { movedBytes: 0, freedBytes: 0 });
  assert.equal(seen.gone, "disposed");
});

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));
