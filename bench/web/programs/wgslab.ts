// The rows as users of this package write them.

import type { Device, TensorNode } from "wgslab";
import type { Library } from "./side.ts";
import { givenOf } from "./rows.ts";

export function wgslabLibrary(device: Device): Library {
  return {
    name: "wgslab",
    async prepare(row, inputs) {
      const nodes = givenOf(row).map(([name, { shape, dtype = "f32" }]) => device.node(name, { dtype, shape }));
      const root = device.context();
      const context = root.uploadAll(nodes.map((node) => [node, inputs[node.label]!] as const));
      const given = nodes.map(({ label }) => label);
      const outputs = row.outputs.filter((name) => !given.includes(name));
      const code = await device.compile(row.name, row.program.join("\n"), { nodes, outputs });
      const routine = await context.link(code);
      const before = device.stats().dispatches;
      let ran = 0;
      return {
        async run(count) {
          for (let index = 0; index < count; index += 1) routine.run();
          ran += count;
          await device.awaitIdle();
        },
        async read() {
          const wanted = row.outputs.map((name) => [name, code.node(name) as TensorNode<"f32">] as const);
          const read = wanted.map(async ([name, node]) => [name, await routine.context.readback(node)] as const);
          return Object.fromEntries(await Promise.all(read));
        },
        dispose() {
          for (const one of [routine, code, context, root]) one.dispose();
        },
        get note() {
          const kernels = (device.stats().dispatches - before) / ran;
          return `${kernels} ${kernels === 1 ? "kernel" : "kernels"}`;
        },
      };
    },
  };
}
