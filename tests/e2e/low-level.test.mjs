// The device layer function by function, and devices around a GPUDevice that the page has already.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
});
after(() => harness?.close());
const inPage = (body, argument) => harness.page.evaluate(body, argument);

/** A test that `body`, run in the page, fails with that code and all of those words. */
function fails(name, code, words, body) {
  test(`${code}: ${name}`, async () => {
    const error = await harness.page.evaluate(`failure(${body})`);
    assert.equal(error.code, code, error.message);
    for (const word of words) assert.ok(error.message.includes(word), `"${word}" is not in: ${error.message}`);
    assert.ok(!error.message.includes("\n"), error.message);
  });
}

test("every name of the signature is there", async () => {
  const names = await inPage(() => Object.keys(lowLevel).sort());
  assert.deepEqual(names, [
    "allocPool",
    "compile",
    "compileBatch",
    "constantBufferCache",
    "ctxBuffers",
    "describe",
    "dev",
    "device",
    "deviceId",
    "emptyOptimizeCtx",
    "finalized",
    "freePool",
    "freesExplicitly",
    "getDebugInfo",
    "getDevice",
    "getGlobalDebugInfo",
    "getName",
    "getUsedMemory",
    "makeChild",
    "makeContext",
    "makeDevice",
    "memsetZero",
    "mergeBuffer",
    "mergeBufferCapacity",
    "mergeBufferNode",
    "name",
    "nextPoolId",
    "numDevices",
    "optimizeCtx",
    "ordinal",
    "parent",
    "poolSizeBytes",
    "resolvePool",
    "runner",
    "staticProperties",
    "updatingFor",
    "updatingForMergeBuffer",
  ]);
});

