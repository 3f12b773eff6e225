// The rows as users of this package write them.

import type { Device, RunnerStats, TensorNode } from "wgslab";
import type { Library } from "./side.ts";
import { givenOf } from "./rows.ts";

export function wgslabLibrary(device: Device, tune: "off" | "quick" | "full"): Library {
  return {
    name: "wgslab",
    async prepare(row, inputs) {
      const nodes = givenOf(row).map(([name, { shape, dtype = "f32" }]) => device.node(name, { dtype, shape }));
      const root = device.context();
      const context = root.uploadAll(nodes.map((node) => [node, inputs[node.label]!] as const));
      const given = nodes.map(({ label }) => label);
      const outputs = row.outputs.filter((name) => !given.includes(name));
      const code = await device.compile(row.name, row.program.join("\n"), { nodes, outputs, tune });
      const routine = await context.link(code);
      const how = tune === "off" ? "" : "tuned, ";
      let note = "";
      return {
        async run(count) {
          const before = device.stats();
          for (let index = 0; index < count; index += 1) routine.run();
          await device.awaitIdle();
          note = how + countsOf(before, device.stats(), count);
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
          return note;
        },
      };
    },
  };
}

/** What so many runs were on the device, in words. */
function countsOf(before: RunnerStats, after: RunnerStats, runs: number): string {
  const of = (name: keyof RunnerStats): number => after[name] - before[name];
  const said = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : what.endsWith("s") ? "es" : "s"}`;
  const made = of("pipelinesCreated") + of("bindGroupsCreated") + of("buffersCreated");
  return (
    `${said(of("dispatches") / runs, "kernel")}, ${said(runs, "run")} in ${said(of("passes"), "pass")} and ` +
    `${said(of("submissions"), "submission")}${made > 0 ? `, ${said(made, "new object")}` : ""}`
  );
}
