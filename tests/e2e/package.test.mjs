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
  const entries = ["index.js", "index.d.ts", "low-level.js", "low-level.d.ts", "wgslab_bg.wasm"];
  for (const name of [...entries.map((file) => `www/dist/${file}`), "LICENSE-MIT", "README.md"]) {
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

// Every program of the README, by its order.
const programs = [...readFileSync(join(ROOT, "README.md"), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text]) => text);

test("the README has its TypeScript programs", () => assert.equal(programs.length, 3));

for (const [index, program] of programs.entries()) {
  test(`the README's TypeScript program ${index} type-checks under strict`, () => {
    const folder = join(ROOT, `target/readme/${index}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "program.ts"), program);
    const compilerOptions = { noUncheckedIndexedAccess: false };
    const config = { extends: "../../../tsconfig.json", compilerOptions, include: ["*.ts"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });

  test(`the README's TypeScript program ${index} runs as it stands`, async () => {
    const module = await bundleText(program, { packageUrl: "/index.js" });
    const harness = await openHarness();
    try {
      const lines = [];
      harness.page.on("console", (message) => lines.push(message.text()));
      await harness.page.evaluate(async (module) => {
        // Beside the package, so that its import of the package resolves.
        const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
        await import(url);
      }, module.replaceAll(/"(\/[\w-]+\.js)"/g, `"${harness.url}$1"`));
      // What it says it prints (`// prints 4`, `// → 4`), it prints.
      const promises = [...program.matchAll(/\/\/ (?:prints|→) (.+)$/gm)].map(([, promised]) => promised.trim());
      assert.ok(promises.length > 0, "the program says nothing of what it prints");
      for (const promised of promises) assert.ok(lines.includes(promised), `${promised} is not in ${lines.join(" | ")}`);
      assert.deepEqual(harness.faults, []);
    } finally {
      await harness.close();
    }
  });
}
