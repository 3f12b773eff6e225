// A page that is worked in over plain HTTP: it asks our server for tasks and posts their results. So any browser will do
// that can be started with an address; no protocol of drivers is needed, which differ by browser and version.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure, ROOT } from "./proc.mjs";

/** The script that such a page must have. */
export const REMOTE_SCRIPT = "/remote/page.js";

// Servers, browsers and proxies drop a request that takes too long; the page asks again.
const LONG_POLL_MS = 20_000;

/** The server's half: `handle` answers what comes under `/remote/`, `page` is what tests and scripts work with. */
export function remote({ onConsole } = {}) {
  const client = new RemotePage();
  const handle = async (request, response) => {
    const path = request.url.replace(/\?.*$/, "");
    if (path === REMOTE_SCRIPT) {
      response.writeHead(200, { "content-type": "text/javascript" });
      return response.end(await readFile(join(ROOT, "scripts/lib/remote-page.js")));
    }
    if (path === "/remote/task") return client.ask(response);
    const value = JSON.parse(await bodyOf(request));
    response.writeHead(204).end();
    if (path === "/remote/result") client.settle(value);
    if (path === "/remote/fault") client.faults.push(value);
    if (path === "/remote/console") onConsole?.(value.text, value.type === "warn" ? "warning" : value.type);
  };
  return { page: client, handle };
}

/** A page in a browser, with those methods of Playwright's pages that the tests use. */
class RemotePage {
  /** What went wrong outside of any task. */
  faults = [];
  #nextId = 0;
  #tasks = [];
  #open = new Map();
  #asking;
  #broken;

  /** Runs a function with one argument, or an expression, in the page; arguments and results are JSON. */
  async evaluate(body, argument) {
    const code = typeof body === "function" ? `(${body})(argument)` : `(${body})`;
    return this.#task(code, argument);
  }

  /** Waits until a function gives something true in the page. */
  async waitForFunction(body) {
    await this.#task(`{ while (!(await (${body})())) await new Promise((resolve) => setTimeout(resolve, 20)); }`);
  }

  /** Ends everything that is under way, and all that comes, with that error. */
  fail(error) {
    this.#broken ??= error;
    for (const { reject } of this.#open.values()) reject(this.#broken);
    this.#open.clear();
  }

  #task(code, argument) {
    return new Promise((resolve, reject) => {
      if (this.#broken) return reject(this.#broken);
      const id = this.#nextId++;
      this.#open.set(id, { resolve, reject });
      this.#tasks.push({ id, code, argument });
      this.#handOut();
    });
  }

  /** The page asks for a task. */
  ask(response) {
    const late = setTimeout(() => {
      this.#asking = undefined;
      response.writeHead(204).end();
    }, LONG_POLL_MS);
    this.#asking = (task) => {
      clearTimeout(late);
      this.#asking = undefined;
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(task));
    };
    response.on("close", () => clearTimeout(late));
    this.#handOut();
  }

  #handOut() {
    if (this.#asking && this.#tasks.length > 0) this.#asking(this.#tasks.shift());
  }

  settle({ id, value, error }) {
    const task = this.#open.get(id);
    this.#open.delete(id);
    if (error === undefined) task?.resolve(value);
    else task?.reject(new Failure(`page: ${error}`));
  }
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
