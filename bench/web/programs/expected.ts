// What the rows must give, in double precision and written again from their definitions: single elements, since the whole
// of a large row takes minutes here.

import { type Arrays, type Kind, type RowSpec, lengthOf } from "./rows.ts";

/** An element of an output. */
type Element = (output: string, at: number) => number;

/** How many elements of each output are computed. */
const SAMPLES = 61;

/** The elements of the outputs that are computed: position and value, by output. */
export function expectedOf(row: RowSpec, inputs: Arrays): Record<string, [number, number][]> {
  const element = DEFINITIONS[row.kind](row, inputs);
  const samples = row.outputs.map((output) => {
    const length = lengthOf(row.nodes[output]!.shape);
    const count = Math.min(SAMPLES, length);
    // Both ends, and steps between them that meet every column in time.
    const positions = Array.from({ length: count }, (_, index) => Math.round((index / Math.max(count - 1, 1)) * (length - 1)));
    return [output, positions.map((at): [number, number] => [at, element(output, at)])] as const;
  });
  return Object.fromEntries(samples);
}

function sum(count: number, term: (index: number) => number): number {
  let total = 0;
  for (let index = 0; index < count; index += 1) total += term(index);
  return total;
}

/** Softmax of `count` scores: the factor of each. */
function softmax(count: number, score: (index: number) => number): number[] {
  const scores = Array.from({ length: count }, (_, index) => score(index));
  const largest = scores.reduce((one, other) => Math.max(one, other));
  const powers = scores.map((value) => Math.exp(value - largest));
  const total = powers.reduce((one, other) => one + other);
  return powers.map((power) => power / total);
}

const DEFINITIONS: Record<Kind, (row: RowSpec, inputs: Arrays) => Element> = {
  matmul({ nodes }, { a, b }) {
    const [depth, width] = nodes.b!.shape as [number, number];
    return (_, at) => {
      const [i, j] = [Math.floor(at / width), at % width];
      return sum(depth, (k) => a![i * depth + k]! * b![k * width + j]!);
    };
  },
  softmax({ nodes }, { x }) {
    const width = nodes.x!.shape[1]!;
    return (_, at) => {
      const start = at - (at % width);
      return softmax(width, (j) => x![start + j]!)[at % width]!;
    };
  },
  layer_norm({ nodes }, { x, gain, bias }) {
    const width = nodes.x!.shape[1]!;
    return (_, at) => {
      const start = at - (at % width);
      const mean = sum(width, (j) => x![start + j]!) / width;
      const variance = sum(width, (j) => (x![start + j]! - mean) ** 2) / width;
      return ((x![at]! - mean) / Math.sqrt(variance + 1e-5)) * gain![at % width]! + bias![at % width]!;
    };
  },
  chain(_, { a, b }) {
    return (_, at) => Math.abs(Math.sqrt(Math.max(a![at]! * b![at]! + a![at]!, 0) * 0.5 + 1) - b![at]!);
  },
  sum(_, { x }) {
    return () => sum(x!.length, (i) => x![i]!);
  },
  conv2d({ nodes }, { x, w }) {
    const [channels, height, width] = nodes.x!.shape as [number, number, number];
    return (_, at) => {
      const [o, i, j] = [Math.floor(at / (height * width)), Math.floor(at / width) % height, at % width];
      return sum(channels * 9, (term) => {
        const [c, u, v] = [Math.floor(term / 9), Math.floor(term / 3) % 3, term % 3];
        const [line, column] = [i + u - 1, j + v - 1];
        if (line < 0 || line >= height || column < 0 || column >= width) return 0;
        return x![(c * height + line) * width + column]! * w![o * channels * 9 + term]!;
      });
    };
  },
  attention({ nodes }, { q, k, v }) {
    const [, length, width] = nodes.q!.shape as [number, number, number];
    return (_, at) => {
      const [h, i, d] = [Math.floor(at / (length * width)), Math.floor(at / width) % length, at % width];
      const query = (h * length + i) * width;
      const from = (j: number) => (h * length + j) * width;
      const score = (j: number) => sum(width, (one) => q![query + one]! * k![from(j) + one]!) / Math.sqrt(width);
      const factors = softmax(length, score);
      return sum(length, (j) => factors[j]! * v![from(j) + d]!);
    };
  },
  gather({ nodes }, { table, ids }) {
    const width = nodes.table!.shape[1]!;
    return (_, at) => table![ids![Math.floor(at / width)]! * width + (at % width)]!;
  },
  training({ nodes, steps = 1 }, inputs) {
    const [rows, pixels] = nodes.x!.shape as [number, number];
    const [units, classes] = nodes.w2!.shape as [number, number];
    const { x, y } = inputs;
    const [w1, b1, w2, b2] = ["w1", "b1", "w2", "b2"].map((name) => Float64Array.from(inputs[name]!)) as [
      Float64Array, Float64Array, Float64Array, Float64Array,
    ];
    let loss = 0;
    for (let step = 0; step < steps; step += 1) {
      const h = Float64Array.from({ length: rows * units }, (_, at) => {
        const [n, j] = [Math.floor(at / units), at % units];
        return Math.max(sum(pixels, (i) => x![n * pixels + i]! * w1[i * units + j]!) + b1[j]!, 0);
      });
      const g = new Float64Array(rows * classes);
      loss = 0;
      for (let n = 0; n < rows; n += 1) {
        const logit = (c: number) => sum(units, (j) => h[n * units + j]! * w2[j * classes + c]!) + b2[c]!;
        softmax(classes, logit).forEach((probability, c) => {
          g[n * classes + c] = (probability - y![n * classes + c]!) / rows;
          loss -= (y![n * classes + c]! * Math.log(probability)) / rows;
        });
      }
      const d = h.map((value, at) => {
        const [n, j] = [Math.floor(at / units), at % units];
        return value > 0 ? sum(classes, (c) => g[n * classes + c]! * w2[j * classes + c]!) : 0;
      });
      const descend = (weights: Float64Array, gradient: (at: number) => number) => {
        weights.forEach((weight, at) => (weights[at] = weight - 0.1 * gradient(at)));
      };
      descend(w1, (at) => {
        const [i, j] = [Math.floor(at / units), at % units];
        return sum(rows, (n) => x![n * pixels + i]! * d[n * units + j]!);
      });
      descend(b1, (j) => sum(rows, (n) => d[n * units + j]!));
      descend(w2, (at) => {
        const [j, c] = [Math.floor(at / classes), at % classes];
        return sum(rows, (n) => h[n * units + j]! * g[n * classes + c]!);
      });
      descend(b2, (c) => sum(rows, (n) => g[n * classes + c]!));
    }
    const results: Record<string, Float64Array> = { w1, b1, w2, b2, loss: Float64Array.of(loss) };
    return (output, at) => results[output]![at]!;
  },
};
