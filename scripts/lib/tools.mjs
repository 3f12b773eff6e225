// What the project needs around it and where it is on this machine: paths, versions, and nothing installed here.
// Node built-ins only (see proc.mjs).

import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { Failure, ROOT, run } from "./proc.mjs";

/** The absolute path of an executable on PATH, or undefined. */
export function which(name) {
  const names = process.platform === "win32" ? [`${name}.exe`, `${name}.cmd`] : [name];
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const file of names) {
      const path = join(folder, file);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // Not in this folder.
      }
    }
  }
  return undefined;
}

const CHROMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const CHROME_APPS = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** The browser: `CHROME`, or the first Chromium or Chrome found. */
export function chrome() {
  return fromEnv("CHROME") ?? CHROMES.map(which).find(Boolean) ?? CHROME_APPS.find((path) => existsSync(path));
}

const FIREFOXES = ["firefox-esr", "firefox"];
const FIREFOX_APPS = ["/Applications/Firefox.app/Contents/MacOS/firefox", "C:\\Program Files\\Mozilla Firefox\\firefox.exe"];

/** Firefox: `FIREFOX`, or the first one found. */
export function firefox() {
  return fromEnv("FIREFOX") ?? FIREFOXES.map(which).find(Boolean) ?? FIREFOX_APPS.find((path) => existsSync(path));
}

/** The WebDriver of Chromium, which only `wasm-pack test` needs: `CHROMEDRIVER`, or the one on PATH. */
export function chromedriver() {
  return fromEnv("CHROMEDRIVER") ?? which("chromedriver");
}

function fromEnv(name) {
  const path = process.env[name];
  if (path && !existsSync(path)) throw new Failure(`${name}=${path}: no such file; unset it or name the executable`);
  return path || undefined;
}

/** The Vulkan driver file that Chromium ships beside its binary (SwiftShader), or undefined. */
export function swiftshaderIcd() {
  const binary = chrome();
  if (!binary) return undefined;
  // Debian's /usr/bin/chromium is a script that starts the binary in /usr/lib/chromium.
  const folders = [dirname(realpathSync(binary)), "/usr/lib/chromium"];
  return folders.map((folder) => join(folder, "vk_swiftshader_icd.json")).find((path) => existsSync(path));
}

/** Whether a Vulkan loader and at least one driver are there; only Linux needs to ask. */
export function hasVulkan() {
  if (process.platform !== "linux") return true;
  const named = process.env.VK_DRIVER_FILES ?? process.env.VK_ICD_FILENAMES;
  const folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
  const hasDriver = named !== undefined || folders.some((folder) => filesOf(folder).some((file) => file.endsWith(".json")));
  return hasDriver && hasLibrary("libvulkan.so.1");
}

function hasLibrary(name) {
  const folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib", ...filesOf("/usr/lib").map((file) => join("/usr/lib", file))];
  return folders.some((folder) => existsSync(join(folder, name)));
}

function filesOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The version of a crate in Cargo.lock. */
export function lockedVersion(crate) {
  const lock = readFileSync(join(ROOT, "Cargo.lock"), "utf8");
  const version = lock.match(new RegExp(`name = "${crate}"\\nversion = "([^"]+)"`))?.[1];
  if (!version) throw new Failure(`Cargo.lock has no crate ${crate}`);
  return version;
}

/** Where our tools of one fixed version are kept, shared by all clones: an installed other version stays as it is. */
export function toolsFolder(tool, version) {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "wgslab", `${tool}-${version}`);
}

/** The wasm-bindgen CLI of exactly the version that the crate uses, from PATH or our folder, or undefined. */
export async function wasmBindgen() {
  const version = lockedVersion("wasm-bindgen");
  const own = join(toolsFolder("wasm-bindgen", version), "bin", "wasm-bindgen");
  for (const path of [which("wasm-bindgen"), own]) {
    if (!path || !existsSync(path) || !existsSync(join(dirname(path), "wasm-bindgen-test-runner"))) continue;
    if ((await run(path, ["--version"])).stdout.trim().split(/\s+/)[1] === version) return path;
  }
  return undefined;
}
