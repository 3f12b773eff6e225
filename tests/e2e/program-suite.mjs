// Programs in index notation through the npm package, on both drivers: what compiling gives, what runs leave, what is kept
// between programs, and that nothing stays behind.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openHarness } from "./harness.mjs";

/** Declares the tests for `chromium` or `firefox`. */
export function programSuite(browser) {
  let harness;
  before(async () => {
    harness = await openHarness(browser);
  });
  after(() => harness?.close());

  for (const driver of ["gpu", "host"]) {
    describe(`on the ${driver} driver`, () => {
      /** A test whose `body` runs in the page, with a device of its own of which nothing may be in use in the end. */
      const leavesNothing = (name, body, check) =>
        test(name, async () => {
          const [facts, inUseBytes] = await harness.page.evaluate(`(async () => {
            const device = await wgslab.Device.open({ driver: "${driver}" });
            const owned = [];
            const own = (object) => (owned.push(object), object);
            const facts = await (${body})(device, own);
            for (const object of owned.reverse()) object.dispose();
            await device.awaitIdle();
            device.freeUnusedConstants();
            // The merge buffer is the device's.
            const inUseBytes = device.report().inUseBytes - lowLevel.mergeBufferCapacity(device);
            device.destroy();
            return [facts, inUseBytes];
          })()`);
          check(facts);
          assert.equal(inUseBytes, 0, "bytes are still in use");
        });

      leavesNothing(
        "a layer: what is given, what is created, what it reads and writes",
        async (device, own) => {
          const x = device.node("x", { dtype: "f32", shape: [2, 3] });
          const w = device.node("w", { dtype: "f32", shape: [2, 3] });
          const b = device.node("b", { dtype: "f32", shape: [2] });
          const loaded = own(
            own(device.context()).uploadAll([
              [x, Float32Array.of(1, 2, 3, -4, 5, 6)],
              [w, Float32Array.of(1, 0, 1, -1, 2, 0.5)],
              [b, Float32Array.of(0.5, -20)],
            ]),
          );
          const text = "h[n, o] +=! x[n, i] * w[o, i]\ny[n, o] = max(h[n, o] + b[o], 0)";
          const code = own(await device.compile("layer", text, { nodes: [x, w, b] }));
          const step = own(await loaded.link(code));
          step.run();
          const y = code.node("y");
          return {
            y: [...(await step.context.readback(y))],
            byLabel: [...(await step.context.readback("y"))],
            node: [y.label, y.dtype, [...y.shape]],
            given: code.node("x") === x && code.nodes.w === w,
            explained: code.explain(),
            nodes: Object.keys(code.nodes).sort(),
            access: Object.fromEntries(code.tensors.map(({ name, access }) => [name, access])),
            sides: [[...step.inputs].sort(), [...step.outputs]],
            statics: code.statics,
            frozen: Object.isFrozen(code.nodes) && Object.isFrozen(code.tensors),
            temporary: await failure(() => code.node("h")),
            inherited: await failure(() => code.node("constructor")),
            isThere: step.code === code && step.context.loc(y) !== undefined && loaded.loc(y) === undefined,
          };
        },
        (seen) => {
          assert.deepEqual(seen.y, [4.5, 0, 2.5, 0]);
          assert.deepEqual(seen.byLabel, seen.y);
          assert.deepEqual(seen.node, ["y", "f32", [2, 2]]);
          assert.equal(seen.given, true);
          assert.match(seen.explained, /^"layer": 1 kernel\n(.+\n)*h: f32\[2, 2\] .+\n(.+\n)*kernel "layer\/.+ writes y \(16 bytes\)/);
          assert.deepEqual(seen.nodes, ["b", "w", "x", "y"]);
          assert.deepEqual(seen.access, { x: "read", w: "read", b: "read", y: "write" });
          assert.deepEqual(seen.sides, [["b", "w", "x"], ["y"]]);
          assert.deepEqual(seen.statics, []);
          assert.equal(seen.frozen, true);
          assert.equal(seen.temporary.code, "unknown-node");
          for (const word of ['"h"', 'it has "x", "w", "y", "b"', 'outputs: ["h"]']) {
            assert.ok(seen.temporary.message.includes(word), seen.temporary.message);
          }
          assert.equal(seen.inherited.code, "unknown-node");
          assert.equal(seen.isThere, true);
        },
      );

      leavesNothing(
        "outputs by name, and nodes under other names than their labels",
        async (device, own) => {
          const input = device.node("the input", { dtype: "f32", shape: [2, 3] });
          const loaded = own(own(device.context()).upload(input, Float32Array.of(1, 2, 3, 30, 10, 20)));
          const text = "m[i] max=! x[i, j]; e[i, j] = exp(x[i, j] - m[i]); s[i] +=! e[i, j]; y[i, j] = e[i, j] / s[i]";
          const code = own(await device.compile("softmax", text, { nodes: { x: input }, outputs: ["y", "m"] }));
          const step = own(await loaded.link(code));
          step.run();
          const [y, m] = await step.context.readbackAll([code.node("y"), "m"]);
          return { y: [...y], m: [...m], names: Object.keys(code.nodes).sort(), same: code.node("x") === input };
        },
        ({ y, m, names, same }) => {
          const row = (...values) => {
            const powers = values.map((value) => Math.exp(value - Math.max(...values)));
            return powers.map((power) => power / powers.reduce((sum, one) => sum + one));
          };
          const want = [...row(1, 2, 3), ...row(30, 10, 20)];
          for (const [at, value] of y.entries()) assert.ok(Math.abs(value - want[at]) <= 1e-6, `${at}: ${value}`);
          assert.deepEqual(m, [3, 30]);
          assert.deepEqual(names, ["m", "x", "y"]);
          assert.equal(same, true);
        },
      );

      leavesNothing(
        "a program that needs nothing, of which runs go on with what the last one left",
        async (device, own) => {
          const code = own(await device.compile("count", "n: i32; x: f32[3]\nn += 1; x[i] += f32(n * i)"));
          const step = own(await own(device.context()).link(code));
          for (let run = 0; run < 3; run += 1) step.run();
          const [n, x] = await step.context.readbackAll(["n", "x"]);
          return { n: [...n], x: [...x], kind: n.constructor.name };
        },
        (seen) => assert.deepEqual(seen, { n: [3], x: [0, 6, 12], kind: "Int32Array" }),
      );

      leavesNothing(
        "every element type",
        async (device, own) => {
          const text = `f: f32[2]; i: i32[2]; u: u32[2]; h: f16[2]; w: bf16[2]; s: i8[3]; b: u8[3]; t: bool[3]
  f[k] = f32(k) / 2; i[k] = -k; u[k] = u32(k) - u32(1); h[k] = f32(k) + 0.5; w[k] = f32(k) - 2
  s[k] = k - 2; b[k] = u8(255 - k); t[k] = k != 1`;
          const code = own(await device.compile("types", text));
          const step = own(await own(device.context()).link(code));
          step.run();
          const names = ["f", "i", "u", "h", "w", "s", "b", "t"];
          const arrays = await step.context.readbackAll(names.map((name) => code.node(name)));
          return Object.fromEntries(names.map((name, at) => [name, [...arrays[at]]]));
        },
        (seen) =>
          assert.deepEqual(seen, {
            f: [0, 0.5],
            i: [0, -1],
            u: [4294967295, 0],
            h: [0x3800, 0x3e00],
            w: [0xc000, 0xbf80],
            s: [-2, -1, 0],
            b: [255, 254, 253],
            t: [1, 0, 1],
          }),
      );

      leavesNothing(
        "statics are given at each run; one out of range is refused, and nothing is written",
        async (device, own) => {
          const x = device.node("x", { dtype: "f32", shape: [10] });
          const loaded = own(own(device.context()).upload(x, Float32Array.from({ length: 10 }, (_, at) => at)));
          const code = own(await device.compile("batch", "y[i] = x[2 * @batch + i] + @add where i in 0:2", { nodes: [x] }));
          const step = own(await loaded.link(code));
          const values = [];
          for (const batch of [0, 4, 3]) {
            step.run({ batch, add: -1 });
            values.push([...(await step.context.readback("y"))]);
          }
          const refused = [];
          for (const statics of [{ batch: 5, add: 0 }, { batch: -1, add: 0 }, { batch: 2 ** 31 - 1, add: 0 }]) {
            refused.push(await failure(() => step.run(statics)));
          }
          const wrong = [];
          for (const statics of [undefined, { batch: 1 }, { batch: 1.5, add: 0 }, { batch: 1, add: 0, other: 1 }]) {
            wrong.push(await failure(() => step.run(statics)));
          }
          return { values, refused, wrong, after: [...(await step.context.readback("y"))], statics: step.statics };
        },
        (seen) => {
          assert.deepEqual(seen.values, [[-1, 0], [7, 8], [5, 6]]);
          for (const { code, message } of seen.refused) {
            assert.equal(code, "shape-mismatch", message);
            for (const word of ["@batch", '"x"', "from 0 to 4"]) assert.ok(message.includes(word), message);
          }
          assert.deepEqual(seen.wrong.map(({ code }) => code), Array(4).fill("kernel-interface"));
          assert.deepEqual(seen.after, [5, 6]);
          assert.deepEqual(seen.statics, ["batch", "add"]);
        },
      );

      leavesNothing(
        "programs build on one another's nodes, and wait for one another",
        async (device, own) => {
          const { node: x, context } = counted(device, "x", 4, 1);
          own(context);
          const first = own(await device.compile("squares", "y[i] = x[i] ** 2", { nodes: [x] }));
          const second = own(await device.compile("total", "s +=! y[i]", { nodes: first.nodes }));
          const squares = own(await context.link(first));
          const total = own(await squares.context.link(second));
          const deps = total.executionDeps.map(({ name }) => name);
          const early = await failure(() => total.run());
          squares.run();
          total.run();
          const s = [...(await total.context.readback("s"))];
          const elsewhere = await failure(() => context.link(second));
          return { deps, early, s, elsewhere, canRun: total.canRun };
        },
        (seen) => {
          assert.deepEqual(seen.deps, ["squares"]);
          assert.equal(seen.early.code, "not-run");
          assert.deepEqual(seen.s, [30]);
          assert.equal(seen.canRun, true);
          assert.equal(seen.elsewhere.code, "unknown-node");
          for (const word of ['link "total"', '"y"']) assert.ok(seen.elsewhere.message.includes(word), seen.elsewhere.message);
        },
      );

      leavesNothing(
        "a batch compiles and links together",
        async (device, own) => {
          const { node: x, context } = counted(device, "x", 4);
          own(context);
          const y = device.node("y", { dtype: "f32", shape: [4] });
          const z = device.node("z", { dtype: "f32", shape: [4] });
          const codes = await device.compileBatch([
            { name: "double", program: "y[i] = 2 * x[i]", spec: { nodes: [x, y] } },
            { name: "shift", program: "z[i] = pad(y[i - 1], 7)", spec: { nodes: { y, z }, outputs: ["z"] } },
            { name: "alone", program: "q: f32[2]; q[i] = 1" },
          ]);
          codes.forEach(own);
          const routines = await context.linkBatch(codes);
          routines.forEach(own);
          for (const routine of routines) routine.run();
          const [ys, zs, qs] = await routines[2].context.readbackAll([y, z, "q"]);
          return { ys: [...ys], zs: [...zs], qs: [...qs], names: codes.map(({ name }) => name) };
        },
        (seen) => {
          assert.deepEqual(seen, { ys: [0, 2, 4, 6], zs: [7, 0, 2, 4], qs: [1, 1], names: ["double", "shift", "alone"] });
        },
      );

      leavesNothing(
        "a program reads what another context copied into the merge buffer",
        async (device, own) => {
          const { node: x, context } = counted(device, "x", 4, 1);
          own(context);
          const there = own(own(device.context()).upload(x, Float32Array.of(10, 20, 30, 40)));
          const code = own(await device.compile("merge", "x[i] += other[i]", { nodes: [x], merged: { other: x } }));
          const early = await failure(() => context.link(code));
          const copy = own(context.deviceToDevice(x, there, { into: "merge-buffer" }));
          const merge = own(await copy.context.link(code));
          copy.run();
          merge.run();
          return {
            x: [...(await merge.context.readback("x"))],
            early: early.code,
            input: merge.mergeBufferInput === x && code.mergeInput === x,
            tensors: code.tensors.map(({ name, access, merged }) => [name, access, merged]).sort(),
            sides: [merge.inputs, merge.outputs],
          };
        },
        (seen) => {
          assert.deepEqual(seen.x, [11, 22, 33, 44]);
          assert.equal(seen.early, "merge-mismatch");
          assert.equal(seen.input, true);
          assert.deepEqual(seen.tensors, [["other", "read", true], ["x", "read_write", false]]);
          assert.deepEqual(seen.sides, [["x"], ["x"]]);
        },
      );

      leavesNothing(
        "a sequence replays programs, with statics that change",
        async (device, own) => {
          const code = own(await device.compile("walk", "x: i32[8]\nx[@at] = @at * @by"));
          const step = own(await own(device.context()).link(code));
          const sequence = own(wgslab.Sequence.record([[step, { at: 0, by: 10 }]]));
          sequence.run({ times: 8, statics: (replay, name, recorded) => (name === "at" ? replay : recorded) });
          const outside = await failure(() => sequence.run({ times: 1, statics: (_, name) => (name === "at" ? 8 : 1) }));
          return { x: [...(await step.context.readback("x"))], outside };
        },
        ({ x, outside }) => {
          assert.deepEqual(x, [0, 10, 20, 30, 40, 50, 60, 70]);
          assert.equal(outside.code, "shape-mismatch", outside.message);
        },
      );

      leavesNothing(
        "one code in many contexts, and two hundred links leave no memory",
        async (device, own) => {
          const x = device.node("x", { dtype: "f32", shape: [16] });
          const code = own(await device.compile("sum", "t[i] = x[i] * x[i]; s +=! t[i]", { nodes: [x], outputs: ["s", "t"] }));
          const sums = [];
          let bytes = 0;
          for (let round = 0; round < 200; round += 1) {
            const root = device.context();
            const loaded = root.upload(x, new Float32Array(16).fill(round));
            const step = await loaded.link(code);
            step.run();
            if (round % 50 === 0) sums.push((await step.context.readback("s"))[0]);
            for (const object of [step, loaded, root]) object.dispose();
            if (round === 100) bytes = device.report().reservedBytes;
          }
          return { sums, grown: device.report().reservedBytes - bytes };
        },
        ({ sums, grown }) => {
          assert.deepEqual(sums, [0, 16 * 50 ** 2, 16 * 100 ** 2, 16 * 150 ** 2]);
          assert.equal(grown, 0);
        },
      );

      leavesNothing(
        "what a link would allocate is known before, and a constant is not written",
        async (device, own) => {
          const k = device.node("k", { dtype: "f32", shape: [4], mode: "constant" });
          const loaded = own(own(device.context()).upload(k, Float32Array.of(1, 2, 3, 4)));
          const code = own(await device.compile("use", "y[i] = k[3 - i]", { nodes: [k] }));
          const forecast = loaded.forecast(code);
          const step = own(await loaded.link(code));
          step.run();
          const written = await failure(() => device.compile("write", "k[i] = 0", { nodes: [k] }));
          return { y: [...(await step.context.readback("y"))], slabs: forecast.slabSizesBytes.length, written };
        },
        ({ y, slabs, written }) => {
          assert.deepEqual(y, [4, 3, 2, 1]);
          assert.equal(slabs, 1);
          assert.equal(written.code, "notation-meaning");
          assert.match(written.message, /"k" can only be read, as a constant/);
        },
      );

      leavesNothing(
        "a signal ends compiling and linking, and what arrives late is freed",
        async (device, own) => {
          const reason = async (promise) => promise.then(() => "fulfilled", (error) => error.message);
          const x = device.node("x", { dtype: "f32", shape: [4] });
          const loaded = own(own(device.context()).upload(x, new Float32Array(4)));
          const gone = AbortSignal.abort(new Error("gone before"));
          const controller = new AbortController();
          const compiling = device.compile("late", "y[i] = x[i] + 41", { nodes: [x], signal: controller.signal });
          const batch = device.compileBatch([{ name: "late", program: "y[i] = x[i] + 42", spec: { nodes: [x] } }], controller);
          controller.abort(new Error("gone meanwhile"));
          const before = await reason(device.compile("never", "y[i] = x[i]", { nodes: [x], signal: gone }));
          const [meanwhile, batched] = await Promise.all([reason(compiling), reason(batch)]);
          const code = own(await device.compile("double", "y[i] = 2 * x[i]", { nodes: [x] }));
          const linking = new AbortController();
          const link = reason(loaded.link(code, linking));
          linking.abort(new Error("gone while linking"));
          return [before, meanwhile, batched, await link];
        },
        (seen) => {
          const meanwhile = "gone meanwhile";
          assert.deepEqual(seen, ["gone before", meanwhile, meanwhile, "gone while linking"]);
        },
      );
    });
  }

  test("programs and kernels compile in one batch, link in one line, and share nodes", async () => {
    const values = await harness.page.evaluate(async () => {
      const device = await wgslab.Device.open();
      const { node: x, context } = counted(device, "x", 4);
      const y = device.node("y", { dtype: "f32", shape: [4] });
      const codes = await device.compileBatch([
        increment("increment", x, y),
        { name: "square", program: "z[i] = y[i] ** 2", spec: { nodes: [y] } },
      ]);
      const routines = await context.linkBatch(codes);
      for (const routine of routines) routine.run();
      const z = [...(await routines[1].context.readback("z"))];
      device.destroy();
      return z;
    });
    assert.deepEqual(values, [1, 4, 9, 16]);
  });

  test("a code of another device is refused", async () => {
    const error = await harness.page.evaluate(async () => {
      const device = await wgslab.Device.open();
      const other = await wgslab.Device.open({ driver: "host" });
      const code = await other.compile("there", "q: f32[2]; q[i] = 1");
      const error = await failure(() => device.context().link(code));
      for (const one of [device, other]) one.destroy();
      return error;
    });
    assert.equal(error.code, "kernel-interface");
    assert.match(error.message, /link "there".*host:0:.*gpu:0:/);
  });

  test("nothing went wrong in the page beside the tests", () => assert.deepEqual(harness.faults, []));
}
