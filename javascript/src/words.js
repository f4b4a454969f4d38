// Random words of 64 bits, as bigints, and what is drawn from them: coins, whole numbers, bits.
import { bytesOf, webcrypto } from "./bytes.js";

const BLOCK = 1 << 11;

/** A source of words. `fill` puts fresh random words into a BigUint64Array. */
export class Words {
  #fill;
  #block = new BigUint64Array(BLOCK);
  #next = BLOCK;

  constructor(fill) {
    this.#fill = fill;
  }

  next() {
    if (this.#next === BLOCK) {
      this.#fill(this.#block);
      this.#next = 0;
    }
    const word = this.#block[this.#next];
    this.#block[this.#next++] = 0n; // never handed out again
    return word;
  }

  take(count) {
    return new BigUint64Array(count).map(() => this.next());
  }
}

/** The system's cryptographic randomness, drawn in blocks. */
export const secureWords = new Words((block) => webcrypto.getRandomValues(block));

/** Flip a coin of chance threshold / 2^bits. */
export const flip = ([threshold, bits], words) => words.next() >> BigInt(64 - bits) < threshold;

/** Draw a whole number below a bigint. */
export function wholeBelow(bound, words) {
  const all = 1n << 64n;
  let word;
  do word = words.next();
  while (word >= all - (all % bound));
  return word % bound;
}

/** Draw a whole number below a number of at most 2^53. */
export const below = (bound, words) => Number(wholeBelow(BigInt(bound), words));

/** Draw bytes whose bits are each set as a coin falls; see docs/wire.md. */
export function biasedBits([threshold, bits], size, words) {
  const count = Math.ceil(size / 8);
  let heads = new BigUint64Array(count);
  for (let level = 0; level < bits; level++) {
    const join = (threshold >> BigInt(level)) & 1n;
    const row = words.take(count);
    heads = heads.map((word, i) => (join ? word | row[i] : word & row[i]));
  }
  return bytesOf(heads, size);
}

/** Draw a subset of `size` of the whole numbers below `count` (Floyd); on `skip` the first draw is left out. */
export function subset(count, size, words, skip) {
  const held = new Set();
  for (let last = count - size; last < count; last++, skip = false) {
    const drawn = below(last + 1, words);
    if (!skip) held.add(held.has(drawn) ? last : drawn);
  }
  return held;
}
