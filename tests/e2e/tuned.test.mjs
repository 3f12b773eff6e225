// Tuning in a page: what is measured, where it is kept, and what ends it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;

/** What the tests share; gone after a reload. */
const prepare = () =>
  harness.page.evaluate(() => {
    globalThis.product = (device, options, signal, length = 48) => {
      const node = (label, shape) => device.node(label, { dtype: "f32", shape });
      const nodes = [node("a", [64, length]), node("b", [length, 80])];
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
  assert.match(first.tuned, /\nkernel 1 was tuned: \d+ ns; number 1 of 4 took \d+ ns/);
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
  assert.match(second.full, / was tuned: /);
});

test("what was measured can be forgotten", async () => {
  const facts = await harness.page.evaluate(async () => {
    const device = await open();
    await product(device, { tune: "quick" });
    const before = [(await kept(1)).length, runs(device)];
    await wgslab.forgetTuned();
    const left = (await inStore((store) => store.getAll())).length;
    const explained = (await product(device, { tune: "quick" })).explain();
    const facts = { before, left, explained, measured: runs(device) - before[1] };
    device.destroy();
    return facts;
  });
  assert.ok(facts.before[0] > 0);
  assert.equal(facts.left, 0);
  assert.match(facts.explained, / was tuned: /);
  assert.ok(facts.measured > 0, "it is measured again");
});

test("garbage in the store is measured anew", async () => {
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
  assert.match(garbage[0], / was tuned: /);
  assert.equal(garbage[1], 3);

  // An entry of this very kernel, with a schedule that there is not.
  await harness.page.evaluate(async () => {
    const [line] = (await kept(3)).filter((line) => String(line).includes("lanes"));
    const [key, count] = line.split(" ");
    await inStore((store) => store.put(`${key} ${count} 1 2 tile 77`, key));
  });
  await reload();
  const other = await harness.page.evaluate(async () => {
    const device = await open();
    const explained = (await product(device, { tune: "quick" })).explain();
    const facts = [explained, runs(device)];
    device.destroy();
    return facts;
  });
  assert.match(other[0], / was tuned: /);
  assert.doesNotMatch(other[0], /tile 77/);
  assert.ok(other[1] > 0);
});

/** How a page without a usable store tunes: `spoil` runs in it first. */
const without = async (spoil) => {
  await reload();
  await harness.page.evaluate(spoil);
  return harness.page.evaluate(async () => {
    const device = await open();
    const start = performance.now();
    const explained = (await product(device, { tune: "quick" })).explain();
    const facts = { explained, runs: runs(device), ms: performance.now() - start };
    device.destroy();
    return facts;
  });
};

const getter = (get) => `Object.defineProperty(globalThis, "indexedDB", { configurable: true, get: ${get} })`;
const STORES = {
  "there is none": getter(() => undefined),
  "it is refused": getter(() => { throw new DOMException("no", "SecurityError"); }),
  "it never opens": getter(() => ({ open: () => ({}) })),
  "it is of a later version": () =>
    new Promise((resolve, reject) => {
      const opening = indexedDB.open("wgslab", 7);
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => resolve(opening.result.close());
    }),
  "it has another shape": () =>
    new Promise((resolve, reject) => {
      indexedDB.deleteDatabase("wgslab");
      const opening = indexedDB.open("wgslab", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("other");
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => resolve(opening.result.close());
    }),
};
for (const [what, spoil] of Object.entries(STORES)) {
  test(`a page measures all the same where the store cannot be used: ${what}`, async () => {
    const { explained, runs, ms } = await without(spoil);
    assert.match(explained, / was tuned: /);
    assert.ok(runs > 0);
    assert.ok(ms < 30_000, `${ms} ms`);
    await harness.page.evaluate(() => void indexedDB.deleteDatabase("wgslab")).catch(() => undefined);
  });
}

test("a signal ends tuning, and so does the loss of the device; a batch is measured in order", async () => {
  await reload();
  const facts = await harness.page.evaluate(async () => {
    const device = await open();
    const controller = new AbortController();
    const aborted = settlement(product(device, { tune: "full" }, controller.signal, 50));
    const waiting = settlement(product(device, { tune: "quick" }, controller.signal, 50));
    setTimeout(() => controller.abort(new Error("enough")), 30);
    const facts = { aborted: await aborted, waiting: await waiting };
    const budget = await product(device, { tune: "quick", tuneBudgetMs: 0 }, undefined, 51);
    facts.budget = budget.explain();
    const node = device.node("x", { dtype: "u8", shape: [4096] });
    const sources = [2, 3].map((factor) => ({
      name: "batch",
      program: `y[i] = x[i] * ${factor}`,
      spec: { nodes: [node], tune: "quick" },
    }));
    facts.batch = (await device.compileBatch(sources)).map((code) => code.explain());
    facts.memory = device.usedMemory;
    const used = runs(device);
    const lost = settlement(product(device, { tune: "full" }, undefined, 52));
    while (runs(device) === used) await new Promise((resolve) => setTimeout(resolve, 1));
    device.destroy();
    facts.lost = await lost;
    const next = await open();
    facts.next = (await product(next, { tune: "quick" }, undefined, 52)).explain();
    next.destroy();
    const host = await wgslab.Device.open({ driver: "host" });
    facts.host = (await product(host, { tune: "full" })).explain();
    host.destroy();
    return facts;
  });
  assert.match(facts.aborted, /enough/);
  assert.match(facts.waiting, /enough/);
  assert.doesNotMatch(facts.budget, / was tuned/);
  assert.ok(facts.budget.endsWith("\nkernel 1 was not measured: the 0 ms for measuring were over"), facts.budget);
  for (const one of facts.batch) assert.match(one, / was tuned: /);
  assert.equal(facts.memory, 0);
  assert.match(facts.lost, /device-lost/);
  assert.match(facts.next, / was tuned: /, "the turn is free again");
  assert.doesNotMatch(facts.host, /tuned/);
});

test("what there is no room to measure says so, and is measured once there is", async () => {
  const [full, free] = await harness.page.evaluate(async () => {
    const device = await wgslab.Device.open({ memoryBudgetBytes: 4 * 2 ** 20 });
    const large = device.node("large", { dtype: "f32", shape: [960 * 1024] });
    const context = device.context().zeros([large]);
    const compile = () => device.compile("p", "y[i] = i * 2 where i in 0:131072", { tune: "quick" });
    const full = (await compile()).explain();
    context.dispose();
    const free = (await compile()).explain();
    device.destroy();
    return [full, free];
  });
  assert.match(full, /\nkernel 1 was not measured: .*budget/);
  assert.doesNotMatch(full, / was tuned: /);
  assert.match(free, / was tuned: /);
  assert.doesNotMatch(free, /not measured/);
});

test("measuring touches no data of a program that writes what it reads, and does not miss a context that goes", async () => {
  const facts = await harness.page.evaluate(async () => {
    const device = await open();
    const x = device.node("x", { dtype: "f32", shape: [4096] });
    const root = device.context().upload(x, Float32Array.from({ length: 4096 }, (_, at) => at));
    const gone = device.context().zeros([device.node("gone", { dtype: "f32", shape: [4096] })]);
    const compiling = device.compile("p", "x[i] = x[i] * 2 + 1", { nodes: [x], tune: "full", tuneBudgetMs: 4000 });
    while (runs(device) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    gone.dispose();
    const code = await compiling;
    const facts = { explained: code.explain(), before: [...(await root.readback(x))] };
    const routine = await root.link(code);
    routine.run();
    facts.after = [...(await root.readback(x))];
    device.destroy();
    return facts;
  });
  assert.match(facts.explained, / was tuned: /);
  assert.deepEqual(facts.before, Array.from({ length: 4096 }, (_, at) => at));
  assert.deepEqual(facts.after, Array.from({ length: 4096 }, (_, at) => at * 2 + 1));
});

test("devices of a page that tune at once measure one after the other, and the second knows what the first learned", async () => {
  const facts = await harness.page.evaluate(async () => {
    const devices = [await open(), await open()];
    const codes = await Promise.all(devices.map((device) => product(device, { tune: "quick" }, undefined, 60)));
    const facts = { explained: codes.map((code) => code.explain()), runs: devices.map(runs) };
    devices.forEach((device) => device.destroy());
    return facts;
  });
  assert.match(facts.explained[0], / was tuned: /);
  assert.equal(facts.explained[1], facts.explained[0]);
  assert.ok(facts.runs[0] > 0);
  assert.equal(facts.runs[1], 0);
});

test("into how many parts long reductions are split is measured as well", async () => {
  const explain = (tune) =>
    harness.page.evaluate(async (tune) => {
      const device = await open();
      const length = 2 ** 20 + 7;
      const x = device.node("x", { dtype: "i32", shape: [length] });
      const root = device.context().upload(x, Int32Array.from({ length }, (_, at) => (at % 1009) - 500));
      const code = await device.compile("sum", "y +=! x[i]", { nodes: [x], tune, tuneBudgetMs: 10_000 });
      const [measured, explained] = [runs(device), code.explain()];
      const routine = await root.link(code);
      routine.run();
      const [sum] = await routine.context.readback("y");
      device.destroy();
      return { measured, explained, sum, kept: await kept(0) };
    }, tune);
  const length = 2 ** 20 + 7;
  const want = Array.from({ length }, (_, at) => (at % 1009) - 500).reduce((a, b) => a + b);
  const before = (await explain("off")).kept.length;
  const tuned = await explain("quick");
  assert.match(tuned.explained, / was tuned: /);
  assert.equal(tuned.sum, want);
  // As if the last kernel that was measured, one of another way, took nothing, and all others took long.
  const count = await harness.page.evaluate(async (before) => {
    const lines = (await kept(before + 4)).map((line) => line.split(" "));
    const [last] = lines.map(([key]) => key).slice(-1);
    for (const [key, count, , , ...schedule] of lines) {
      const ns = key === last ? 1 : 1_000_000;
      await inStore((store) => store.put([key, count, ns, ns, ...schedule].join(" "), key));
    }
    return lines.length;
  }, before);
  assert.ok(count >= before + 4, `kernels of more than one way: ${count - before}`);
  await reload();
  const again = await explain("quick");
  assert.equal(again.measured, 0);
  assert.equal(again.sum, want);
  const off = await explain("off");
  assert.doesNotMatch(off.explained, /tuned|measured/);
  assert.equal(off.sum, want);
});

test("measuring does not stall the page: between two submissions it has a turn", async () => {
  const { turns, submissions } = await harness.page.evaluate(async () => {
    const device = await open();
    let turns = 0;
    let isOver = false;
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      turns += 1;
      if (!isOver) channel.port2.postMessage(0);
    };
    channel.port2.postMessage(0);
    await product(device, { tune: "full", tuneBudgetMs: 4000 }, undefined, 61);
    isOver = true;
    const { submissions } = device.stats();
    device.destroy();
    return { turns, submissions };
  });
  // At least 12 schedules, twice to warm up and some of them again.
  assert.ok(submissions > 24, `${submissions} submissions`);
  assert.ok(turns >= submissions, `${turns} turns of the page in ${submissions} submissions`);
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
