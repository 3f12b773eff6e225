// Contexts that are made by hand, part by part.

import type { TensorNode } from "./node.ts";
import { type RawContext, call } from "./skin.ts";

/** The parts of a context that is made by hand. */
export interface ByHand {
  /** The locations of all nodes, in place of the parent's. */
  readonly buffers?: RawBuffers;
  /** A context that knows the virtual nodes that this one is to know, in place of the parent. */
  readonly knows?: RawContext;
  /** The node of the merge buffer in place of the parent's: null for none. */
  readonly mergeBufferNode?: TensorNode | null;
}

/** Nodes and locations as the wasm module takes them. */
export interface RawBuffers {
  readonly nodes: readonly TensorNode[];
  readonly pools: Uint32Array;
  readonly offsets: Float64Array;
}

const NO_BUFFERS: RawBuffers = { nodes: [], pools: new Uint32Array(), offsets: new Float64Array() };

/** A child of that context. */
export function rawChild(parent: RawContext, { buffers, knows = parent, mergeBufferNode }: ByHand): RawContext {
  const { nodes, pools, offsets } = buffers ?? NO_BUFFERS;
  const raws = buffers && nodes.map((node) => node.raw);
  const setsMerge = mergeBufferNode !== undefined;
  return call(() => parent.child(raws, pools, offsets, knows, setsMerge, mergeBufferNode?.raw));
}
