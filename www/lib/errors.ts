// Errors as JavaScript sees them: one class with a code to decide by, and one more each for errors in the texts of programs
// and of kernels.

/** Every code, in the order of the crate's `ErrorKind`; a test compares the two. */
export const ERROR_CODES = [
  "no-adapter",
  "limit-exceeded",
  "unsupported",
  "out-of-memory",
  "device-lost",
  "unknown-node",
  "duplicate-node",
  "shape-mismatch",
  "dtype-mismatch",
  "merge-mismatch",
  "not-run",
  "disposed",
  "notation-syntax",
  "notation-meaning",
  "kernel-syntax",
  "kernel-interface",
  "pipeline-rejected",
  "map-failed",
  "bug",
] as const;

/** What went wrong, in the terms that a program can act on. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** A place in the author's text, and what is wrong there. */
export interface Diagnostic {
  /** Line in the author's text, from 1. */
  readonly line: number;
  /** Column in the author's text, in characters, from 1. */
  readonly column: number;
  /** What is wrong. */
  readonly message: string;
  /** The line itself. */
  readonly excerpt: string;
}

/** The error of every call of this package. The message is one line: object, numbers, remedy. */
export class WgslabError extends Error {
  /** What to decide by. */
  readonly code: ErrorCode;
  /** Whether the same call can succeed later, after freeing memory or waiting. */
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "WgslabError";
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** An error in a kernel: in its text, in what it declares, or in the pipeline that the driver made of it. */
export class KernelError extends WgslabError {
  /** The places in the author's text, in order. Empty where the driver names none. */
  readonly diagnostics: readonly Diagnostic[];

  constructor(
    code: ErrorCode,
    message: string,
    diagnostics: readonly Diagnostic[],
    options: { retryable?: boolean; cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.name = "KernelError";
    this.diagnostics = diagnostics;
  }
}

/**
 * An error in the text of a program in index notation: `notation-syntax` where it is not well formed, and for what has no
 * meaning `notation-meaning`, or the code that says more: `unknown-node`, `duplicate-node`, `shape-mismatch`,
 * `dtype-mismatch`, `limit-exceeded`. The message goes on with the line and a caret under the place.
 */
export class NotationError extends WgslabError {
  /** The places in the author's text: where the mistake is, then the other place that it is about, if there is one. */
  readonly diagnostics: readonly Diagnostic[];
  /** Line in the author's text, from 1. */
  readonly line: number;
  /** Column in the author's text, in characters, from 1. */
  readonly column: number;
  /** The line itself. */
  readonly excerpt: string;

  constructor(
    code: ErrorCode,
    message: string,
    diagnostics: readonly [Diagnostic, ...Diagnostic[]],
    options: { retryable?: boolean; cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.name = "NotationError";
    this.diagnostics = diagnostics;
    ({ line: this.line, column: this.column, excerpt: this.excerpt } = diagnostics[0]);
  }
}

const KERNEL_CODES: ReadonlySet<ErrorCode> = new Set(["kernel-syntax", "kernel-interface", "pipeline-rejected"]);

/** What the wasm module throws, as an error of this package. */
export function fromSkin(thrown: unknown): WgslabError {
  if (thrown instanceof WgslabError) return thrown;
  const { code, message, retryable, diagnostics } = (thrown ?? {}) as {
    code?: unknown;
    message?: unknown;
    retryable?: unknown;
    diagnostics?: readonly Diagnostic[];
  };
  const known = ERROR_CODES.find((one) => one === code);
  if (known === undefined) {
    return new WgslabError("bug", `bug: ${String(message ?? thrown)}; please report it`, { cause: thrown });
  }
  const options = { retryable: retryable === true };
  if (KERNEL_CODES.has(known)) return new KernelError(known, String(message), diagnostics ?? [], options);
  const [first, ...rest] = diagnostics ?? [];
  // Only texts have places, and the other texts are kernels.
  return first
    ? new NotationError(known, String(message), [first, ...rest], options)
    : new WgslabError(known, String(message), options);
}
