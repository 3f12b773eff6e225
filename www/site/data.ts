// The digits: reading the file, and the fixed shuffle and split that program.json describes.

import { type Batches, PROGRAM } from "./program.ts";

const PIXELS = 64;

/** The data set and its split. */
export interface Digits {
  /** 64 pixels a row, 0 (paper) to 16 (ink). */
  pixels: Uint8Array;
  /** The digit of each row. */
  labels: Uint8Array;
  /** Rows to train on, in the order of the shuffle. */
  trainOrder: Uint32Array;
  /** Rows to test on, in the order of the shuffle. */
  testOrder: Uint32Array;
}

/** Fetches and splits the digits. */
export async function loadDigits(url: string): Promise<Digits> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP status ${response.status}; serve the file beside the page`);
  const text = await gunzip(new Uint8Array(await response.arrayBuffer()));
  const rows = text.trim().split("\n");
  const pixels = new Uint8Array(rows.length * PIXELS);
  const labels = new Uint8Array(rows.length);
  for (const [index, row] of rows.entries()) {
    const values = row.split(",").map(Number);
    pixels.set(values.slice(0, PIXELS), index * PIXELS);
    labels[index] = values[PIXELS] ?? 0;
  }
  const order = shuffled(rows.length, PROGRAM.data.shuffle_seed);
  const trainLength = rows.length - Math.floor(rows.length * PROGRAM.data.test_fraction);
  return { pixels, labels, trainOrder: order.slice(0, trainLength), testOrder: order.slice(trainLength) };
}

/** The bytes of the program's inputs, by the names of their nodes. */
export function inputsOf({ pixels, labels, trainOrder, testOrder }: Digits, { count, rows }: Batches): Record<string, ArrayBufferView> {
  const { learning_rate, momentum } = PROGRAM.hyperparameters;
  return {
    pixels,
    labels,
    batch_rows: Uint32Array.from({ length: count * rows }, (_, at) => trainOrder[at % trainOrder.length] as number),
    test_rows: testOrder,
    rate: Float32Array.of(learning_rate),
    momentum: Float32Array.of(momentum),
    rows: Float32Array.of(rows),
  };
}

/** Some servers unpack `.gz` on the way (Content-Encoding); the first two bytes tell. */
async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (!isPacked) return new TextDecoder().decode(bytes);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** 0..length in the order of a Fisher-Yates shuffle by a 32-bit xorshift. */
export function shuffled(length: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length }, (_, index) => index);
  let x = seed >>> 0;
  for (let i = length - 1; i > 0; i--) {
    x = (x ^ (x << 13)) >>> 0;
    x = (x ^ (x >>> 17)) >>> 0;
    x = (x ^ (x << 5)) >>> 0;
    const j = x % (i + 1);
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}
