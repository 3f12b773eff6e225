// What the tests find in the page, as globals: the built package, the case runner, and short ways to say common things.

import * as wgslab from "wgslab";
import * as lowLevel from "wgslab/low-level";
import { runCase } from "./run-case.ts";

/** What a call failed with, as plain data; throws when it did not fail. */
async function failure(body: () => unknown): Promise<object> {
  try {
    await body();
  } catch (error) {
    const { name, code, message, retryable, diagnostics } = error as wgslab.KernelError;
    const { line, column, excerpt } = error as wgslab.NotationError;
    const isWgslabError = error instanceof wgslab.WgslabError;
    const isKernelError = error instanceof wgslab.KernelError;
    const isNotationError = error instanceof wgslab.NotationError;
    const kinds = { isWgslabError, isKernelError, isNotationError };
    return { name, code, message, retryable, diagnostics, line, column, excerpt, ...kinds };
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

/** x += by, over the elements of an f32 node. */
async function adder(device: wgslab.Device, x: wgslab.TensorNode<"f32">, name = "add") {
  const wgsl = `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    store_x(id.x, load_x(id.x) + f32(static_by()));
  }`;
  const spec = { tensors: { x: { node: x, access: "read_write" as const } }, statics: ["by"], grid: [1] as const };
  return device.compile(name, wgsl, spec);
}

/** A kernel y = x + 1, as `compileBatch` takes it. */
function increment(name: string, x: wgslab.TensorNode, y: wgslab.TensorNode): wgslab.Kernel {
  const wgsl = `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    store_y(id.x, load_x(id.x) + 1.0);
  }`;
  return { name, wgsl, spec: { tensors: { x: { node: x, access: "read" }, y: { node: y, access: "write" } }, grid: [1] } };
}

/** A node of f32 with that many elements, and a context that has it, filled with `first`, `first + 1` and so on. */
function counted(device: wgslab.Device, label: string, length: number, first = 0) {
  const node = device.node(label, { dtype: "f32", shape: [length] });
  const context = device.context().upload(node, Float32Array.from({ length }, (_, index) => first + index));
  return { node, context };
}

/** A chain n0 → n1 → n2 → n3 of kernels step0, step1, step2, compiled as a batch; the context has n0. */
async function chain(device: wgslab.Device) {
  const { node: n0, context } = counted(device, "n0", 64);
  const rest = [1, 2, 3].map((at) => device.node(`n${at}`, { dtype: "f32", shape: [64] }));
  const nodes = [n0, ...rest] as wgslab.TensorNode[];
  const kernels = rest.map((node, at) => increment(`step${at}`, nodes[at]!, node));
  return { nodes, context, codes: await device.compileBatch(kernels) };
}

/** A GPUDevice of the page's own. */
async function pageDevice(): Promise<GPUDevice> {
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error("the browser has no adapter");
  return adapter.requestDevice();
}

/** Floats of a buffer of a GPUDevice, read without the package. */
async function readOwn(gpu: GPUDevice, buffer: GPUBuffer, offset: number, size: number): Promise<number[]> {
  const staging = gpu.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = gpu.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
  gpu.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const values = [...new Float32Array(staging.getMappedRange())];
  staging.destroy();
  return values;
}

const helpers = { runCase, failure, settlement, scale, adder, increment, counted, chain, pageDevice, readOwn };
Object.assign(globalThis, { wgslab, lowLevel, ...helpers, harnessReady: true });
