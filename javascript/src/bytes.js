// Bytes: texts, digests, and records of bits.

/** WebCrypto: global in browsers and from Node 20 on. */
export const webcrypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;

export const { floor } = Math;

/** Return bytes of a buffer, or so many zeros. */
export const bytes = (given) => new Uint8Array(given);
export const utf8 = (text) => new TextEncoder().encode(text);
export const hex = (given) => Array.from(given, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
export const joined = (parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
export const concat = (...parts) => joined(parts);
export const sha256 = async (given) => bytes(await webcrypto.subtle.digest("SHA-256", given));

/** Return the first bytes of words, the lowest byte of each first. */
export const bytesOf = (words, size) =>
  bytes(size).map((_, at) => Number((words[at >> 3] >> BigInt(8 * (at & 7))) & 255n));

/** Return the words of bytes. */
export function wordsOf(given) {
  const view = new DataView(concat(given).buffer);
  return new BigUint64Array(given.length / 8).map((_, at) => view.getBigUint64(8 * at, true));
}

/** Write a whole number into some bits that are 0, the lowest first. */
export function put(record, at, bits, number) {
  for (const end = at + bits; at < end; at++) {
    record[at >> 3] |= number % 2 << (at & 7);
    number = floor(number / 2);
  }
}

/** Return how many bits name one of so many things. */
export const bitsFor = (count) => (count > 1 ? (count - 1).toString(2).length : 0);

/** Return what writes a report that is one of so many numbers. */
export function named(count, numberOf) {
  const bits = bitsFor(count);
  return { bits, write: (record, x, words) => put(record, 0, bits, numberOf(x, words)) };
}

/** Return an empty record: zeros for the payload, then the tag. */
export function stamped(bits, digest) {
  const record = bytes(Math.ceil((bits + 32) / 8));
  for (let i = 0; bits + i < 8 * record.length; i++) put(record, bits + i, 1, digest[i >> 3] >> (i & 7));
  return record;
}
