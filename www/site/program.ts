// The training program: examples/digits/program.json and the files that it names, the same that the native example reads.

import type { Access, Code, Context, DType, Device, Routine, TensorNode } from "../lib/index.ts";
import program from "../../examples/digits/program.json";
import { textOf } from "./texts.ts";

/** What a device compiles: a program in index notation, and perhaps a raw kernel that does the same. */
export interface Kernel {
  name: string;
  files: string[];
  raw?: { file: string; grid: [number, number, number]; tensors: { node: string; access: Access }[] };
}

/** A node, with extents that may depend on the training. */
export interface PlannedNode {
  name: string;
  dtype: DType;
  shape: (number | "batches" | "rows")[];
  role: string;
}

/** The program, as the file has it. */
export interface Program {
  hyperparameters: { batch: number; layers: number[]; learning_rate: number; momentum: number; epochs: number; seed: number };
  data: { shuffle_seed: number; test_fraction: number };
  read_loss_every: number;
  nodes: PlannedNode[];
  inputs: string[];
  state: string[];
  outputs: string[];
  setup: Kernel[];
  step: Kernel[];
  test: Kernel[];
}

/** The program. */
export const PROGRAM = program as unknown as Program;

/** How the training rows, round and round, are cut into batches. */
export interface Batches {
  count: number;
  /** The rows of each. */
  rows: number;
}

/** Nodes by their names. */
export type Nodes = Readonly<Record<string, TensorNode>>;

/** Steps of one epoch: whole batches in the training rows. */
export function stepsPerEpoch(): number {
  const rows = PROGRAM.nodes.find(({ name }) => name === "labels")?.shape[0] as number;
  const trainRows = rows - Math.floor(rows * PROGRAM.data.test_fraction);
  return Math.floor(trainRows / PROGRAM.hyperparameters.batch);
}

/** Steps of the whole training. */
export function stepCount(): number {
  return PROGRAM.hyperparameters.epochs * stepsPerEpoch();
}

/** Makes nodes, in that order. */
export function makeNodes(device: Device, planned: readonly PlannedNode[], { count, rows }: Batches): Record<string, TensorNode> {
  const extents = { batches: count, rows };
  const node = ({ name, dtype, shape }: PlannedNode): TensorNode =>
    device.node(name, { dtype, shape: shape.map((extent) => (typeof extent === "number" ? extent : extents[extent])) });
  return Object.fromEntries(planned.map((plan) => [plan.name, node(plan)]));
}

/** The node of that name. */
export function get(nodes: Nodes, name: string): TensorNode {
  const node = nodes[name];
  if (!node) throw new Error(`program.json: there is no node "${name}"`);
  return node;
}

/**
 * Compiles kernels and links them in order, each into the context of the one before; with the context of the last. `merged`
 * names what the merge buffer holds.
 */
export async function link(
  context: Context,
  kernels: readonly Kernel[],
  nodes: Nodes,
  merged: Nodes = {},
): Promise<{ routines: Routine[]; context: Context }> {
  const routines: Routine[] = [];
  for (const code of await Promise.all(kernels.map((kernel) => compile(context.device, kernel, nodes, merged)))) {
    const routine = await context.link(code);
    context = routine.context;
    routines.push(routine);
  }
  return { routines, context };
}

function compile(device: Device, { name, files, raw }: Kernel, nodes: Nodes, merged: Nodes): Promise<Code> {
  if (raw && device.driver !== "host") {
    const tensors = raw.tensors.map(({ node, access }) => ({ name: node, node: get(nodes, node), access }));
    return device.compile(name, textOf(raw.file), { tensors, grid: raw.grid });
  }
  return device.compile(name, files.map(textOf).join("\n"), { nodes, merged });
}
