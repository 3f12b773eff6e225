// The rows by hand: every way that rows.json has, and of those the fastest here.

import type { Gpu } from "./gpu.ts";
import { lengthOf } from "./rows.ts";
import type { Library } from "./side.ts";

/** How often each way runs to choose one. */
const TRIALS = 3;
/** So many times slower than the fastest is not tried again. */
const HOPELESS = 3;

export function rawLibrary(gpu: Gpu): Library {
  return {
    name: "raw",
    async prepare(row, inputs) {
      const make = () => {
        const made = Object.entries(row.nodes).map(([name, { shape }]) => [name, gpu.buffer(lengthOf(shape), inputs[name])]);
        return Object.fromEntries(made) as Record<string, GPUBuffer>;
      };
      const free = (buffers: Record<string, GPUBuffer>) => Object.values(buffers).forEach((buffer) => buffer.destroy());
      const stepsOf = (way: string, buffers: Record<string, GPUBuffer>) =>
        Promise.all(row.raw[way]!.map((dispatch) => gpu.step(dispatch, buffers)));

      // Trials may write into the inputs: those of the side are made afterwards.
      const ways = Object.keys(row.raw);
      let fastest = ways[0]!;
      if (ways.length > 1) {
        const trial = make();
        let least = Infinity;
        for (const way of ways) {
          const steps = await stepsOf(way, trial);
          for (let turn = 0; turn < TRIALS; turn += 1) {
            const start = performance.now();
            await gpu.run(steps, 1);
            const time = performance.now() - start;
            if (time < least) [least, fastest] = [time, way];
            // The first time includes what the driver does then; more than this it is not.
            if (time > HOPELESS * least) break;
          }
        }
        free(trial);
      }
      const buffers = make();
      const steps = await stepsOf(fastest, buffers);
      return {
        run: (count) => gpu.run(steps, count),
        async read() {
          const read = row.outputs.map(async (name) => [name, await gpu.read(buffers[name]!)] as const);
          return Object.fromEntries(await Promise.all(read));
        },
        dispose: () => free(buffers),
        note: fastest,
      };
    },
  };
}
