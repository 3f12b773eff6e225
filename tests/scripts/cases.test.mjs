// What `npm run cases` refuses before anything is built.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../../scripts/lib/proc.mjs";

const HOSTS = ["host", "native", "native-swiftshader", "chromium", "chromium-host", "firefox", "firefox-host"];

function cases(args, env = {}) {
  const script = join(ROOT, "scripts/cases.mjs");
  return spawnSync(process.execPath, [script, ...args], { encoding: "utf8", env: { ...process.env, ...env } });
}

test("the usage names every host", () => {
  const { status, stdout } = cases(["--help"]);
  assert.equal(status, 0);
  for (const host of HOSTS) assert.ok(stdout.includes(host), host);
});

for (const [what, args, words] of [
  ["a host that there is not", ["tests/cases", "--host", "native,safari"], /no host safari/],
  ["no folder", [], /one folder of cases is needed/],
  ["a folder that is not there", ["tests/no-such-cases"], /tests\/no-such-cases: no such folder/],
  ["a flag that there is not", ["tests/cases", "--hosts", "native"], /--hosts/],
]) {
  test(`${what} is refused with exit code 2`, () => {
    const { status, stderr, stdout } = cases(args);
    assert.equal(status, 2);
    assert.match(stderr, words);
    assert.equal(stdout, "");
  });
}

test("a browser that is named and not there is said, not skipped", () => {
  const { status, stderr } = cases(["tests/cases", "--host", "firefox"], { FIREFOX: "/no/such/firefox" });
  assert.equal(status, 1);
  assert.match(stderr, /FIREFOX=\/no\/such\/firefox: no such file/);
});
