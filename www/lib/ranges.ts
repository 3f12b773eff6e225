// Parts of nodes: ranges of elements, and blocks.

import type { DType } from "./arrays.ts";
import { checkList, checkWholeNumber } from "./checks.ts";
import { WgslabError } from "./errors.ts";
import { type TensorNode, checkNode } from "./node.ts";

/** A range of elements. */
export interface ElementRange {
  /** The first element; 0 if left out. */
  offset?: number;
  /** How many; up to the end if left out. */
  length?: number;
}

/** Ranges of a copy, in elements. */
export interface CopyRange {
  /** The first element read; 0 if left out. */
  srcOffset?: number;
  /** The first element written; 0 if left out. */
  dstOffset?: number;
  /** How many; up to the end of the source if left out. */
  length?: number;
}

/**
 * The part of one axis, as NumPy's `i`, `start:end`, `start:end:step` and `:`, with whole numbers from 0: one index, every
 * `step`-th index from `start` to before `end`, or null for the whole axis.
 */
export type AxisRange = number | readonly [start: number, end: number, step?: number] | null;

/** A rectangular, stepped part of a node: a range for each axis, the outermost first. */
export type BlockRanges = readonly AxisRange[];

const LARGEST_INDEX = 2 ** 32 - 1;

// Whole numbers alone: whether the range is within the node is the crate's to say, with the same words everywhere.
export function checkRange(node: TensorNode, offset: number, length: number, verb: string): void {
  const isRange = [offset, length].every((value) => Number.isSafeInteger(value) && value >= 0);
  if (isRange) return;
  throw new WgslabError(
    "shape-mismatch",
    `${verb} ${node}: ${length} elements from ${offset} on are no range; use whole numbers from 0 to ${node.length}`,
  );
}

/**
 * A block of a node as the wasm module takes it: first index, count and step of each axis. Whether it is within the node is
 * the crate's to say. @internal
 */
export function spansOf(verb: string, node: TensorNode<DType>, ranges: BlockRanges): Uint32Array {
  checkNode(verb, node);
  const what = `${verb} ${node}: the ranges`;
  checkList(what, ranges);
  const spans = (ranges as BlockRanges).flatMap((range, axis) => {
    if (range === null) return [0, node.shape[axis] ?? 0, 1];
    if (typeof range !== "number") checkList(`${what}: that of axis ${axis}`, range);
    const [start, end, step = 1] = typeof range === "number" ? [range, range + 1] : range;
    for (const value of [start, end, step]) checkWholeNumber(`${what}: an index of axis ${axis}`, value, 0, LARGEST_INDEX);
    // A step of 0 is refused with the axis, not divided by.
    return [start, Math.ceil(Math.max(0, end - start) / (step || 1)), step];
  });
  return Uint32Array.from(spans);
}
