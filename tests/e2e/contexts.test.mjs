// Contexts: views, copies within a device and between devices and drivers, the merge buffer, forecasts.

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

for (const driver of ["gpu", "host"]) {
  test(`${driver}: a view shows and changes the bytes of its base, at an offset in elements`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const { node: x, context } = counted(device, "x", 12);
      const rows = x.view("rows", { offset: 4, shape: [2, 3] });
      const cell = rows.view("cell", { offset: 5, shape: [] });
      const child = context.alias([rows, cell]);
      child.write(cell, Float32Array.of(-1));
      const [at, base] = [child.loc(cell), child.loc(x)];
      const [all, part, one] = await child.readbackAll([x, "rows", cell]);
      const facts = {
        all: [...all],
        part: [...part],
        one: [...one],
        delta: at.offset - base.offset,
        samePool: at.poolId === base.poolId,
        base: [cell.base.node === rows, cell.base.offset, rows.base.node === x, x.base],
        modes: [x.mode, rows.mode, device.node("c", { dtype: "u8", shape: [3], mode: "constant" }).mode],
        inParent: context.loc(rows),
      };
      // The bytes live as long as somebody needs them.
      context.dispose();
      facts.after = [...(await child.readback(rows))];
      child.dispose();
      await device.awaitIdle();
      facts.used = device.report().inUseBytes;
      device.destroy();
      return facts;
    }, driver);
    assert.deepEqual(seen.all, [0, 1, 2, 3, 4, 5, 6, 7, 8, -1, 10, 11]);
    assert.deepEqual(seen.part, [4, 5, 6, 7, 8, -1]);
    assert.deepEqual(seen.one, [-1]);
    assert.equal(seen.delta, 36);
    assert.equal(seen.samePool, true);
    assert.deepEqual(seen.base, [true, 5, true, undefined]);
    assert.deepEqual(seen.modes, ["on_device", "on_device", "constant"]);
    assert.equal(seen.inParent, undefined);
    assert.deepEqual(seen.after, [4, 5, 6, 7, 8, -1]);
    assert.equal(seen.used, 0);
  });

  test(`${driver}: deviceToDevice is a routine, and none where there is nothing to move`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const { node: x, context: from } = counted(device, "x", 8, 10);
      const to = device.context().zeros([x]);
      const copy = to.deviceToDevice(x, from);
      const { name, inputs, outputs, statics, canRun, executionDeps, mergeBufferInput } = copy;
      const facts = { name, inputs, outputs, statics, canRun, executionDeps, explain: copy.explain() };
      facts.absent = [to.deviceToDevice(x, to), copy.code, mergeBufferInput];
      const event = copy.run();
      facts.updating = device.updatingFor(x).seq === event.seq;
      facts.never = device.updatingFor(device.node("other", { dtype: "f32", shape: [1] }));
      facts.values = [...(await to.readback(x))];
      from.write(x, new Float32Array(8).fill(3));
      const sequence = wgslab.Sequence.record([copy, [copy, {}]]);
      facts.length = sequence.length;
      await sequence.run({ times: 3 }).completed;
      facts.again = [...(await to.readback(x))];
      copy.dispose();
      facts.gone = (await failure(() => sequence.run())).code;
      sequence.dispose();
      const fresh = device.context().initFromDevice(x, from);
      facts.fresh = [...(await fresh.readback("x"))];
      for (const context of [fresh, to, from]) context.dispose();
      await device.awaitIdle();
      facts.used = device.report().inUseBytes;
      device.destroy();
      return facts;
    }, driver);
    assert.equal(seen.name, "copy x");
    assert.deepEqual([seen.inputs, seen.outputs, seen.statics, seen.executionDeps], [[], ["x"], [], []]);
    assert.deepEqual(seen.absent, [undefined, undefined, undefined]);
    assert.equal(seen.canRun, true);
    assert.match(seen.explain, /copy of 32 bytes from p\d+\+0 to p\d+\+0/);
    assert.deepEqual([seen.updating, seen.never], [true, undefined]);
    assert.deepEqual(seen.values, [10, 11, 12, 13, 14, 15, 16, 17]);
    assert.equal(seen.length, 2);
    assert.deepEqual(seen.again, new Array(8).fill(3));
    assert.equal(seen.gone, "disposed");
    assert.deepEqual(seen.fresh, new Array(8).fill(3));
    assert.equal(seen.used, 0);
  });

  test(`${driver}: a copy into the merge buffer says what it holds, in the context and on the device`, async () => {
    const seen = await inPage(async (driver) => {
      const device = await wgslab.Device.open({ driver });
      const { node: x, context: from } = counted(device, "x", 8, 10);
      const to = device.context().zeros([x]);
      const before = [to.mergeBufferNode, lowLevel.mergeBuffer(device), lowLevel.updatingForMergeBuffer(device)];
      const other = to.deviceToDevice(x, from, { into: "merge-buffer" });
      const own = to.deviceToDevice(x, to, { into: "merge-buffer" });
      const inContext = other.context.mergeBufferNode === x;
      const event = other.run();
      const { node, loc } = lowLevel.mergeBuffer(device);
      const facts = { before, inContext, same: node === x, loc, sides: [other.inputs, other.outputs, own.inputs] };
      facts.capacity = lowLevel.mergeBufferCapacity(device);
      facts.updating = lowLevel.updatingForMergeBuffer(device).seq === event.seq;
      device.destroy();
      return facts;
    }, driver);
    assert.deepEqual(seen.before, [undefined, undefined, undefined]);
    assert.deepEqual([seen.inContext, seen.same, seen.updating], [true, true, true]);
    assert.deepEqual(seen.loc, { poolId: 0, offset: 0 });
    assert.deepEqual(seen.sides, [[], [], ["x"]]);
    assert.ok(seen.capacity >= 32, `${seen.capacity}`);
  });

  for (const other of ["gpu", "host"]) {
    test(`copies go from a ${driver} device to another, ${other} device`, async () => {
      const seen = await inPage(async ([driver, other]) => {
        const [here, there] = [await wgslab.Device.open({ driver }), await wgslab.Device.open({ driver: other })];
        // Over a piece of 4 MiB, and no whole number of words.
        const big = here.node("big", { dtype: "u8", shape: [(5 << 20) + 3] });
        const bytes = Uint8Array.from({ length: big.length }, (_, index) => (index * 7) % 251);
        const from = here.context().upload(big, bytes);
        const child = await there.context().initFromOther(big, from);
        const wrong = (array) => array.findIndex((byte, index) => byte !== bytes[index]);
        const facts = { first: wrong(await child.readback(big)) };
        bytes.fill(9, 100, 200);
        from.write(big, bytes);
        const event = await child.copyFrom(big, from);
        await event.completed;
        facts.isDone = event.isDone;
        facts.second = wrong(await child.readback(big));
        facts.updating = there.updatingFor(big).seq === event.seq;
        await child.copyFrom(big, from, { into: "merge-buffer" });
        facts.merged = lowLevel.mergeBuffer(there).node === big;
        facts.twice = (await failure(() => child.initFromOther(big, from))).code;
        if (driver === other) {
          // Within a driver it is a routine: a run takes the bytes as they are, and what comes later here waits for them.
          const copy = child.deviceToDevice(big, from);
          bytes.fill(4, 1000, 2000);
          from.write(big, bytes);
          copy.run();
          from.write(big, new Uint8Array(big.length));
          facts.across = wrong(await child.readback(big));
          from.write(big, bytes);
          facts.init = wrong(await there.context().initFromDevice(big, from).readback(big));
        } else {
          facts.across = await failure(() => child.deviceToDevice(big, from));
          facts.init = await failure(() => there.context().initFromDevice(big, from));
        }
        facts.names = [here.name, there.name];
        child.dispose();
        from.dispose();
        here.destroy();
        there.destroy();
        return facts;
      }, [driver, other]);
      assert.deepEqual([seen.first, seen.second], [-1, -1]);
      assert.deepEqual([seen.isDone, seen.updating, seen.merged], [true, true, true]);
      assert.equal(seen.twice, "duplicate-node");
      if (driver === other) {
        assert.deepEqual([seen.across, seen.init], [-1, -1]);
        return;
      }
      for (const [error, remedy] of [[seen.across, "copyFrom"], [seen.init, "initFromOther"]]) {
        assert.equal(error.code, "unsupported");
        for (const word of ['"big"', ...seen.names, remedy]) assert.ok(error.message.includes(word), error.message);
      }
    });
  }
}

