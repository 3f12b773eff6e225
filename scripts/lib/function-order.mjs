// An order of a wasm's functions in which like ones stand side by side: brotli finds what they share, and the file is 2 % smaller.
//
// wasm-opt can sort functions by their names and renumbers all that refers to them, so the order is written as names.

import { brotliCompressSync } from "node:zlib";
import { Failure } from "./proc.mjs";

/** Bytes of a piece of code: what two functions have in common, in whatever places. */
const PIECE = 4;

/** Pieces that more functions than these have say nothing about likeness. */
const MOST_OWNERS = 500;

/** How many functions before it the next one is to be like; the order that compresses best is taken. */
const LOOKS_BACK = [1, 2, 3, 4, 6, 8];

const CODE = 10;
const IMPORT = 2;
const FUNCTION_IMPORT = 0;

/**
 * The same module with a name section after which `--reorder-functions-by-name` puts like functions side by side.
 *
 * @param {Uint8Array} wasm a module without names
 * @returns {Uint8Array}
 */
export function nameByLikeness(wasm) {
  const { bodies, imported } = functions(wasm);
  const rank = new Array(bodies.length);
  const orders = likenessOrders(bodies).map((order) => {
    const bytes = brotliCompressSync(Buffer.concat(order.map((at) => bodies[at]))).length;
    return { order, bytes };
  });
  const best = orders.reduce((one, other) => (other.bytes < one.bytes ? other : one));
  best.order.forEach((at, place) => (rank[at] = place));
  const names = rank.map((place, at) => [imported + at, String(place).padStart(6, "0")]);
  const map = [...leb(names.length), ...names.flatMap(([at, name]) => [...leb(at), ...text(name)])];
  const payload = [...text("name"), 1, ...leb(map.length), ...map];
  return Buffer.concat([wasm, Buffer.from([0, ...leb(payload.length), ...payload])]);
}

/** The bodies of a module's functions, and how many functions it imports, which are numbered before them. */
function functions(wasm) {
  let at = 8;
  const next = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = wasm[at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  };
  const skip = (count) => (at += count);
  const bodies = [];
  let imported = 0;
  while (at < wasm.length) {
    const id = wasm[at++];
    const length = next();
    const end = at + length;
    if (id === IMPORT) {
      for (let left = next(); left > 0; left--) {
        skip(next());
        skip(next());
        if (wasm[at++] !== FUNCTION_IMPORT) throw new Failure("build: the wasm imports something that is no function");
        next();
        imported++;
      }
    } else if (id === CODE) {
      for (let left = next(); left > 0; left--) {
        const length = next();
        bodies.push(wasm.subarray(at, at + length));
        skip(length);
      }
    }
    at = end;
  }
  return { bodies, imported };
}

function likenessOrders(bodies) {
  const pieces = bodies.map((body) => {
    const found = new Set();
    for (let at = 0; at + PIECE <= body.length; at++) found.add(body.readUInt32LE(at));
    return found;
  });
  const owners = new Map();
  pieces.forEach((found, at) => {
    for (const piece of found) {
      if (!owners.has(piece)) owners.set(piece, []);
      owners.get(piece).push(at);
    }
  });
  return LOOKS_BACK.map((looksBack) => likenessOrder(pieces, owners, looksBack));
}

/** Each function is followed by the one, of those that are left, which shares the largest part of its rare pieces. */
function likenessOrder(pieces, owners, looksBack) {
  const left = new Set(pieces.keys());
  const order = [];
  for (let here = 0; left.size > 0; ) {
    left.delete(here);
    order.unshift(here);
    const shared = new Map();
    order.slice(0, looksBack).forEach((before, distance) => {
      for (const piece of pieces[before]) {
        const having = owners.get(piece);
        if (having.length > MOST_OWNERS) continue;
        const weight = 1 / Math.log2(1 + having.length) / (1 + distance);
        for (const other of having) if (left.has(other)) shared.set(other, (shared.get(other) ?? 0) + weight);
      }
    });
    let [next] = left;
    let most = -1;
    for (const [other, weight] of shared) {
      const likeness = weight / (20 + pieces[other].size);
      if (likeness > most) [next, most] = [other, likeness];
    }
    here = next;
  }
  return order.reverse();
}

function leb(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return [...bytes, value];
}

const text = (value) => [...leb(value.length), ...Buffer.from(value)];
