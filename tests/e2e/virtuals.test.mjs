// Virtual nodes across programs: what contexts and codes know of them, and what is compiled in those.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
  await harness.page.evaluate(() => {
    // x is 0, 1, 2, 3; a program leaves t, which is 2 * x, and is linked behind it.
    globalThis.leaving = async (device) => {
      const { node: x, context: loaded } = counted(device, "x", 4);
      const t = device.node("t", { dtype: "f32", shape: [4], mode: "virtual" });
      const code = await device.compile("double", "t[i] = x[i] * 2", { nodes: [x, t] });
      const first = await loaded.link(code);
      return { x, t, loaded, code, first, context: first.context };
    };
    globalThis.valuesOf = async (routine, label) => [...(await routine.context.readback(label))];
  });
});
after(() => harness?.close());

for (const driver of ["gpu", "host"]) {
  describe(`on the ${driver} driver`, () => {
    /** A test whose `body` runs in the page with a device of its own, and whose facts are checked. */
    const on = (name, body, check) =>
      test(name, async () => {
        const facts = await harness.page.evaluate(`(async () => {
          const device = await wgslab.Device.open({ driver: "${driver}" });
          try { return await (${body})(device); } finally { device.destroy(); }
        })()`);
        check(facts);
      });

    on(
      "a program that is compiled in a context computes what those before it left",
      async (device) => {
        const { x, t, loaded, code, first, context } = await leaving(device);
        const unaware = await failure(() => device.compile("next", "y[i] = t[i] + 1", { nodes: [t] }));
        const next = await device.compile("next", "y[i] = t[i] + 1", { nodes: { t }, in: context });
        const second = await context.link(next);
        const early = await failure(() => second.run());
        first.run();
        second.run();
        const y = await valuesOf(second, "y");
        loaded.write(x, Float32Array.of(10, 10, 10, 10));
        const stale = await failure(() => second.run());
        first.run();
        second.run();
        const { optimizeCtx } = second.context;
        return {
          y,
          again: await valuesOf(second, "y"),
          unaware,
          early,
          stale,
          sizes: [loaded, context, code, second.context, next].map(({ optimizeCtx }) => optimizeCtx.size),
          same: [optimizeCtx.nodes[0] === t, loaded.optimizeCtx === device.context().optimizeCtx],
          frozen: Object.isFrozen(optimizeCtx.nodes),
          explained: next.explain(),
          // It lies nowhere.
          where: context.loc(t) ?? "nowhere",
        };
      },
      (seen) => {
        assert.deepEqual([seen.y, seen.again], [[1, 3, 5, 7], [21, 21, 21, 21]]);
        assert.equal(seen.unaware.code, "unknown-node");
        assert.match(seen.unaware.message, /nothing before computes it/);
        for (const { code, message } of [seen.early, seen.stale]) {
          assert.equal(code, "not-run");
          assert.match(message, /run "double" now/);
        }
        assert.deepEqual(seen.sizes, [0, 1, 1, 1, 1]);
        assert.deepEqual([...seen.same, seen.frozen, seen.where], [true, true, true, "nowhere"]);
        assert.match(seen.explained, /t: f32\[4\] virtual: computed where it is read/);
      },
    );

    on(
      "codes of a batch are compiled in a code that is linked before them, or in a context",
      async (device) => {
        const { x, t, loaded, code, first, context } = await leaving(device);
        const sources = [
          { name: "sum", program: "s +=! t[i]", spec: { nodes: [t] } },
          { name: "shift", program: "z[i] = pad(t[i - 1], 7) where i in 0:4", spec: { nodes: [t] } },
        ];
        const behind = await device.compileBatch(sources, { in: code });
        const routines = await loaded.linkBatch([code, ...behind]);
        for (const routine of routines) routine.run();
        const last = routines[2];
        // A code knows what it was compiled in, and what it leaves itself.
        const u = device.node("u", { dtype: "f32", shape: [4], mode: "virtual" });
        const more = await device.compile("more", "u[i] = t[i] + x[i]", { nodes: [t, u, x], in: context.optimizeCtx });
        const linked = await context.link(more);
        const [end] = await device.compileBatch([{ name: "end", program: "e[i] = u[i] - t[i]", spec: { nodes: [t, u] } }], {
          in: linked.context,
          signal: new AbortController().signal,
        });
        const ended = await linked.context.link(end);
        for (const routine of [first, linked, ended]) routine.run();
        const alone = await failure(() => loaded.link(end));
        return {
          s: await valuesOf(last, "s"),
          z: await valuesOf(last, "z"),
          e: await valuesOf(ended, "e"),
          known: [code, more, linked.context, ended.context].map(({ optimizeCtx }) => optimizeCtx.nodes.map(({ label }) => label)),
          alone,
        };
      },
      (seen) => {
        assert.deepEqual([seen.s, seen.z, seen.e], [[12], [7, 0, 2, 4], [0, 1, 2, 3]]);
        assert.deepEqual(seen.known, [["t"], ["t", "u"], ["t", "u"], ["t", "u"]]);
        assert.equal(seen.alone.code, "unknown-node");
        assert.match(seen.alone.message, /compile with the context's optimize_ctx/);
      },
    );

    on(
      "contexts that are made by hand know what they are given",
      async (device) => {
        const { x, t, loaded, code, first, context } = await leaving(device);
        const known = lowLevel.optimizeCtx(context);
        const none = lowLevel.emptyOptimizeCtx();
        const next = await lowLevel.compile(device, known, "next", "y[i] = t[i] + 1", { nodes: [t] });
        const ctxBuffers = lowLevel.ctxBuffers(loaded);
        const given = [
          lowLevel.makeChild(loaded, { optimizeCtx: known }),
          lowLevel.makeContext(device, { ctxBuffers, optimizeCtx: known }),
          lowLevel.makeChild(context),
        ];
        first.run();
        const values = [];
        for (const one of given) {
          const routine = await one.link(next);
          routine.run();
          values.push(await valuesOf(routine, "y"));
        }
        const [loc] = [...ctxBuffers.values()];
        lowLevel.allocPool(device, 40, 256, 256);
        const refused = [
          lowLevel.makeChild(context, { optimizeCtx: none }),
          lowLevel.makeContext(device, { ctxBuffers }),
          // x lies elsewhere there, so that 2 * x is another.
          lowLevel.makeContext(device, { ctxBuffers: [[x, { poolId: 40, offset: loc.offset }]], optimizeCtx: known }),
          // Nothing was linked that leaves it.
          lowLevel.makeChild(loaded, { optimizeCtx: lowLevel.optimizeCtx(code) }),
        ];
        const errors = [];
        for (const one of refused) errors.push((await failure(() => one.link(next))).code);
        const sources = [{ name: "b", program: "y[i] = t[i] + 1", spec: { nodes: [t] } }];
        const [batch] = await lowLevel.compileBatch(device, known, sources);
        const unaware = await failure(() => lowLevel.compileBatch(device, none, sources));
        return {
          values,
          errors,
          unaware: unaware.code,
          batch: batch.name,
          sizes: [...given, ...refused].map((one) => lowLevel.optimizeCtx(one).size),
          words: [known, none].map(lowLevel.describe),
          empty: [lowLevel.optimizeCtx(loaded) === none, none.size, none.nodes.length],
          isClass: known instanceof wgslab.OptimizeCtx && none instanceof wgslab.OptimizeCtx,
        };
      },
      (seen) => {
        assert.deepEqual(seen.values, [[1, 3, 5, 7], [1, 3, 5, 7], [1, 3, 5, 7]]);
        assert.deepEqual(seen.errors, ["unknown-node", "unknown-node", "unknown-node", "unknown-node"]);
        assert.deepEqual([seen.unaware, seen.batch], ["unknown-node", "b"]);
        assert.deepEqual(seen.sizes, [1, 1, 1, 0, 0, 1, 1]);
        assert.match(seen.words[0], /^OptimizeCtx\(\[n\d+"t"\]\)$/);
        assert.equal(seen.words[1], "OptimizeCtx([])");
        assert.deepEqual(seen.empty, [true, 0, 0]);
        assert.equal(seen.isClass, true);
      },
    );

    on(
      "what is known outlives what gave it, and holds no memory",
      async (device) => {
        const { t, loaded, code, first, context } = await leaving(device);
        const known = [context.optimizeCtx, code.optimizeCtx];
        const child = lowLevel.makeChild(context);
        first.run();
        for (const one of [child, first, code, loaded]) one.dispose();
        device.freeUnusedConstants();
        const inUseBytes = device.report().inUseBytes;
        const again = await Promise.all(
          known.map((one) => device.compile("next", "y[i] = t[i] + 1", { nodes: [t], in: one })),
        );
        return {
          inUseBytes: inUseBytes - lowLevel.mergeBufferCapacity(device),
          sizes: known.map(({ size }) => size),
          names: again.map(({ name }) => name),
          gone: [
            await failure(() => context.optimizeCtx),
            await failure(() => lowLevel.optimizeCtx(child)),
            await failure(() => code.optimizeCtx),
            await failure(() => device.compile("p", "y[i] = t[i]", { nodes: [t], in: context })),
            await failure(() => device.compile("p", "y[i] = t[i]", { nodes: [t], in: code })),
            await failure(() => context.link(again[0])),
          ].map(({ code }) => code),
        };
      },
      (seen) => {
        assert.equal(seen.inUseBytes, 0);
        assert.deepEqual([seen.sizes, seen.names], [[1, 1], ["next", "next"]]);
        assert.deepEqual(seen.gone, Array(6).fill("disposed"));
      },
    );
  });
}

test("a kernel of WGSL is the same in every context", async () => {
  const seen = await harness.page.evaluate(async () => {
    const device = await wgslab.Device.open();
    const { x, loaded, context } = await leaving(device);
    const y = device.node("y", { dtype: "f32", shape: [4] });
    const { name, wgsl, spec } = increment("up", x, y);
    const single = await device.compile(name, wgsl, { ...spec, in: context });
    const [batch] = await device.compileBatch([{ name, wgsl, spec }], { in: context });
    const low = await lowLevel.compile(device, lowLevel.optimizeCtx(context), name, wgsl, spec);
    const values = [];
    for (const code of [single, batch, low]) {
      const routine = await loaded.link(code);
      routine.run();
      values.push(await valuesOf(routine, "y"));
    }
    const facts = { values, sizes: [single, batch, low].map(({ optimizeCtx }) => optimizeCtx.size) };
    device.destroy();
    return facts;
  });
  assert.deepEqual(seen, { values: Array(3).fill([1, 2, 3, 4]), sizes: [0, 0, 0] });
});

/** A test that `body`, given what `leaving` makes and another device, fails with that code and all of those words. */
function refused(name, code, words, body) {
  test(`${code}: ${name}`, async () => {
    const error = await harness.page.evaluate(`(async () => {
      const device = await wgslab.Device.open({ driver: "host" });
      const other = await wgslab.Device.open({ driver: "host" });
      const made = await leaving(device);
      const program = (given) => device.compile("p", "y[i] = t[i]", { nodes: [made.t], in: given });
      try { return await failure(() => (${body})({ ...made, device, other, program })); } finally {
        device.destroy();
        other.destroy();
      }
    })()`);
    assert.equal(error.code, code, error.message);
    for (const word of words) assert.ok(error.message.includes(word), `"${word}" is not in: ${error.message}`);
    assert.ok(!error.message.includes("\n"), error.message);
  });
}

const inWords = ['compile "p"', "`in`", "Context", "Code", "OptimizeCtx"];
refused("a program in a number", "unsupported", [...inWords, "got 7"], ({ program }) => program(7));
refused("a program in nothing", "unsupported", [...inWords, "got null"], ({ program }) => program(null));
refused("a program in a node", "unsupported", [...inWords, "TensorNode"], ({ program, t }) => program(t));
refused("a program in a routine", "unsupported", [...inWords, "Routine"], ({ program, first }) => program(first));
refused("a program in what looks like it", "unsupported", inWords, ({ program }) => program({ size: 0, nodes: [] }));
refused("a program in a context of another device", "unsupported", ['compile "p"', "host:0:", "context or code there"],
  ({ other, t, context }) => other.compile("p", "y[i] = t[i]", { nodes: [t], in: context }));
refused("a batch in a code of another device", "unsupported", ["compileBatch", "host:0:"], ({ other, code }) =>
  other.compileBatch([], { in: code }));
refused("a batch in a text", "unsupported", ["compileBatch", '"t"'], ({ device }) => device.compileBatch([], { in: "t" }));
refused("an item of a batch in a context of its own", "unsupported", ["item 0", "compileBatch(list, { in })"],
  ({ device, t, context }) => device.compileBatch([{ name: "p", program: "y[i] = t[i]", spec: { nodes: [t], in: context } }]));
refused("a context that knows what is of another device", "unsupported", ["makeContext", "host:0:"],
  ({ other, context }) => lowLevel.makeContext(other, { optimizeCtx: lowLevel.optimizeCtx(context) }));
refused("a child that knows what is of another device", "unsupported", ["makeChild", "host:0:"],
  ({ other, context }) => lowLevel.makeChild(other.context(), { optimizeCtx: lowLevel.optimizeCtx(context) }));
refused("a child that knows a context", "unsupported", ["makeChild", "OptimizeCtx", "optimizeCtx(context)"],
  ({ context }) => lowLevel.makeChild(context, { optimizeCtx: context }));
refused("what a node knows", "unsupported", ["Context", "TensorNode"], ({ t }) => lowLevel.optimizeCtx(t));
refused("a function of the low level without its optimization context", "unsupported", ["compile", "OptimizeCtx", '"p"'],
  ({ device }) => lowLevel.compile(device, "p", "y[i] = 1"));
refused("a batch of the low level without it", "unsupported", ["compileBatch", "OptimizeCtx"],
  ({ device }) => lowLevel.compileBatch(device, []));
refused("a function of the low level without options", "unsupported", ['"p"', "options", "null"],
  ({ device, t, context }) => lowLevel.compile(device, lowLevel.optimizeCtx(context), "p", "y[i] = t[i]", null));
refused("what a context of a destroyed device knows", "disposed", ["device host:0:"], ({ device, context }) => {
  device.destroy();
  return context.optimizeCtx;
});
refused("a program on a destroyed device", "disposed", ["device host:0:"], ({ device, context }) => {
  const { optimizeCtx } = context;
  device.destroy();
  return lowLevel.compile(device, optimizeCtx, "p", "y = 1");
});

test("nothing went wrong in the page", () => assert.deepEqual(harness.faults, []));