for (const driver of ["gpu", "host"]) {
  test(`${driver}: pools that a compiler places on its own`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const facts = { name: lowLevel.name(device), frees: lowLevel.freesExplicitly(device), next: [] };
      facts.next.push(lowLevel.nextPoolId(device));
      lowLevel.allocPool(device, 5, 1000, 256);
      lowLevel.allocPool(device, 6, 256, 512, "on_device");
      facts.next.push(lowLevel.nextPoolId(device));
      facts.sizes = [lowLevel.poolSizeBytes(device, 5), lowLevel.poolSizeBytes(device, 6)];
      // Two nodes that share bytes, and one behind them: the compiler's own plan.
      const [a, b, c] = ["a", "b", "c"].map((label) => device.node(label, { dtype: "f32", shape: [8] }));
      const ctxBuffers = new Map([
        [c, { poolId: 5, offset: 256 }],
        [a, { poolId: 5, offset: 0 }],
        [b, { poolId: 5, offset: 16 }],
      ]);
      const context = lowLevel.makeContext(device, { ctxBuffers, optimizeCtx: lowLevel.emptyOptimizeCtx() });
      context.write(a, Float32Array.from({ length: 8 }, (_, index) => index));
      context.write(c, new Float32Array(8).fill(7));
      const cleared = lowLevel.memsetZero(device, 5, 256 + 4, 8);
      facts.values = (await context.readbackAll([b, "c"])).map((array) => [...array]);
      await cleared.completed;
      facts.order = [...lowLevel.ctxBuffers(context)].map(([node, loc]) => [node.label, loc.poolId, loc.offset]);
      facts.same = [...lowLevel.ctxBuffers(context).keys()].every((node, at) => node === [a, b, c][at]);
      facts.updating = lowLevel.updatingFor(device, c)?.seq > 0;
      facts.words = [context, a, cleared, device].map(lowLevel.describe);
      context.dispose();
      facts.finalized = [lowLevel.finalized(context), lowLevel.describe(context)];
      // Its pools are not the context's.
      facts.kept = lowLevel.poolSizeBytes(device, 5);
      lowLevel.freePool(device, 5);
      facts.freed = (await failure(() => lowLevel.poolSizeBytes(device, 5))).code;
      facts.id = [lowLevel.ordinal(device), lowLevel.deviceId(device), lowLevel.getName(device)];
      const { isIdle, lastEvent, stats } = lowLevel.runner(device);
      facts.runner = [typeof isIdle, lastEvent.seq, stats.uploads];
      facts.dev = lowLevel.dev(device).limits.alignmentBytes;
      await device.awaitIdle();
      facts.words.push(...[lowLevel.dev(device), lowLevel.runner(device)].map(lowLevel.describe));
      device.destroy();
      return facts;
    }, driver);
    assert.equal(seen.name, driver);
    assert.equal(seen.frees, true);
    assert.deepEqual(seen.next, [1, 7]);
    assert.deepEqual(seen.sizes, [1024, 256]);
    assert.deepEqual(seen.values[0].slice(0, 4), [4, 5, 6, 7]);
    assert.deepEqual(seen.values[1], [7, 0, 0, 7, 7, 7, 7, 7]);
    assert.deepEqual(seen.order, [["a", 5, 0], ["b", 5, 16], ["c", 5, 256]]);
    assert.deepEqual([seen.same, seen.updating], [true, true]);
    const [context, node, event, device, dev, runner] = seen.words;
    assert.match(context, /^Context\((gpu|host):0:\d+, \[n\d+"a"@p5\+0, n\d+"b"@p5\+16, n\d+"c"@p5\+256\]\)$/);
    assert.match(node, /^n\d+"a": f32\[8\]$/);
    assert.match(event, /^Event\(\d+, done\)$/);
    assert.match(device, /^Device\((gpu|host):0:\d+/);
    assert.equal(dev, device.replace(/^Device\((gpu|host):0:\d+/, "Dev($1"));
    assert.match(runner, /^Runner\(idle, Event\(\d+, done\)\)$/);
    assert.deepEqual(seen.finalized, [true, `finalized Context(${seen.id[2]})`]);
    assert.deepEqual([seen.kept, seen.freed], [1024, "disposed"]);
    assert.equal(seen.id[2], `${driver}:${seen.id[0]}:${seen.id[1]}`);
    assert.equal(seen.runner[0], "boolean");
    assert.ok(seen.runner[1] > 0);
    assert.equal(seen.runner[2], 2);
    assert.equal(seen.dev, 256);
  });

  test(`${driver}: children have the parent's parts, or their own`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const { node: x, context } = counted(device, "x", 8);
      const y = device.node("y", { dtype: "f32", shape: [4] });
      const plain = lowLevel.makeChild(context);
      const merging = lowLevel.makeChild(context, { mergeBufferNode: x });
      const inherited = lowLevel.makeChild(merging, { optimizeCtx: lowLevel.optimizeCtx(merging) });
      const cleared = lowLevel.makeChild(merging, { mergeBufferNode: null });
      const part = lowLevel.makeChild(context, { ctxBuffers: [[y, { ...context.loc(x), offset: 8 }]] });
      const facts = {
        parents: [plain, merging].map((child) => lowLevel.parent(child) === context),
        device: lowLevel.device(plain) === device,
        root: lowLevel.parent(lowLevel.makeContext(device)),
        merge: [plain, merging, inherited, cleared].map((child) => lowLevel.mergeBufferNode(child)?.label),
        // The node that was given is lent, not taken.
        usable: x.base,
        empty: [...lowLevel.ctxBuffers(lowLevel.makeContext(device)).keys()].length,
        nodes: [...lowLevel.ctxBuffers(part).keys()].map(({ label }) => label),
        sees: [...(await plain.readback("x"))][1],
        part: [...(await part.readback("y"))],
        lost: (await failure(() => part.loc(x) ?? part.readback(x))).code,
        optimize: lowLevel.optimizeCtx(plain) === lowLevel.emptyOptimizeCtx(),
      };
      device.destroy();
      return facts;
    }, driver);
    assert.deepEqual(seen.parents, [true, true]);
    assert.deepEqual([seen.device, seen.root], [true, undefined]);
    assert.deepEqual(seen.merge, [undefined, "x", "x", undefined]);
    assert.equal(seen.usable, undefined);
    assert.deepEqual([seen.empty, seen.nodes], [0, ["y"]]);
    assert.deepEqual([seen.sees, seen.part], [1, [2, 3, 4, 5]]);
    assert.equal(seen.lost, "unknown-node");
    assert.equal(seen.optimize, true);
  });

  test(`${driver}: constants are cached with the device, by node`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const node = device.node("table", { dtype: "u8", shape: [3], mode: "constant" });
      const before = lowLevel.constantBufferCache(device).size;
      const context = device.context().upload(node, Uint8Array.of(1, 2, 3));
      const cache = lowLevel.constantBufferCache(device);
      const facts = { before, size: cache.size, at: cache.get(node.id), loc: context.loc(node) };
      context.dispose();
      device.freeUnusedConstants();
      facts.after = lowLevel.constantBufferCache(device).size;
      device.destroy();
      return facts;
    }, driver);
    assert.deepEqual([seen.before, seen.size, seen.after], [0, 1, 0]);
    assert.deepEqual(seen.at, seen.loc);
  });
}

