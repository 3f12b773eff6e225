#!/usr/bin/env node
// Does the model test fail when it should? Applies small mistakes to a scratch copy of the tree, one at a time, builds,
// runs the random programs, and demands that they find each. `node scripts/mutations.mjs [--only NAME,NAME] [--programs N]`.
// A mistake is an exact text under a folder, and what stands in its place; a text that is not there exactly once is a
// failure, so that the list follows the code.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";

import { Failure, ROOT, main, say } from "./lib/proc.mjs";

// A hang is a finding too; a busy machine is not.
const TIMEOUT_MS = 900_000;

/** @type {{ name: string, under: string, find: string, replace: string }[]} */
const MUTATIONS = [
  {
    name: "recycled memory is not zeroed",
    under: "src/driver/gpu",
    find: "(slab.heap, slab.offset, slab.fresh_from - slab.offset)",
    replace: "(slab.heap, slab.offset, 0 * slab.fresh_from)",
  },
  {
    name: "an upload runs ahead of recorded work",
    under: "src/driver/gpu",
    find: "if state.is_touched(words.heap) {",
    replace: "if state.is_touched(words.heap) && words.len == 0 {",
  },
  {
    name: "a poke writes its neighbours",
    under: "src/driver/gpu",
    find: "mask[lane..lane + bytes.len()].fill(0xff);",
    replace: "mask[lane..].fill(0xff);",
  },
  {
    name: "overlapping copies do not bounce",
    under: "src/driver/gpu",
    find: "from.heap == to.heap && words_overlap(from.offset, to.offset, len)",
    replace: "from.heap == to.heap && words_overlap(from.offset, to.offset, len) && len == 0",
  },
  {
    name: "a readback does not wait for its mapping",
    under: "src/driver/gpu",
    find: "MapState::Open | MapState::Pending => return None,",
    replace: "MapState::Open | MapState::Pending => {}",
  },
  {
    name: "parameters of the last run are kept",
    under: "src/driver/gpu",
    find: "&& resolved.words[first_static..] == *statics",
    replace: "&& resolved.words.len() >= statics.len()",
  },
  {
    name: "no read after write",
    under: "src/context",
    find: "self.writes.meets(reads) || self.writes.meets(writes)",
    replace: "reads.meets(reads) && self.writes.meets(writes)",
  },
  {
    name: "no write after write",
    under: "src/context",
    find: "|| self.writes.meets(writes)",
    replace: "",
  },
  {
    name: "no write after read",
    under: "src/context",
    find: "|| self.reads.meets(writes)",
    replace: "",
  },
  {
    name: "a routine that is gone is waited for",
    under: "src/context",
    find: "const GONE: u8 = 2;",
    replace: "const GONE: u8 = PENDING;",
  },
  {
    name: "a view does not keep its pool",
    under: "src/context",
    find: "record.hold(pool_id)",
    replace: "drop((&mut record, pool_id))",
  },
  {
    name: "a view starts at elements, not bytes",
    under: "src/context",
    find: "offset + start * view.dtype().size_bytes()",
    replace: "offset + start",
  },
  {
    name: "a known constant is not kept",
    under: "src/context",
    find: "record.hold(loc.pool_id);",
    replace: "record.hold(crate::slab::loc::PoolId(u32::MAX));",
  },
  {
    name: "a constant is freed while it is used",
    under: "src/device",
    find: "*count >= pool.holders",
    replace: "*count + 1 >= pool.holders",
  },
  {
    name: "refused pools keep their ids",
    under: "src/device",
    find: "self.next_pool_id = first;",
    replace: "self.next_pool_id = first.max(self.next_pool_id);",
  },
  {
    name: "the tenancy is not checked",
    under: "src/backend",
    find: "device.check_merge_buffer(node)?;",
    replace: "let _ = device.check_merge_buffer(node);",
  },
  {
    name: "a larger merge buffer keeps its tenant",
    under: "src/device",
    find: "        self.merge_buffer = None;\n",
    replace: "",
  },
  {
    name: "a link does not check the merge buffer",
    under: "src/backend",
    find: "Some(held) if held == node => Ok(()),",
    replace: "Some(held) if held == node || held != node => Ok(()),",
  },
  {
    name: "an empty node has no padding",
    under: "src/slab",
    find: "size_bytes.max(1).checked_next_multiple_of(alignment_bytes)",
    replace: "size_bytes.checked_next_multiple_of(alignment_bytes)",
  },
  {
    name: "a copy starts where its source does",
    under: "src/transfer",
    find: "to.offset_by(dst_start_bytes)",
    replace: "to.offset_by(src_start_bytes.min(dst_start_bytes))",
  },
  {
    name: "the host copies a byte too few",
    under: "src/driver/host",
    find: "self.range_mut(dst, len)?.copy_from_slice(&bytes);",
    replace: "let len = len.saturating_sub(1);\n        self.range_mut(dst, len)?.copy_from_slice(&bytes[..len as usize]);",
  },
  {
    name: "fill leaves the last element",
    under: "src/kernels",
    find: 'let body = format!("store_x(i, {value});");',
    replace: 'let body = format!("if (i + 1u < len_x) {{ store_x(i, {value}); }}");',
  },
  {
    name: "a cast to unsigned does not wrap",
    under: "src/kernels",
    find: '("i32", "u32") => ("", "bitcast<u32>(v)"),',
    replace: '("i32", "u32") => ("", "u32(max(v, 0))"),',
  },
  {
    name: "a strided copy is strided on one side",
    under: "src/kernels",
    find: "b += k * {dst}u;",
    replace: "b += k * {src}u;",
  },
  {
    name: "packed locals overlap",
    under: "src/slab",
    find: "segment == place.segment && !is_apart && in_the_way(other)",
    replace: "segment == place.segment && !is_apart && in_the_way(other) && other == index",
  },
  {
    name: "nobody waits for scratch memory",
    under: "src/backend",
    find: "let scratch = scratch.as_ref().filter(|_| code.nodes().locals().next().is_some());",
    replace: "let scratch = scratch.as_ref().filter(|_| code.nodes().locals().next().is_some() && false);",
  },
  {
    name: "a context keeps local nodes",
    under: "src/context",
    find: "        if mode != MemoryMode::Local {\n            buffers.push",
    replace: "        {\n            buffers.push",
  },
  {
    name: "a link is planned for another context",
    under: "src/backend",
    find: "plan.buffers.is_same(buffers)",
    replace: "plan.buffers.is_same(buffers) || plan.buffers.len() > 0",
  },
  {
    name: "a moved slab keeps its parameters",
    under: "src/driver/gpu",
    find: "if placed.bases != resolved.placed.bases {",
    replace: "if placed.bases.len() != resolved.placed.bases.len() {",
  },
  {
    name: "a finalized context is used",
    under: "src/context",
    find: "if !self.is_finalized() {",
    replace: "if !self.is_finalized() || self.parent().is_some() {",
  },
];

