// Headless Firefox with WebGPU on one address, with a profile of its own that is gone afterwards.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "./proc.mjs";
import { firefox } from "./tools.mjs";

// A software adapter is on Firefox's blocklist; all else keeps it from talking to the outside, and from asking.
const PREFERENCES = {
  "dom.webgpu.enabled": true,
  "dom.webgpu.workers.enabled": true,
  "gfx.webgpu.ignore-blocklist": true,
  "dom.max_script_run_time": 0,
  "app.normandy.enabled": false,
  "app.update.enabled": false,
  "browser.aboutwelcome.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "browser.startup.homepage_override.mstone": "ignore",
  "datareporting.policy.dataSubmissionEnabled": false,
  "extensions.getAddons.cache.enabled": false,
  "media.gmp-manager.updateEnabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "services.settings.server": "data:,",
  "toolkit.telemetry.enabled": false,
};

const QUIT_MS = 5_000;

/**
 * Starts Firefox on an address. `onExit` is called with a `Failure` if it ends before `close` does it.
 *
 * @param {string} url
 * @param {(failure: Failure) => void} onExit
 * @returns {Promise<{ close(): Promise<void> }>}
 */
export async function openFirefox(url, onExit) {
  const executable = firefox();
  if (!executable) {
    throw new Failure("browser: no Firefox found; install it (Debian: firefox-esr) or set FIREFOX to its executable");
  }
  const profile = await mkdtemp(join(tmpdir(), "wgslab-firefox-"));
  const lines = Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`);
  await writeFile(join(profile, "user.js"), `${lines.join("\n")}\n`);
  const child = spawn(executable, ["--headless", "--no-remote", "--profile", profile, url], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, MOZ_CRASHREPORTER_DISABLE: "1" },
  });
  let isClosing = false;
  let said = "";
  child.stderr.on("data", (chunk) => (said = `${said}${chunk}`.slice(-4000)));
  const ended = new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  ended.then((how) => isClosing || onExit(new Failure(`browser: ${executable} ended by itself (${how})\n${said.trimEnd()}`)));
  return {
    async close() {
      isClosing = true;
      child.kill();
      const kill = setTimeout(() => child.kill("SIGKILL"), QUIT_MS);
      await ended;
      clearTimeout(kill);
      // Its last processes may still be writing there.
      await rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}