test("a kernel runs over nodes that were placed by hand", async () => {
  const values = await inPage(async () => {
    const device = await wgslab.Device.open();
    lowLevel.allocPool(device, 9, 4096, 256);
    lowLevel.memsetZero(device, 9, 0, 4096);
    const x = device.node("x", { dtype: "f32", shape: [16] });
    const context = lowLevel.makeContext(device, { ctxBuffers: [[x, { poolId: 9, offset: 64 }]] });
    const add = await context.link(await adder(device, x));
    add.run({ by: 5 });
    add.run({ by: 2 });
    const all = device.node("all", { dtype: "f32", shape: [48] });
    const whole = lowLevel.makeContext(device, { ctxBuffers: [[all, { poolId: 9, offset: 0 }]] });
    const values = [...(await whole.readback(all))];
    device.destroy();
    return values;
  });
  const want = (at) => (at >= 16 && at < 32 ? 7 : 0);
  assert.deepEqual(values, values.map((_, at) => want(at)));
});

test("a location on the host driver is a pool and an offset", async () => {
  const at = await inPage(async () => {
    const device = await wgslab.Device.open({ driver: "host" });
    const { node, context } = counted(device, "x", 8);
    const at = lowLevel.resolvePool(device, { ...context.loc(node), offset: 4 });
    device.destroy();
    return at;
  });
  assert.deepEqual(at, { poolId: 1, offset: 4 });
});

test("a device around the page's own GPUDevice computes on it, and shares its buffers", async () => {
  const seen = await inPage(async () => {
    const gpu = await pageDevice();
    const errors = [];
    gpu.onuncapturederror = (event) => errors.push(event.error.message);
    const handler = gpu.onuncapturederror;
    const device = await lowLevel.makeDevice(gpu, 3);
    const again = await wgslab.Device.open({ device: gpu });
    const own = await wgslab.Device.open();
    const { node: x, context } = counted(device, "x", 64);
    const add = await context.link(await adder(device, x));
    add.run({ by: 10 });
    device.flush();
    const { buffer, offset } = lowLevel.resolvePool(device, context.loc(x));
    // The page reads what our kernel wrote, and our kernel what the page writes.
    const ours = (await readOwn(gpu, buffer, offset, 256)).slice(0, 3);
    gpu.queue.writeBuffer(buffer, offset, new Float32Array(64).fill(100));
    add.run({ by: 1 });
    const theirs = [...(await context.readback(x))].slice(0, 2);
    const facts = {
      name: device.name,
      ordinal: lowLevel.ordinal(device),
      buffer: Object.prototype.toString.call(buffer),
      ours,
      theirs,
      handler: gpu.onuncapturederror === handler,
      requestAdapter: Object.hasOwn(navigator.gpu, "requestAdapter"),
      storage: device.limits.storageBuffers === gpu.limits.maxStorageBuffersPerShaderStage,
    };
    const other = counted(own, "x", 4);
    const elsewhere = lowLevel.resolvePool(own, other.context.loc(other.node)).buffer;
    // Its errors are its own: ours go on.
    gpu.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
    await gpu.queue.onSubmittedWorkDone();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await device.awaitIdle();
    facts.errors = errors.length;
    facts.elsewhere = elsewhere !== buffer;

    // Destroying ours leaves theirs alive, with the other device around it.
    const pending = settlement(context.readback(x));
    device.destroy();
    facts.pending = await pending;
    facts.lost = (await device.lost).reason;
    facts.gone = (await failure(() => context.readback(x))).code;
    const mine = gpu.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
    gpu.queue.writeBuffer(mine, 0, Float32Array.of(1, 2, 3, 4));
    facts.mine = await readOwn(gpu, mine, 0, 16);
    const { node: z, context: zs } = counted(again, "z", 64);
    const more = await zs.link(await adder(again, z));
    more.run({ by: 1 });
    facts.again = [...(await zs.readback(z))].slice(0, 2);
    facts.isAlive = await Promise.race([gpu.lost.then(() => "lost"), new Promise((done) => setTimeout(done, 50, "alive"))]);
    // Ours is gone from it: the slab's buffer was destroyed.
    gpu.pushErrorScope("validation");
    const encoder = gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, offset, mine, 0, 16);
    gpu.queue.submit([encoder.finish()]);
    facts.refused = (await gpu.popErrorScope())?.message ?? "";
    // When the page destroys its device, ours says so.
    gpu.destroy();
    facts.theirEnd = (await again.lost).message;
    facts.afterTheirEnd = (await failure(() => zs.readback(z))).code;
    again.destroy();
    own.destroy();
    return facts;
  });
  assert.match(seen.name, /^gpu:3:\d+$/);
  assert.equal(seen.ordinal, 3);
  assert.equal(seen.buffer, "[object GPUBuffer]");
  assert.deepEqual(seen.ours, [10, 11, 12]);
  assert.deepEqual(seen.theirs, [101, 101]);
  assert.deepEqual([seen.handler, seen.requestAdapter, seen.storage, seen.elsewhere], [true, false, true, true]);
  assert.equal(seen.errors, 1);
  assert.equal(seen.pending, "device-lost");
  assert.deepEqual([seen.lost, seen.gone], ["destroyed", "disposed"]);
  assert.deepEqual(seen.mine, [1, 2, 3, 4]);
  assert.deepEqual(seen.again, [1, 2]);
  assert.equal(seen.isAlive, "alive");
  assert.match(seen.refused, /destroyed/);
  assert.match(seen.theirEnd, /lost/);
  assert.equal(seen.afterTheirEnd, "device-lost");
});

