// The rows in TensorFlow.js on WebGPU.

import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-core/dist/register_all_gradients";
import type { WebGPUBackend } from "@tensorflow/tfjs-backend-webgpu";
import "@tensorflow/tfjs-backend-webgpu";
import { devDependencies } from "../../../package.json";
import type { Outputs } from "./compare.ts";
import { type Kind, type RowSpec, givenOf } from "./rows.ts";
import type { Library, Side } from "./side.ts";

type Named = Record<string, tf.Tensor>;

const RATE = 0.1;

export async function tfLibrary(): Promise<Library> {
  if (!(await tf.setBackend("webgpu"))) throw new Error("its WebGPU backend did not start");
  await tf.ready();
  return {
    name: `TensorFlow.js ${devDependencies["@tensorflow/tfjs-core"]}`,
    async prepare(row, inputs) {
      const tensors = Object.fromEntries(
        givenOf(row).map(([name, { shape, dtype = "f32" }]) => {
          return [name, tf.tensor(inputs[name]!, [...shape], dtype === "i32" ? "int32" : "float32")];
        }),
      );
      const side = row.kind === "training" ? training(tensors) : pure(row, tensors);
      return { ...side, run: (count) => side.run(count).then(done) };
    },
  };
}

/** Until the device has done what was recorded. */
async function done(): Promise<void> {
  const backend = tf.backend() as unknown as WebGPUBackend;
  // It submits by itself after some operations. What is left is submitted as its own readbacks do it.
  backend.ensureCommandEncoderReady();
  backend.endComputePassEncoder();
  backend.submitQueue();
  await backend.queue.onSubmittedWorkDone();
}

function pure({ kind, outputs: [output] }: RowSpec, tensors: Named): Side {
  const { start = (given: Named) => given, step, end = (made: tf.Tensor) => made, note } = PLANS[kind as Exclude<Kind, "training">];
  const own = tf.tidy(() => start(tensors));
  let last: tf.Tensor | undefined;
  return {
    async run(count) {
      for (let index = 0; index < count; index += 1) {
        last?.dispose();
        last = tf.tidy(() => step(own));
      }
    },
    async read() {
      const turned = tf.tidy(() => end(last!));
      return { [output!]: (await turned.data()) as Float32Array } as Outputs;
    },
    dispose: () => tf.dispose([last!, own, tensors]),
    ...(note === undefined ? {} : { note }),
  };
}

interface Plan {
  /** The row's tensors as they are best here. */
  start?: (given: Named) => Named;
  step: (own: Named) => tf.Tensor;
  /** What the step made, as the row has it. */
  end?: (made: tf.Tensor) => tf.Tensor;
  note?: string;
}

const PLANS: Record<Exclude<Kind, "training">, Plan> = {
  matmul: { step: ({ a, b }) => tf.matMul(a!, b!) },
  softmax: { step: ({ x }) => tf.softmax(x!) },
  layer_norm: {
    step({ x, gain, bias }) {
      const { mean, variance } = tf.moments(x!, -1, true);
      return tf.add(tf.mul(tf.mul(tf.sub(x!, mean), tf.rsqrt(tf.add(variance, 1e-5))), gain!), bias!);
    },
  },
  chain: {
    step({ a, b }) {
      const t3 = tf.relu(tf.add(tf.mul(a!, b!), a!));
      return tf.abs(tf.sub(tf.sqrt(tf.add(tf.mul(t3, 0.5), 1)), b!));
    },
  },
  sum: { step: ({ x }) => tf.sum(x!) },
  conv2d: {
    start: ({ x, w }) => ({ x: tf.expandDims(tf.transpose(x!, [1, 2, 0])), w: tf.transpose(w!, [2, 3, 1, 0]) }),
    step: ({ x, w }) => tf.conv2d(x as tf.Tensor4D, w as tf.Tensor4D, 1, "same"),
    end: (y) => tf.transpose(tf.squeeze(y, [0]), [2, 0, 1]),
    note: "channels last, as it wants them",
  },
  attention: {
    step({ q, k, v }) {
      const scores = tf.mul(tf.matMul(q!, k!, false, true), 0.125);
      return tf.matMul(tf.softmax(scores), v!);
    },
  },
  gather: { step: ({ table, ids }) => tf.gather(table!, ids as tf.Tensor1D) },
};

function training({ x, y, ...start }: Named): Side {
  const weights = Object.entries(start).map(([name, tensor]) => [name, tf.variable(tensor)] as const);
  const [w1, b1, w2, b2] = ["w1", "b1", "w2", "b2"].map((wanted) => weights.find(([name]) => name === wanted)![1]) as [
    tf.Variable, tf.Variable, tf.Variable, tf.Variable,
  ];
  const optimizer = tf.train.sgd(RATE);
  const loss = () => {
    const h = tf.relu(tf.add(tf.matMul(x!, w1), b1));
    return tf.losses.softmaxCrossEntropy(y!, tf.add(tf.matMul(h, w2), b2)) as tf.Scalar;
  };
  let last: tf.Scalar | undefined;
  return {
    async run(count) {
      for (let index = 0; index < count; index += 1) {
        last?.dispose();
        last = optimizer.minimize(loss, true, [w1, b1, w2, b2])!;
      }
    },
    async read() {
      const read = [...weights, ["loss", last!] as const].map(async ([name, tensor]) => {
        return [name, (await tensor.data()) as Float32Array] as const;
      });
      return Object.fromEntries(await Promise.all(read));
    },
    dispose() {
      tf.dispose([last!, x!, y!, ...Object.values(start), ...weights.map(([, variable]) => variable)]);
      optimizer.dispose();
    },
  };
}
