// The rows in jax-js, jitted.

import * as jax from "@jax-js/jax";
import { devDependencies } from "../../../package.json";
import type { Outputs } from "./compare.ts";
import { type Kind, type RowSpec, givenOf } from "./rows.ts";
import type { Library, Side } from "./side.ts";

type Tensor = jax.Array;
type Named = Record<string, Tensor>;
type Step = (inputs: Named) => Tensor;
/** A loss of weights over data, whose gradient is descended. */
type Loss = (weights: Named, x: Tensor, y: Tensor) => Tensor;

const { numpy: np, lax, nn } = jax;
const RATE = 0.1;

export async function jaxLibrary(): Promise<Library> {
  await jax.init("webgpu");
  jax.defaultDevice("webgpu");
  return {
    name: `jax-js ${devDependencies["@jax-js/jax"]}`,
    async prepare(row, inputs) {
      const tensors = Object.fromEntries(
        givenOf(row).map(([name, { shape, dtype }]) => {
          const dtypes = { f32: np.float32, i32: np.int32 };
          return [name, np.array(inputs[name]!, { shape: [...shape], dtype: dtypes[dtype ?? "f32"] })];
        }),
      );
      const side = row.kind === "training" ? training(tensors) : pure(row, tensors);
      return { ...side, run: (count) => side.run(count).then(done) };
    },
  };
}

/** Until the device has done what was submitted. */
function done(): Promise<undefined> {
  return jax.getWebGPUDevice().queue.onSubmittedWorkDone();
}

/** Another reference to each: a function that is called takes those that it is given. */
function refs(tensors: Named): Named {
  return jax.tree.ref(tensors) as Named;
}

function pure({ kind, outputs: [output] }: RowSpec, tensors: Named): Side {
  const call = jax.jit(STEPS[kind as Exclude<Kind, "training">]);
  let last: Tensor | undefined;
  return {
    async run(count) {
      for (let index = 0; index < count; index += 1) {
        last?.dispose();
        last = call(refs(tensors)) as Tensor;
        // What nobody asks for is not run: this submits it, and gives up the reference that it is called on.
        last.ref.gpuBufferSync();
      }
    },
    async read() {
      return { [output!]: (await last!.ref.data()) as Float32Array } as Outputs;
    },
    dispose() {
      last?.dispose();
      jax.tree.dispose(tensors);
      call.dispose();
    },
  };
}

const STEPS: Record<Exclude<Kind, "training">, Step> = {
  matmul: ({ a, b }) => np.matmul(a!, b!),
  softmax: ({ x }) => nn.softmax(x!, -1),
  layer_norm({ x, gain, bias }) {
    return nn.standardize(x!, -1, { epsilon: 1e-5 }).mul(gain!).add(bias!);
  },
  chain({ a, b }) {
    const t3 = nn.relu(a!.ref.mul(b!.ref).add(a!));
    return np.abs(np.sqrt(t3.mul(0.5).add(1)).sub(b!));
  },
  sum: ({ x }) => x!.sum(),
  conv2d({ x, w }) {
    const image = x!.reshape([1, ...x!.shape]);
    return lax.conv(image, w!, [1, 1], "SAME");
  },
  attention({ q, k, v }) {
    // Its own order has the heads within the rows; it turns the tensors by views.
    const turned = (tensor: Tensor) => tensor.transpose([1, 0, 2]);
    return turned(nn.dotProductAttention(turned(q!), turned(k!), turned(v!)));
  },
  gather: ({ table, ids }) => np.take(table!, ids!, 0),
};

function training({ x, y, ...start }: Named): Side {
  const loss: Loss = (weights, x, y) => {
    const h = nn.relu(np.matmul(x, weights.w1!).add(weights.b1!));
    const logits = np.matmul(h, weights.w2!).add(weights.b2!);
    return nn.logSoftmax(logits, -1).mul(y).sum().mul(-1 / 128);
  };
  const gradient = jax.valueAndGrad(loss);
  const step = jax.jit((weights: Named, x: Tensor, y: Tensor) => {
    const before = refs(weights);
    const [value, slopes] = gradient(weights, x, y) as [Tensor, Named];
    const descend = (weight: Tensor, slope: Tensor) => weight.sub(slope.mul(RATE));
    return [value, jax.tree.map(descend, before, slopes) as Named] as [Tensor, Named];
  });
  let weights = start;
  let last: Tensor | undefined;
  return {
    async run(count) {
      for (let index = 0; index < count; index += 1) {
        last?.dispose();
        [last, weights] = step(weights, x!.ref, y!.ref) as [Tensor, Named];
      }
      last!.ref.gpuBufferSync();
      for (const weight of Object.values(refs(weights))) weight.gpuBufferSync();
    },
    async read() {
      const read = Object.entries({ ...weights, loss: last! }).map(async ([name, tensor]) => {
        return [name, (await tensor.ref.data()) as Float32Array] as const;
      });
      return Object.fromEntries(await Promise.all(read));
    },
    dispose() {
      last?.dispose();
      jax.tree.dispose([weights, x!, y!]);
      step.dispose();
    },
  };
}