test("the page may ask for an adapter while a device opens around its own, and keeps its own requestAdapter", async () => {
  const seen = await inPage(async () => {
    const gpu = await pageDevice();
    const { requestAdapter } = GPU.prototype;
    let asked = 0;
    const own = function (...args) {
      asked += 1;
      return requestAdapter.apply(this, args);
    };
    Object.defineProperty(navigator.gpu, "requestAdapter", { configurable: true, writable: true, value: own });
    const opening = wgslab.Device.open({ device: gpu });
    // At every turn of the microtasks in between.
    const adapters = [];
    for (let turn = 0; turn < 20; turn += 1) {
      adapters.push(navigator.gpu.requestAdapter());
      await undefined;
    }
    const device = await opening;
    const found = await Promise.all(adapters);
    const genuine = found.every((adapter) => adapter instanceof GPUAdapter);
    const kept = navigator.gpu.requestAdapter === own;
    delete navigator.gpu.requestAdapter;
    device.destroy();
    gpu.destroy();
    return { genuine, kept, asked };
  });
  assert.deepEqual(seen, { genuine: true, kept: true, asked: 20 });
});

test("many devices around one GPUDevice leave nothing on it", async () => {
  const settled = await inPage(async () => {
    const gpu = await pageDevice();
    const { createBuffer } = GPUDevice.prototype;
    const live = new Set();
    GPUDevice.prototype.createBuffer = function (descriptor) {
      const buffer = createBuffer.call(this, descriptor);
      const { destroy } = buffer;
      live.add(buffer);
      buffer.destroy = () => {
        live.delete(buffer);
        destroy.call(buffer);
      };
      return buffer;
    };
    try {
      for (let round = 0; round < 5; round += 1) {
        const device = await wgslab.Device.open({ device: gpu });
        const { node, context } = counted(device, "x", 64);
        const add = await context.link(await adder(device, node));
        add.run({ by: 1 });
        await context.readback(node);
        context.write(node, new Float32Array(64));
        device.destroy();
      }
    } finally {
      GPUDevice.prototype.createBuffer = createBuffer;
    }
    const left = live.size;
    gpu.destroy();
    return left;
  });
  assert.equal(settled, 0);
});

