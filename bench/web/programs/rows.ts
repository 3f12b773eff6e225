// The rows of the group `programs`, bench/rows.json: the same for the browser, where peers run them too, and natively.

import rows from "../../rows.json";

/** A tensor of a row. One with a fill is given to every side; others are made by them. */
export interface NodeSpec {
  shape: readonly number[];
  /** f32 if left out. */
  dtype?: "f32" | "i32";
  /** Values between these. */
  uniform?: readonly [number, number];
  /** Whole numbers from 0, below this. */
  below?: number;
  /** One 1 in each row, zeros beside it. */
  oneHot?: boolean;
}

/** One dispatch of a hand-written kernel. */
export interface Dispatch {
  /** The file in bench/kernels, without its ending. */
  kernel: string;
  /** What the harness declares in front of it, as WGSL. */
  constants: Readonly<Record<string, string>>;
  /** What it binds, in order. */
  tensors: readonly string[];
  groups: readonly [number, number, number];
}

/** What one row measures. */
export interface RowSpec {
  name: string;
  /** What the peers and the expected values know it by. */
  kind: Kind;
  nodes: Readonly<Record<string, NodeSpec>>;
  /** The text in index notation, by lines. */
  program: readonly string[];
  /** What is compared. */
  outputs: readonly string[];
  /** How often it runs before what it left is compared; once if left out. */
  steps?: number;
  /** Additions and multiplications of a run, for the share of the adapter's peak. */
  flops: number;
  /** What a run must read and write at least. */
  bytes: number;
  tolerance: { absolute: number; relative: number };
  /** Hand-written ways; which is the fastest depends on the adapter. Those for a CPU first: there the others take seconds. */
  raw: Readonly<Record<string, readonly Dispatch[]>>;
}

export type Kind =
  | "matmul"
  | "softmax"
  | "layer_norm"
  | "chain"
  | "sum"
  | "conv2d"
  | "attention"
  | "gather"
  | "training";

/** The data of tensors, by name. */
export type Arrays = Readonly<Record<string, Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>>>;

export const ROWS = rows as unknown as readonly RowSpec[];

/** The number of elements. */
export function lengthOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** The tensors that are given to every side. */
export function givenOf(row: RowSpec): [string, NodeSpec][] {
  return Object.entries(row.nodes).filter(([, { uniform, below, oneHot }]) => uniform || below || oneHot);
}

/** What every side starts from. */
export function inputsOf(row: RowSpec): Arrays {
  return Object.fromEntries(givenOf(row).map(([name, node], index) => [name, filled(node, index + 1)]));
}

function filled({ shape, uniform = [0, 0], below, oneHot }: NodeSpec, seed: number): Arrays[string] {
  const length = lengthOf(shape);
  if (below !== undefined) return Int32Array.from({ length }, (_, at) => hash(seed, at) % below);
  const data = new Float32Array(length);
  if (oneHot) {
    const width = shape.at(-1)!;
    for (let start = 0; start < length; start += width) data[start + (hash(seed, start) % width)] = 1;
    return data;
  }
  const [low, high] = uniform;
  for (let at = 0; at < length; at += 1) data[at] = low + ((high - low) * (hash(seed, at) >>> 8)) / 2 ** 24;
  return data;
}

// "lowbias32" of Chris Wellons, https://nullprogram.com/blog/2018/07/31/
function hash(seed: number, at: number): number {
  let x = Math.imul(seed, 0x9e3779b9) ^ at;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}
