// Each error that the package can give so far: provoked by doing it, held by its code and by words of its message.
// A message is one line of object, numbers, remedy; `words` are the parts that a person needs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
  await harness.page.evaluate(async () => {
    globalThis.device = await wgslab.Device.open();
  });
});
after(() => harness?.close());

/** A test that `body`, run in the page, fails with that code and all of those words. */
function fails(name, code, words, body, more = {}) {
  test(`${code}: ${name}`, async () => {
    const error = await harness.page.evaluate(`failure(${body})`);
    assert.equal(error.code, code, error.message);
    assert.equal(error.isWgslabError, true);
    for (const word of words) assert.ok(error.message.includes(word), `"${word}" is not in: ${error.message}`);
    for (const [key, value] of Object.entries(more)) assert.deepEqual(error[key], value, key);
    const [first] = error.message.split("\n");
    assert.ok(first.length <= 300, `the first line has ${first.length} characters: ${first}`);
  });
}

fails("opening where there is no WebGPU", "no-adapter", ["navigator.gpu", 'driver: "host"'], async () => {
  const gpu = Object.getOwnPropertyDescriptor(Navigator.prototype, "gpu");
  Object.defineProperty(Navigator.prototype, "gpu", { configurable: true, get: () => undefined });
  try {
    await wgslab.Device.open();
  } finally {
    Object.defineProperty(Navigator.prototype, "gpu", gpu);
  }
});

fails("opening with a misspelt option", "unsupported", ['"drvier"', "driver"], () => wgslab.Device.open({ drvier: "host" }));

fails("a node without options", "unsupported", ['"a"', "undefined", "dtype"], () => device.node("a"));

for (const [verb, body] of Object.entries({
  write: "context.write(x, new Float32Array(4), { start: 0 })",
  zero: "context.zero(x, { start: 0, end: 2 })",
  copy: "context.copy(x, x, { start: 0 })",
  readback: "context.readback(x, { start: 0 })",
})) {
  const setup = 'const x = device.node("x", { dtype: "f32", shape: [4] }); const context = device.context().zeros([x]);';
  fails(`${verb} with a misspelt option`, "unsupported", [verb, '"start"', "there is "],
    `async () => { ${setup} try { await ${body}; } finally { context.dispose(); } }`);
}

fails("a signal that is none", "unsupported", ["AbortSignal", "controller.signal"], () =>
  device.awaitIdle({ signal: {} }));

fails("opening where no adapter is found", "no-adapter", ["adapter"], async () => {
  const { requestAdapter } = GPU.prototype;
  GPU.prototype.requestAdapter = async () => null;
  try {
    await wgslab.Device.open();
  } finally {
    GPU.prototype.requestAdapter = requestAdapter;
  }
});

fails("a node over the segment cap", "limit-exceeded", ['"big"', "4096", "1024"], async () => {
  const small = await wgslab.Device.open({ segmentCapBytes: 1024 });
  try {
    small.context().zeros([small.node("big", { dtype: "f32", shape: [1024] })]);
  } finally {
    small.destroy();
  }
});

fails("a grid of too many workgroups", "limit-exceeded", ["grid", "70000", "65535"], () =>
  device.compile("wide", "@compute @workgroup_size(1) fn main() {}", { tensors: [], grid: [70000] }));

fails("WGSL on the host driver", "unsupported", ["host", "scale"], async () => {
  const host = await wgslab.Device.open({ driver: "host" });
  try {
    await scale(host);
  } finally {
    host.destroy();
  }
});

fails("reading a node that the context has not", "unknown-node", ['"lost"'], () =>
  device.context().readback(device.node("lost", { dtype: "f32", shape: [4] })));

fails("reading a label that the context has not", "unknown-node", ['"lost"'], () => device.context().readback("lost"));

fails("linking without an input", "unknown-node", ['"x"', "scale"], async () => {
  const { root, code, routine } = await scale(device);
  routine.dispose();
  await root.link(code);
});

fails("uploading a node twice", "duplicate-node", ['"x"'], () => {
  const x = device.node("x", { dtype: "f32", shape: [4] });
  const context = device.context().upload(x, new Float32Array(4));
  try {
    context.upload(x, new Float32Array(4));
  } finally {
    context.dispose();
  }
});

fails("one node twice in one upload", "duplicate-node", ['"x"'], () => {
  const x = device.node("x", { dtype: "f32", shape: [4] });
  device.context().zeros([x, x]);
});

fails("an array of another length", "shape-mismatch", ['"x"', "4", "5"], () =>
  device.context().upload(device.node("x", { dtype: "f32", shape: [4] }), new Float32Array(5)));

fails("a write past the end", "shape-mismatch", ['"x"', "8 to 20", "16 bytes"], () => {
  const x = device.node("x", { dtype: "f32", shape: [4] });
  const context = device.context().zeros([x]);
  try {
    context.write(x, new Float32Array(3), { offset: 2 });
  } finally {
    context.dispose();
  }
});

