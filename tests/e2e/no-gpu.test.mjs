// A machine without any GPU: what trains falls to the host driver, says so, and learns the same.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DIST } from "../../scripts/build.mjs";
import { chromeFlags, openBrowser } from "../../scripts/lib/browser.mjs";
import { run } from "../../scripts/lib/proc.mjs";
import { MIN_ACCURACY } from "../../scripts/lib/results.mjs";
import { serve } from "../../scripts/lib/serve.mjs";
import { chrome } from "../../scripts/lib/tools.mjs";
import { trainOnTwoInBrowser, trainOnTwoNatively } from "../../scripts/start.mjs";

// The Vulkan loader then finds no driver.
Object.assign(process.env, { VK_DRIVER_FILES: "/nonexistent", VK_ICD_FILENAMES: "/nonexistent" });

// Headless Chromium without these flags has no adapter.
const WITHOUT_FLAGS = `#!/bin/sh
for arg do
  shift
  case $arg in *webgpu*) ;; *) set -- "$@" "$arg" ;; esac
done
exec "${chrome()}" "$@"
`;

let folder;
let outcome;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "wgslab-no-gpu-"));
  const browser = join(folder, "chrome");
  writeFileSync(browser, WITHOUT_FLAGS);
  chmodSync(browser, 0o755);
  outcome = await run(process.execPath, ["scripts/start.mjs", "--json"], { env: { CHROME: browser } });
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("npm start succeeds on the host driver, and its sides agree", () => {
  assert.equal(outcome.code, 0, outcome.output);
  const { browser, native, buffer_locs_identical, problems } = JSON.parse(outcome.stdout);
  assert.deepEqual([browser.driver, native.driver], ["host", "host"]);
  for (const { test_accuracy } of [browser, native]) assert.ok(test_accuracy >= MIN_ACCURACY, `${test_accuracy}`);
  assert.deepEqual(problems, []);
  assert.equal(buffer_locs_identical, true);
});

test("each side says in one line what it runs on, and what to install for a GPU", () => {
  assert.match(outcome.output, /^no GPU adapter was found: training on the host driver, on the CPU; .* mesa-vulkan-drivers on Debian\)$/m);
  assert.match(outcome.output, /^browser: There is no WebGPU here, so this runs on the host driver, on the CPU\. For the GPU use a browser /m);
});

test("the playground begins on the host driver", async () => {
  const server = await serve({ "/": DIST }, { home: "/site/" });
  const browser = await openBrowser({ args: chromeFlags().filter((flag) => !flag.includes("webgpu")) });
  try {
    await browser.page.goto(`${server.url}/site/`);
    await browser.page.locator("#playground").scrollIntoViewIfNeeded();
    await browser.page.waitForFunction(() => /^host:.*: ran in /.test(document.getElementById("play-timing").textContent));
    assert.equal(await browser.page.locator("#play-driver").inputValue(), "host");
    assert.deepEqual(browser.faults, []);
  } finally {
    await browser.close();
    await server.close();
  }
});

test("two devices fall to the host driver natively", async () => {
  const { driver, agrees, test_accuracy } = await trainOnTwoNatively();
  assert.deepEqual([driver, agrees], ["host", true]);
  assert.ok(test_accuracy.joined > 0.93, `${test_accuracy.joined}`);
});

// Browsers have no navigator.gpu there.
test("two devices fall to the host driver in a page over http from elsewhere than localhost", async () => {
  const args = [...chromeFlags(), "--host-resolver-rules=MAP wgslab.test 127.0.0.1"];
  const { driver, agrees, between_devices, test_accuracy } = await trainOnTwoInBrowser({ args, host: "wgslab.test" });
  assert.deepEqual([driver, agrees, between_devices.absolute], ["host", true, 0]);
  assert.ok(test_accuracy.joined > 0.93, `${test_accuracy.joined}`);
});
