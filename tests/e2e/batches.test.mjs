// Batches, execution dependencies, sequences, and what is forgotten.

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

test("a batch compiles in order and links into one line of contexts, with one slab for all", async () => {
  const seen = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { nodes, context, codes } = await chain(device);
    const poolsBefore = device.report().pools.length;
    const routines = await context.linkBatch(codes);
    const shared = routines[0].context.parent;
    const facts = { names: routines.map(({ name }) => name), pools: device.report().pools.length - poolsBefore };
    facts.line = [
      shared.parent === context,
      routines[1].context.parent === routines[0].context,
      routines[2].context.parent === routines[1].context,
    ];
    facts.ids = routines.map(({ id }) => id);
    facts.sharedHas = nodes.map((node) => shared.loc(node) !== undefined);
    facts.canRun = routines.map(({ canRun }) => canRun);
    facts.deps = routines.map(({ executionDeps }) => executionDeps);
    facts.early = await failure(() => routines[2].run());
    for (const routine of routines) routine.run();
    facts.after = routines.map(({ executionDeps, canRun }) => [executionDeps.length, canRun]);
    facts.values = [...(await routines[2].context.readback("n3"))].slice(0, 3);
    facts.sides = routines.map(({ inputs, outputs }) => [inputs, outputs]);
    facts.codes = routines.map(({ code }, index) => code === codes[index]);
    device.destroy();
    return facts;
  });
  assert.deepEqual(seen.names, ["step0", "step1", "step2"]);
  assert.equal(seen.pools, 1);
  assert.deepEqual(seen.line, [true, true, true]);
  assert.deepEqual(seen.sharedHas, [true, true, true, true]);
  assert.deepEqual(seen.canRun, [true, false, false]);
  assert.deepEqual(seen.deps, [[], [{ id: seen.ids[0], name: "step0" }], [{ id: seen.ids[1], name: "step1" }]]);
  assert.equal(seen.early.code, "not-run");
  assert.match(seen.early.message, /step1/);
  assert.deepEqual(seen.after, [[0, true], [0, true], [0, true]]);
  assert.deepEqual(seen.values, [3, 4, 5]);
  assert.deepEqual(seen.sides, [[["n0"], ["n1"]], [["n1"], ["n2"]], [["n2"], ["n3"]]]);
  assert.deepEqual(seen.codes, [true, true, true]);
});

for (const order of [[0, 1, 2], [2, 1, 0], [1, 2, 0]]) {
  test(`what a batch shares is freed with the last of its routines, disposed in the order ${order}`, async () => {
    const { uses, before, values } = await inPage(async (order) => {
      const device = await wgslab.Device.open();
      const { context, codes } = await chain(device);
      const before = device.report().inUseBytes;
      const routines = await context.linkBatch(codes);
      for (const routine of routines) routine.run();
      const last = routines[order[2]];
      const label = "n" + (order[2] + 1);
      const uses = [];
      let values;
      for (const at of order) {
        if (routines[at] === last) values = [...(await last.context.readback(label))].slice(0, 2);
        routines[at].dispose();
        routines[at].dispose();
        await device.awaitIdle();
        uses.push(device.report().inUseBytes);
      }
      device.destroy();
      return { uses, before, values };
    }, order);
    assert.ok(uses[0] > before && uses[1] > before, JSON.stringify(uses));
    assert.equal(uses[2], before);
    assert.deepEqual(values, [order[2] + 1, order[2] + 2]);
  });
}

test("1,000 cycles of a batch do not grow", async () => {
  const [early, late] = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { context, codes } = await chain(device);
    const cycles = async (count) => {
      for (let cycle = 0; cycle < count; cycle += 1) {
        const routines = await context.linkBatch(codes);
        routines.forEach((routine) => routine.run());
        routines.forEach((routine) => routine.dispose());
      }
      await device.awaitIdle();
      const { reservedBytes, inUseBytes, pools } = device.report();
      return { reservedBytes, inUseBytes, pools: pools.length };
    };
    const counts = [await cycles(50), await cycles(950)];
    device.destroy();
    return counts;
  });
  assert.deepEqual(late, early);
});

test("an empty batch is empty", async () => {
  const seen = await inPage(async () => {
    const device = await wgslab.Device.open();
    const lists = [await device.compileBatch([]), await device.context().linkBatch([])];
    device.destroy();
    return lists;
  });
  assert.deepEqual(seen, [[], []]);
});

test("a batch with an error in it leaves nothing behind", async () => {
  const { compiled, linked, before, after } = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { nodes, context, codes } = await chain(device);
    const bad = { ...increment("broken", nodes[0], nodes[1]), wgsl: "@compute @workgroup_size(1) fn main() { x }" };
    const compiled = await failure(() => device.compileBatch([increment("fine", nodes[0], nodes[1]), bad]));
    const before = device.report().inUseBytes;
    // step2 reads what step1 would make.
    const linked = await failure(() => context.linkBatch([codes[0], codes[2]]));
    const after = device.report().inUseBytes;
    device.destroy();
    return { compiled, linked, before, after };
  });
  assert.equal(compiled.isKernelError, true);
  assert.match(compiled.message, /compile "broken"/);
  assert.equal(linked.code, "unknown-node");
  assert.match(linked.message, /link "step2".*"n2"/);
  assert.equal(after, before);
});

