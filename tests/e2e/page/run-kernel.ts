// A case that is a raw kernel: compile, upload, link, run, read, compare.

import type { Context, Device, KernelTensor, TensorNode, WgslabError } from "wgslab";
import { decode, encode } from "./case-data.ts";
import type { Case, CaseTensor, Stage } from "./case-types.ts";
import { compareFailure, compareValues } from "./compare.ts";

/** The largest error of the case's outputs, or null for a kernel that failed as it had to. */
export async function runKernel(testCase: Case, device: Device, owned: Disposable[]): Promise<number | null> {
  const progress: { stage: Stage } = { stage: "compile" };
  const stage = testCase.stage ?? "compile";
  let maxError: number;
  try {
    maxError = await execute(testCase, device, owned, progress);
  } catch (error) {
    if (isRefusal(device, error) && progress.stage === "compile") return null;
    if (!testCase.error) throw error;
    if (progress.stage !== stage) throw new Error(`failed at ${progress.stage}, not at ${stage}: ${error}`);
    compareFailure(testCase, error);
    return null;
  }
  if (device.driver === "host") throw new Error("the host driver compiled a raw kernel that it cannot execute");
  if (testCase.error) throw new Error(`it must fail at ${stage}, and did not`);
  return maxError;
}

/** The host driver executes no raw kernels; what is wrong with one regardless of that, it may say first. */
function isRefusal(device: Device, error: unknown): boolean {
  return device.driver === "host" && (error as WgslabError).code === "unsupported";
}

async function execute(
  testCase: Case,
  device: Device,
  owned: Disposable[],
  progress: { stage: Stage },
): Promise<number> {
  const { name, wgsl, grid = [1, 1, 1], inputs = {}, statics = {}, repeat = 1, outputs = {} } = testCase;
  if (wgsl === undefined) throw new Error("the case has neither wgsl nor steps");
  const { nodes, tensors } = declare(device, testCase.tensors ?? {});
  const nodeOf = (tensor: string): TensorNode => {
    const node = nodes.get(tensor);
    if (!node) throw new Error(`the case has no tensor "${tensor}"`);
    return node;
  };
  const code = await device.compile(name, wgsl, { tensors, statics: Object.keys(statics), grid });
  owned.push(code);

  progress.stage = "prepare";
  const root = device.context();
  const given = Object.entries(inputs).map(([input, { data }]) => {
    const node = nodeOf(input);
    return [node, encode(node.dtype, data)] as const;
  });
  const loaded = root.uploadAll(given);
  owned.push(root, loaded);

  progress.stage = "link";
  const routine = await loaded.link(code);
  owned.push(routine);

  progress.stage = "run";
  for (let run = 0; run < repeat; run += 1) routine.run(statics);
  if (testCase.error) await device.awaitIdle();

  progress.stage = "read";
  return readAndCompare(routine.context, outputs, nodeOf);
}

function declare(device: Device, declared: NonNullable<Case["tensors"]>) {
  const list: [string, CaseTensor][] = Array.isArray(declared)
    ? declared.map((tensor) => [tensor.name ?? "", tensor])
    : Object.entries(declared);
  const nodes = new Map<string, TensorNode>();
  const tensors: KernelTensor[] = list.map(([name, { node: other, dtype, shape, mode, access }]) => {
    const node = nodes.get(other ?? "") ?? device.node(name, { dtype, shape, ...(mode ? { mode } : {}) });
    nodes.set(name, node);
    return { name, node, access };
  });
  return { nodes, tensors };
}

async function readAndCompare(
  context: Context,
  outputs: NonNullable<Case["outputs"]>,
  nodeOf: (tensor: string) => TensorNode,
): Promise<number> {
  const names = Object.keys(outputs);
  const arrays = await context.readbackAll(names.map(nodeOf));
  const errors = names.map((name, index) => {
    const want = outputs[name]!;
    return compareValues(name, want, decode(want.dtype, arrays[index]!));
  });
  return Math.max(0, ...errors);
}
