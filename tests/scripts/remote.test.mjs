// A page that is worked in over HTTP, with Node in the part of the browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { REMOTE_SCRIPT, remote } from "../../scripts/lib/remote.mjs";
import { serve } from "../../scripts/lib/serve.mjs";

let server;
let control;
const console = [];
before(async () => {
  control = remote({ onConsole: (text, type) => console.push([type, text]) });
  server = await serve({}, { handlers: { "/remote/": control.handle } });
});
after(() => server.close());

const task = async () => (await fetch(`${server.url}/remote/task`)).json();
const post = (path, value) => fetch(`${server.url}/remote/${path}`, { method: "POST", body: JSON.stringify(value) });

test("tasks are handed out in order, whether the page asks before or after, and results find their callers", async () => {
  const { page } = control;
  const asked = task();
  const first = page.evaluate((argument) => argument + 1, 41);
  const second = page.evaluate("1 + 1");
  const one = await asked;
  const two = await task();
  assert.deepEqual([one.argument, one.code, two.code], [41, "((argument) => argument + 1)(argument)", "(1 + 1)"]);
  await post("result", { id: two.id, value: 2 });
  await post("result", { id: one.id, value: 42 });
  assert.deepEqual(await Promise.all([first, second]), [42, 2]);
});

test("what a task throws is its caller's, what else goes wrong is a fault", async () => {
  const failing = assert.rejects(control.page.evaluate("null.x"), /TypeError: null has no x/);
  await post("result", { id: (await task()).id, error: "TypeError: null has no x" });
  await failing;
  await post("fault", "Error: late");
  await post("console", { type: "warn", text: "careful" });
  assert.deepEqual(control.page.faults, ["Error: late"]);
  assert.deepEqual(console, [["warning", "careful"]]);
});

test("the page's own script is served", async () => {
  assert.match(await (await fetch(server.url + REMOTE_SCRIPT)).text(), /remote\/task/);
});

test("a browser that ends fails what is under way, and what comes", async () => {
  const open = control.page.evaluate("1");
  control.page.fail(new Error("the browser is gone"));
  await assert.rejects(open, /gone/);
  await assert.rejects(control.page.evaluate("2"), /gone/);
});