test("linking and disposing touch no tensor one by one in JavaScript", async () => {
  const { reads, labels } = await inPage(async () => {
    const device = await wgslab.Device.open();
    const nodes = Array.from({ length: 200 }, (_, at) => device.node(`t${at}`, { dtype: "f32", shape: [4] }));
    const context = device.context().zeros(nodes.slice(1));
    const sum = nodes.slice(1).map((node) => `load_${node.label}(0u)`).join(" + ");
    const code = await device.compile("sum", `@compute @workgroup_size(1) fn main() { store_t0(0u, ${sum}); }`, {
      tensors: nodes.map((node, at) => ({ node, access: at === 0 ? "write" : "read" })),
      grid: [1],
    });
    // Every way to a tensor of a code goes through the list: reading its elements is counted.
    let reads = 0;
    const counting = (list) =>
      new Proxy(list, {
        get: (target, key, receiver) => {
          if (typeof key === "string" && /^\d+$/.test(key)) reads += 1;
          return Reflect.get(target, key, receiver);
        },
      });
    Object.defineProperty(code, "tensors", { value: counting([...code.tensors]) });
    const routine = await context.link(code);
    routine.run();
    const [batched] = await context.linkBatch([code]);
    batched.dispose();
    const seen = reads;
    const labels = [routine.inputs.length, routine.outputs.length, routine.inputs === routine.inputs];
    routine.dispose();
    device.destroy();
    return { reads: seen, labels };
  });
  assert.equal(reads, 0);
  assert.deepEqual(labels, [199, 1, true]);
});

test("a sequence replays with recorded and with new statics", async () => {
  const seen = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { node: x, context } = counted(device, "x", 64);
    const add = await context.link(await adder(device, x));
    const value = async () => (await context.readback(x))[0];
    const facts = { asked: [] };
    const sequence = wgslab.Sequence.record([
      [add, { by: 1 }],
      [add, { by: 10 }],
    ]);
    facts.length = [sequence.length, sequence.routines.length];
    sequence.run();
    facts.once = await value();
    await sequence.run({ times: 5 }).completed;
    facts.five = await value();
    await sequence.run({ times: 0 }).completed;
    facts.none = await value();
    const before = await value();
    sequence.run({
      times: 3,
      statics: (replay, name, recorded, routine) => {
        facts.asked.push([replay, name, recorded, routine === add]);
        return replay * 100 + recorded;
      },
    });
    facts.own = (await value()) - before;
    facts.isDisposed = sequence.isDisposed;
    sequence[Symbol.dispose]();
    facts.disposed = [sequence.isDisposed, (await failure(() => sequence.run())).code, add.isDisposed];
    device.destroy();
    return facts;
  });
  assert.deepEqual(seen.length, [2, 2]);
  assert.deepEqual([seen.once, seen.five, seen.none], [11, 66, 66]);
  assert.equal(seen.own, 2 * (0 + 100 + 200) + 3 * 11);
  assert.deepEqual(
    seen.asked,
    [0, 1, 2].flatMap((replay) => [
      [replay, "by", 1, true],
      [replay, "by", 10, true],
    ]),
  );
  assert.equal(seen.isDisposed, false);
  assert.deepEqual(seen.disposed, [true, "disposed", false]);
});

test("a sequence of routines that depend on each other runs them in order, or says who is missing", async () => {
  const { missing, values, unrun } = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { context, codes } = await chain(device);
    const routines = await context.linkBatch(codes);
    const partial = wgslab.Sequence.record(routines.slice(1));
    const missing = await failure(() => partial.run());
    const unrun = routines.map(({ canRun }) => canRun);
    const whole = wgslab.Sequence.record(routines);
    whole.run({ times: 2 });
    const values = [...(await routines[2].context.readback("n3"))].slice(0, 2);
    partial.dispose();
    whole.dispose();
    device.destroy();
    return { missing, values, unrun };
  });
  assert.equal(missing.code, "not-run");
  assert.match(missing.message, /"step0"/);
  assert.deepEqual(unrun, [true, false, false]);
  assert.deepEqual(values, [3, 4]);
});

