// The package as it is published: its size, its files, and the README's quickstart.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DIST, WASM_LIMIT_BYTES, wasmSizes } from "../../scripts/build.mjs";
import { bundleText } from "../../scripts/lib/bundle.mjs";
import { ROOT } from "../../scripts/lib/proc.mjs";
import { openHarness } from "./harness.mjs";

test(`the wasm is at most ${WASM_LIMIT_BYTES} bytes after wasm-opt and brotli`, async () => {
  const { brotli } = await wasmSizes();
  assert.ok(brotli <= WASM_LIMIT_BYTES, `${brotli} bytes`);
});

test("the tarball holds the package and nothing else", () => {
  const [{ files }] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: ROOT, encoding: "utf8" }));
  const names = files.map(({ path }) => path);
  for (const name of ["www/dist/index.js", "www/dist/index.d.ts", "www/dist/wgslab_bg.wasm", "LICENSE-MIT", "README.md"]) {
    assert.ok(names.includes(name), `${name} is missing`);
  }
  const allowed = /^(www\/dist\/[\w-]+\.(js|js\.map|d\.ts|wasm)|LICENSE-(MIT|APACHE)|README\.md|package\.json)$/;
  assert.deepEqual(names.filter((name) => !allowed.test(name)), []);
});

test("the types name nothing that is not in the package", () => {
  for (const file of readdirSync(DIST).filter((name) => name.endsWith(".d.ts"))) {
    const imports = [...readFileSync(join(DIST, file), "utf8").matchAll(/from "([^"]+)"/g)].map(([, path]) => path);
    assert.deepEqual(imports.filter((path) => !path.startsWith("./")), [], file);
  }
});

const quickstart = readFileSync(join(ROOT, "README.md"), "utf8").match(/^```ts\n([\s\S]*?)^```/m)?.[1];

test("the README's TypeScript quickstart type-checks under strict", () => {
  assert.ok(quickstart, "the README has no ```ts block");
  const folder = join(ROOT, "target/readme");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "quickstart.ts"), quickstart);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", include: ["*.ts"] }));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

test("the README's TypeScript quickstart runs as it stands", async () => {
  const module = await bundleText(quickstart, { packageUrl: "/index.js" });
  const harness = await openHarness();
  try {
    const lines = [];
    harness.page.on("console", (message) => lines.push(message.text()));
    await harness.page.evaluate(async (module) => {
      // Beside the package, so that its import of the package resolves.
      const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
      await import(url);
    }, module.replaceAll('"/index.js"', `"${harness.url}/index.js"`));
    assert.ok(lines.length > 0, "the quickstart printed nothing");
    // What it says it prints (`// prints 4`, `// → 4`), it prints.
    for (const [, promised] of quickstart.matchAll(/\/\/ (?:prints|→) (.+)$/gm)) {
      assert.ok(lines.some((line) => line.includes(promised.trim())), `${promised} is not in ${lines.join(" | ")}`);
    }
    assert.deepEqual(harness.faults, []);
  } finally {
    await harness.close();
  }
});
