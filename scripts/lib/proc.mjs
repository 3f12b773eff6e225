// Processes and words: run a command, say what a script is doing, stop with a message instead of a stack.
// Node built-ins only: the scripts that install node_modules import this file before there are any.
// Everything that is not a result goes to stderr, so that stdout holds results alone (`--json`).

import { spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** The root of the project. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

// Mesa's Vulkan loader complains where a login session has not set it, as in containers.
const DEFAULT_ENV = { XDG_RUNTIME_DIR: tmpdir() };

/** A failure that its message explains in full: `main` prints it without a stack. */
export class Failure extends Error {
  /** @param {string} message @param {number} exitCode */
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** One line about what is being done. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/**
 * Runs a command in the root of the project and returns its outcome; never throws for an exit code.
 * `lines` sees each line of both streams as it comes; `echo` passes both through to stderr as they are;
 * `inherit` gives the command our stderr (progress bars), so that `output` holds stdout alone.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, lines?: (line: string) => void, echo?: boolean, inherit?: boolean, signal?: AbortSignal }} [options]
 * @returns {Promise<{ code: number, stdout: string, output: string, seconds: number }>}
 */
export function run(command, args, { env = {}, lines, echo = false, inherit = false, signal } = {}) {
  return new Promise((resolve) => {
    const start = performance.now();
    const done = (code, more = "") => {
      resolve({ code, stdout, output: output + more, seconds: (performance.now() - start) / 1000 });
    };
    let stdout = "";
    let output = "";
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...DEFAULT_ENV, ...process.env, ...env },
      stdio: ["ignore", "pipe", inherit ? "inherit" : "pipe"],
      signal,
    });
    child.on("error", (error) => done(127, `${command}: ${error.message}\n`));
    child.on("close", (code, killedBy) => done(code ?? 1, killedBy ? `${command}: ended by ${killedBy}\n` : ""));
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
      output += chunk;
      if (echo) process.stderr.write(chunk);
    });
    child.stderr?.on("data", (chunk) => {
      output += chunk;
      if (echo) process.stderr.write(chunk);
    });
    if (lines) {
      for (const stream of [child.stdout, child.stderr]) {
        if (stream) createInterface({ input: stream }).on("line", lines);
      }
    }
  });
}

/** Like `run`, but an exit code other than 0 is a `Failure` that shows what the command printed. */
export async function must(command, args, options) {
  const outcome = await run(command, args, options);
  if (outcome.code !== 0) {
    const shown = options?.echo ? "" : `\n${outcome.output.trimEnd()}`;
    throw new Failure(`\`${[command, ...args].join(" ")}\` ended with exit code ${outcome.code}${shown}`);
  }
  return outcome;
}

/** Does `work` between two halves of one line: `setup: installing chromium (about a minute) ... 43.1 s`. */
export async function timed(line, work) {
  const start = performance.now();
  process.stderr.write(`${line} ... `);
  try {
    const result = await work();
    say(seconds(start));
    return result;
  } catch (error) {
    say("failed");
    throw error;
  }
}

/** The time since `start` (of `performance.now()`), for people. */
export function seconds(start) {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

/**
 * Parses the arguments of a script. An unknown flag or a missing value ends it with exit code 2 and the usage;
 * `--help` prints the usage and ends it with 0.
 *
 * @param {string} usage
 * @param {import("node:util").ParseArgsConfig["options"]} options
 * @param {boolean} allowPositionals
 */
export function cli(usage, options, allowPositionals = false) {
  let parsed;
  try {
    parsed = parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } }, allowPositionals });
  } catch (error) {
    throw new Failure(`${error.message}\n\n${usage}`, 2);
  }
  if (parsed.values.help) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  return parsed;
}

/** Runs a script's body: a `Failure` becomes its message and exit code, anything else keeps its stack. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    say(error instanceof Failure ? error.message : (error?.stack ?? String(error)));
    process.exitCode = error instanceof Failure ? error.exitCode : 1;
  }
}

/** Whether a file is the script that Node was started with. */
export function isMain(url) {
  return process.argv[1] !== undefined && fileURLToPath(url) === realpathSync(process.argv[1]);
}
