// `npm run cases -- DIR`: runs any folder of case files on any of the hosts, and prints a table or JSON lines.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { build } from "./build.mjs";
import { cli, Failure, isMain, main, must, run, say, timed } from "./lib/proc.mjs";
import { align } from "./lib/results.mjs";
import { swiftshaderIcd } from "./lib/tools.mjs";
import { setup } from "./setup.mjs";

/** Each host: how it runs a folder of cases; yields `{ case, host, pass, error, max_error }`. */
const HOSTS = {
  host: (folder) => nativeCases(folder, "host"),
  native: (folder) => nativeCases(folder, "native"),
  "native-swiftshader": (folder) => {
    const icd = swiftshaderIcd();
    if (!icd) throw new Failure("cases: Chromium's vk_swiftshader_icd.json is not there; install chromium");
    return nativeCases(folder, "native-swiftshader", { VK_DRIVER_FILES: icd });
  },
  chromium: (folder) => browserCases(folder, "chromium"),
  "chromium-host": (folder) => browserCases(folder, "chromium", { driver: "host" }),
  firefox: (folder) => browserCases(folder, "firefox"),
  "firefox-host": (folder) => browserCases(folder, "firefox", { driver: "host" }),
};

const USAGE = `Usage: npm run cases -- DIR [--host HOST,...] [--json]

Runs every *.json of DIR (the format is in tests/cases/README.md) and compares with what it expects.
  --host   any of ${Object.keys(HOSTS).join(", ")} (default: host,native,chromium);
           chromium-host and firefox-host are the host driver in those browsers
  --json   one line per case and host on stdout: {"case","host","pass","error","max_error"}

Exit code: 0 when every case passes on every host; 1 when not; 2 for a wrong flag.`;

/** The cases as the Rust example runs them. */
async function nativeCases(folder, host, env = {}) {
  const example = ["--release", "--quiet", "--example", "cases"];
  await timed(`${host}: building the example (2 minutes the first time)`, () => must("cargo", ["build", ...example]));
  const args = ["run", ...example, "--", folder, "--host", host, "--json"];
  const { code, stdout, output } = await run("cargo", args, { env });
  const results = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  // Exit code 1 says that cases failed, and they say so themselves.
  if (results.length === 0 || code > 1) throw new Failure(`cases: host ${host}: exit code ${code}\n${output.trimEnd()}`);
  return results;
}

/** The cases through the npm package in a browser, on devices opened with `options`. */
async function browserCases(folder, browser, options = {}) {
  const { openHarness, readCases, runCases } = await import("../tests/e2e/harness.mjs");
  const harness = await openHarness(browser);
  try {
    const results = await runCases(harness.page, await readCases(folder), options);
    if (harness.faults.length > 0) throw new Failure(`cases: host ${browser}: ${harness.faults.join("\n")}`);
    return results;
  } finally {
    await harness.close();
  }
}

async function cases(folder, hosts, json) {
  const [inChromium, inFirefox] = ["chromium", "firefox"].map((name) => hosts.some((host) => host.startsWith(name)));
  const web = inChromium || inFirefox;
  const browser = inChromium || hosts.includes("native-swiftshader");
  await setup({ browser, web, firefox: inFirefox, native: hosts.includes("native") });
  if (web) await build();
  const rows = [["case", "host", "result", "max error"]];
  let failed = 0;
  for (const host of hosts) {
    for (const outcome of await HOSTS[host](folder)) {
      const result = { case: outcome.case, host, pass: outcome.pass, error: outcome.error, max_error: outcome.max_error };
      if (!result.pass) failed += 1;
      if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
      else rows.push([result.case, host, result.pass ? "pass" : `FAIL ${result.error.replaceAll("\n", " ")}`, result.max_error ?? ""]);
    }
  }
  if (!json) process.stdout.write(`${align(rows).join("\n")}\n`);
  say(failed === 0 ? "every case passes" : `${failed} failed`);
  if (failed > 0) process.exitCode = 1;
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const { values, positionals } = cli(
      USAGE,
      { host: { type: "string", default: "host,native,chromium" }, json: { type: "boolean" } },
      true,
    );
    const hosts = values.host.split(",");
    const unknown = hosts.filter((host) => !(host in HOSTS));
    if (unknown.length > 0) throw new Failure(`no host ${unknown.join(", ")}\n\n${USAGE}`, 2);
    if (positionals.length !== 1) throw new Failure(`one folder of cases is needed\n\n${USAGE}`, 2);
    // npm runs scripts in the root of the project; a relative folder is meant from where the person is.
    const folder = resolve(process.env.INIT_CWD ?? ".", positionals[0]);
    if (!existsSync(folder)) throw new Failure(`cases: ${folder}: no such folder`, 2);
    await cases(folder, hosts, values.json);
  });
}