test("a kernel merges what another context has", async () => {
  const seen = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { node: x, context: from } = counted(device, "x", 64, 100);
    const to = device.context().zeros([x]);
    const code = await device.compile(
      "merge",
      `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        store_x(id.x, load_x(id.x) + load_other(id.x));
      }`,
      {
        tensors: { x: { node: x, access: "read_write" }, other: { node: x, access: "read", merged: true } },
        grid: [1],
      },
    );
    const early = await failure(() => to.link(code));
    const copy = to.deviceToDevice(x, from, { into: "merge-buffer" });
    const merge = await copy.context.link(code);
    const facts = { early, input: merge.mergeBufferInput === x, sides: [merge.inputs, merge.outputs] };
    facts.tensors = code.tensors.map(({ name, merged }) => [name, merged]);
    facts.unmerged = await failure(() => merge.run());
    copy.run();
    merge.run();
    copy.run();
    merge.run();
    facts.values = [...(await merge.context.readback(x))].slice(0, 3);
    facts.device = device.name;
    // The tenant of the merge buffer is another now.
    const { node: z, context: zs } = counted(device, "z", 64);
    to.deviceToDevice(z, zs, { into: "merge-buffer" }).run();
    facts.late = await failure(() => merge.run());
    device.destroy();
    return facts;
  });
  assert.equal(seen.early.code, "merge-mismatch");
  for (const word of ['"x"', seen.device, "nothing"]) assert.ok(seen.early.message.includes(word), seen.early.message);
  assert.equal(seen.unmerged.code, "merge-mismatch");
  assert.equal(seen.input, true);
  assert.deepEqual(seen.sides, [["x"], ["x"]]);
  assert.deepEqual(seen.tensors, [["x", false], ["other", true]]);
  assert.deepEqual(seen.values, [200, 202, 204]);
  assert.equal(seen.late.code, "merge-mismatch");
  for (const word of ['"x"', '"z"', seen.device]) assert.ok(seen.late.message.includes(word), seen.late.message);
});

