// What `npm start` installs, and what it goes on without.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { install, planned } from "../../scripts/setup.mjs";

const VULKAN = ["mesa-vulkan-drivers", "libvulkan1"];

// A machine that reaches no package server.
let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "wgslab-setup-"));
  const aptGet = join(folder, "apt-get");
  writeFileSync(aptGet, '#!/bin/sh\necho "E: Could not resolve the server" >&2\nexit 100\n');
  chmodSync(aptGet, 0o755);
  process.env.PATH = [folder, process.env.PATH].join(delimiter);
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("root on Debian installs what is missing and what is wished for", () => {
  const plan = planned(["chromium"], VULKAN, { hasApt: true, isRoot: true });
  assert.deepEqual(plan, { packages: ["chromium"], wished: VULKAN });
});

test("a wished driver that cannot be installed is a notice with the command, not a failure", () => {
  const user = planned([], VULKAN, { hasApt: true, isRoot: false });
  assert.deepEqual([user.packages, user.wished], [[], []]);
  assert.match(user.notice, /falls to the host driver, on the CPU; .* sudo sh -c 'apt-get update && .* mesa-vulkan-drivers libvulkan1'$/);
  const elsewhere = planned([], VULKAN, { hasApt: false, isRoot: false });
  assert.match(elsewhere.notice, /host driver, on the CPU; .* a Vulkan driver \(on Debian or Ubuntu mesa-vulkan-drivers and libvulkan1\)$/);
  assert.ok([user, elsewhere].every(({ notice }) => !notice.includes("\n")), "one line");
});

test("a missing browser is a failure with the command", () => {
  assert.throws(() => planned(["chromium"], VULKAN, { hasApt: true, isRoot: false }), /missing chromium\. Run this[^]* chromium'$/);
  assert.throws(() => planned(["chromium"], [], { hasApt: false, isRoot: true }), /missing chromium\. On Debian or Ubuntu: /);
});

test("nothing missing is nothing to say", () => {
  assert.deepEqual(planned([], [], { hasApt: false, isRoot: false }), { packages: [], wished: [] });
});

test("a wished driver whose installation fails is a line with the reason; a missing package is a failure", async (t) => {
  const said = [];
  t.mock.method(process.stderr, "write", (text) => said.push(text) > 0);
  await install({ packages: [], wished: VULKAN });
  t.mock.restoreAll();
  assert.match(said.join(""), /the host driver, on the CPU; installing mesa-vulkan-drivers and libvulkan1 failed: E: Could not resolve the server\n$/);
  await assert.rejects(install({ packages: ["chromium"], wished: [] }), /exit code 100/);
});
