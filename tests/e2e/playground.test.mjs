// The page's playground: every example on both drivers, mistakes while they are typed, inputs, statics, and playing.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DIST } from "../../scripts/build.mjs";
import { openBrowser } from "../../scripts/lib/browser.mjs";
import { serve } from "../../scripts/lib/serve.mjs";

let server;
let browser;
let page;
before(async () => {
  server = await serve({ "/": DIST }, { home: "/site/" });
  browser = await openBrowser();
  page = browser.page;
  await page.goto(`${server.url}/site/`);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

const textOf = (name) => page.locator(`#play-${name}`).innerText();

/** Does something that ends in a run, or in an error, and waits for that. */
async function settled(action) {
  await page.evaluate(() => {
    document.getElementById("play-timing").textContent = "";
    document.getElementById("play-error").replaceChildren();
  });
  await action();
  await page.waitForFunction(() => {
    const [timing, error] = ["timing", "error"].map((name) => document.getElementById(`play-${name}`).textContent);
    return /: ran in /.test(timing) || error !== "";
  });
  // The picture comes after the time.
  await page.waitForTimeout(100);
}

const runText = async (text) => {
  await page.fill("#play-text", text);
  await settled(() => page.click("#play-run"));
};

/** How many colors the picture has; 0 where there is none. */
const colors = () =>
  page.evaluate(() => {
    const canvas = document.getElementById("play-picture");
    if (canvas.hidden) return 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
const pixels = () => page.evaluate(() => document.getElementById("play-picture").toDataURL());

test("nothing is opened before the section is seen; then the first example runs", async () => {
  assert.equal(await page.inputValue("#play-text"), "");
  await settled(() => page.evaluate(() => document.getElementById("playground").scrollIntoView()));
  assert.match(await textOf("timing"), /^gpu:0:\d+: ran in [\d.]+ ms; compiled in [\d.]+ ms, linked in [\d.]+ ms$/);
  assert.equal(await textOf("error"), "");
  assert.ok((await colors()) > 20);
});

test("every example runs on both drivers, with the same result", async () => {
  const names = await page.locator("#play-example option").allInnerTexts();
  assert.ok(names.length >= 8, names.join());
  for (const [index, name] of names.entries()) {
    const results = {};
    for (const driver of ["gpu", "host"]) {
      await settled(async () => {
        await page.selectOption("#play-driver", driver);
        await page.selectOption("#play-example", String(index));
      });
      // Choosing a driver and an example are two runs.
      await page.waitForTimeout(300);
      assert.equal(await textOf("error"), "", name);
      assert.match(await textOf("timing"), new RegExp(`^${driver}:0:`), name);
      results[driver] = (await textOf("numbers")).split(/\s+/);
      if (name !== "Monte Carlo pi" && name !== "Mandelbrot") assert.ok((await colors()) > 1, `${name} on ${driver}`);
    }
    assert.equal(results.gpu.length, results.host.length, name);
    for (const [at, value] of results.gpu.entries()) {
      const [got, want] = [Number(value), Number(results.host[at])];
      const isSame = value === results.host[at] || Math.abs(got - want) <= 2e-3 * Math.max(Math.abs(want), 0.01);
      assert.ok(isSame, `${name}: ${value} on gpu, ${results.host[at]} on host`);
    }
  }
  await page.selectOption("#play-driver", "gpu");
});

test("a mistake is shown with its line and a caret while it is typed, and goes when it is mended", async () => {
  await settled(() => page.fill("#play-text", "x: f32[4]\ny[i] = x[i] + z[i]"));
  const [place, excerpt] = [page.locator("#play-error p"), page.locator("#play-error pre")];
  assert.match(await place.innerText(), /^2:15 .*"z"/);
  assert.equal(await excerpt.innerText(), `y[i] = x[i] + z[i]\n${" ".repeat(14)}^`);
  assert.equal(await page.getAttribute("#play-text", "aria-invalid"), "true");
  await page.fill("#play-text", "x: f32[4]\ny[i] = x[i] + 1");
  await page.waitForFunction(() => document.getElementById("play-error").textContent === "");
  assert.equal(await page.getAttribute("#play-text", "aria-invalid"), "false");
});

test("both places of a mistake are shown", async () => {
  await settled(() => page.fill("#play-text", "y: f32[4]\ny: f32[4]"));
  assert.equal(await page.locator("#play-error p").count(), 2);
});

test("inputs are what is declared and read; they are filled as chosen", async () => {
  await runText("x: f32[2, 3]\nn: i32[3]\nunread: f32[3]\nn[j] = 7\ny[i, j] = x[i, j] * f32(n[j])");
  const fields = await page.locator("#play-inputs label code").allInnerTexts();
  assert.deepEqual(fields, ["x: f32[2, 3]", "n: i32[3]"]);
  await settled(() => page.locator("#play-inputs select").first().selectOption("count"));
  assert.deepEqual((await textOf("numbers")).trim().split(/\s+/), ["0", "7", "14", "21", "28", "35"]);
  assert.deepEqual(await page.locator("#play-show option").allInnerTexts(), ["n: i32[3]", "unread: f32[3]", "y: f32[2, 3]"]);
  await page.selectOption("#play-show", "n");
  await page.waitForFunction(() => document.getElementById("play-numbers").textContent === "7  7  7");
});

test("each element type is filled and read", async () => {
  for (const dtype of ["f16", "bf16", "i32", "u32", "i8", "u8"]) {
    await runText(`x: ${dtype}[5]\ny: ${dtype}[5]\ny[i] = x[i]`);
    await page.selectOption("#play-show", "y");
    await settled(() => page.locator("#play-inputs select").selectOption("count"));
    assert.equal(await textOf("numbers"), "0  1  2  3  4", dtype);
  }
});

test("statics are asked for, and one out of range is refused in words", async () => {
  await runText("x: f32[8]\ny[i] = x[@first + i] where i in 0:3");
  await settled(() => page.locator("#play-inputs select").selectOption("count"));
  const field = page.locator("#play-inputs input");
  const give = (value) => settled(async () => {
    await field.fill(value);
    await field.dispatchEvent("change");
  });
  await give("5");
  assert.equal(await textOf("numbers"), "5  6  7");
  await give("6");
  assert.match(await textOf("error"), /@first = 6.*from 0 to 5/);
});

test("what keeps its values can be played, and paused", async () => {
  await runText("x: f32[4]\ny[i] = x[i]");
  assert.equal(await page.isVisible("#play-play"), false);
  const index = (await page.locator("#play-example option").allInnerTexts()).indexOf("Game of life");
  await settled(() => page.selectOption("#play-example", String(index)));
  assert.equal(await page.isVisible("#play-play"), true);
  const before = await pixels();
  await page.click("#play-play");
  assert.equal(await textOf("play"), "Pause");
  await page.waitForFunction((before) => document.getElementById("play-picture").toDataURL() !== before, before);
  await page.click("#play-play");
  await page.waitForTimeout(300);
  const paused = await pixels();
  await page.waitForTimeout(300);
  assert.equal(await pixels(), paused);
  assert.equal(await textOf("play"), "Play");
});

test("an empty program, and one without elements", async () => {
  await runText("# nothing");
  assert.deepEqual([await textOf("error"), await textOf("numbers"), await colors()], ["", "", 0]);
  await runText("x: f32[0]\nx[i] = 1");
  assert.deepEqual([await textOf("error"), await textOf("numbers"), await colors()], ["", "no elements", 0]);
});

test("nothing went wrong in the page", () => assert.deepEqual(browser.faults, []));
