// esbuild with this project's settings: the bundle of the npm package, and pages that import the built package.

import { Failure } from "./proc.mjs";

// The newest syntax that every browser with WebGPU has; `using` is compiled down to it.
const TARGET = "es2022";

/**
 * Bundles entry points of TypeScript into ES modules.
 *
 * @param {string[]} entryPoints
 * @param {string} outdir
 * @param {{ packageUrl?: string, sourcemap?: boolean, splitting?: boolean, keepNames?: boolean }} [options] `packageUrl`:
 *   where pages find the built package, whose source is then never bundled into a page, so that they run what is published.
 *   `splitting`: what entry points have in common becomes a module of its own, and so exists once at run time;
 *   `keepNames`: classes keep their names, which messages say
 */
export async function bundle(entryPoints, outdir, { packageUrl, sourcemap = true, splitting = false, keepNames = false } = {}) {
  const esbuild = await import("esbuild");
  try {
    await esbuild.build({
      entryPoints,
      outdir,
      bundle: true,
      format: "esm",
      target: TARGET,
      sourcemap,
      splitting,
      keepNames,
      chunkNames: "shared-[hash]",
      legalComments: "none",
      loader: { ".wgsl": "text", ".wgslab": "text" },
      plugins: packageUrl ? [builtPackage(packageUrl)] : [],
      logLevel: "silent",
    });
  } catch (error) {
    const lines = await esbuild.formatMessages(error.errors ?? [], { kind: "error", color: false });
    throw new Failure(lines.length > 0 ? lines.join("\n").trimEnd() : String(error));
  }
}

/** One TypeScript text as an ES module, importing the built package from `packageUrl`. */
export async function bundleText(text, { packageUrl }) {
  const esbuild = await import("esbuild");
  const { outputFiles } = await esbuild.build({
    stdin: { contents: text, loader: "ts" },
    write: false,
    bundle: true,
    format: "esm",
    target: TARGET,
    plugins: [builtPackage(packageUrl)],
    logLevel: "silent",
  });
  return outputFiles[0].text;
}

/** `import … from "wgslab"`, or from www/lib/index, becomes an import of the built package; so do its other entry points. */
function builtPackage(packageUrl) {
  return {
    name: "built-package",
    setup(build) {
      build.onResolve({ filter: /^wgslab$|\/lib\/index(\.[jt]s)?$/ }, () => ({ path: packageUrl, external: true }));
      build.onResolve({ filter: /^wgslab\/low-level$/ }, () => ({
        path: packageUrl.replace(/index\.js$/, "low-level.js"),
        external: true,
      }));
    },
  };
}