test("what is collected without dispose is named by the device", async () => {
  const lines = [];
  harness.page.on("console", (message) => lines.push(message.text()));
  await inPage(async () => {
    globalThis.leaky = await wgslab.Device.open();
    // In a function of its own, so that nothing on the stack holds them.
    const forget = async () => {
      const { node, context } = counted(leaky, "x", 64);
      const routine = await context.link(await adder(leaky, node, "forgotten"));
      routine.run({ by: 1 });
      globalThis.orderly = leaky.context().zeros([node]);
      orderly.dispose();
    };
    await forget();
    await leaky.awaitIdle();
  });
  let names = [];
  for (let attempt = 0; attempt < 50 && names.length < 2; attempt += 1) {
    await harness.page.requestGC();
    names = await inPage(() => new Promise((resolve) => setTimeout(() => resolve([...leaky.undisposed]), 50)));
  }
  const device = await inPage(() => {
    const { name } = leaky;
    leaky.destroy();
    return name;
  });
  assert.ok(names.includes('routine "forgotten"'), names.join());
  assert.ok(names.some((name) => name.startsWith("context ") && name.endsWith(device)), names.join());
  assert.equal(names.length, 2, names.join());
  assert.ok(lines.some((line) => line.includes('routine "forgotten" was garbage-collected')), lines.join());
});

const open = `const device = await wgslab.Device.open();
  const { node: x, context } = counted(device, "x", 64);
  const code = await adder(device, x);`;
const gpu = (body) => `async () => { ${open} try { ${body} } finally { device.destroy(); } }`;
const two = (body) => gpu(`const other = await wgslab.Device.open({ driver: "host" }); try { ${body} } finally { other.destroy(); }`);

fails("a batch that is no list", "unsupported", ["compileBatch", "array"], gpu(`await device.compileBatch("k")`));
fails("a batch of no kernels", "unsupported", ["item 0", "7"], gpu(`await device.compileBatch([7])`));
fails("a kernel without a name", "unsupported", ["name", "undefined"], gpu(`await device.compileBatch([{ wgsl: "" }])`));
fails("a kernel over what is no node", "unsupported", ["TensorNode", '"k"'],
  gpu(`await device.compile("k", "", { tensors: [{ node: "x", access: "read" }], grid: [1] })`));
fails("a kernel whose statics are no texts", "unsupported", ["static", "3"],
  gpu(`await device.compile("k", "", { tensors: [], statics: [3], grid: [1] })`));
fails("linking what is no code", "unsupported", ["link", "Code"], gpu(`await context.link("code")`));
fails("a batch of what is no code", "unsupported", ["linkBatch", "Code"], gpu(`await context.linkBatch([code, 5])`));
fails("a disposed code in a batch", "disposed", ['code "add"'], gpu(`code.dispose(); await context.linkBatch([code])`));
fails("a code of another device", "kernel-interface", ['"add"', "gpu:0:", "host:0:"],
  two(`await other.context().link(code)`));
fails("a batch with a code of another device", "kernel-interface", ['"add"', "gpu:0:", "host:0:"],
  two(`await other.context().linkBatch([code])`));
fails("a batch on the host driver", "unsupported", ["host", '"k"'],
  two(`await other.compileBatch([{ name: "k", wgsl: "@compute @workgroup_size(1) fn main() {}", spec: { tensors: [], grid: [1] } }])`));
fails("a sequence of nothing", "kernel-interface", ["no routines"], gpu(`wgslab.Sequence.record([])`));
fails("a sequence of what is no routine", "unsupported", ["Routine", "7"], gpu(`wgslab.Sequence.record([7])`));
fails("a sequence over two devices", "kernel-interface", ['"add"', '"copy y"', "gpu:0:", "host:0:"],
  two(`const { node: y, context: ys } = counted(other, "y", 4);
    const copy = other.context().zeros([y]).deviceToDevice(y, ys);
    wgslab.Sequence.record([[await context.link(code), { by: 1 }], copy])`));
fails("a sequence without its statics", "kernel-interface", ['"add"', '"by"'],
  gpu(`wgslab.Sequence.record([await context.link(code)])`));
fails("a sequence with a disposed routine", "disposed", ['routine "add"'],
  gpu(`const add = await context.link(code); add.dispose(); wgslab.Sequence.record([[add, { by: 1 }]])`));
fails("half a replay", "shape-mismatch", ["times", "0.5"],
  gpu(`wgslab.Sequence.record([[await context.link(code), { by: 1 }]]).run({ times: 0.5 })`));
fails("a new static that is no integer", "kernel-interface", ['"by"', "1.5"],
  gpu(`wgslab.Sequence.record([[await context.link(code), { by: 1 }]]).run({ statics: () => 1.5 })`));
fails("more new statics than fit", "limit-exceeded", ["4000000000", "parts"],
  gpu(`wgslab.Sequence.record([[await context.link(code), { by: 1 }]]).run({ times: 4e9, statics: () => 1 })`));
fails("more replays than a page waits for", "limit-exceeded", ["2000000", "1000000", "parts"],
  gpu(`wgslab.Sequence.record([[await context.link(code), { by: 1 }]]).run({ times: 2e6 })`));
fails("a replay with a misspelt option", "unsupported", ['"time"', "times, statics"],
  gpu(`wgslab.Sequence.record([[await context.link(code), { by: 1 }]]).run({ time: 3 })`));
fails("a replay with a number for its options", "unsupported", ["object", "3", "times"],
  gpu(`wgslab.Sequence.record([[await context.link(code), { by: 1 }]]).run(3)`));

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));
