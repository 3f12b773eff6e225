// `npm run bench`: what recording, upload and readback cost in Chromium, beside raw WebGPU, and natively.

import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, DIST } from "./build.mjs";
import { openPage } from "./lib/page.mjs";
import { cli, Failure, isMain, main, must, ROOT, say, timed } from "./lib/proc.mjs";
import { align } from "./lib/results.mjs";
import { setup } from "./setup.mjs";

const GROUPS = ["record", "upload", "readback", "link", "control"];

const USAGE = `Usage: npm run bench [-- FLAGS]

Measures in headless Chromium, in turn with raw WebGPU doing the same, and natively.
  --rows       only these groups: ${GROUPS.join(", ")}
  --browser    only in the browser
  --native     only natively
  --json       one JSON object on stdout
  --write F    write the tables into the file F as well`;

/** `{ driver, adapter, rows }` of the page. */
async function inBrowser(groups) {
  const query = `?rows=${groups.join(",")}`;
  const { page, faults, close } = await openPage(join(ROOT, "bench/web"), "main.ts", { dist: DIST, query });
  try {
    await page.waitForFunction(() => globalThis.wgslabBench !== undefined);
    const result = await page.evaluate(() => globalThis.wgslabBench);
    if (faults.length > 0) throw new Failure(`bench: ${faults.join("\n")}`);
    return result;
  } finally {
    await close();
  }
}

/** `{ driver, adapter, rows }` of the Rust example. */
async function natively(groups) {
  const example = ["--release", "--quiet", "--example", "bench"];
  await timed("native: building the example (2 minutes the first time)", () => must("cargo", ["build", ...example]));
  const { stdout } = await must("cargo", ["run", ...example, "--", "--json", "--rows", groups.join(",")], { inherit: true });
  return JSON.parse(stdout.trim().split("\n").at(-1));
}

function table(side, { adapter, rows }) {
  const name = typeof adapter === "string" ? adapter : [adapter.name, adapter.backend].filter(Boolean).join(", ");
  const cell = (part, unit) => {
    if (!part) return "";
    const digits = (value) => value.toPrecision(3);
    return `${digits(part.median)} ${unit} (${digits(part.low)} to ${digits(part.high)})`;
  };
  const lines = align([
    ["", "wgslab", "raw", "ratio", ""],
    ...rows.map((row) => [row.name, cell(row.wgslab, row.unit), cell(row.raw, row.unit), row.ratio?.toFixed(2), row.note]),
  ]);
  return [`${side}: ${name}. Median (quartiles).`, "", ...lines].join("\n");
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const { values } = cli(USAGE, {
      rows: { type: "string", default: GROUPS.join(",") },
      browser: { type: "boolean" },
      native: { type: "boolean" },
      json: { type: "boolean" },
      write: { type: "string" },
    });
    const groups = values.rows.split(",");
    const unknown = groups.filter((group) => !GROUPS.includes(group));
    if (unknown.length > 0) throw new Failure(`no rows ${unknown.join(", ")}\n\n${USAGE}`, 2);
    const both = Boolean(values.browser) === Boolean(values.native);
    await setup({ browser: both || values.browser, native: both || values.native });
    const sides = {};
    if (both || values.browser) {
      await build();
      say("bench: measuring in Chromium");
      sides.Chromium = await inBrowser(groups);
    }
    if (both || values.native) sides.native = await natively(groups);

    const text = Object.entries(sides).map(([side, result]) => table(side, result)).join("\n\n");
    process.stdout.write(values.json ? `${JSON.stringify(sides)}\n` : `${text}\n`);
    if (values.write) {
      const body = `# Benchmarks\n\nWritten by \`npm run bench -- --write ${values.write}\`.\n\n\`\`\`text\n${text}\n\`\`\`\n`;
      await writeFile(resolve(values.write), body);
    }
  });
}
