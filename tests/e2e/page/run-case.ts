// Runs one case file through the package's public API, on a device of its own.
// What a case keeps, leaves pending or fails outside of what it awaits is a failure of the case.

import { Device, type OpenOptions } from "wgslab";
import type { Case, CaseResult } from "./case-types.ts";
import { runKernel } from "./run-kernel.ts";
import { runProgram } from "./run-program.ts";
import { runSteps } from "./run-steps.ts";

/** Runs `testCase` on a device opened with `options`. Never throws: what goes wrong is the result's `error`. */
export async function runCase(testCase: Case, options: OpenOptions = {}): Promise<CaseResult> {
  const result: CaseResult = { case: testCase.name, pass: false, error: null, max_error: null };
  try {
    result.max_error = await onOwnDevice(testCase, options);
    result.pass = true;
  } catch (error) {
    result.error = error instanceof Error ? error.message : String(error);
  }
  return result;
}

async function onOwnDevice(testCase: Case, options: OpenOptions): Promise<number | null> {
  const { segment_cap_bytes: segmentCapBytes, heap_bytes: heapBytes } = testCase.device ?? {};
  using device = await Device.open({
    ...options,
    ...(segmentCapBytes === undefined ? {} : { segmentCapBytes }),
    ...(heapBytes === undefined ? {} : { heapBytes }),
  });
  const owned: Disposable[] = [];
  let maxError: number | null;
  try {
    maxError = await runnerOf(testCase)(testCase, device, owned);
  } finally {
    for (const object of owned.reverse()) object[Symbol.dispose]();
  }
  await device.awaitIdle();
  device.freeUnusedConstants();
  const { inUseBytes } = device.report();
  if (inUseBytes !== 0) throw new Error(`${inUseBytes} bytes are still in use after the case`);
  if (!device.isIdle) throw new Error("work is still pending after the case");
  return maxError;
}

function runnerOf({ program, steps }: Case) {
  if (program !== undefined) return runProgram;
  return steps ? runSteps : runKernel;
}