test("a forecast says what a link would allocate, and whether that is within the budget", async () => {
  const seen = await inPage(async () => {
    const forecasts = [];
    for (const options of [{}, { memoryBudgetBytes: 1 << 20 }]) {
      const device = await wgslab.Device.open(options);
      const { node: x, context } = counted(device, "x", 64);
      const y = device.node("y", { dtype: "f32", shape: [1 << 20] });
      const { name, wgsl, spec } = increment("grow", x, y);
      const code = await device.compile(name, wgsl, spec);
      const before = device.report().inUseBytes;
      forecasts.push({ ...context.forecast(code), before, after: device.report().inUseBytes });
      device.destroy();
    }
    return forecasts;
  });
  for (const forecast of seen) {
    assert.deepEqual(forecast.nodes, ["y"]);
    assert.deepEqual(forecast.slabSizesBytes, [4 << 20]);
    assert.equal(forecast.sizeBytes, 4 << 20);
    assert.equal(forecast.inUseAfterBytes, forecast.before + (4 << 20));
    assert.equal(forecast.after, forecast.before);
  }
  assert.deepEqual(seen.map(({ budgetBytes }) => budgetBytes), [undefined, 1 << 20]);
  assert.deepEqual(seen.map(({ isWithinBudget }) => isWithinBudget), [true, false]);
});

test("trim gives back what holds no slab", async () => {
  const seen = await inPage(async () => {
    const outcome = {};
    for (const driver of ["gpu", "host"]) {
      const device = await wgslab.Device.open({ driver });
      const { context, node } = counted(device, "x", 1 << 16);
      await context.readback(node);
      const reserved = () => device.report().reservedBytes + device.report().stagingBytes;
      const full = reserved();
      context.dispose();
      await device.awaitIdle();
      const [before, bytes] = [reserved(), device.trim()];
      outcome[driver] = { full, before, bytes, after: reserved(), again: device.trim() };
      device.destroy();
    }
    return outcome;
  });
  const { full, before, bytes, after, again } = seen.gpu;
  assert.ok(full > 0 && bytes > 0, JSON.stringify(seen));
  assert.equal(bytes, before - after);
  assert.deepEqual([after, again], [0, 0]);
  assert.equal(seen.host.bytes, 0);
});