/** The one file of a tree with the text of a mutation, and that file with the mutation. */
function mutate(tree, files, { name, under, find, replace }) {
  const found = files
    .filter((file) => file.startsWith(under))
    .map((file) => ({ file, text: readFileSync(join(tree, file), "utf8") }))
    .flatMap(({ file, text }) => text.split(find).slice(1).map(() => ({ file, text })));
  if (found.length !== 1) throw new Failure(`mutation "${name}": ${under} has its text ${found.length} times, not once: ${find}`);
  const [{ file, text }] = found;
  return { file, text, mutated: text.split(find).join(replace) };
}

await main(async () => {
  const { values } = parseArgs({ options: { only: { type: "string" }, programs: { type: "string", default: "300" } } });
  const wanted = values.only?.split(",");
  const chosen = MUTATIONS.filter(({ name }) => !wanted || wanted.some((part) => name.includes(part)));
  if (chosen.length === 0) throw new Failure(`no mutation is called ${values.only}`);
  const listed = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT });
  const files = listed.stdout.toString().split("\n").filter((file) => /^(src|tests|examples|docs|Cargo|README)/.test(file));
  // All of them first: a list that is out of date costs no build.
  const broken = MUTATIONS.flatMap((mutation) => {
    try {
      mutate(ROOT, files, mutation);
      return [];
    } catch (error) {
      return [error.message];
    }
  });
  if (broken.length > 0) throw new Failure(broken.join("\n"));

  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  const scratch = join(target, "mutations");
  // The scratch copy has a target folder of its own: cargo tells packages apart by name, and would take one tree's code
  // for the other's.
  for (const folder of ["src", "tests", "examples", "docs"]) rmSync(join(scratch, folder), { recursive: true, force: true });
  for (const file of files) {
    mkdirSync(dirname(join(scratch, file)), { recursive: true });
    cpSync(join(ROOT, file), join(scratch, file));
  }

  const cargo = (args, timeout) => {
    const env = {
      ...process.env,
      XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? tmpdir(),
      CARGO_TARGET_DIR: join(scratch, "target"),
      WGSLAB_PROGRAMS: values.programs,
      RUST_BACKTRACE: "0",
    };
    const options = { cwd: scratch, env, timeout, killSignal: "SIGKILL", maxBuffer: 1 << 28 };
    const { status, signal, stdout, stderr } = spawnSync("cargo", ["test", "--test", "native", ...args], options);
    return { status, signal, output: `${stdout}${stderr}` };
  };
  const test = () => {
    const built = cargo(["--no-run"]);
    if (built.status !== 0) throw new Failure(`it does not compile:\n${built.output.slice(-2000)}`);
    return cargo(["model::random"], TIMEOUT_MS);
  };

  const sound = test();
  if (sound.status !== 0) throw new Failure(`without a mutation the model test fails:\n${sound.output.slice(-4000)}`);
  say(`${values.programs} programs pass without a mutation`);
  const missed = [];
  for (const mutation of chosen) {
    const { file, text, mutated } = mutate(scratch, files, mutation);
    writeFileSync(join(scratch, file), mutated);
    const { status, signal, output } = test();
    writeFileSync(join(scratch, file), text);
    const seeds = [...output.matchAll(/seed (\d+): /g)].map(([, seed]) => Number(seed));
    let found = `caught at seed ${Math.min(...seeds)}`;
    if (signal) found = "caught: it hangs";
    else if (status === 0) found = "MISSED";
    else if (seeds.length === 0) found = `caught: ${output.match(/panicked at .*\n(.*)/)?.[1] ?? "it ends badly"}`;
    if (found === "MISSED") missed.push(mutation.name);
    console.log(`${mutation.name.padEnd(46)} ${found}`);
  }
  if (missed.length > 0) throw new Failure(`${missed.length} of ${chosen.length} mutations are missed: ${missed.join("; ")}`);
  say(`all ${chosen.length} mutations are caught`);
});
