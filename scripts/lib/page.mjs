// A page of this project, other than the site, in a headless browser: its TypeScript bundled, the built package beside it.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { bundle } from "./bundle.mjs";
import { openFirefox } from "./firefox.mjs";
import { Failure, ROOT } from "./proc.mjs";
import { REMOTE_SCRIPT, remote } from "./remote.mjs";
import { serve } from "./serve.mjs";

const START_MS = 120_000;

/**
 * Bundles `folder`/`entry`, serves it with `folder`/index.html under `/page/`, the built package under `/` and `folders`
 * under their prefixes, and opens it. In Firefox, `page` has `evaluate` and `waitForFunction` alone; in Chromium it can
 * call `functions` by their names.
 *
 * @param {string} folder
 * @param {string} entry
 * @param {{ dist: string, folders?: Record<string, string>, functions?: Record<string, Function>, query?: string, splitting?: boolean, browser?: "chromium" | "firefox" }} options
 *   `splitting`: what the page imports by `import()` is a file of its own
 */
export async function openPage(folder, entry, options) {
  const { dist, folders = {}, functions = {}, query = "", splitting = false, browser = "chromium" } = options;
  const out = join(ROOT, "target/pages", `${basename(folder)}-${browser}`);
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await bundle([join(folder, entry)], out, { packageUrl: "/index.js", splitting });
  const html = await readFile(join(folder, "index.html"), "utf8");
  const script = browser === "firefox" ? `<script type="module" src="${REMOTE_SCRIPT}"></script>` : "";
  await writeFile(join(out, "index.html"), html.replace("</html>", `${script}</html>`));
  const served = { "/": dist, "/page/": out, ...folders };
  return browser === "firefox" ? inFirefox(served, query) : inChromium(served, query, functions);
}

function onConsole(text, type) {
  // The browser warns about each kernel that a test means to be wrong; our own warnings are about ourselves.
  if (type === "error" || text.startsWith("wgslab:")) process.stderr.write(`page ${type}: ${text}\n`);
}

async function inChromium(folders, query, functions) {
  const server = await serve(folders);
  const browser = await openBrowser({ onConsole });
  for (const [name, work] of Object.entries(functions)) await browser.page.exposeFunction(name, work);
  await browser.page.goto(`${server.url}/page/${query}`);
  return {
    page: browser.page,
    faults: browser.faults,
    url: server.url,
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

async function inFirefox(folders, query) {
  const { page, handle } = remote({ onConsole });
  const server = await serve(folders, { handlers: { "/remote/": handle } });
  const browser = await openFirefox(`${server.url}/page/${query}`, (failure) => page.fail(failure));
  const close = async () => {
    await browser.close();
    await server.close();
  };
  const late = setTimeout(() => page.fail(new Failure(`browser: Firefox has not opened the page in ${START_MS} ms`)), START_MS);
  try {
    await page.evaluate("true");
  } catch (error) {
    await close();
    throw error;
  } finally {
    clearTimeout(late);
  }
  return { page, faults: page.faults, url: server.url, close };
}