fails("an array of another type", "dtype-mismatch", ['"x"', "f32", "Int32Array", "Float32Array"], () =>
  device.context().upload(device.node("x", { dtype: "f32", shape: [4] }), new Int32Array(4)));

fails("a copy between types", "dtype-mismatch", ['"f"', '"i"'], () => {
  const f = device.node("f", { dtype: "f32", shape: [4] });
  const i = device.node("i", { dtype: "i32", shape: [4] });
  const context = device.context().zeros([f, i]);
  try {
    context.copy(f, i);
  } finally {
    context.dispose();
  }
});

fails("a disposed context", "disposed", ["context", "make another"], () => {
  const context = device.context();
  context.dispose();
  context.locs();
});

fails("a disposed routine", "disposed", ['routine "scale"'], async () => {
  const { routine } = await scale(device);
  routine.dispose();
  routine.run({ factor: 1 });
});

fails("a destroyed device", "disposed", ["device gpu:0:"], async () => {
  const gone = await wgslab.Device.open();
  gone.destroy();
  gone.context();
});

test("kernel-syntax: the place is in the author's text, with an excerpt of it", async () => {
  const error = await harness.page.evaluate(() =>
    failure(() => {
      const x = device.node("x", { dtype: "f32", shape: [4] });
      const text = "@compute @workgroup_size(1)\nfn main() {\n  store_x(0u, nonsense);\n}";
      return device.compile("typo", text, { tensors: [{ node: x, access: "write" }], grid: [1] });
    }));
  assert.equal(error.code, "kernel-syntax", error.message);
  assert.equal(error.isKernelError, true);
  const [{ line, column, excerpt, message }] = error.diagnostics;
  assert.deepEqual({ line, column, excerpt }, { line: 3, column: 15, excerpt: "  store_x(0u, nonsense);" });
  assert.match(message, /nonsense/);
  assert.match(error.message, /typo/);
});

const kernel = (text, spec) => `() => {
  const x = device.node("x", { dtype: "f32", shape: [4] });
  return device.compile("odd", ${JSON.stringify(text)}, { tensors: { x: { node: x, access: "read_write" } }, grid: [1], ...${JSON.stringify(spec ?? {})} });
}`;
const MAIN = "@compute @workgroup_size(1) fn main() { store_x(0u, 1.0); }";

fails("a kernel without an entry point", "kernel-interface", ["odd", "@compute"], kernel("fn main() {}"));
fails("a kernel with two entry points", "kernel-interface", ["odd", "@compute"], kernel(`${MAIN}\n${MAIN.replace("main", "more")}`));
fails("an accessor that the access does not give", "kernel-syntax", ["atomic_add_x"],
  kernel("@compute @workgroup_size(1) fn main() { _ = atomic_add_x(0u, 1.0); }"));
fails("a workgroup over the limit", "pipeline-rejected", ["odd"], kernel(MAIN.replace("(1)", "(64, 64)")));

fails("a run without its static", "kernel-interface", ["scale", '"factor"'], async () => (await scale(device)).routine.run());
fails("a run with a static that there is not", "kernel-interface", ["scale", '"fcator"'], async () =>
  (await scale(device)).routine.run({ factor: 1, fcator: 2 }));
fails("a static that is no integer", "kernel-interface", ["scale", '"factor"', "1.5"], async () =>
  (await scale(device)).routine.run({ factor: 1.5 }));

test("aborted: a readback rejects with the signal's own reason, before and during", async () => {
  const reasons = await harness.page.evaluate(async () => {
    const { context, x } = await scale(device);
    const reason = (promise) => promise.then(() => "no rejection", (error) => error);
    const early = await reason(context.readback(x, { signal: AbortSignal.abort("given up") }));
    const controller = new AbortController();
    const late = reason(context.readback(x, { signal: controller.signal }));
    controller.abort("changed my mind");
    const plain = await reason(context.readback(x, { signal: AbortSignal.abort() }));
    return [early, await late, plain.name];
  });
  assert.deepEqual(reasons, ["given up", "changed my mind", "AbortError"]);
});

test("a method that returns a promise never throws synchronously", async () => {
  const outcomes = await harness.page.evaluate(async () => {
    const gone = await wgslab.Device.open();
    const { context, code, x } = await scale(gone);
    gone.destroy();
    const calls = {
      compile: () => gone.compile("k", "", { tensors: [], grid: [1] }),
      awaitIdle: () => gone.awaitIdle(),
      ready: () => gone.ready(),
      link: () => context.link(code),
      readback: () => context.readback(x),
      readbackAll: () => context.readbackAll([x]),
    };
    const outcome = async (call) => {
      let promise;
      try {
        promise = call();
      } catch (error) {
        return `threw ${error.message}`;
      }
      return settlement(promise);
    };
    const entries = Object.entries(calls).map(async ([name, call]) => [name, await outcome(call)]);
    return Object.fromEntries(await Promise.all(entries));
  });
  for (const [name, outcome] of Object.entries(outcomes)) assert.equal(outcome, "disposed", name);
});

