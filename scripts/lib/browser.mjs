// Headless Chromium with WebGPU. Its flags are those of webdriver.json, which `wasm-pack test` reads too: one place.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure, ROOT } from "./proc.mjs";
import { chrome } from "./tools.mjs";

/** The Chrome arguments of webdriver.json. */
export function chromeFlags() {
  const capabilities = JSON.parse(readFileSync(join(ROOT, "webdriver.json"), "utf8"));
  return capabilities["goog:chromeOptions"].args;
}

/**
 * Starts the browser with one page. What goes wrong in the page outside of a promise that someone awaits (uncaught
 * errors, unhandled rejections, a crash) is collected in `faults`; `onConsole` sees each line of the page's console;
 * `args` are the browser's flags.
 *
 * @param {{ onConsole?: (text: string, type: string) => void, args?: string[] }} [options]
 * @returns {Promise<{ page: import("playwright-core").Page, browser: import("playwright-core").Browser, faults: string[], close(): Promise<void> }>}
 */
export async function openBrowser({ onConsole, args = chromeFlags() } = {}) {
  const executablePath = chrome();
  if (!executablePath) throw new Failure("browser: no Chromium found; run `node scripts/setup.mjs` or set CHROME");
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({ executablePath, args });
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  page.on("crash", () => faults.push("the page crashed"));
  if (onConsole) page.on("console", (message) => onConsole(message.text(), message.type()));
  return { page, browser, faults, close: () => browser.close() };
}
