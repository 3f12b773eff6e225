// The rows in onnxruntime-web on WebGPU, tensors on the device before and after.

import * as ort from "onnxruntime-web/webgpu";
import { devDependencies } from "../../../package.json";
import { type Graph, type Initializer, type Value, model } from "./onnx.ts";
import { type Arrays, type Kind, type RowSpec, givenOf, lengthOf } from "./rows.ts";
import { type Library, type Side } from "./side.ts";

/** Where bench.mjs serves its wasm. */
const WASM_FOLDER = "/ort/";

/** What a graph has besides the tensors of the row. */
interface Plan {
  operators: Graph["operators"];
  /** Inputs of the row that are known beforehand, as weights of a model are; and constants. */
  initializers?: readonly Initializer[];
  /** Shapes that the row's tensors have here, where they differ; the same elements in another order. */
  shapes?: Readonly<Record<string, readonly number[]>>;
  /** Outputs that are the row's inputs of the next run. */
  carried?: readonly string[];
  /** The elements of an input, in the order of its shape here, and those of an output back. */
  turned?: { in(data: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer>; out(data: Float32Array): Float32Array };
  note?: string;
}

export async function ortLibrary(): Promise<Library> {
  ort.env.wasm.wasmPaths = WASM_FOLDER;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return {
    name: `onnxruntime-web ${devDependencies["onnxruntime-web"]}`,
    ways: ({ kind }) => Object.keys(PLANS[kind]),
    prepare,
  };
}

async function prepare(row: RowSpec, inputs: Arrays, way: string): Promise<Side> {
  const { operators, initializers = [], shapes = {}, carried = [], turned, note } = PLANS[row.kind][way]!(row, inputs);
  const value = (name: string, as = name): Value => {
    const { dtype = "f32", shape } = row.nodes[name]!;
    return { name: as, dtype, shape: shapes[name] ?? shape };
  };
  const fixed = initializers.map(({ name }) => name);
  const given = givenOf(row).map(([name]) => name).filter((name) => !fixed.includes(name));
  const outputs = row.outputs.map((name) => value(name, carried.includes(name) ? next(name) : name));
  const bytes = model({ operators, initializers, inputs: given.map((name) => value(name)), outputs });
  const session = await ort.InferenceSession.create(bytes, {
    executionProviders: ["webgpu"],
    preferredOutputLocation: "gpu-buffer",
    logSeverityLevel: 3,
  });
  const device = (await ort.env.webgpu.device) as unknown as GPUDevice;
  const feeds: Record<string, ort.Tensor> = {};
  const buffers: GPUBuffer[] = [];
  for (const name of given) {
    const { dtype, shape } = value(name);
    const data = turned ? turned.in(inputs[name] as Float32Array<ArrayBuffer>) : inputs[name]!;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    // A multiple of 16 is what the runtime binds.
    const buffer = device.createBuffer({ size: Math.ceil(data.byteLength / 16) * 16, usage });
    device.queue.writeBuffer(buffer, 0, data);
    buffers.push(buffer);
    const dataType = dtype === "i32" ? "int32" : "float32";
    feeds[name] = ort.Tensor.fromGpuBuffer(buffer as never, { dataType, dims: [...shape] });
  }
  let results: Record<string, ort.Tensor> = {};
  const drop = () => Object.values(results).forEach((tensor) => tensor.dispose());
  return {
    async run(count) {
      for (let index = 0; index < count; index += 1) {
        const made = (await session.run(feeds)) as Record<string, ort.Tensor>;
        drop();
        results = made;
        // What is carried was dropped with the results that it was one of.
        for (const name of carried) feeds[name] = made[next(name)]!;
      }
      await device.queue.onSubmittedWorkDone();
    },
    async read() {
      const read = row.outputs.map(async (name) => {
        const data = (await results[carried.includes(name) ? next(name) : name]!.getData()) as Float32Array;
        return [name, turned ? turned.out(data) : data] as const;
      });
      return Object.fromEntries(await Promise.all(read));
    },
    dispose() {
      drop();
      buffers.forEach((buffer) => buffer.destroy());
      void session.release();
    },
    note: note === undefined ? way : `${way}; ${note}`,
  };
}

function next(name: string): string {
  return `${name}_next`;
}

function scalar(name: string, value: number): Initializer {
  return { name, shape: [], data: Float32Array.of(value) };
}

function weights({ nodes }: RowSpec, inputs: Arrays, names: readonly string[]): Initializer[] {
  return names.map((name) => ({ name, shape: nodes[name]!.shape, data: inputs[name] as Float32Array }));
}

/** Ways by the operators that they are made of. */
const PLANS: Record<Kind, Readonly<Record<string, (row: RowSpec, inputs: Arrays) => Plan>>> = {
  matmul: { MatMul: () => ({ operators: [{ op: "MatMul", inputs: ["a", "b"], outputs: ["c"] }] }) },
  softmax: {
    Softmax: () => ({ operators: [{ op: "Softmax", inputs: ["x"], outputs: ["y"], attributes: { axis: -1 } }] }),
  },
  layer_norm: {
    LayerNormalization(row, inputs) {
      const attributes = { axis: -1, epsilon: { float: 1e-5 } };
      return {
        operators: [{ op: "LayerNormalization", inputs: ["x", "gain", "bias"], outputs: ["y"], attributes }],
        initializers: weights(row, inputs, ["gain", "bias"]),
      };
    },
  },
  chain: {
    "eight operators": () => ({
      operators: [
        { op: "Mul", inputs: ["a", "b"], outputs: ["t1"] },
        { op: "Add", inputs: ["t1", "a"], outputs: ["t2"] },
        { op: "Relu", inputs: ["t2"], outputs: ["t3"] },
        { op: "Mul", inputs: ["t3", "half"], outputs: ["t4"] },
        { op: "Add", inputs: ["t4", "one"], outputs: ["t5"] },
        { op: "Sqrt", inputs: ["t5"], outputs: ["t6"] },
        { op: "Sub", inputs: ["t6", "b"], outputs: ["t7"] },
        { op: "Abs", inputs: ["t7"], outputs: ["y"] },
      ],
      initializers: [scalar("half", 0.5), scalar("one", 1)],
    }),
  },
  sum: {
    ReduceSum: () => ({ operators: [{ op: "ReduceSum", inputs: ["x"], outputs: ["y"], attributes: { keepdims: 0 } }] }),
  },
  conv2d: {
    Conv(row, inputs) {
      const attributes = { kernel_shape: [3, 3], pads: [1, 1, 1, 1] };
      return {
        operators: [{ op: "Conv", inputs: ["x", "w"], outputs: ["y"], attributes }],
        initializers: weights(row, inputs, ["w"]),
        shapes: { x: [1, ...row.nodes.x!.shape], y: [1, ...row.nodes.y!.shape] },
      };
    },
  },
  attention: {
    MultiHeadAttention({ nodes }) {
      const [heads, length, width] = nodes.q!.shape as [number, number, number];
      const shape = [1, length, heads * width];
      const attributes = { num_heads: heads };
      return {
        operators: [{ op: "MultiHeadAttention", own: true, inputs: ["q", "k", "v"], outputs: ["y"], attributes }],
        shapes: { q: shape, k: shape, v: shape, y: shape },
        turned: {
          in: (data) => swapped(data, [heads, length, width]),
          out: (data) => swapped(data, [length, heads, width]),
        },
        note: "heads within rows, as it wants them",
      };
    },
    "MatMul and Softmax": () => ({
      operators: [
        { op: "Transpose", inputs: ["k"], outputs: ["turned"], attributes: { perm: [0, 2, 1] } },
        { op: "MatMul", inputs: ["q", "turned"], outputs: ["products"] },
        { op: "Mul", inputs: ["products", "scale"], outputs: ["scores"] },
        { op: "Softmax", inputs: ["scores"], outputs: ["factors"], attributes: { axis: -1 } },
        { op: "MatMul", inputs: ["factors", "v"], outputs: ["y"] },
      ],
      initializers: [scalar("scale", 0.125)],
    }),
  },
  gather: {
    Gather: () => ({ operators: [{ op: "Gather", inputs: ["table", "ids"], outputs: ["y"], attributes: { axis: 0 } }] }),
  },
  training: { "gradients written out": training },
};

/** It has no gradients: they are part of the graph. */
function training({ nodes }: RowSpec): Plan {
  const [rows] = nodes.x!.shape as [number];
  const carried = ["w1", "b1", "w2", "b2"];
  const transposed = { transA: 1 };
  const axis: Initializer = { name: "first", dtype: "i64", shape: [1], data: BigInt64Array.of(0n) };
  return {
    operators: [
      { op: "Gemm", inputs: ["x", "w1", "b1"], outputs: ["h_in"] },
      { op: "Relu", inputs: ["h_in"], outputs: ["h"] },
      { op: "Gemm", inputs: ["h", "w2", "b2"], outputs: ["logits"] },
      { op: "LogSoftmax", inputs: ["logits"], outputs: ["logs"], attributes: { axis: -1 } },
      { op: "Mul", inputs: ["logs", "y"], outputs: ["picked"] },
      { op: "ReduceSum", inputs: ["picked"], outputs: ["picked_sum"], attributes: { keepdims: 0 } },
      { op: "Mul", inputs: ["picked_sum", "minus_share"], outputs: ["loss"] },
      { op: "Exp", inputs: ["logs"], outputs: ["probabilities"] },
      { op: "Sub", inputs: ["probabilities", "y"], outputs: ["errors"] },
      { op: "Mul", inputs: ["errors", "share"], outputs: ["g"] },
      { op: "Gemm", inputs: ["g", "w2"], outputs: ["back"], attributes: { transB: 1 } },
      { op: "Sign", inputs: ["h"], outputs: ["active"] },
      { op: "Mul", inputs: ["back", "active"], outputs: ["d"] },
      { op: "Gemm", inputs: ["x", "d"], outputs: ["g_w1"], attributes: transposed },
      { op: "ReduceSum", inputs: ["d", "first"], outputs: ["g_b1"], attributes: { keepdims: 0 } },
      { op: "Gemm", inputs: ["h", "g"], outputs: ["g_w2"], attributes: transposed },
      { op: "ReduceSum", inputs: ["g", "first"], outputs: ["g_b2"], attributes: { keepdims: 0 } },
      ...carried.flatMap((name) => [
        { op: "Mul", inputs: [`g_${name}`, "rate"], outputs: [`step_${name}`] },
        { op: "Sub", inputs: [name, `step_${name}`], outputs: [next(name)] },
      ]),
    ],
    initializers: [scalar("share", 1 / rows), scalar("minus_share", -1 / rows), scalar("rate", 0.1), axis],
    carried,
  };
}

/** `[a, b, c]` as `[b, a, c]`. */
function swapped(data: Float32Array, [a, b, c]: readonly [number, number, number]): Float32Array<ArrayBuffer> {
  const result = new Float32Array(lengthOf([a, b, c]));
  for (let i = 0; i < a; i += 1) {
    for (let j = 0; j < b; j += 1) result.set(data.subarray((i * b + j) * c, (i * b + j + 1) * c), (j * a + i) * c);
  }
  return result;
}
