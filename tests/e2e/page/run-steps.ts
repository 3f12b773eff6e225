// A case that is a list of steps of the device layer.
// Byte ranges of a case become element ranges: the package counts elements.

import type { AxisRange, Code, Context, Device, KernelSpec, Routine, TensorNode, WgslabError } from "wgslab";
import { decode, encode } from "./case-data.ts";
import type { Case, CaseSpan, Step } from "./case-types.ts";
import { compareFailure, compareValues } from "./compare.ts";

/** The host driver refused a raw kernel, as it must: the steps behind that cannot be. */
class Refused {}

/** The largest error of the case's reads, or null where the host driver refused a kernel. */
export async function runSteps(testCase: Case, device: Device, owned: Disposable[]): Promise<number | null> {
  const stage = new Stage(testCase, device, owned);
  for (const [index, step] of (testCase.steps ?? []).entries()) {
    try {
      await attempt(stage, step);
    } catch (error) {
      if (error instanceof Refused) return null;
      throw new Error(`step ${index}, ${step.op}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return stage.maxError;
}

async function attempt(stage: Stage, step: Step): Promise<void> {
  try {
    await stage.step(step);
  } catch (error) {
    if (!step.error || error instanceof Refused) throw error;
    compareFailure(step.error, error);
    return;
  }
  if (step.error) throw new Error(`it must fail as ${step.error.kind}, and did not`);
}

/** What the steps have made so far. */
class Stage {
  maxError = 0;
  readonly #case: Case;
  readonly #device: Device;
  readonly #owned: Disposable[];
  readonly #nodes: Map<string, TensorNode>;
  readonly #contexts = new Map<string, Context>();
  readonly #routines = new Map<string, Routine>();

  constructor(testCase: Case, device: Device, owned: Disposable[]) {
    this.#case = testCase;
    this.#device = device;
    this.#owned = owned;
    this.#nodes = new Map(Object.entries(testCase.nodes ?? {}).map(([name, node]) => [name, device.node(name, node)]));
    this.#keep("root", device.context());
  }

  #keep(name: string, context: Context): void {
    this.#contexts.set(name, context);
    this.#owned.push(context);
  }

  #context(name: string): Context {
    return found(this.#contexts.get(name), `context "${name}"`);
  }

  #node(name: string): TensorNode {
    return found(this.#nodes.get(name), `node "${name}"`);
  }

  async step(step: Step): Promise<void> {
    switch (step.op) {
      case "allocate":
        return this.#keep(step.as, this.#context(step.context).zeros(step.nodes.map((name) => this.#node(name))));
      case "upload": {
        const pairs = Object.entries(step.data).map(([name, data]) => {
          const node = this.#node(name);
          return [node, encode(node.dtype, data)] as const;
        });
        return this.#keep(step.as, this.#context(step.context).uploadAll(pairs));
      }
      case "child":
        return this.#keep(step.as, this.#context(step.context).child());
      case "write": {
        const node = this.#node(step.node);
        this.#context(step.context).write(node, encode(node.dtype, step.data), { offset: step.at ?? 0 });
        return;
      }
      case "zero": {
        const node = this.#node(step.node);
        const [offset, length] = [elements(node, step.start), elements(node, step.len)];
        this.#context(step.context).zero(node, { offset, length });
        return;
      }
      case "copy": {
        const [from, to] = [this.#node(step.from), this.#node(step.to)];
        this.#context(step.context).copy(from, to, {
          srcOffset: elements(from, step.from_start ?? 0),
          dstOffset: elements(to, step.to_start ?? 0),
          length: elements(from, step.len),
        });
        return;
      }
      case "write_block": {
        const node = this.#node(step.node);
        this.#context(step.context).writeBlock(node, step.block.map(axisRange), encode(node.dtype, step.data));
        return;
      }
      case "read_block": {
        const node = this.#node(step.node);
        const got = decode(node.dtype, await this.#context(step.context).readBlock(node, step.block.map(axisRange)));
        const error = compareValues(step.node, { ...step, dtype: node.dtype, data: step.expect ?? [] }, got);
        this.maxError = Math.max(this.maxError, error);
        return;
      }
      case "copy_block": {
        const [from, to] = [this.#node(step.from), this.#node(step.to)];
        this.#context(step.context).copyBlock(from, step.from_block.map(axisRange), to, step.to_block.map(axisRange));
        return;
      }
      case "link":
        return this.#link(step.context, step.kernel, step.as);
      case "run": {
        const routine = found(this.#routines.get(step.routine), `routine "${step.routine}"`);
        for (let run = 0; run < (step.times ?? 1); run += 1) routine.run(step.statics);
        return;
      }
      case "read": {
        const node = this.#node(step.node);
        const got = decode(node.dtype, await this.#context(step.context).readback(node));
        const error = compareValues(step.node, { ...step, dtype: node.dtype, data: step.expect }, got);
        this.maxError = Math.max(this.maxError, error);
        return;
      }
      case "loc": {
        const loc = this.#context(step.context).loc(this.#node(step.node));
        return same(`loc of ${step.node}`, loc && [loc.poolId, loc.offset], step.expect);
      }
      case "report": {
        const { inUseBytes, paddingBytes, pools } = this.#device.report();
        const got = { in_use_bytes: inUseBytes, padding_bytes: paddingBytes, pool_count: pools.length };
        const { op: _, error: __, ...want } = step;
        return same("report", { ...got, ...want }, got);
      }
      case "finalize":
        return this.#context(step.context).dispose();
      case "free_constants":
        return same("bytes of constants freed", this.#device.freeUnusedConstants(), step.expect);
      case "compact":
        this.#device.compact();
        return;
      case "alloc_pool":
        return this.#device.allocPool(step.pool, step.size, { alignment: step.alignment ?? 256 });
      case "free_pool":
        return this.#device.freePool(step.pool);
      case "zero_pool":
        this.#device.memsetZero(step.pool, step.offset, step.len);
        return;
    }
  }

  async #compile(name: string, wgsl: string, spec: KernelSpec): Promise<Code> {
    if (this.#device.driver !== "host") return this.#device.compile(name, wgsl, spec);
    try {
      await this.#device.compile(name, wgsl, spec);
    } catch (error) {
      if ((error as WgslabError).code === "unsupported") throw new Refused();
      throw error;
    }
    throw new Error("the host driver compiled a raw kernel that it cannot execute");
  }

  async #link(context: string, name: string, as: string): Promise<void> {
    const { wgsl, tensors, grid, statics = [] } = found(this.#case.kernels?.[name], `kernel "${name}"`);
    const declared = Object.entries(tensors).map(([node, access]) => ({ node: this.#node(node), access }));
    using code = await this.#compile(name, wgsl, { tensors: declared, statics, grid });
    const routine = await this.#context(context).link(code);
    this.#owned.push(routine);
    this.#routines.set(as, routine);
    this.#contexts.set(as, routine.context);
  }
}

function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the case has no ${what}`);
  return value;
}

/** The package says where an axis ends, a case how many indices there are. */
function axisRange([start, extent, step = 1]: CaseSpan): AxisRange {
  return [start, extent === 0 ? start : start + (extent - 1) * step + 1, step];
}

function elements(node: TensorNode, bytes: number): number {
  const size = node.byteLength / node.length;
  if (bytes % size !== 0) throw new Error(`the package has no range of ${bytes} bytes of a ${node.dtype} node`);
  return bytes / size;
}

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what} is ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);
  }
}
