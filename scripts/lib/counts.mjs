// How many tests a stage of `npm test` ran: pure functions of a command's output and exit code.

/** A lint is one test. */
export function lint({ code }) {
  return code === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 };
}

/** The `test result:` lines of cargo test and of wasm-pack test, summed. */
export function parseCargo({ output }) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const results = /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm;
  for (const [, passed, failed, ignored] of output.matchAll(results)) {
    counts.passed += Number(passed);
    counts.failed += Number(failed);
    counts.skipped += Number(ignored);
  }
  return counts;
}

/** The totals at the end of `node --test`. */
export function parseNode({ output }) {
  const total = (name) => Number(output.match(new RegExp(`^(?:#|ℹ) ${name} (\\d+)$`, "m"))?.[1] ?? 0);
  return {
    passed: total("pass"),
    failed: total("fail") + total("cancelled"),
    skipped: total("skipped") + total("todo"),
  };
}

/** The counts of a stage after the rules: it ran, it tested something, it skipped nothing. */
export function verdict({ passed, failed, skipped }, code) {
  if (failed > 0) return { passed, failed };
  if (code !== 0) return { passed, failed: 1, note: `ended with exit code ${code}` };
  if (passed === 0) return { passed, failed: 1, note: "ran no test" };
  if (skipped > 0) return { passed, failed: skipped, note: `${skipped} tests were skipped or ignored; none may be` };
  return { passed, failed };
}
