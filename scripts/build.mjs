// Builds the npm package and the site into www/dist: crate → wasm → www/pkg → bundle, types and page.
//
//   npm run build
//
// What is up to date is skipped: cargo knows for the crate, a hash of its output decides about the rest of the wasm
// chain, and the TypeScript side takes less than a second.

import { createHash } from "node:crypto";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { bundle } from "./lib/bundle.mjs";
import { nameByLikeness } from "./lib/function-order.mjs";
import { cli, Failure, isMain, main, must, ROOT, run, say, seconds } from "./lib/proc.mjs";
import { SHORT_NAMES, shortenGlue } from "./lib/short-names.mjs";
import { lockedVersion, wasmBindgen } from "./lib/tools.mjs";
import { setup } from "./setup.mjs";

const PKG = join(ROOT, "www/pkg");
const SIZES = join(PKG, "sizes.json");
const SITE = join(ROOT, "www/site");

/** Where the built package is; `www/dist/site` is the page. */
export const DIST = join(ROOT, "www/dist");

/** The limit on the wasm of the web build, after wasm-opt and brotli; a test holds it (docs/decisions/0005-web-build-size.md). */
export const WASM_LIMIT_BYTES = 150 * 1024;

// The standard library is built with the crate, for size, and a panic is one instruction: 7 % less after brotli
// (docs/decisions/0005-web-build-size.md). A page loses nothing, for a panic's text had nowhere to go.
const OWN_STD = ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];
const OWN_STD_FLAGS = ["-Zunstable-options", "-Cpanic=immediate-abort", "-Zlocation-detail=none"];
// LLVM's loop strength reduction gives loops a counter for each address that they take: 1.3 % of the whole.
const NO_MORE_COUNTERS = "-Cllvm-args=-disable-lsr";

// Passes in order, then everything that rustc and wasm-bindgen emit for this target and browsers with WebGPU run.
// Blocks made anew (rereloop) are 0.5 % less after brotli, once more 0.2 %. The low memory is the end of the stack, at which the
// module ends anyway: that no address is in it lets sums of addresses go into loads and stores, 0.7 % less.
const WASM_OPT = [
  "--low-memory-unused",
  "-Oz",
  "--flatten",
  "--rereloop",
  "-Oz",
  "--gufa-optimizing",
  "-Oz",
  "--flatten",
  "--rereloop",
  "-Oz",
  "--gufa-optimizing",
  "-Oz",
  "--strip-debug",
  "--strip-producers",
  SHORT_NAMES,
];
// The levels alone run no pass; with them, what is written stays as compact as the passes above left it. How far an address is
// aligned is a hint that engines leave alone: without it, equal loads are equal bytes, 0.2 % less.
const BY_LIKENESS = ["--dealign", "--reorder-functions-by-name", "--strip-debug", "--optimize-level=2", "--shrink-level=2"];
const FEATURES = [
  "--enable-bulk-memory",
  "--enable-bulk-memory-opt",
  "--enable-call-indirect-overlong",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
  "--enable-extended-const",
];

/** Builds everything; `www/dist` then holds the package and the site. */
export async function build() {
  const start = performance.now();
  await crateToWasm();
  const fresh = await wasmToPkg();
  await library();
  await site();
  const sizes = JSON.parse(await readFile(SIZES, "utf8"));
  say(`build: ${describe(sizes)} (${fresh ? seconds(start) : `up to date, ${seconds(start)}`})`);
  return sizes;
}

/** The bytes of the built wasm: raw, gzip, brotli. */
export async function wasmSizes() {
  const wasm = await readFile(join(PKG, "wgslab_bg.wasm"));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: wasm.length };
  return {
    raw: wasm.length,
    gzip: gzipSync(wasm, { level: 9 }).length,
    brotli: brotliCompressSync(wasm, { params }).length,
  };
}

function describe({ raw, gzip, brotli }) {
  const kb = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;
  return `wasm ${kb(raw)}, gzip ${kb(gzip)}, brotli ${kb(brotli)} of at most ${kb(WASM_LIMIT_BYTES)}`;
}

/** The caller's flags and ours; paths of this machine stay out of the wasm, so that the same sources give the same bytes. */
function rustFlags() {
  const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const given = process.env.CARGO_ENCODED_RUSTFLAGS?.split("\x1f") ?? process.env.RUSTFLAGS?.split(/\s+/) ?? [];
  const paths = [`--remap-path-prefix=${cargo}=cargo`, `--remap-path-prefix=${ROOT}=wgslab`];
  return [...given.filter(Boolean), ...OWN_STD_FLAGS, NO_MORE_COUNTERS, ...paths];
}

