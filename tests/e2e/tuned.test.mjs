// Tuning in a page: what is measured, where it is kept, and what ends it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;

/** What the tests share; gone after a reload. */
const prepare = () =>
  harness.page.evaluate(() => {
    globalThis.product = (device, options, signal) => {
      const node = (label, shape) => device.node(label, { dtype: "f32", shape });
      const nodes = [node("a", [64, 48]), node("b", [48, 80])];
      const text = "c[i, j] +=! a[i, k] * b[k, j]\ny[i, j] = i32(max(c[i, j], 0))";
      return device.compile("product", text, { nodes, ...options, ...(signal && { signal }) });
    };
    globalThis.result = async (device, code) => {
      const values = (count) => Float32Array.from({ length: count }, (_, at) => (at % 13) - 4);
      const context = device.context().upload(code.node("a"), values(64 * 48)).upload(code.node("b"), values(48 * 80));
      const routine = await context.link(code);
      routine.run();
      return [...(await routine.context.readback("y"))];
    };
    globalThis.runs = (device) => device.stats().dispatches;
    globalThis.open = () => wgslab.Device.open();
    /** Runs a step on the store, and waits until it is done. */
    globalThis.inStore = (step) =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open("wgslab", 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore("tuned");
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const transaction = opening.result.transaction("tuned", "readwrite");
          const request = step(transaction.objectStore("tuned"));
          transaction.oncomplete = () => {
            opening.result.close();
            resolve(request.result);
          };
        };
      });
    globalThis.kept = async (count) => {
      for (let turn = 0; turn < 100; turn += 1) {
        const lines = await inStore((store) => store.getAll());
        if (lines.length >= count) return lines;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error(`fewer than ${count} lines are kept`);
    };
  });

const reload = async () => {
  await harness.page.reload();
  await harness.page.waitForFunction(() => globalThis.harnessReady === true);
  await prepare();
};

before(async () => {
  harness = await openHarness();
  await prepare();
});
after(() => harness?.close());

test("what was measured is remembered by the device, and by the page after a reload", async () => {
  const first = await harness.page.evaluate(async () => {
    const device = await open();
    const plain = await product(device);
    const before = [runs(device), device.usedMemory];
    const tuned = await product(device, { tune: "quick" });
    const measured = runs(device);
    const facts = { before, measured, memory: device.usedMemory, plain: plain.explain(), tuned: tuned.explain() };
    facts.again = (await product(device, { tune: "quick" })).explain();
    facts.unmeasured = runs(device) - measured;
    facts.off = (await product(device, { tune: "off" })).explain();
    facts.same = (await result(device, plain)).join() === (await result(device, tuned)).join();
    facts.lines = await kept(1);
    device.destroy();
    return facts;
  });
  assert.doesNotMatch(first.plain, /tuned/);
  assert.equal(first.off, first.plain);
  assert.match(first.tuned, /: tuned, \d+ ns, of \d+ by estimate number \d+; number 1 took \d+ ns/);
  assert.ok(first.measured - first.before[0] > 4 * 2, `${first.measured} runs`);
  assert.equal(first.memory, first.before[1], "scratch is freed");
  assert.deepEqual([first.again, first.unmeasured, first.same], [first.tuned, 0, true]);
  assert.equal(first.lines.length, 1);

  await reload();
  const second = await harness.page.evaluate(async () => {
    const device = await open();
    const tuned = await product(device, { tune: "quick" });
    const facts = { tuned: tuned.explain(), runs: runs(device) };
    const full = await product(device, { tune: "full", tuneBudgetMs: 4000 });
    facts.more = runs(device);
    facts.full = full.explain();
    device.destroy();
    return facts;
  });
  assert.deepEqual([second.tuned, second.runs], [first.tuned, 0]);
  assert.ok(second.more > 0, "four schedules are not all");
  assert.match(second.full, /: tuned, /);
});

test("garbage in the store is measured anew, and without a store a page measures all the same", async () => {
  await harness.page.evaluate(() => inStore((store) => store.clear()));
  await harness.page.evaluate(() => inStore((store) => store.put("1 2 3 no line", "1")));
  await harness.page.evaluate(() => inStore((store) => store.put({ not: "text" }, "2")));
  await reload();
  const garbage = await harness.page.evaluate(async () => {
    const device = await open();
    const explained = (await product(device, { tune: "quick" })).explain();
    device.destroy();
    return [explained, (await kept(3)).length];
  });
  assert.match(garbage[0], /: tuned, /);
  assert.equal(garbage[1], 3);

  const without = await harness.page.evaluate(async () => {
    const own = Object.getOwnPropertyDescriptor(globalThis, "indexedDB");
    const explained = [];
    for (const get of [() => undefined, () => { throw new DOMException("no", "SecurityError"); }]) {
      Object.defineProperty(globalThis, "indexedDB", { configurable: true, get });
      const device = await open();
      explained.push((await product(device, { tune: "quick" })).explain());
      device.destroy();
    }
    Object.defineProperty(globalThis, "indexedDB", own);
    return explained;
  });
  for (const one of without) assert.match(one, /: tuned, /);
});

test("a signal ends tuning, and so does the loss of the device; a batch is measured in order", async () => {
  const facts = await harness.page.evaluate(async () => {
    await inStore((store) => store.clear());
    const device = await open();
    const controller = new AbortController();
    const aborted = settlement(product(device, { tune: "full" }, controller.signal));
    const waiting = settlement(product(device, { tune: "quick" }, controller.signal));
    setTimeout(() => controller.abort(new Error("enough")), 30);
    const facts = { aborted: await aborted, waiting: await waiting };
    const budget = await product(device, { tune: "quick", tuneBudgetMs: 0 });
    facts.budget = budget.explain();
    const node = device.node("x", { dtype: "u8", shape: [4096] });
    const sources = [2, 3].map((factor) => ({
      name: "batch",
      program: `y[i] = x[i] * ${factor}`,
      spec: { nodes: [node], tune: "quick" },
    }));
    facts.batch = (await device.compileBatch(sources)).map((code) => code.explain());
    facts.memory = device.usedMemory;
    const lost = settlement(product(device, { tune: "full" }));
    setTimeout(() => device.destroy(), 30);
    facts.lost = await lost;
    const host = await wgslab.Device.open({ driver: "host" });
    facts.host = (await product(host, { tune: "full" })).explain();
    host.destroy();
    return facts;
  });
  assert.match(facts.aborted, /enough/);
  assert.match(facts.waiting, /enough/);
  assert.doesNotMatch(facts.budget, /tuned/);
  for (const one of facts.batch) assert.match(one, /: tuned, /);
  assert.equal(facts.memory, 0);
  assert.match(facts.lost, /device-lost/);
  assert.doesNotMatch(facts.host, /tuned/);
});

test("options that there are not are refused", async () => {
  const errors = await harness.page.evaluate(async () => {
    const device = await open();
    const errors = [
      await failure(() => product(device, { tune: "fast" })),
      await failure(() => product(device, { tune: "quick", tuneBudgetMs: -1 })),
    ];
    device.destroy();
    return errors.map(({ message }) => message);
  });
  assert.match(errors[0], /compile "product": tune must be "off" or "quick" or "full": got "fast"/);
  assert.match(errors[1], /milliseconds of tuneBudgetMs must be a whole number from 0/);
});

test("nothing went wrong outside of what was awaited", () => {
  assert.deepEqual(harness.faults, []);
});