const host = (body) => `async () => {
  const device = await wgslab.Device.open({ driver: "host" });
  const { node: x, context } = counted(device, "x", 8);
  try { ${body} } finally { device.destroy(); }
}`;

fails("a device around what is no GPUDevice", "unsupported", ["GPUDevice", "7"], `() => lowLevel.makeDevice(7)`);
fails("a device around an adapter", "unsupported", ["GPUDevice", "requestDevice"],
  `async () => wgslab.Device.open({ device: await navigator.gpu.requestAdapter() })`);
fails("a host device around a GPUDevice", "unsupported", ["host", "GPUDevice"],
  `async () => wgslab.Device.open({ driver: "host", device: await pageDevice() })`);
fails("an ordinal that is no number", "shape-mismatch", ["ordinal", '"one"'], `() => wgslab.Device.open({ ordinal: "one" })`);
fails("a function of no device", "unsupported", ["Device", "makeDevice"], `() => lowLevel.nextPoolId({})`);
fails("words for a number", "unsupported", ["Context", "7"], `() => lowLevel.describe(7)`);
fails("a function of no context", "unsupported", ["Context"], `() => lowLevel.parent(undefined)`);
fails("a pool id that is none", "shape-mismatch", ["pool", "-1"], host(`lowLevel.allocPool(device, -1, 256, 256)`));
fails("a pool of half a byte", "shape-mismatch", ["size", "0.5"], host(`lowLevel.allocPool(device, 4, 0.5, 256)`));
fails("a pool of a mode that there is not", "unsupported", ["mode", '"fast"'],
  host(`lowLevel.allocPool(device, 4, 256, 256, "fast")`));
fails("the size of a pool that there is not", "disposed", ["77"], host(`lowLevel.poolSizeBytes(device, 77)`));
fails("a location past its pool", "shape-mismatch", ["p1", "1000"], host(`lowLevel.resolvePool(device, { poolId: 1, offset: 1000 })`));
fails("a location that is none", "unsupported", ["location", "poolId"], host(`lowLevel.resolvePool(device, 3)`));
fails("a location without an offset", "shape-mismatch", ["offset", "undefined"], host(`lowLevel.resolvePool(device, { poolId: 1 })`));
fails("a context over what are no nodes", "unsupported", ["ctxBuffers", '"x"'],
  host(`lowLevel.makeContext(device, { ctxBuffers: [["x", { poolId: 1, offset: 0 }]] })`));
fails("a node at no location", "unsupported", ["ctxBuffers", '"x"'],
  host(`lowLevel.makeContext(device, { ctxBuffers: [[x, 5]] })`));
fails("a node in a pool that there is not", "disposed", ["88"],
  host(`await lowLevel.makeContext(device, { ctxBuffers: [[x, { poolId: 88, offset: 0 }]] }).readback(x)`));
fails("a node past the end of its pool", "shape-mismatch", ["p1+240"],
  host(`await lowLevel.makeContext(device, { ctxBuffers: [[x, { poolId: 1, offset: 240 }]] }).readback(x)`));
fails("a kernel over a node between elements", "shape-mismatch", ['"x"', "p3+2"], `async () => {
  const device = await wgslab.Device.open();
  try {
    lowLevel.allocPool(device, 3, 1024, 256);
    const x = device.node("x", { dtype: "f32", shape: [4] });
    const context = lowLevel.makeContext(device, { ctxBuffers: [[x, { poolId: 3, offset: 2 }]] });
    await context.link(await adder(device, x));
  } finally {
    device.destroy();
  }
}`);
fails("an optimization context that is none", "unsupported", ["emptyOptimizeCtx"], host(`lowLevel.makeContext(device, { optimizeCtx: {} })`));
fails("a merge buffer's node that is none", "unsupported", ["merge buffer", "TensorNode"],
  host(`lowLevel.makeChild(context, { mergeBufferNode: "x" })`));
fails("a child of a disposed context", "disposed", ["context"], host(`context.dispose(); lowLevel.makeChild(context)`));
fails("a pool of a disposed device", "disposed", ["device host:0:"], host(`device.destroy(); lowLevel.poolSizeBytes(device, 1)`));

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));
