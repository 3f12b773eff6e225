// Short names for what the wasm and its glue call each other. wasm-bindgen's names of imports end in hashes, which do not
// compress: with wasm-opt's short ones the wasm is 3 % smaller after brotli, and the glue is smaller, too.

import { Failure } from "./proc.mjs";

/** The pass of wasm-opt that shortens names; it prints the old and the new ones, for {@link shortenGlue}. */
export const SHORT_NAMES = "--minify-imports-and-exports-and-modules";

/** The one module that all imports come from then. */
const MODULE = "a";

/**
 * wasm-bindgen's glue, with the names that the pass gave.
 *
 * @param {string} glue the text of the module
 * @param {string} printed what wasm-opt printed
 */
export function shortenGlue(glue, printed) {
  const { imports, exports } = parse(printed);
  const short = new Map(exports);
  let text = glue.replace(/\bwasm\.([\w$]+)/g, (all, name) => (short.has(name) ? `wasm.${short.get(name)}` : all));

  const [before, table, after] = cut(text, "    const import0 = {", "    return {", "    };");
  const own = new Map(imports.map(([, name, to]) => [name, to]));
  const [body, returned] = table.split("    return {");
  const entries = body.replace(/^ {8}(\w+): /gm, (all, name) => (own.has(name) ? `        ${own.get(name)}: ` : all));
  // Functions of snippets stay what their modules export.
  const namespaces = new Map(Array.from(returned.matchAll(/"(.+)": (import\d+),/g), ([, path, name]) => [path, name]));
  const snippets = imports
    .filter(([path]) => namespaces.get(path) !== "import0")
    .map(([path, name, to]) => `${to}: ${namespaces.get(path)}.${name}`);
  text = `${before}${entries}    return { ${MODULE}: { ${["...import0", ...snippets].join(", ")} } };${after}`;

  for (const [old] of [...exports, ...imports.map(([, name]) => [name])]) {
    const isLeft = text.includes(`wasm.${old}(`) || new RegExp(`^ {8}${old}: `, "m").test(text);
    if (isLeft) throw new Failure(`build: the glue has "${old}" in a place that short names do not reach`);
  }
  return text;
}

/** The text before, between and after: from the line `start` to the first `end` behind `middle`. */
function cut(text, start, middle, end) {
  const from = text.indexOf(start);
  const inside = text.indexOf(middle, from);
  const to = text.indexOf(end, inside);
  if (from < 0 || inside < 0 || to < 0) throw new Failure("build: wasm-bindgen's glue is not as expected; see short-names.mjs");
  return [text.slice(0, from), text.slice(from, to), text.slice(to + end.length)];
}

/** What the pass prints is JSON but for its trailing commas. */
function parse(printed) {
  const json = printed.slice(printed.indexOf("{")).replace(/,(\s*[\]}])/g, "$1");
  const { imports, exports } = JSON.parse(json);
  return { imports, exports };
}
