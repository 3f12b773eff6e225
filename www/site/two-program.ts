// How two devices train the digits network: examples/two_devices/program.json, the same file that the native example reads.

import training from "../../examples/two_devices/program.json";
import { type Kernel, type PlannedNode, PROGRAM, stepsPerEpoch } from "./program.ts";

/** The training, as the file has it. What is not in it is that of the digits program. */
export interface Training {
  epochs: number;
  tolerance: number;
  exchange: { node: string; merged_as: string; merged_into: string };
  nodes: PlannedNode[];
  views: { name: string; of: string; start: number; shape: number[] }[];
  state: string[];
  step: Kernel[];
  merge: Kernel[];
  update: Kernel[];
}

/** The training. */
export const TRAINING = training as unknown as Training;

/** Steps of the whole training. */
export const STEPS = TRAINING.epochs * stepsPerEpoch();

/** Every node that is no view. */
export const PLANNED_NODES: readonly PlannedNode[] = [...PROGRAM.nodes, ...TRAINING.nodes];