test("the codes of the package are the crate's", async () => {
  // The wasm module is loaded by now; a second instance of its glue knows the crate's list.
  const { ours, crate } = await harness.page.evaluate(async () => {
    const glue = await import("/glue/wgslab.js");
    await glue.default("/wgslab_bg.wasm");
    return { ours: wgslab.ERROR_CODES, crate: glue.errorCodes() };
  });
  assert.deepEqual(ours, crate);
});

test("nothing went wrong in the page beside what was provoked", () => assert.deepEqual(harness.faults, []));

test("a kernel that does not compile leaves the device as it was, also when nobody waits for it", async () => {
  const { codes, values } = await harness.page.evaluate(async () => {
    const device = await wgslab.Device.open();
    const x = device.node("x", { dtype: "f32", shape: [2] });
    const context = device.context().upload(x, new Float32Array([1, 2]));
    const spec = { tensors: { x: { node: x, access: "read_write" } }, grid: [1] };
    const bad = ["fn main() { nope(); }", "fn main() { store_x(0u, 1u); }", "fn main() { ", "fn main() { let x = ; }"];
    const texts = bad.map((text) => `@compute @workgroup_size(1) ${text}`);
    const codes = await Promise.all(texts.map((text) => device.compile("bad", text, spec).catch(({ code }) => code)));
    const signal = AbortSignal.abort();
    await device.compile("given up", texts[0], { ...spec, signal }).catch(() => {});
    const later = AbortSignal.timeout(1);
    await device.compile("given up later", `${texts[0]} // another text`, { ...spec, signal: later }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 200));
    await device.allWork().completed;
    const values = [...(await context.readback(x))];
    device.destroy();
    return { codes, values };
  });
  assert.deepEqual(codes, ["kernel-syntax", "kernel-syntax", "kernel-syntax", "kernel-syntax"]);
  assert.deepEqual(values, [1, 2]);
});

test("arrays over resizable and shared buffers are taken, and detached ones leave the device as it was", async () => {
  const { values, detached, after } = await harness.page.evaluate(async () => {
    const device = await wgslab.Device.open();
    const x = device.node("x", { dtype: "u8", shape: [8] });
    const context = device.context().zeros([x]);
    const resizable = new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 })).fill(7);
    context.write(x, resizable);
    const values = [...(await context.readback(x))];
    const gone = new Uint8Array(8);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    let detached;
    try {
      context.write(x, gone);
      detached = "taken as empty";
    } catch (error) {
      detached = error.constructor.name;
    }
    const after = [...(await context.readback(x))];
    device.destroy();
    return { values, detached, after };
  });
  assert.deepEqual(values, Array(8).fill(7));
  assert.ok(["taken as empty", "TypeError", "WgslabError"].includes(detached), detached);
  assert.deepEqual(after, values);
});

for (const [name, words, body] of [
  ["a label that is no string", ["a node's label must be a string: got 5"], () => device.node(5, { dtype: "u8", shape: [1] })],
  ["a name that is no string", ["a kernel's name must be a string: got 5"], () => device.compile(5, "", { tensors: {}, grid: [1] })],
  ["a text that is no string", ['the WGSL text of "k" must be a string: got undefined'], () => device.compile("k", undefined, { tensors: {}, grid: [1] })],
  ["a memory mode that is none", ['unknown memory mode "banana"'], () => device.allocPool(9, 256, { mode: "banana" })],
  ["a driver that is none", ['option driver: "vulkan"; use gpu or host'], () => wgslab.Device.open({ driver: "vulkan" })],
]) {
  fails(name, "unsupported", words, body);
}

for (const [name, words, body] of [
  ["a negative pool id", ["a pool's id must be a whole number from 0 to 4294967294: got -1"], () => device.allocPool(-1, 100)],
  ["a pool of infinite size", ["the size of a pool, in bytes, must be a whole number", "got Infinity"], () => device.allocPool(9, Infinity)],
  ["a fractional pool id", ["got 1.5"], () => device.freePool(1.5)],
  ["a negative offset", ["the offset of a range, in bytes,", "got -1"], () => device.memsetZero(9, -1, 1)],
  ["a fractional length", ["the length of a range, in bytes,", "got 1.9"], () => device.memsetZero(9, 0, 1.9)],
]) {
  fails(name, "shape-mismatch", words, body);
}

test("wrong arguments did not stop the module", async () => {
  assert.equal(await harness.page.evaluate(() => device.report().inUseBytes >= 0), true);
});
