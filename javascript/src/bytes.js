// Bytes: texts, digests, and records of bits.
import { webcrypto } from "./words.js";

export const utf8 = (text) => new TextEncoder().encode(text);
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

export function concat(...parts) {
  const made = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    made.set(part, at);
    at += part.length;
  }
  return made;
}

export const sha256 = async (bytes) => new Uint8Array(await webcrypto.subtle.digest("SHA-256", bytes));

/** Whole numbers as bytes, the lowest first. */
export function numbered(number, size) {
  const made = new Uint8Array(size);
  put(made, 0, 8 * size, number);
  return made;
}

/** Write a number of at least 0, or a bigint, into some bits that are 0. */
export function put(bytes, at, bits, number) {
  const big = typeof number === "bigint";
  for (let end = at + bits; at < end; at++) {
    if (big ? number & 1n : number % 2) bytes[at >> 3] |= 1 << (at & 7);
    number = big ? number >> 1n : Math.floor(number / 2);
  }
}

/** Return how many bits name one of so many things. */
export const bitsFor = (count) => (count > 1 ? (count - 1).toString(2).length : 0);

/** Return an empty record: zeros for the payload, then the tag. */
export function stamped(bits, digest) {
  const record = new Uint8Array(Math.ceil((bits + 32) / 8));
  for (let at = bits, i = 0; at < 8 * record.length; at++, i++) {
    record[at >> 3] |= ((digest[i >> 3] >> (i & 7)) & 1) << (at & 7);
  }
  return record;
}
