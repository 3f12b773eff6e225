// `npm run bench`: what the layer and programs cost in Chromium, beside raw WebGPU and the peers, and natively.

import { writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build, DIST } from "./build.mjs";
import { GROUPS, PEERS, faultsOf, select, selectPeers, tables } from "./lib/bench.mjs";
import { openPage } from "./lib/page.mjs";
import { cli, Failure, isMain, main, must, ROOT, say, timed } from "./lib/proc.mjs";
import { setup } from "./setup.mjs";

const PEER_WASM = join(ROOT, "node_modules/onnxruntime-web/dist");
/** For how long each row of `programs` is timed, about, in seconds. */
const SECONDS = 10;

const USAGE = `Usage: npm run bench [-- FLAGS]

Measures in headless Chromium, in turn with raw WebGPU and with other libraries doing the same, and natively.
Fails where a result is wrong, not where it is slow.
  --rows W,..   only these groups (${GROUPS.join(", ")}),
                or rows of the group programs by a part of their name
  --peers P,..  only these peers (${Object.keys(PEERS).join(", ")}), or none
  --seconds N   time each row of programs for about N seconds; ${SECONDS} if left out
  --tune HOW    let programs be tuned first: quick, or full; off if left out
  --browser     only in the browser
  --native      only natively
  --json        one JSON object on stdout
  --write F     write the tables into the file F as well`;

/** The names of the rows of the group programs. */
function rowNames() {
  return JSON.parse(readFileSync(join(ROOT, "bench/rows.json"), "utf8")).map(({ name }) => name);
}

/** `{ driver, adapter, rows, programs }` of the page. */
async function inBrowser(wanted) {
  const query = `?wanted=${encodeURIComponent(JSON.stringify(wanted))}`;
  const { page, faults, close } = await openPage(join(ROOT, "bench/web"), "main.ts", {
    dist: DIST,
    folders: { "/ort/": PEER_WASM },
    functions: { benchSays: (line) => say(`bench: ${line}`) },
    query,
    splitting: true,
  });
  try {
    await page.waitForFunction(() => globalThis.wgslabBench !== undefined);
    const result = await page.evaluate(() => globalThis.wgslabBench);
    if (faults.length > 0) throw new Failure(`bench: ${faults.join("\n")}`);
    return result;
  } finally {
    await close();
  }
}

/** `{ driver, adapter, rows, programs }` of the Rust example. */
async function natively({ groups, programs, tune, seconds }) {
  const example = ["--release", "--quiet", "--example", "bench"];
  await timed("native: building the example (2 minutes the first time)", () => must("cargo", ["build", ...example]));
  const flags = ["--json", "--rows", groups.join(","), "--programs", programs.join(","), "--seconds", String(seconds), "--tune", tune];
  const { stdout } = await must("cargo", ["run", ...example, "--", ...flags], { inherit: true });
  return JSON.parse(stdout.trim().split("\n").at(-1));
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const { values } = cli(USAGE, {
      rows: { type: "string" },
      peers: { type: "string" },
      tune: { type: "string", default: "off" },
      seconds: { type: "string", default: String(SECONDS) },
      browser: { type: "boolean" },
      native: { type: "boolean" },
      json: { type: "boolean" },
      write: { type: "string" },
    });
    const { groups, rows } = select(values.rows, rowNames());
    const seconds = Number(values.seconds);
    if (!(seconds >= 0)) throw new Failure(`bench: --seconds ${values.seconds} is not a number of seconds`, 2);
    if (!["off", "quick", "full"].includes(values.tune)) throw new Failure(`bench: --tune ${values.tune} is not off, quick or full`, 2);
    const wanted = { groups, programs: rows, peers: selectPeers(values.peers), tune: values.tune, seconds };
    const both = Boolean(values.browser) === Boolean(values.native);
    await setup({ browser: both || values.browser, native: both || values.native });
    const sides = {};
    if (both || values.browser) {
      await build();
      say("bench: measuring in Chromium");
      sides.Chromium = await inBrowser(wanted);
    }
    if (both || values.native) sides.native = await natively(wanted);

    const text = Object.entries(sides).map(([side, result]) => tables(side, result)).join("\n\n");
    process.stdout.write(values.json ? `${JSON.stringify(sides)}\n` : `${text}\n`);
    if (values.write) {
      const body = `# Benchmarks\n\nWritten by \`npm run bench -- --write ${values.write}\`.\n\n\`\`\`text\n${text}\n\`\`\`\n`;
      await writeFile(resolve(values.write), body);
    }
    const faults = Object.entries(sides).flatMap(([side, result]) => faultsOf(result).map((fault) => `${side}: ${fault}`));
    if (faults.length > 0) throw new Failure(`bench: wrong results\n${faults.join("\n")}`);
  });
}
