// What is wrong with a program is said with its place; what is wrong with a call, before anything is compiled.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
  await harness.page.evaluate(async () => {
    globalThis.device = await wgslab.Device.open();
    globalThis.host = await wgslab.Device.open({ driver: "host" });
    globalThis.x = device.node("x", { dtype: "f32", shape: [8] });
    globalThis.ids = device.node("ids", { dtype: "i32", shape: [3] });
  });
});
after(() => harness?.close());

/** A program over x (f32[8]) and ids (i32[3]) that must be refused there, with the same words on both drivers. */
function wrong(code, [line, column], words, program) {
  test(`${code} at ${line}:${column}: ${program.replaceAll("\n", "; ")}`, async () => {
    const compile = async ({ program, on }) =>
      failure(() => globalThis[on].compile("p", program, { nodes: [x, ids] }));
    const error = await harness.page.evaluate(compile, { program, on: "device" });
    assert.equal(error.code, code, error.message);
    assert.deepEqual([error.line, error.column], [line, column], error.message);
    const excerpt = program.split("\n")[line - 1];
    assert.equal(error.excerpt, excerpt);
    assert.deepEqual([error.name, error.isNotationError, error.isWgslabError, error.isKernelError], ["NotationError", true, true, false]);
    const [first, ...rest] = error.diagnostics;
    assert.deepEqual([first.line, first.column, first.excerpt], [line, column, excerpt]);
    const lines = error.message.split("\n");
    const what = code === "notation-syntax" ? "index notation is not well formed" : "the program is not valid";
    assert.equal(lines[0], `compile "p": ${what} at ${line}:${column}`);
    assert.equal(lines[1], `${line}:${column}: ${first.message}`);
    assert.equal(lines[2], `${line} | ${excerpt}`);
    assert.equal(lines[3], `  | ${" ".repeat(column - 1)}^`);
    assert.equal(lines.length, 1 + 3 * (1 + rest.length));
    for (const word of words) assert.ok(first.message.includes(word), `"${word}" is not in: ${first.message}`);
    assert.deepEqual(await harness.page.evaluate(compile, { program, on: "host" }), error);
  });
}

wrong("notation-syntax", [1, 17], [")", "1:8"], "y[i] = (x[i] + 1");
wrong("notation-syntax", [2, 1], ["sum"], "y[i] = x[i]\nsum = 1");
wrong("notation-syntax", [2, 13], ["$"], "# é is one\ny[i] = x[i] $ 2");
wrong("unknown-node", [1, 15], ['"z"'], "y[i] = x[i] + z[i]");
wrong("duplicate-node", [2, 1], ['"y"'], "y: f32[8]\ny: f32[8]");
wrong("shape-mismatch", [1, 10], ["8"], "y[i] = x[i + 1] where i in 0:8");
wrong("dtype-mismatch", [1, 8], ["bool"], "y[i] = x[i] ? 1 : 2");
wrong("limit-exceeded", [1, 1], ["2^53"], "y: f32[1000000, 1000000, 1000000]");
wrong("notation-meaning", [1, 3], ["scatter"], "x[ids[t]] = 1");
wrong("notation-meaning", [1, 21], ["k"], "  y[i] = x[i] where k in 0:3");

/** A call that is refused, with that code and those words. */
function refused(name, code, words, body, more = {}) {
  test(`${code}: ${name}`, async () => {
    const error = await harness.page.evaluate(`failure(${body})`);
    assert.equal(error.code, code, error.message);
    for (const word of words) assert.ok(error.message.includes(word), `"${word}" is not in: ${error.message}`);
    for (const [key, value] of Object.entries({ isNotationError: false, ...more })) assert.deepEqual(error[key], value, key);
    assert.ok(!error.message.includes("\n"), error.message);
  });
}

refused("one node under one name twice", "duplicate-node", ['"x"', "twice"], () =>
  device.compile("p", "y[i] = x[i]", { nodes: [x, x] }));
refused("an output that there is not", "unknown-node", ['"z"', "no node of the program"], () =>
  device.compile("p", "y[i] = x[i]", { nodes: [x], outputs: ["z"] }));
refused("a kernel's and a program's options", "unsupported", ['"p"', "nodes", "tensors", "leave out"], () =>
  device.compile("p", "y[i] = x[i]", { tensors: [], grid: [1], nodes: [x] }));
refused("a kernel's tensors and a program's outputs", "unsupported", ["outputs", "tensors"], () =>
  device.compile("p", "y[i] = x[i]", { tensors: {}, grid: [1], outputs: [] }));
refused("a kernel's tensors and a program's merged node", "unsupported", ["merged", "tensors"], () =>
  device.compile("p", "y[i] = x[i]", { tensors: {}, grid: [1], merged: { x } }));