test("work waits for an event of another device", async () => {
  const seen = await inPage(async () => {
    const [one, two, host] = [
      await wgslab.Device.open(),
      await wgslab.Device.open(),
      await wgslab.Device.open({ driver: "host" }),
    ];
    const { node: x, context: xs } = counted(one, "x", 64);
    const { node: y, context: ys } = counted(two, "y", 64);
    const [addX, addY] = [await xs.link(await adder(one, x)), await ys.link(await adder(two, y))];
    const before = addX.run({ by: 1 });
    ys.willWaitFor(before);
    ys.willWaitFor(addY.run({ by: 1 }));
    const later = addY.run({ by: 1 });
    await later.completed;
    const facts = { ended: before.isDone, values: [(await xs.readback(x))[0], (await ys.readback(y))[0]] };
    facts.wrong = await failure(() => ys.willWaitFor(later.completed));
    const pending = addX.run({ by: 1 });
    facts.host = await failure(() => host.context().willWaitFor(pending));
    await pending.completed;
    facts.done = host.context().willWaitFor(pending);
    const gone = ys.child();
    gone.dispose();
    facts.gone = await failure(() => gone.willWaitFor(pending));
    for (const device of [one, two, host]) device.destroy();
    return facts;
  });
  assert.equal(seen.ended, true);
  assert.deepEqual(seen.values, [1, 2]);
  assert.equal(seen.wrong.code, "unsupported");
  assert.match(seen.wrong.message, /DeviceEvent/);
  assert.equal(seen.host.code, "unsupported");
  assert.equal(seen.done, undefined);
  assert.equal(seen.gone.code, "disposed");
});

test("a device that is destroyed with a copy on its way there settles everything", async () => {
  const seen = await inPage(async () => {
    const outcomes = [];
    for (const ends of ["there", "here"]) {
      const devices = { here: await wgslab.Device.open(), there: await wgslab.Device.open() };
      const { node: x, context: from } = counted(devices.here, "x", 64);
      const to = devices.there.context().zeros([x]);
      const event = to.deviceToDevice(x, from).run();
      const settled = settlement(event.completed);
      devices[ends].destroy();
      outcomes.push(await settled);
      devices.here.destroy();
      devices.there.destroy();
    }
    const device = await wgslab.Device.open();
    const { node, context } = counted(device, "x", 4);
    outcomes.push([...(await context.readback(node))]);
    device.destroy();
    return outcomes;
  });
  assert.deepEqual(seen, ["device-lost", "device-lost", [0, 1, 2, 3]]);
});

test("memory modes are decided once; local nodes are in no context", async () => {
  const seen = await inPage(async () => {
    const device = await wgslab.Device.open();
    const { node: x, context } = counted(device, "x", 64);
    const [h, y] = [
      device.node("h", { dtype: "f32", shape: [64] }),
      device.node("y", { dtype: "f32", shape: [64] }),
    ];
    const modes = [h.mode];
    h.refineMode("local");
    h.refineMode("local");
    modes.push(h.mode, h.view("v", { shape: [2] }).mode);
    const facts = { modes, again: await failure(() => h.refineMode("constant")) };
    facts.view = await failure(() => h.view("v", { shape: [2] }).refineMode("local"));
    facts.placed = await failure(() => x.refineMode("constant"));
    facts.unknown = await failure(() => h.refineMode("fast"));
    const codes = await device.compileBatch([increment("up", x, h), increment("down", h, y)]);
    const routines = await context.linkBatch(codes);
    routines.forEach((routine) => routine.run());
    const last = routines[1].context;
    facts.loc = last.loc(h);
    facts.values = [...(await last.readback("y"))].slice(0, 3);
    facts.read = await failure(() => last.readback(h));
    device.destroy();
    return facts;
  });
  assert.deepEqual(seen.modes, ["on_device", "local", "local"]);
  for (const error of [seen.again, seen.view, seen.placed]) assert.equal(error.code, "unsupported", error.message);
  for (const word of ['"h"', "local", "constant"]) assert.ok(seen.again.message.includes(word), seen.again.message);
  assert.match(seen.unknown.message, /"h": unknown memory mode "fast"/);
  assert.equal(seen.loc, undefined);
  assert.deepEqual(seen.values, [2, 3, 4]);
  assert.equal(seen.read.code, "unknown-node");
  assert.match(seen.read.message, /local/);
});

