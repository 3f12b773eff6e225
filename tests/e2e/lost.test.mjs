// A device that goes away with work in flight: every promise settles, nothing hangs, later calls say why.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await openHarness();
});
after(() => harness?.close());

/** Starts one of everything that gives a promise, ends the device by `end`, and tells how each settled. */
const ended = (end) =>
  harness.page.evaluate(async (end) => {
    // The browser's own device behind ours: destroying it is what a lost device looks like.
    const { requestDevice } = GPUAdapter.prototype;
    let own;
    GPUAdapter.prototype.requestDevice = async function (...args) {
      own = await requestDevice.apply(this, args);
      return own;
    };
    const device = await wgslab.Device.open().finally(() => (GPUAdapter.prototype.requestDevice = requestDevice));
    const { context, code, routine, x, y } = await scale(device);
    const events = Array.from({ length: 100 }, () => routine.run({ factor: 2 }));
    const seen = events[10];
    const pending = {
      completed: seen.completed,
      last: events.at(-1).completed,
      readback: routine.context.readback(y),
      readbackAll: context.readbackAll([x, "x"]),
      awaitIdle: device.awaitIdle(),
      compile: device.compile("other", "@compute @workgroup_size(1) fn main() {}", { tensors: [], grid: [1] }),
      link: context.link(code),
    };
    const settled = Object.entries(pending).map(async ([name, promise]) => [name, await settlement(promise)]);
    if (end === "destroy") device.destroy();
    else own.destroy();
    const lost = await Promise.race([device.lost, new Promise((resolve) => setTimeout(resolve, 10_000, "pending"))]);
    const inFlight = Object.fromEntries(await Promise.all(settled));

    const later = {};
    const calls = {
      // Of an event that is not asked for before the end, too.
      completed: () => events[50].completed,
      context: () => device.context().zeros([device.node("z", { dtype: "f32", shape: [4] })]),
      readback: () => context.readback(x),
      run: () => routine.run({ factor: 1 }).completed,
      awaitIdle: () => device.awaitIdle(),
      compile: () => device.compile("k", "@compute @workgroup_size(1) fn main() {}", { tensors: [], grid: [1] }),
    };
    for (const [name, call] of Object.entries(calls)) later[name] = await settlement((async () => call())());
    const isDone = events.map((event) => event.isDone);
    routine.dispose();
    context.dispose();
    device.destroy();
    device.destroy();
    return { lost, inFlight, later, isDone: isDone.every(Boolean) };
  }, end);

const isSettled = (outcome) => ["fulfilled", "device-lost"].includes(outcome);

test("a device that is destroyed in flight settles every promise", async () => {
  const { lost, inFlight, later, isDone } = await ended("destroy");
  assert.equal(lost.reason, "destroyed");
  for (const [name, outcome] of Object.entries(inFlight)) assert.ok(isSettled(outcome), `${name}: ${outcome}`);
  assert.equal(inFlight.readback, "device-lost", "bytes of a device that is gone");
  assert.ok(isSettled(later.completed), `completed: ${later.completed}`);
  const { completed: _, ...calls } = later;
  for (const [name, outcome] of Object.entries(calls)) assert.equal(outcome, "disposed", name);
  assert.equal(isDone, true);
});

test("a device that is lost in flight settles every promise, and every later call says so", async () => {
  const { lost, inFlight, later, isDone } = await ended("lose");
  assert.equal(typeof lost.message, "string");
  for (const [name, outcome] of Object.entries(inFlight)) assert.ok(isSettled(outcome), `${name}: ${outcome}`);
  assert.equal(inFlight.readback, "device-lost", "bytes of a device that is gone");
  for (const [name, outcome] of Object.entries(later)) assert.equal(outcome, "device-lost", name);
  assert.equal(isDone, true);
});

test("another device works on after one was lost", async () => {
  const values = await harness.page.evaluate(async () => {
    const device = await wgslab.Device.open();
    const { routine, y } = await scale(device);
    routine.run({ factor: 3 });
    const read = await routine.context.readback(y);
    device.destroy();
    return [...read.slice(0, 2)];
  });
  assert.deepEqual(values, [3, 3]);
});

test("an event that nobody looks at is no unhandled rejection", () => assert.deepEqual(harness.faults, []));
