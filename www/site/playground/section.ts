// The section in which a visitor writes programs: a text that is checked while it is typed, inputs that are filled, and what
// a run gives, as a picture and as numbers.

import "./playground.css";
import { NotationError, type TensorNode } from "../../lib/index.ts";
import { byId, element } from "../dom.ts";
import { EXAMPLES, type Example } from "./examples.ts";
import { GENERATORS, type Generator, generate } from "./generators.ts";
import { draw, numbers, range } from "./picture.ts";
import { type DriverName, Session, type Signature, type Timing, check } from "./session.ts";

const CHECK_AFTER_MS = 250;

/** An element by the name that the section gives it. */
function part<T extends HTMLElement = HTMLElement>(name: string): T {
  return byId<T>(`play-${name}`);
}

function typeText({ dtype, shape }: TensorNode): string {
  return shape.length === 0 ? dtype : `${dtype}[${shape.join(", ")}]`;
}

function options(choices: Iterable<readonly [value: string, text: string]>): HTMLOptionElement[] {
  return Array.from(choices, ([value, text]) => element("option", { value }, [text]));
}

class Playground {
  readonly #text = part<HTMLTextAreaElement>("text");
  readonly #show = part<HTMLSelectElement>("show");
  readonly #run = part<HTMLButtonElement>("run");
  readonly #play = part<HTMLButtonElement>("play");
  readonly #fills = new Map<string, HTMLSelectElement>();
  readonly #statics = new Map<string, HTMLInputElement>();
  #example: Example = EXAMPLES[0] as Example;
  #session: Session | undefined;
  #isPlaying = false;
  /** What was begun ends before the next thing begins. */
  #last: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    const menu = part<HTMLSelectElement>("example");
    menu.append(...options(EXAMPLES.map(({ name }, index) => [String(index), name])));
    menu.addEventListener("change", () => this.choose(Number(menu.value)));
    const driver = part<HTMLSelectElement>("driver");
    driver.addEventListener("change", () => this.#restart());
    this.#text.addEventListener("input", () => {
      this.#stop();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#then(() => this.#check()), CHECK_AFTER_MS);
    });
    this.#show.addEventListener("change", () => this.#then(() => this.#display()));
    this.#run.addEventListener("click", () => this.#restart());
    this.#play.addEventListener("click", () => (this.#isPlaying ? this.#stop() : this.#start()));
  }

  /** Runs the first example: on the GPU, or on the host driver where there is no adapter. */
  async begin(): Promise<void> {
    const adapter = await navigator.gpu?.requestAdapter().catch(() => null);
    part<HTMLSelectElement>("driver").value = adapter ? "gpu" : "host";
    this.choose(0);
  }

  /** Takes an example, and runs it. */
  choose(index: number): void {
    this.#example = EXAMPLES[index] as Example;
    this.#text.value = this.#example.text;
    this.#text.rows = this.#example.text.split("\n").length;
    this.#fills.clear();
    this.#statics.clear();
    this.#show.replaceChildren();
    this.#restart();
  }

  /** Does something when all before it is done, and shows what goes wrong. */
  #then(work: () => Promise<unknown>): void {
    this.#last = this.#last.then(work).then(() => {}, (error: unknown) => this.#say(error));
  }

  #stop(): void {
    this.#isPlaying = false;
    this.#play.textContent = "Play";
  }

  /** Links the text anew, fills it, and runs it once. */
  #restart(): void {
    this.#stop();
    clearTimeout(this.#timer);
    this.#then(async () => {
      if (this.#run.disabled || !(await this.#check())) return;
      this.#close();
      part("timing").textContent = "Running …";
      const session = await Session.link(this.#text.value, part<HTMLSelectElement>("driver").value as DriverName);
      this.#session = session;
      for (const [at, input] of session.signature.inputs.entries()) {
        const generator = (this.#fills.get(input.label)?.value ?? "noise") as Generator;
        session.fill(input, generate(generator, input.shape, at + 1));
      }
      this.#time(await session.run(this.#values()));
      await this.#display();
    });
  }

  /** Goes on from what the last run left, a run a frame. */
  #start(): void {
    this.#isPlaying = true;
    this.#play.textContent = "Pause";
    const frame = async (): Promise<void> => {
      const session = this.#session;
      // Nothing runs beside a training.
      if (!this.#isPlaying || !session || this.#run.disabled) return this.#stop();
      this.#time(await session.run(this.#values()));
      await this.#display();
      requestAnimationFrame(() => this.#then(frame));
    };
    this.#then(frame);
  }

  #close(): void {
    this.#session?.[Symbol.dispose]();
    this.#session = undefined;
  }

  /** Says what is wrong with the text, or offers what it needs; whether it is right. */
  async #check(): Promise<boolean> {
    const checked = await check(this.#text.value);
    if (checked instanceof NotationError) {
      this.#close();
      this.#play.hidden = true;
      this.#say(checked);
      return false;
    }
    this.#say();
    this.#offer(checked);
    return true;
  }

  /** The mistake with its line and a caret, an error in words, or nothing. */
  #say(error?: unknown): void {
    const said = part("error");
    this.#text.setAttribute("aria-invalid", String(error !== undefined));
    if (error === undefined) return said.replaceChildren();
    this.#stop();
    part("timing").textContent = "";
    if (!(error instanceof NotationError)) {
      return said.replaceChildren(element("p", {}, [error instanceof Error ? error.message : String(error)]));
    }
    const places = error.diagnostics.map(({ line, column, message, excerpt }) => [
      element("p", {}, [element("b", {}, [`${line}:${column}`]), ` ${message}`]),
      element("pre", {}, [`${excerpt}\n${excerpt.slice(0, column - 1).replace(/[^\t]/g, " ")}^`]),
    ]);
    said.replaceChildren(...places.flat());
  }

  /** Menus for the inputs and the results, and fields for statics; those that were there keep what was chosen. */
  #offer({ inputs, outputs, statics }: Signature): void {
    const fields: HTMLElement[] = [];
    const keep = <T extends HTMLElement>(known: Map<string, T>, names: readonly string[], make: (name: string) => T): void => {
      for (const name of known.keys()) if (!names.includes(name)) known.delete(name);
      for (const name of names) if (!known.has(name)) known.set(name, make(name));
    };
    keep(this.#fills, inputs.map(({ label }) => label), (name) => {
      const menu = element("select", {}, options(Object.entries(GENERATORS)));
      menu.value = this.#example.fill?.[name] ?? "noise";
      menu.addEventListener("change", () => this.#restart());
      return menu;
    });
    keep(this.#statics, statics, () => {
      const field = element("input", { type: "number", value: "0", step: "1" });
      field.addEventListener("change", () => this.#restart());
      return field;
    });
    for (const input of inputs) {
      const menu = this.#fills.get(input.label) as HTMLSelectElement;
      fields.push(element("label", {}, [element("code", {}, [`${input.label}: ${typeText(input)}`]), menu]));
    }
    for (const [name, field] of this.#statics) fields.push(element("label", {}, [element("code", {}, [`@${name}`]), field]));
    part("inputs").replaceChildren(...fields);
    const shown = this.#show.value || this.#example.show || "";
    this.#show.replaceChildren(...options(outputs.map((node) => [node.label, `${node.label}: ${typeText(node)}`])));
    const isThere = outputs.some(({ label }) => label === shown);
    this.#show.value = isThere ? shown : (outputs.at(-1)?.label ?? "");
    this.#play.hidden = !inputs.some((input) => outputs.some(({ label }) => label === input.label));
  }

  #values(): Record<string, number> {
    return Object.fromEntries(Array.from(this.#statics, ([name, field]) => [name, Number(field.value)]));
  }

  #time({ compile, link, run }: Timing): void {
    const time = (milliseconds: number): string => `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
    const where = this.#session?.device.name ?? "";
    part("timing").textContent = `${where}: ran in ${time(run)}; compiled in ${time(compile)}, linked in ${time(link)}`;
  }

  /** Draws the node that is chosen. */
  async #display(): Promise<void> {
    const node = this.#session?.signature.outputs.find(({ label }) => label === this.#show.value);
    const canvas = part<HTMLCanvasElement>("picture");
    if (!this.#session || !node) {
      canvas.hidden = true;
      for (const name of ["range", "numbers"]) part(name).textContent = "";
      return;
    }
    const values = await this.#session.read(node);
    canvas.hidden = !draw(canvas, node.shape, values);
    const [least, most] = range(values).map((value) => String(Number(value.toPrecision(4))));
    canvas.setAttribute("aria-label", `${node.label}, from ${least} to ${most}`);
    part("range").textContent = values.length > 1 ? `${least} to ${most}` : "";
    part("numbers").textContent = numbers(node.shape, values);
  }
}

/** Makes the section work, once it is seen: before that, nothing is loaded for it. */
export function setUpPlayground(): void {
  const playground = new Playground();
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    observer.disconnect();
    void playground.begin();
  });
  observer.observe(byId("playground"));
}
