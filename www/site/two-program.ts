// How two devices train the digits network: examples/two_devices/program.json and its kernels, the same files that the
// native example reads.

import type { Access, DType } from "../lib/index.ts";
import training from "../../examples/two_devices/program.json";
import gradient from "../../examples/two_devices/gradient.wgsl";
import merge from "../../examples/two_devices/merge.wgsl";
import momentum from "../../examples/two_devices/momentum.wgsl";
import { KERNELS, PROGRAM, stepsPerEpoch } from "./program.ts";

/** A kernel over nodes; its grid is given, or has one invocation per element of some nodes. */
export interface PlannedKernel {
  name: string;
  file: string;
  grid: readonly number[] | { over: string[] };
  statics: string[];
  tensors: { name: string; node: string; access: Access; merged?: boolean }[];
}

/** The training, as the file has it. What is not in it is that of the digits program. */
export interface Training {
  epochs: number;
  tolerance: number;
  exchange: { node: string; merged_into: string };
  nodes: { name: string; dtype: DType; shape: (number | "rows")[]; role: string }[];
  views: { name: string; of: string; start: number; shape: number[] }[];
  state: string[];
  step: PlannedKernel[];
  merge: PlannedKernel[];
  update: PlannedKernel[];
}

/** The training. */
export const TRAINING = training as unknown as Training;

/** Steps of the whole training. */
export const STEPS = TRAINING.epochs * stepsPerEpoch();

const TEXTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(KERNELS).map(([file, text]) => [`../digits/${file}`, text])),
  ...KERNELS,
  "gradient.wgsl": gradient,
  "merge.wgsl": merge,
  "momentum.wgsl": momentum,
};

/** The text of a kernel. */
export function textOf({ name, file }: PlannedKernel): string {
  const text = TEXTS[file];
  if (text === undefined) throw new Error(`program.json: kernel "${name}" has no file "${file}"`);
  return text;
}

/** Every node that is no view, with its shape for a device that takes so many rows of each batch. */
export function plannedNodes(rows: number): { name: string; dtype: DType; shape: number[] }[] {
  const own = TRAINING.nodes.map((node) => ({
    ...node,
    shape: node.shape.map((extent) => (extent === "rows" ? rows : extent)),
  }));
  return [...PROGRAM.nodes, ...own];
}
