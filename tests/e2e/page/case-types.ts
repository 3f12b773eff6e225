// The format of a case file as types; tests/cases/README.md has the words.

import type { Access, DType, MemoryMode } from "wgslab";
import type { CaseNumber } from "./case-data.ts";

/** A node of a case with steps. */
export interface CaseNode {
  dtype: DType;
  shape: number[];
  mode?: MemoryMode;
}

/** One name of a raw kernel; `node` names another one whose node it shares. */
export interface CaseTensor extends CaseNode {
  name?: string;
  node?: string;
  access: Access;
}

/** Values of one tensor: exact for integers and bool, within `atol + rtol * |want|` for floats. */
export interface CaseValues {
  dtype: DType;
  shape: number[];
  data: CaseNumber[];
  rtol?: number;
  atol?: number;
}

/** Where a program or a raw kernel is, and so where it failed. */
export type Stage = "compile" | "prepare" | "link" | "run" | "read";

/** How an invalid program, kernel or step must fail. */
export interface CaseFailure {
  stage?: Stage;
  kind?: string;
  contains?: string;
  line?: number;
  column?: number;
  also?: [number, number][];
}

/** A kernel of a case with steps: node name to access. */
export interface CaseKernel {
  wgsl: string;
  tensors: Record<string, Access>;
  grid: [number, number, number];
  statics?: string[];
}

/** The part of one axis of a block. */
export type CaseSpan = [start: number, extent: number, step?: number];

/** One operation of the device layer. */
export type Step = { error?: CaseFailure } & (
  | { op: "allocate"; context: string; as: string; nodes: string[] }
  | { op: "upload"; context: string; as: string; data: Record<string, CaseNumber[]> }
  | { op: "child"; context: string; as: string }
  | { op: "write"; context: string; node: string; data: CaseNumber[]; at?: number }
  | { op: "zero"; context: string; node: string; start: number; len: number }
  | { op: "copy"; context: string; from: string; from_start?: number; to: string; to_start?: number; len: number }
  | { op: "write_block"; context: string; node: string; block: CaseSpan[]; data: CaseNumber[] }
  | { op: "read_block"; context: string; node: string; block: CaseSpan[]; expect?: CaseNumber[]; rtol?: number; atol?: number }
  | { op: "copy_block"; context: string; from: string; from_block: CaseSpan[]; to: string; to_block: CaseSpan[] }
  | { op: "link"; context: string; kernel: string; as: string }
  | { op: "run"; routine: string; statics?: Record<string, number>; times?: number }
  | { op: "read"; context: string; node: string; expect: CaseNumber[]; rtol?: number; atol?: number }
  | { op: "loc"; context: string; node: string; expect: [pool: number, offset: number] }
  | { op: "report"; in_use_bytes?: number; padding_bytes?: number; pool_count?: number }
  | { op: "finalize"; context: string }
  | { op: "free_constants"; expect: number }
  | { op: "compact" }
  | { op: "alloc_pool"; pool: number; size: number; alignment?: number }
  | { op: "free_pool"; pool: number }
  | { op: "zero_pool"; pool: number; offset: number; len: number }
);

/** One case file: a program, a raw kernel, or steps. */
export interface Case extends CaseFailure {
  name: string;
  device?: { segment_cap_bytes?: number; heap_bytes?: number };
  program?: string;
  wgsl?: string;
  tensors?: Record<string, CaseTensor> | CaseTensor[];
  grid?: [number, number, number];
  statics?: Record<string, number>;
  inputs?: Record<string, CaseValues>;
  outputs?: Record<string, CaseValues>;
  repeat?: number;
  error?: boolean;
  nodes?: Record<string, CaseNode>;
  kernels?: Record<string, CaseKernel>;
  steps?: Step[];
}

/** The outcome of one case. */
export interface CaseResult {
  case: string;
  pass: boolean;
  error: string | null;
  max_error: number | null;
}
