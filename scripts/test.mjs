// `npm test`: every check of the project, in order, ending with one line `N passed, N failed`.
//
// Each stage is one command. A test stage counts the tests that it reports; a lint stage counts as one. A stage that
// cannot run, runs no test or skips one counts as a failure, so that nothing is green by not having happened.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { build } from "./build.mjs";
import { cli, Failure, isMain, main, ROOT, run, say, seconds } from "./lib/proc.mjs";
import { lint, parseCargo, parseNode, verdict } from "./lib/counts.mjs";
import { chrome, chromedriver, wasmBindgen } from "./lib/tools.mjs";
import { setup } from "./setup.mjs";

const WASM = ["--target", "wasm32-unknown-unknown"];
const DENY = ["--", "-D", "warnings"];

// The crate as a release has it, beside dependencies as the other tests have them, which are built already.
const OPTIMISED = ["opt-level=3", "codegen-units=16", "debug-assertions=false", "overflow-checks=false"].flatMap(
  (setting) => ["--config", `profile.dev.package.wgslab.${setting}`],
);

// A cold build of the tests on two cores takes some minutes; a stage that takes this long hangs.
const STAGE_TIMEOUT_MS = 30 * 60_000;

/** Stages in order; `web` needs the built package, `driver` the WebDriver tools, `firefox` that browser. */
const STAGES = {
  fmt: { command: ["cargo", "fmt", "--check"], count: lint },
  clippy: { command: ["cargo", "clippy", "--quiet", "--all-targets", ...DENY], count: lint },
  "clippy-wasm": { command: ["cargo", "clippy", "--quiet", "--lib", ...WASM, ...DENY], count: lint, wasm: true },
  "clippy-plain": {
    command: ["cargo", "clippy", "--quiet", "--lib", ...WASM, "--no-default-features", ...DENY],
    count: lint,
    wasm: true,
  },
  doc: { command: ["cargo", "doc", "--quiet", "--no-deps"], env: { RUSTDOCFLAGS: "-D warnings" }, count: lint },
  types: { command: [process.execPath, "node_modules/typescript/bin/tsc", "--noEmit"], count: lint, web: true },
  examples: { command: ["cargo", "build", "--quiet", "--examples"], count: lint },
  native: { command: ["cargo", "test", "--no-fail-fast"], count: parseCargo },
  // What an optimiser may get wrong, on other random programs than those of every run.
  optimised: {
    command: ["cargo", ...OPTIMISED, "test", "--test", "native", "--", "cases::", "fuzz::", "notation_docs::"],
    env: { CARGO_INCREMENTAL: "0", WGSLAB_SEED: "10000", WGSLAB_PROGRAM_FUZZ: "60" },
    count: parseCargo,
  },
  wasm: { command: wasmPack, count: parseCargo, wasm: true, driver: true },
  scripts: { command: () => nodeTests("tests/scripts"), count: parseNode },
  e2e: { command: () => nodeTests("tests/e2e"), count: parseNode, web: true },
  firefox: { command: () => nodeTests("tests/firefox"), count: parseNode, web: true, firefox: true },
};

const USAGE = `Usage: npm test [-- --only STAGE,...]

Runs every check and ends with \`N passed, N failed\`.
  --only   these stages alone: ${Object.keys(STAGES).join(", ")}`;

/** The tests that run as wasm in the browser; webdriver.json with this machine's browser in it. */
async function wasmPack() {
  const config = JSON.parse(readFileSync(join(ROOT, "webdriver.json"), "utf8"));
  config["goog:chromeOptions"].binary = chrome();
  const file = join(ROOT, "target", "webdriver.json");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(config));
  const flags = ["--headless", "--chrome", "--mode", "no-install", "--chromedriver", chromedriver()];
  return {
    command: ["wasm-pack", "test", ...flags, "--", "--test", "web"],
    env: {
      PATH: [dirname(await wasmBindgen()), process.env.PATH].join(delimiter),
      WASM_BINDGEN_TEST_WEBDRIVER_JSON: file,
      WASM_BINDGEN_TEST_TIMEOUT: "300",
    },
  };
}

/** One file at a time: each starts a browser of its own. */
function nodeTests(folder) {
  const files = readdirSync(join(ROOT, folder)).filter((file) => file.endsWith(".test.mjs"));
  if (files.length === 0) throw new Failure(`${folder} has no *.test.mjs`);
  const paths = files.sort().map((file) => join(folder, file));
  return {
    command: [process.execPath, "--test", "--test-concurrency=1", "--test-reporter=spec", ...paths],
  };
}

async function runStage(name, stage) {
  const start = performance.now();
  say(`${name} ...`);
  let counts;
  let output = "";
  try {
    const { command, env = {} } = typeof stage.command === "function" ? await stage.command() : stage;
    const signal = AbortSignal.timeout(STAGE_TIMEOUT_MS);
    const shown = (line) => {
      if (/^\s+Running |^test result: |FAILED$/.test(line)) say(`  ${line.trim()}`);
    };
    const outcome = await run(command[0], command.slice(1), { env: { ...env, CARGO_TERM_COLOR: "never" }, lines: shown, signal });
    output = outcome.output;
    counts = verdict(stage.count(outcome), outcome.code);
  } catch (error) {
    output = error instanceof Failure ? error.message : error.stack;
    counts = { passed: 0, failed: 1 };
  }
  if (counts.failed > 0) say(output.trimEnd());
  if (counts.note) say(`${name}: ${counts.note}`);
  say(`${name}: ${counts.passed} passed, ${counts.failed} failed (${seconds(start)})`);
  return counts;
}

async function test(names) {
  const stages = names.map((name) => STAGES[name]);
  const total = { passed: 0, failed: 0 };
  const web = stages.some((stage) => stage.web);
  const driver = stages.some((stage) => stage.driver);
  try {
    await setup({
      browser: web || stages.some((stage) => stage.wasm),
      native: names.includes("native") || names.includes("optimised"),
      tests: driver,
      firefox: stages.some((stage) => stage.firefox),
    });
    if (web) await build();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // The stages still run: those that need nothing of it say what else is wrong.
    say(error.message);
    total.failed += 1;
  }
  const failures = [];
  for (const [index, stage] of stages.entries()) {
    const counts = await runStage(names[index], stage);
    total.passed += counts.passed;
    total.failed += counts.failed;
    if (counts.failed > 0) failures.push(names[index]);
  }
  if (failures.length > 0) say(`failed: ${failures.join(", ")}`);
  process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`);
  if (total.failed > 0) process.exitCode = 1;
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const { values } = cli(USAGE, { only: { type: "string" } });
    const names = values.only?.split(",") ?? Object.keys(STAGES);
    const unknown = names.filter((name) => !(name in STAGES));
    if (unknown.length > 0) throw new Failure(`no stage ${unknown.join(", ")}\n\n${USAGE}`, 2);
    await test(names);
  });
}
