// A small local web server: folders under URL prefixes, modules and wasm with their types, no caching.

import { createServer } from "node:http";
import { Failure } from "./proc.mjs";

// A page that is isolated from other origins gets timers of 5 µs instead of 100 µs.
const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/**
 * Serves folders on 127.0.0.1 (WebGPU needs a secure context, and localhost is one).
 *
 * @param {Record<string, string>} folders URL prefix, ending in `/`, to folder; the longest prefix wins
 * @param {{ port?: number, home?: string, handlers?: Record<string, Function> }} [options] `port` 0 takes any free one;
 *   `home` is where `/` leads; `handlers` answer what comes under their prefixes, with the address as it is
 * @returns {Promise<{ url: string, close(): Promise<void> }>}
 */
export async function serve(folders, { port = 0, home = "/", handlers = {} } = {}) {
  const { default: sirv } = await import("sirv");
  const routes = Object.entries(folders)
    .sort(([a], [b]) => b.length - a.length)
    .map(([prefix, folder]) => ({ prefix, handler: sirv(folder, { dev: true, etag: true }) }));

  const server = createServer((request, response) => {
    const missing = () => response.writeHead(404, { "content-type": "text/plain" }).end(`no ${request.url} here\n`);
    for (const [name, value] of Object.entries(ISOLATION)) response.setHeader(name, value);
    if (request.url === "/" && home !== "/") return response.writeHead(302, { location: home }).end();
    const handler = Object.keys(handlers).find((prefix) => request.url?.startsWith(prefix));
    if (handler) return handlers[handler](request, response);
    const route = routes.find(({ prefix }) => request.url?.startsWith(prefix));
    if (!route) return missing();
    request.url = request.url.slice(route.prefix.length - 1);
    return route.handler(request, response, missing);
  });
  await new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const remedy = error.code === "EADDRINUSE" ? "; leave out --port to take any free one" : "";
      reject(new Failure(`serve: port ${port}: ${error.message}${remedy}`));
    });
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
