// What the playground does with the package: checks a text, and keeps one program linked, filled and ready to run.

import { type Code, type Context, Device, NotationError, type Routine, type TensorNode } from "../../lib/index.ts";
import { toArray, toNumbers } from "./generators.ts";

/** Which driver runs the program. */
export type DriverName = "gpu" | "host";

/** What a program wants and gives. */
export interface Signature {
  /** Declared nodes that it reads. */
  readonly inputs: readonly TensorNode[];
  /** Nodes that a context has afterwards and that it does not merely read. */
  readonly outputs: readonly TensorNode[];
  /** Integers that each run gives. */
  readonly statics: readonly string[];
}

/** How long the parts of a run took, in milliseconds. */
export interface Timing {
  readonly compile: number;
  readonly link: number;
  readonly run: number;
}

/** The name that messages use. */
const NAME = "playground";

const devices = new Map<DriverName, Promise<Device>>();

/** The device of a driver, opened once, and anew when it was lost. */
function open(driver: DriverName): Promise<Device> {
  const known = devices.get(driver);
  if (known) return known;
  const opening = Device.open({ driver });
  const forget = (): void => void devices.delete(driver);
  opening.then(({ lost }) => lost.then(forget), forget);
  devices.set(driver, opening);
  return opening;
}

/** What a text wants and gives, or the mistake in it. It is compiled on the host driver, which takes no GPU. */
export async function check(text: string): Promise<Signature | NotationError> {
  const device = await open("host");
  try {
    using code = await device.compile(NAME, text);
    return signature(code, text);
  } catch (error) {
    if (error instanceof NotationError) return error;
    throw error;
  }
}

/** Names that a text declares; comments aside. */
function declared(text: string): Set<string> {
  const matches = text.replace(/#.*/g, "").matchAll(/(?:^|[;\n])\s*(\w+)\s*:\s*(?:f32|f16|bf16|[iu]32|[iu]8|bool)\b/g);
  return new Set(Array.from(matches, ([, name]) => name as string));
}

function signature({ nodes, tensors, statics }: Code, text: string): Signature {
  const isDeclared = declared(text);
  const isRead = new Set(tensors.filter(({ access }) => access === "read").map(({ node }) => node));
  return {
    inputs: tensors.filter(({ name, access }) => access !== "write" && isDeclared.has(name)).map(({ node }) => node),
    outputs: Object.values(nodes).filter((node) => !isRead.has(node)),
    statics,
  };
}

/** A program, linked on a device. */
export class Session implements Disposable {
  readonly device: Device;
  readonly signature: Signature;
  readonly #root: Context;
  readonly #code: Code;
  readonly #routine: Routine;
  readonly #compiled: Pick<Timing, "compile" | "link">;

  private constructor(root: Context, code: Code, routine: Routine, text: string, compiled: Pick<Timing, "compile" | "link">) {
    this.device = root.device;
    this.signature = signature(code, text);
    this.#root = root;
    this.#code = code;
    this.#routine = routine;
    this.#compiled = compiled;
  }

  /** Compiles and links a program; its declared nodes are zeros. */
  static async link(text: string, driver: DriverName): Promise<Session> {
    const device = await open(driver);
    const start = performance.now();
    const code = await device.compile(NAME, text);
    const compiled = performance.now();
    const root = device.context();
    try {
      const routine = await root.link(code);
      return new Session(root, code, routine, text, { compile: compiled - start, link: performance.now() - compiled });
    } catch (error) {
      for (const made of [root, code]) made.dispose();
      throw error;
    }
  }

  /** Fills an input. */
  fill(input: TensorNode, values: Float64Array): void {
    this.#routine.context.write(input, toArray(input.dtype, values) as never);
  }

  /** Runs once, and waits for the end. */
  async run(statics: Readonly<Record<string, number>>): Promise<Timing> {
    // What is recorded before is not part of the run.
    await this.device.awaitIdle();
    const start = performance.now();
    await this.#routine.run(statics).completed;
    return { ...this.#compiled, run: performance.now() - start };
  }

  /** The values of a node. */
  async read(node: TensorNode): Promise<Float64Array> {
    return toNumbers(node.dtype, await this.#routine.context.readback(node));
  }

  [Symbol.dispose](): void {
    for (const made of [this.#routine, this.#root, this.#code]) made.dispose();
  }
}
