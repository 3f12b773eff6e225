// What a program costs before it runs: the attention block, from its text to kernels, and into a context.

import type { Device, TensorNode } from "wgslab";
import attention from "../../tests/cases/program_attention.json";
import { type Row, spread } from "./measure.ts";

const TURNS = 41;
const WARM_UP = 10;

/**
 * The block again and again, each time with nodes of its own. Its pipelines are those of a code that lives on, so that the
 * browser's compilation is no part of it: that is paid once for a text.
 */
export async function compile(device: Device): Promise<Row[]> {
  const compiling: number[] = [];
  const linking: number[] = [];
  using root = device.context();
  const fresh = () => Object.entries(attention.inputs).map(([name, { shape }]) => device.node(name, { dtype: "f32", shape }));
  const compiled = (nodes: TensorNode[]) => device.compile("attention", attention.program, { nodes, outputs: ["y"] });
  const before = device.stats().pipelinesCreated;
  using _first = await compiled(fresh());
  const pipelines = device.stats().pipelinesCreated - before;
  for (let turn = 0; turn < WARM_UP + TURNS; turn += 1) {
    const nodes = fresh();
    using context = root.zeros(nodes);
    await device.awaitIdle();
    const start = performance.now();
    using code = await compiled(nodes);
    const middle = performance.now();
    using _routine = await context.link(code);
    const end = performance.now();
    if (turn < WARM_UP) continue;
    compiling.push(middle - start);
    linking.push(end - middle);
  }
  const created = device.stats().pipelinesCreated - before;
  if (created !== pipelines) {
    throw new Error(`bench: the block's ${pipelines} pipelines became ${created}: they were not cached, and were measured`);
  }
  const note = (goal: string) => `goal: under ${goal} ms; ${pipelines} kernels, cached`;
  return [
    { name: "compile the attention block from its text", unit: "ms", wgslab: spread(compiling), note: note("10") },
    { name: "link the attention block", unit: "ms", wgslab: spread(linking), note: note("1") },
  ];
}
