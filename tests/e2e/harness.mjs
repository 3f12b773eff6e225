// Opens the test page in a headless browser: the built package, the case runner, and a way to run functions there.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DIST } from "../../scripts/build.mjs";
import { openPage } from "../../scripts/lib/page.mjs";
import { Failure, ROOT } from "../../scripts/lib/proc.mjs";

/** The page; its `faults` are what went wrong outside of any awaited promise: a test file ends by asserting none. */
export async function openHarness(browser = "chromium") {
  const harness = await openPage(join(ROOT, "tests/e2e/page"), "harness.ts", {
    dist: DIST,
    folders: { "/glue/": join(ROOT, "www/pkg") },
    browser,
  });
  await harness.page.waitForFunction(() => globalThis.harnessReady === true);
  return harness;
}

/** The case files of a folder, in the order of their names. */
export async function readCases(folder) {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".json")).sort();
  if (files.length === 0) throw new Failure(`${folder} has no *.json`);
  return Promise.all(
    files.map(async (file) => {
      try {
        return JSON.parse(await readFile(join(folder, file), "utf8"));
      } catch (error) {
        throw new Failure(`${join(folder, file)}: ${error.message}`);
      }
    }),
  );
}

/** Runs cases one after the other, each on a device opened with `options`; `onResult` sees each result as it comes. */
export async function runCases(page, cases, options = {}, onResult = () => {}) {
  const results = [];
  for (const testCase of cases) {
    const result = await page.evaluate(([testCase, options]) => runCase(testCase, options), [testCase, options]);
    results.push(result);
    onResult(result);
  }
  return results;
}
