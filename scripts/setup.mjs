// Makes sure of every tool that the other scripts use, and says what it installs; silent when nothing is missing.
//
//   node scripts/setup.mjs [--tests] [--firefox] [--no-browser] [--no-native]
//
// Debian packages are installed only as root on a machine with apt-get; elsewhere the exact command is printed and
// the script ends. Node built-ins only: node_modules may not exist yet.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cli, Failure, isMain, main, must, ROOT, say, timed } from "./lib/proc.mjs";
import { chrome, chromedriver, firefox as firefoxPath, hasVulkan, lockedVersion, toolsFolder, wasmBindgen, which } from "./lib/tools.mjs";

const WASM_TARGET = "wasm32-unknown-unknown";

const VULKAN = ["mesa-vulkan-drivers", "libvulkan1"];
const NO_VULKAN = "setup: no Vulkan driver: what runs natively falls to the host driver, on the CPU";

const USAGE = `Usage: node scripts/setup.mjs [--tests] [--firefox] [--no-browser] [--no-native]

Installs what is missing to build and run wgslab.
  --tests       also what only \`npm test\` needs (wasm-pack, chromium-driver)
  --firefox     also Firefox, in which the shared cases run
  --no-browser  without the browser and the web build's tools
  --no-native   without the native Vulkan driver`;

/**
 * @param {{ browser?: boolean, web?: boolean, firefox?: boolean, native?: boolean | "if possible", tests?: boolean }} needs
 *   `browser` is Chromium, `web` the tools of the web build, `native` a Vulkan driver
 */
export async function setup({ browser = true, web = browser, firefox = false, native = true, tests = false } = {}) {
  needsCargo();
  if (!nodeModulesAreCurrent()) {
    await timed("setup: installing node_modules (npm ci, some seconds)", () =>
      must("npm", ["ci", "--ignore-scripts", "--no-fund", "--no-audit"]),
    );
  }
  await debianPackages({ browser, firefox, native, tests });
  if (web) await rustTarget();
  if (web) await wasmBindgenCli();
  if (tests) await wasmPack();
}

function needsCargo() {
  if (which("cargo")) return;
  throw new Failure("setup: cargo is not on PATH; install Rust from https://rustup.rs and start a new shell");
}

/** npm writes what it installed next to it; the lock file being no newer in content means nothing to do. */
function nodeModulesAreCurrent() {
  const installed = join(ROOT, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const have = JSON.parse(readFileSync(installed, "utf8")).packages;
  const want = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
  return Object.entries(want).every(
    ([path, { version, optional }]) => path === "" || optional || have[path]?.version === version,
  );
}

async function debianPackages({ browser, firefox, native, tests }) {
  const missing = [];
  if (browser && !chrome()) missing.push("chromium");
  if (tests && !chromedriver()) missing.push("chromium-driver");
  if (firefox && !firefoxPath()) missing.push("firefox-esr");
  // Firefox uses the Vulkan driver of the machine; Chromium brings one.
  const needsVulkan = (native || firefox) && !hasVulkan();
  const isWish = needsVulkan && native === "if possible" && !firefox;
  if (needsVulkan && !isWish) missing.push(...VULKAN);
  await install(planned(missing, isWish ? VULKAN : [], { hasApt: Boolean(which("apt-get")), isRoot: process.getuid?.() === 0 }));
}

/**
 * What to install of the missing packages and of those that would be good to have, and what to say about the others. A
 * missing package that cannot be installed is a `Failure`.
 *
 * @param {string[]} missing
 * @param {string[]} wished
 * @param {{ hasApt: boolean, isRoot: boolean }} machine
 * @returns {{ packages: string[], wished: string[], notice?: string }}
 */
export function planned(missing, wished, { hasApt, isRoot }) {
  const command = (packages) => `apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  if (hasApt && isRoot) return { packages: missing, wished };
  if (missing.length > 0 && !hasApt) {
    throw new Failure(
      `setup: missing ${missing.join(", ")}. On Debian or Ubuntu: ${command(missing)}\n` +
        "Elsewhere install Chrome or Chromium (and for the tests chromedriver and Firefox) and a Vulkan driver; " +
        "CHROME, CHROMEDRIVER and FIREFOX name executables that are not on PATH.",
    );
  }
  if (missing.length > 0) {
    throw new Failure(`setup: missing ${missing.join(", ")}. Run this and try again:\n  sudo sh -c '${command(missing)}'`);
  }
  if (wished.length === 0) return { packages: [], wished: [] };
  const how = hasApt ? `sudo sh -c '${command(wished)}'` : `a Vulkan driver (on Debian or Ubuntu ${wished.join(" and ")})`;
  return { packages: [], wished: [], notice: `${NO_VULKAN}; for a GPU adapter install ${how}` };
}

/** Installs what was planned; what was only wished for may fail, and a line says so. */
export async function install({ packages, wished, notice }) {
  if (notice) say(notice);
  if (packages.length > 0) await aptGet(packages);
  if (wished.length === 0) return;
  try {
    await aptGet(wished);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const [why] = error.message.trim().split("\n").slice(-1);
    say(`${NO_VULKAN}; installing ${wished.join(" and ")} failed: ${why}`);
  }
}

async function aptGet(packages) {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  await timed(`setup: installing Debian packages ${packages.join(", ")} (apt-get, 1 to 3 minutes)`, async () => {
    await must("apt-get", ["update"], { env });
    await must("apt-get", ["install", "-y", "--no-install-recommends", ...packages], { env });
  });
}

/** The target that tests are built for, and the source of the standard library, which the web build compiles itself. */
async function rustTarget() {
  const { stdout } = await must("rustc", ["--print", "target-libdir", "--target", WASM_TARGET]);
  if (!existsSync(stdout.trim())) await rustup(`the Rust target ${WASM_TARGET}`, ["target", "add", WASM_TARGET]);
  const sysroot = (await must("rustc", ["--print", "sysroot"])).stdout.trim();
  const hasSource = existsSync(join(sysroot, "lib/rustlib/src/rust/library/Cargo.lock"));
  if (!hasSource) await rustup("the source of Rust's standard library", ["component", "add", "rust-src"]);
}

async function rustup(what, args) {
  if (!which("rustup")) throw new Failure(`setup: ${what} is missing, and there is no rustup to add it; install it`);
  await timed(`setup: adding ${what} (seconds)`, () => must("rustup", args));
}

async function wasmBindgenCli() {
  if (await wasmBindgen()) return;
  const version = lockedVersion("wasm-bindgen");
  const args = ["wasm-bindgen-cli", "--version", version, "--root", toolsFolder("wasm-bindgen", version)];
  // Not `--locked`: the lock file of the tool names a dependency that registries may lack.
  await cargoInstall(args, "2 to 6 minutes on 2 cores");
}

async function wasmPack() {
  if (which("wasm-pack")) return;
  await cargoInstall(["wasm-pack", "--locked"], "2 to 5 minutes on 2 cores");
  if (!which("wasm-pack")) throw new Failure("setup: add the folder that cargo installs into (~/.cargo/bin) to PATH");
}

async function cargoInstall(args, time) {
  await timed(`setup: cargo install ${args[0]} (${time})`, () => must("cargo", ["install", ...args, "--debug"]));
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const { values } = cli(USAGE, {
      tests: { type: "boolean" },
      firefox: { type: "boolean" },
      "no-browser": { type: "boolean" },
      "no-native": { type: "boolean" },
    });
    const { tests = false, firefox = false } = values;
    await setup({ browser: !values["no-browser"], native: !values["no-native"], tests, firefox });
  });
}