async function crateToWasm() {
  // The cdylib alone: where the rlib is made with it, cargo leaves the crate itself out of link-time optimization.
  const what = ["--lib", "--crate-type", "cdylib", "--no-default-features", "--features", "npm,notation"];
  const args = ["rustc", ...what, "--target", "wasm32-unknown-unknown", "--profile", "web", ...OWN_STD];
  const check = await run("cargo", [...args, "--color", "never"], {
    // What a stable compiler keeps for the standard library's own build is what we ask of it.
    env: { CARGO_ENCODED_RUSTFLAGS: rustFlags().join("\x1f"), RUSTC_BOOTSTRAP: "1" },
    lines: (line) => {
      if (/^\s+Compiling wgslab/.test(line) || line.startsWith("error")) say(`build: ${line.trim()}`);
    },
  });
  if (check.code !== 0) throw new Failure(`cargo ${args.join(" ")}\n${check.output.trimEnd()}`);
}

/** Where cargo puts what it builds: its configuration and the environment may say so. */
async function targetFolder() {
  const { stdout } = await must("cargo", ["metadata", "--format-version", "1", "--no-deps", "--offline"]);
  return JSON.parse(stdout).target_directory;
}

/** Runs wasm-bindgen and wasm-opt; false when their input is what it was. */
async function wasmToPkg() {
  const cliPath = await wasmBindgen();
  if (!cliPath) throw new Failure("build: no wasm-bindgen of the crate's version; run `node scripts/setup.mjs`");
  const wasm = join(PKG, "wgslab_bg.wasm");
  const crateWasm = join(await targetFolder(), "wasm32-unknown-unknown/web/wgslab.wasm");
  const stampFile = join(PKG, "stamp");
  const binaryen = JSON.parse(await readFile(join(ROOT, "node_modules/binaryen/package.json"), "utf8")).version;
  const stamp = createHash("sha256")
    .update(await readFile(crateWasm))
    .update(JSON.stringify([lockedVersion("wasm-bindgen"), binaryen, WASM_OPT, BY_LIKENESS, FEATURES]))
    .digest("hex");
  if (existsSync(stampFile) && (await readFile(stampFile, "utf8")) === stamp) return false;

  await rm(PKG, { recursive: true, force: true });
  await must(cliPath, [crateWasm, "--target", "web", "--typescript", "--out-dir", PKG, "--out-name", "wgslab"]);
  const optimize = (passes) =>
    must(process.execPath, [join(ROOT, "node_modules/binaryen/bin/wasm-opt"), ...passes, ...FEATURES, wasm, "-o", wasm]);
  const { stdout } = await optimize(WASM_OPT);
  await writeFile(wasm, nameByLikeness(await readFile(wasm)));
  await optimize(BY_LIKENESS);
  const glue = join(PKG, "wgslab.js");
  await writeFile(glue, shortenGlue(await readFile(glue, "utf8"), stdout));
  await writeFile(SIZES, JSON.stringify(await wasmSizes()));
  await writeFile(stampFile, stamp);
  return true;
}

/** The entry points over one module of www/lib and the glue, the types, and the wasm found by `import.meta.url`. */
async function library() {
  const entries = ["index.ts", "low-level.ts"].map((file) => join(ROOT, "www/lib", file));
  for (const entry of entries) if (!existsSync(entry)) throw new Failure(`build: ${entry} is missing`);
  await rm(DIST, { recursive: true, force: true });
  await mkdir(DIST, { recursive: true });
  await bundle(entries, DIST, { splitting: true, keepNames: true });
  await cp(join(PKG, "wgslab_bg.wasm"), join(DIST, "wgslab_bg.wasm"));
  await must(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"]);
}

/** The page: its bundle, its other files as they are, and the data set. */
async function site() {
  const entry = join(SITE, "main.ts");
  if (!existsSync(entry)) throw new Failure(`build: ${entry} is missing`);
  const out = join(DIST, "site");
  await cp(SITE, out, { recursive: true, filter: (path) => !path.endsWith(".ts") });
  await bundle([entry], out, { packageUrl: "../index.js" });
  await cp(join(ROOT, "data/digits.csv.gz"), join(out, "digits.csv.gz"));
}

if (isMain(import.meta.url)) {
  await main(async () => {
    cli("Usage: npm run build\n\nBuilds the npm package and the site into www/dist.", {});
    await setup({ native: false });
    await build();
  });
}
