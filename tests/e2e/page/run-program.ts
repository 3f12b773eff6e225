// A case that is a program in index notation: compile, upload, link, run, read, compare.

import type { Code, Context, Device, TensorNode } from "wgslab";
import { type Bits, decode, encode } from "./case-data.ts";
import type { Case, Stage } from "./case-types.ts";
import { compareFailure, compareValues } from "./compare.ts";

/** A node that the case gives. */
interface Given {
  readonly name: string;
  readonly node: TensorNode;
  readonly data: Bits;
}

/** How far a case has come. */
interface Progress {
  stage: Stage;
  linked?: { code: Code; context: Context };
}

/** The largest error of the case's outputs, or null for a program that failed as it had to. */
export async function runProgram(testCase: Case, device: Device, owned: Disposable[]): Promise<number | null> {
  const { stage = "compile", inputs = {} } = testCase;
  const given = Object.entries(inputs).map(([name, { dtype, shape, data }]) => {
    return { name, node: device.node(name, { dtype, shape }) as TensorNode, data: encode(dtype, data) };
  });
  const progress: Progress = { stage: "compile" };
  let maxError: number;
  try {
    maxError = await execute(testCase, given, device, owned, progress);
  } catch (error) {
    if (!testCase.error) throw error;
    if (progress.stage !== stage) throw new Error(`failed at ${progress.stage}, not at ${stage}: ${error}`);
    compareFailure(testCase, error);
    if (progress.linked) await checkUntouched(given, progress.linked);
    return null;
  }
  if (testCase.error) throw new Error(`it must fail at ${stage}, and did not`);
  return maxError;
}

async function execute(
  testCase: Case,
  given: readonly Given[],
  device: Device,
  owned: Disposable[],
  progress: Progress,
): Promise<number> {
  const { name, program = "", statics, repeat = 1, outputs = {} } = testCase;
  const nodes = Object.fromEntries(given.map(({ name, node }) => [name, node]));
  const code = await device.compile(name, program, { nodes, outputs: Object.keys(outputs) });
  owned.push(code);

  progress.stage = "prepare";
  const root = device.context();
  owned.push(root);
  const loaded = root.uploadAll(given.map(({ node, data }) => [node, data] as const));
  owned.push(loaded);

  progress.stage = "link";
  const routine = await loaded.link(code);
  owned.push(routine);
  progress.linked = { code, context: routine.context };

  progress.stage = "run";
  for (let run = 0; run < repeat; run += 1) routine.run(statics);
  if (testCase.error) await device.awaitIdle();

  progress.stage = "read";
  return readAndCompare(testCase, code, routine.context);
}

async function readAndCompare({ outputs = {}, error }: Case, code: Code, context: Context): Promise<number> {
  const names = Object.keys(outputs);
  if (names.length === 0 && !error) throw new Error("the case names no outputs, so that nothing would be compared");
  const nodes = names.map((name) => code.node(name));
  const arrays = await context.readbackAll(nodes);
  const errors = names.map((name, index) => {
    const [want, node] = [outputs[name]!, nodes[index]!];
    const [found, wanted] = [`${node.dtype} [${node.shape}]`, `${want.dtype} [${want.shape}]`];
    if (found !== wanted) throw new Error(`output ${name} is ${found}, expected ${wanted}`);
    return compareValues(name, want, decode(want.dtype, arrays[index]!));
  });
  return Math.max(0, ...errors);
}

/** Throws unless a run that was refused has written nothing: what was given is as it was, all else as linked. */
async function checkUntouched(given: readonly Given[], { code, context }: NonNullable<Progress["linked"]>): Promise<void> {
  const nodes = Object.values(code.nodes);
  const arrays = await context.readbackAll(nodes);
  for (const [index, node] of nodes.entries()) {
    const want = given.find((one) => one.node === node)?.data;
    const isTouched = Array.from(arrays[index]!).some((value, at) => !Object.is(value, want ? want[at] : 0));
    if (isTouched) throw new Error(`the run failed, and node ${node} was written`);
  }
}