test("an abort rejects a copy with its reason", async () => {
  const seen = await inPage(async () => {
    const [here, there] = [await wgslab.Device.open(), await wgslab.Device.open({ driver: "host" })];
    const { node: x, context: from } = counted(here, "x", 8);
    const to = there.context().zeros([x]);
    const reasons = [];
    for (const start of [
      (signal) => to.copyFrom(x, from, { signal }),
      (signal) => there.context().initFromOther(x, from, { signal }),
    ]) {
      const controller = new AbortController();
      const promise = start(controller.signal);
      controller.abort("enough");
      reasons.push(await promise.catch((reason) => reason));
    }
    here.destroy();
    there.destroy();
    return reasons;
  });
  assert.deepEqual(seen, ["enough", "enough"]);
});

const withX = `const device = await wgslab.Device.open({ driver: "host" });
  const { node: x, context } = counted(device, "x", 8);`;
const host = (body) => `async () => { ${withX} try { ${body} } finally { device.destroy(); } }`;

fails("a view past its base", "shape-mismatch", ['"tail"', '"x"', "6 to 9", "8"], host(`x.view("tail", { offset: 6, shape: [3] })`));
fails("a view at half an element", "shape-mismatch", ['"tail"', "0.5"], host(`x.view("tail", { offset: 0.5, shape: [1] })`));
fails("a view without a shape", "unsupported", ['"tail"', "array"], host(`x.view("tail", {})`));
fails("a view whose label is no text", "unsupported", ["label", "7"], host(`x.view(7, { shape: [1] })`));
fails("an alias of a node that is no view", "shape-mismatch", ['"plain"', "no view"],
  host(`context.alias([device.node("plain", { dtype: "f32", shape: [1] })])`));
fails("an alias twice", "duplicate-node", ['"v"'],
  host(`const v = x.view("v", { shape: [1] }); context.alias([v]).alias([v])`));
fails("an alias whose base the context has not", "unknown-node", ['"x"'],
  host(`device.context().alias([x.view("v", { shape: [1] })])`));
fails("an alias of what is no node", "unsupported", ["alias", "TensorNode", '"v"'], host(`context.alias(["v"])`));
fails("an alias of a disposed context", "disposed", ["context"],
  host(`context.dispose(); context.alias([x.view("v", { shape: [1] })])`));
fails("a copy to nowhere", "unsupported", ["into", '"merge-buffer"', '"heap"'],
  host(`context.deviceToDevice(x, context, { into: "heap" })`));
fails("a copy from what is no context", "unsupported", ["source", "Context"], host(`context.deviceToDevice(x, device)`));
fails("a copy from a disposed context", "disposed", ["context"],
  host(`const from = context.child(); from.dispose(); context.deviceToDevice(x, from)`));
fails("a copy of a node that the source has not", "unknown-node", ['"x"'],
  host(`context.deviceToDevice(x, device.context())`));
fails("a copy across of a node that the source has not", "unknown-node", ['"x"'],
  host(`await context.copyFrom(x, device.context())`));
fails("a copy into a constant", "unsupported", ['"c"'],
  host(`const c = device.node("c", { dtype: "f32", shape: [1], mode: "constant" });
    const [one, two] = [context.upload(c, new Float32Array(1)), device.context()];
    await one.copyFrom(c, one)`));
fails("a write to what is no node", "unsupported", ["write", "TensorNode"], host(`context.write("x", new Float32Array(8))`));
fails("a forecast of what is no code", "unsupported", ["forecast", "Code"], host(`context.forecast("k")`));
fails("a merged tensor that is written", "kernel-interface", ['"w"', "read_write"],
  host(`await device.compile("k", "", { tensors: { w: { node: x, access: "read_write", merged: true } }, grid: [1] })`));
fails("the last writer of what is no node", "unsupported", ["updatingFor"], host(`device.updatingFor(3)`));

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));
