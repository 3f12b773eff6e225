// `npm start`: from a fresh clone to a classifier trained in a browser and natively, side by side.
//
// Sets up what is missing, builds, trains in headless Chromium and natively, one after the other (each alone on the
// machine, so that their speeds compare), and prints both results. Exit code 0 only if both learned and agree.

import { build, DIST } from "./build.mjs";
import { openBrowser } from "./lib/browser.mjs";
import { cli, Failure, isMain, main, must, run, say, timed } from "./lib/proc.mjs";
import { agreement, MIN_ACCURACY, table } from "./lib/results.mjs";
import { serve } from "./lib/serve.mjs";
import { setup } from "./setup.mjs";

// Software adapters on two busy cores take under a minute; ten times that is a hang.
const PAGE_TIMEOUT_MS = 600_000;

const USAGE = `Usage: npm start [-- FLAGS]

Trains a digit classifier on slab-pooled WebGPU memory, in headless Chromium (on its software adapter, so that every
machine can) and natively, and compares the two. Where there is no GPU adapter, a side runs on the host driver, the
CPU, and says so.
  --open       serve the page for a person, print its address, and stay
  --browser    only in the browser
  --native     only natively
  --port N     serve on this port (default: any free one)
  --json       one JSON object on stdout, everything else on stderr (say "npm start --silent -- --json": npm prints a banner)
  -h, --help   this text

Exit code: 0 when every side reaches ${MIN_ACCURACY} accuracy and the sides agree; 1 when not; 2 for a wrong flag.`;

/** Trains in the page; its progress lines go to stderr. */
export function trainInBrowser(options) {
  return runInPage("1", "wgslabResult", options);
}

/** Trains on two devices in the page. */
export function trainOnTwoInBrowser(options) {
  return runInPage("two", "wgslabTwoDevices", options);
}

/**
 * What the page does by itself with `?auto=`, and says in that global promise. `args` are the browser's flags, if not the usual
 * ones; `host` is the name that the page's address has.
 */
async function runInPage(auto, global, { port = 0, args, host = "127.0.0.1" } = {}) {
  const server = await serve({ "/": DIST }, { port, home: "/site/" });
  const browser = await openBrowser({
    ...(args && { args }),
    onConsole: (text, type) => {
      if (text.startsWith("progress ")) progress(JSON.parse(text.slice("progress ".length)));
      else if (text.startsWith("notice ")) say(`browser: ${text.slice("notice ".length)}`);
      else if (type === "error") say(`browser: console: ${text}`);
    },
  }).catch(async (error) => {
    await server.close();
    throw error;
  });
  try {
    const address = new URL(`/site/?auto=${auto}`, server.url);
    address.hostname = host;
    await browser.page.goto(address.href);
    const result = await pageResult(browser, global);
    if (result?.error) throw new Failure(`browser: ${result.error.message ?? result.error}`);
    return result;
  } finally {
    await browser.close();
    await server.close();
  }
}

/** Training in one line: written over itself on a terminal, a line each elsewhere. */
function progress({ step, steps, loss }) {
  const line = `browser: step ${step + 1} of ${steps}, loss ${loss.toFixed(4)}`;
  if (!process.stderr.isTTY) return say(line);
  process.stderr.write(`\r${line}${step + 1 === steps ? "\n" : ""}`);
}

/** A global promise of the page once it has set it; a fault of the page ends the wait at once. */
async function pageResult({ page, faults }, global) {
  const ready = page.waitForFunction((name) => window[name] !== undefined, global, { timeout: PAGE_TIMEOUT_MS });
  const fault = new Promise((_, reject) => {
    const fail = () => reject(new Failure(`browser: ${faults.join("\n") || "the page ended"}`));
    page.on("pageerror", fail);
    page.on("crash", fail);
    if (faults.length > 0) fail();
  });
  fault.catch(() => {});
  try {
    await Promise.race([ready, fault]);
    return await Promise.race([page.evaluate((name) => window[name], global), fault]);
  } catch (error) {
    if (error instanceof Failure) throw error;
    const late = error.name === "TimeoutError";
    throw new Failure(`browser: ${late ? `no result after ${PAGE_TIMEOUT_MS / 1000} s` : error.message}`);
  }
}

/** Trains natively; the progress bar of the example is its own. */
export function trainNatively() {
  return runExample("digits");
}

/** Trains on two devices natively. */
export function trainOnTwoNatively(...flags) {
  return runExample("two_devices", ...flags);
}

async function runExample(name, ...flags) {
  const example = ["--release", "--quiet", "--example", name];
  await timed("native: building the example (2 minutes the first time)", () => must("cargo", ["build", ...example]));
  const args = ["run", ...example, "--", "--json", ...flags];
  const { code, stdout } = await run("cargo", args, { inherit: true });
  if (code !== 0) throw new Failure(`native: \`cargo ${args.join(" ")}\` ended with exit code ${code}`);
  const line = stdout.trim().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line);
  } catch {
    throw new Failure(`native: the last line of the example is no JSON: ${line.slice(0, 200)}`);
  }
}

async function open(port) {
  await setup({ native: false, browser: true });
  await build();
  const server = await serve({ "/": DIST }, { port, home: "/site/" });
  process.stdout.write(`wgslab is at ${server.url}/site/ (Ctrl+C ends it)\n`);
  await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
  await server.close();
}

/** One side's outcome: its result, or its error as a word; the other side still runs. */
async function attempt(train) {
  try {
    return await train();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(error.message);
    return { error: error.message };
  }
}

async function start({ browser, native, port, json }) {
  await setup({ browser, native: native && "if possible" });
  if (browser) await build();
  const sides = {};
  if (browser) sides.browser = await attempt(() => trainInBrowser({ port }));
  if (native) sides.native = await attempt(trainNatively);

  const verdict = agreement(sides);
  if (json) process.stdout.write(`${JSON.stringify({ ...sides, ...verdict })}\n`);
  else process.stdout.write(`\n${table(sides, verdict)}\n`);
  if (!verdict.ok) process.exitCode = 1;
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const { values } = cli(USAGE, {
      open: { type: "boolean" },
      browser: { type: "boolean" },
      native: { type: "boolean" },
      port: { type: "string", default: "0" },
      json: { type: "boolean" },
    });
    const port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65535) {
      throw new Failure(`--port ${values.port}: a number from 0 to 65535 is needed\n\n${USAGE}`, 2);
    }
    if (values.open && (values.native || values.json)) {
      throw new Failure(`--open serves the page and takes neither --native nor --json\n\n${USAGE}`, 2);
    }
    if (values.open) return open(port);
    const both = Boolean(values.browser) === Boolean(values.native);
    return start({
      browser: both || Boolean(values.browser),
      native: both || Boolean(values.native),
      port,
      json: values.json,
    });
  });
}