refused("a grid without tensors", "unsupported", ['"grid"', "nodes, merged, outputs, in, tune, tuneBudgetMs and signal", "tensors"], () =>
  device.compile("p", "y[i] = x[i]", { grid: [1] }));
refused("an option that there is not", "unsupported", ['"node"'], () =>
  device.compile("p", "y[i] = x[i]", { node: [x] }));
refused("no text", "unsupported", ['text of "p"', "string", "undefined"], () => device.compile("p"));
refused("a text that is none", "unsupported", ["string", "an array"], () => device.compile("p", ["y[i] = x[i]"]));
refused("a name that is none", "unsupported", ["name", "7"], () => device.compile(7, "y[i] = 1"));
refused("options that are none", "unsupported", ["options", "null"], () => device.compile("p", "y[i] = 1", null));
refused("options that are a text", "unsupported", ["options", '"x"'], () => device.compile("p", "y[i] = 1", "x"));
refused("nodes that are none", "unsupported", ["nodes", "3"], () => device.compile("p", "y[i] = 1", { nodes: 3 }));
refused("a label for a node", "unsupported", ["TensorNode", '"x"'], () => device.compile("p", "y[i] = x[i]", { nodes: ["x"] }));
refused("nothing for a node", "unsupported", ["TensorNode", "undefined"], () =>
  device.compile("p", "y[i] = x[i]", { nodes: { x: undefined } }));
refused("a merged node that is none", "unsupported", ["TensorNode", '"x"'], () =>
  device.compile("p", "y[i] = x[i]", { merged: { x: "x" } }));
refused("what is merged as a node alone", "unsupported", ["TensorNode"], () =>
  device.compile("p", "y[i] = x[i]", { merged: x }));
refused("outputs that are a text", "unsupported", ["outputs", "array", '"y"'], () =>
  device.compile("p", "y[i] = x[i]", { nodes: [x], outputs: "y" }));
refused("an output that is no name", "unsupported", ["output", "string", "an object"], () =>
  device.compile("p", "y[i] = x[i]", { nodes: [x], outputs: [x] }));
refused("a batch that is none", "unsupported", ["compileBatch", "array"], () => device.compileBatch("y[i] = 1"));
refused("an item that is none", "unsupported", ["item 1", "null"], () =>
  device.compileBatch([{ name: "p", program: "y: f32[1]; y[i] = 1" }, null]));
refused("an item with two texts", "unsupported", ["item 0", "both"], () =>
  device.compileBatch([{ name: "p", program: "y[i] = 1", wgsl: "" }]));
refused("an item without a text", "unsupported", ["item 0", "neither"], () => device.compileBatch([{ name: "p" }]));
refused("a kernel without a declaration", "unsupported", ['"p"', "tensors, grid", "undefined"], () =>
  device.compileBatch([{ name: "p", wgsl: "" }]));
refused("a label that is reserved", "kernel-interface", ['"pi"', "reserved", "nodes: { w: node }"], () =>
  device.compile("p", "y[i] = pi[i]", { nodes: [device.node("pi", { dtype: "f32", shape: [8] })] }));
refused("a label that is no name", "kernel-interface", ['"layer 1"', "letters", "nodes: { w: node }"], () =>
  device.compile("p", "y[i] = 1", { nodes: [device.node("layer 1", { dtype: "f32", shape: [8] })] }));
refused("a node of rank 9", "shape-mismatch", ["rank 9", "0 to 8"], () => {
  const deep = device.node("deep", { dtype: "f32", shape: Array(9).fill(1) });
  return device.compile("p", "y = 1", { nodes: [deep] });
});

test("WGSL without its tensors is refused as the program that it is not", async () => {
  const error = await harness.page.evaluate(() => failure(() => device.compile("p", "@compute fn main() {}")));
  assert.deepEqual([error.code, error.line, error.column, error.isNotationError], ["notation-syntax", 1, 20, true]);
});

test("the first error of a batch is its error, and nothing stays", async () => {
  const [error, inUse] = await harness.page.evaluate(async () => {
    const error = await failure(() =>
      device.compileBatch([
        { name: "good", program: "y[i] = x[i]", spec: { nodes: [x] } },
        { name: "bad", program: "y[i] = z[i]", spec: { nodes: [x] } },
        { name: "worse", program: "y[i] =", spec: { nodes: [x] } },
      ]),
    );
    return [error, device.report().inUseBytes];
  });
  assert.equal(error.code, "unknown-node");
  assert.match(error.message, /^compile "bad": /);
  assert.equal(inUse, 0);
});

test("nothing went wrong in the page beside the tests", () => assert.deepEqual(harness.faults, []));
