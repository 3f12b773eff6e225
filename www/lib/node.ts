// A tensor's identity.

import { DTYPES, type DType, elementBytes } from "./arrays.ts";
import { checkText } from "./checks.ts";
import { WgslabError } from "./errors.ts";
import { type RawNode, call, skin } from "./skin.ts";

/** How the bytes of a node are kept: `constant` is never written after its upload. */
export type MemoryMode = "on_device" | "constant";

/** What a node is made of. */
export interface NodeOptions<D extends DType = DType> {
  /** The type of one element. */
  dtype: D;
  /** The extents, row-major; `[]` is a scalar. */
  shape: readonly number[];
  /** How its bytes are kept; `on_device` if left out. */
  mode?: MemoryMode;
}

const LARGEST_EXTENT = 2 ** 32 - 1;

/**
 * The identity of a tensor: label, dtype, shape, memory mode. It owns no storage; a context says where its bytes are.
 * Made by `device.node` or `context.node`.
 */
export class TensorNode<D extends DType = DType> {
  /** The name that messages, reports and kernels use. */
  readonly label: string;
  /** The type of one element. */
  readonly dtype: D;
  /** The extents, row-major. */
  readonly shape: readonly number[];
  /** The number of elements. */
  readonly length: number;
  /** The number of bytes, without padding. */
  readonly byteLength: number;
  /** @internal */
  readonly raw: RawNode;

  private constructor(label: string, { dtype, shape, mode }: NodeOptions<D>) {
    checkText("a node's label", label);
    if (mode !== undefined && mode !== "on_device" && mode !== "constant") {
      throw new WgslabError("unsupported", `node "${label}": unknown memory mode "${mode}"; use on_device or constant`);
    }
    if (!DTYPES.includes(dtype)) {
      throw new WgslabError("dtype-mismatch", `node "${label}": unknown dtype "${dtype}"; use ${DTYPES.join(", ")}`);
    }
    for (const extent of shape) {
      if (Number.isInteger(extent) && extent >= 0 && extent <= LARGEST_EXTENT) continue;
      throw new WgslabError(
        "shape-mismatch",
        `node "${label}": extent ${extent} of shape [${shape.join(", ")}] is no integer from 0 to ${LARGEST_EXTENT}`,
      );
    }
    this.label = label;
    this.dtype = dtype;
    this.shape = Object.freeze([...shape]);
    this.length = shape.reduce((length, extent) => length * extent, 1);
    this.byteLength = this.length * elementBytes(dtype);
    this.raw = call(() => new skin.RawNode(label, dtype, Uint32Array.from(shape), mode));
  }

  /** @internal */
  static make<D extends DType>(label: string, options: NodeOptions<D>): TensorNode<D> {
    return new TensorNode(label, options);
  }

  /** The node in messages: `n12"weights"`. */
  toString(): string {
    return `n${this.raw.id}"${this.label}"`;
  }
}
