// A page of this project, other than the site, in headless Chromium: its TypeScript bundled, the built package beside it.

import { cp, mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { bundle } from "./bundle.mjs";
import { ROOT } from "./proc.mjs";
import { serve } from "./serve.mjs";

/**
 * Bundles `folder`/`entry`, serves it with `folder`/index.html under `/page/`, the built package under `/` and `folders`
 * under their prefixes, and opens it.
 *
 * @param {string} folder
 * @param {string} entry
 * @param {{ dist: string, folders?: Record<string, string>, query?: string }} options
 */
export async function openPage(folder, entry, { dist, folders = {}, query = "" }) {
  const out = join(ROOT, "target/pages", basename(folder));
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await bundle([join(folder, entry)], out, { packageUrl: "/index.js" });
  await cp(join(folder, "index.html"), join(out, "index.html"));
  const server = await serve({ "/": dist, "/page/": out, ...folders });
  const browser = await openBrowser({
    onConsole: (text, type) => {
      // The browser warns about each kernel that a test means to be wrong; our own warnings are about ourselves.
      if (type === "error" || text.startsWith("wgslab:")) process.stderr.write(`page ${type}: ${text}\n`);
    },
  });
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
