// What the tests find in the page, as globals: the built package, the case runner, and short ways to say common things.

import * as wgslab from "wgslab";
import { runCase } from "./run-case.ts";

/** What a call failed with, as plain data; throws when it did not fail. */
async function failure(body: () => unknown): Promise<object> {
  try {
    await body();
  } catch (error) {
    const { name, code, message, retryable, diagnostics } = error as wgslab.KernelError;
    const isWgslabError = error instanceof wgslab.WgslabError;
    const isKernelError = error instanceof wgslab.KernelError;
    return { name, code, message, retryable, diagnostics, isWgslabError, isKernelError };
  }
  throw new Error("it should have failed");
}

/** How a promise settles: "fulfilled", the code it rejects with, or "pending" after that many milliseconds. */
async function settlement(promise: Promise<unknown>, milliseconds = 10_000): Promise<string> {
  return Promise.race([
    promise.then(
      () => "fulfilled",
      (error: unknown) => String((error as wgslab.WgslabError).code ?? error),
    ),
    new Promise<string>((resolve) => setTimeout(resolve, milliseconds, "pending")),
  ]);
}

const SCALE_WGSL = `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  store_y(id.x, f32(static_factor()) * load_x(id.x));
}`;

/** y = factor * x, over 64 elements that are all 1. */
async function scale(device: wgslab.Device) {
  const shape = [64];
  const x = device.node("x", { dtype: "f32", shape });
  const y = device.node("y", { dtype: "f32", shape });
  const root = device.context();
  const context = root.upload(x, new Float32Array(64).fill(1));
  const code = await device.compile("scale", SCALE_WGSL, {
    tensors: { x: { node: x, access: "read" }, y: { node: y, access: "write" } },
    statics: ["factor"],
    grid: [1],
  });
  const routine = await context.link(code);
  return { x, y, root, context, code, routine };
}

Object.assign(globalThis, { wgslab, runCase, failure, settlement, scale, harnessReady: true });
