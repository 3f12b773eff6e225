// The training program: examples/digits/program.json and its kernels, the same files that the native example reads.

import type { Access, DType } from "../lib/index.ts";
import program from "../../examples/digits/program.json";
import gather from "../../examples/digits/gather.wgsl";
import hidden from "../../examples/digits/hidden.wgsl";
import hiddenGrad from "../../examples/digits/hidden_grad.wgsl";
import init from "../../examples/digits/init.wgsl";
import output from "../../examples/digits/output.wgsl";
import predict from "../../examples/digits/predict.wgsl";
import update from "../../examples/digits/update.wgsl";

/** A kernel of the program. */
export interface Kernel {
  name: string;
  file: string;
  grid: [number, number, number];
  statics: string[];
  tensors: { name: string; node: string; access: Access }[];
}

/** The program, as the file has it. */
export interface Program {
  hyperparameters: { batch: number; layers: number[]; learning_rate: number; momentum: number; epochs: number; seed: number };
  data: { shuffle_seed: number; test_fraction: number };
  read_loss_every: number;
  nodes: { name: string; dtype: DType; shape: number[]; role: string }[];
  inputs: string[];
  state: string[];
  outputs: string[];
  setup: Kernel[];
  step: Kernel[];
  test: Kernel[];
}

/** The program. */
export const PROGRAM = program as unknown as Program;

/** The text of each kernel, by file name. */
export const KERNELS: Readonly<Record<string, string>> = {
  "gather.wgsl": gather,
  "hidden.wgsl": hidden,
  "hidden_grad.wgsl": hiddenGrad,
  "init.wgsl": init,
  "output.wgsl": output,
  "predict.wgsl": predict,
  "update.wgsl": update,
};

/** Steps of one epoch: whole batches in the training rows. */
export function stepsPerEpoch(): number {
  const rows = PROGRAM.nodes.find(({ name }) => name === "train_order")?.shape[0] ?? 0;
  return Math.floor(rows / PROGRAM.hyperparameters.batch);
}

/** Steps of the whole training. */
export function stepCount(): number {
  return PROGRAM.hyperparameters.epochs * stepsPerEpoch();
}
