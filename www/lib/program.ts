// A program in index notation as it is given: its nodes by their names, and the names of its outputs.

import type { DType } from "./arrays.ts";
import { checkChoice, checkList, checkObject, checkText, checkWholeNumber } from "./checks.ts";
import { WgslabError } from "./errors.ts";
import type { Declared } from "./kernel.ts";
import { type TensorNode, checkNode } from "./node.ts";
import type { CompileIn } from "./optimize-ctx.ts";

/** What a program works on, and what it leaves. */
export interface ProgramSpec {
  /**
   * Nodes that the program works on: a list of nodes that go by their labels, or a record by their names in the program.
   * Others it declares or creates.
   */
  nodes?: readonly TensorNode<DType>[] | Readonly<Record<string, TensorNode<DType>>>;
  /**
   * A node that is read from the device's merge buffer, by its name in the program; one at most. The copy that puts it there
   * is `context.deviceToDevice` with `into: "merge-buffer"`; link behind that copy.
   */
  merged?: Readonly<Record<string, TensorNode<DType>>>;
  /** The context that the program is to be linked into, or a code that is to be linked before: it may read their virtual nodes. */
  in?: CompileIn;
  /** Names of nodes that contexts have after linking; if left out, those that are created and that no later statement reads. */
  outputs?: readonly string[];
  /**
   * Whether the ways in which kernels can be spread over the device are measured there, with the shapes of the program, so that
   * the fastest is taken. `off`, or left out: they are not, and the choice is the same on every run. `quick`: four for each kernel,
   * for a second at most; `full`: all, for twenty. No data is touched: kernels run on nodes of their own, which need room.
   *
   * What was measured is remembered, across visits where the page has IndexedDB. `code.explain()` says what was measured, and what
   * was not, and why. Nothing is measured on the host driver.
   *
   * ```ts
   * const code = await device.compile("layer", "y[i, j] +=! x[i, k] * w[k, j]", { nodes: [x, w], tune: "quick" });
   * ```
   */
  tune?: "off" | "quick" | "full";
  /** Milliseconds that measuring may take instead; what is begun is ended, so it may be a round of runs more. */
  tuneBudgetMs?: number;
  /** Rejects with the signal's reason when it fires. */
  signal?: AbortSignal;
}

/** A program of a batch. */
export interface Program {
  /** The name that messages and reports use. */
  name: string;
  /** The text in index notation. */
  program: string;
  /** What it works on. The signal of a batch is its own, and so is what it is compiled in. */
  spec?: Omit<ProgramSpec, "signal" | "in">;
}

const OPTIONS: readonly string[] = ["nodes", "merged", "outputs", "in", "tune", "tuneBudgetMs", "signal"];

/** A program, once its parts have the types that the wasm module takes. */
export function declareProgram(name: string, text: string, spec: Omit<ProgramSpec, "signal"> = {}): Declared {
  checkText("a program's name", name);
  checkText(`the text of "${name}"`, text);
  checkObject(`compile "${name}": the options`, spec, "pass { nodes, outputs } for a program, { tensors, grid } for WGSL");
  const strange = Object.keys(spec).find((key) => !OPTIONS.includes(key));
  if (strange !== undefined) {
    const message =
      `compile "${name}": a program has no option "${strange}", but nodes, merged, outputs, in, tune, tuneBudgetMs and signal; ` +
      "for a WGSL kernel pass its tensors and its grid";
    throw new WgslabError("unsupported", message);
  }
  const { nodes = [], merged = {}, outputs = [], tune = "off", tuneBudgetMs } = spec;
  checkObject(`compile "${name}": the nodes`, nodes, "pass a list of nodes, or a record by name");
  checkObject(`compile "${name}": what is merged`, merged, "pass a record with one node by its name in the program");
  const own = isList(nodes) ? nodes.map((node) => [node?.label, node] as const) : Object.entries(nodes);
  const named = [...own, ...Object.entries(merged)];
  for (const [, node] of named) checkNode(`compile "${name}": a node`, node);
  checkList(`compile "${name}": the outputs`, outputs);
  for (const output of outputs) checkText(`compile "${name}": an output's name`, output);
  checkChoice(`compile "${name}": tune`, tune, ["off", "quick", "full"]);
  if (tuneBudgetMs !== undefined) {
    checkWholeNumber(`compile "${name}": milliseconds of tuneBudgetMs`, tuneBudgetMs, 0, 2 ** 32 - 1);
  }
  const raw = {
    names: named.map(([name]) => name),
    merged: Object.keys(merged),
    outputs: [...outputs],
  };
  return { name, raw: [name, text, raw, named.map(([, { raw }]) => raw)], merged: raw.merged, tune: tune === "off" ? undefined : tune, tuneBudgetMs };
}

function isList(nodes: NonNullable<ProgramSpec["nodes"]>): nodes is readonly TensorNode<DType>[] {
  return Array.isArray(nodes);
}
