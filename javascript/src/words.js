// Random words of 64 bits, as two halves, and what is drawn from them: coins, whole numbers, bits.

/** WebCrypto: global in browsers and from Node 20 on. */
export const webcrypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;

const BLOCK = 1 << 12;
const HALF = 4294967296;
const FAST = 1 << 21;

/** A source of words. `fill` puts fresh random numbers into a Uint32Array: the low half of each word comes first. */
export class Words {
  #fill;
  #block = new Uint32Array(BLOCK);
  #next = BLOCK;

  constructor(fill) {
    this.#fill = fill;
    this.taken = 0;
    this.low = this.high = 0;
  }

  /** Take one word, whose halves are `low` and `high` until the next one. */
  next() {
    if (this.#next === BLOCK) {
      this.#fill(this.#block);
      this.#next = 0;
    }
    const at = this.#next;
    this.low = this.#block[at];
    this.high = this.#block[at + 1];
    this.#block[at] = this.#block[at + 1] = 0; // never handed out again
    this.#next = at + 2;
    this.taken++;
  }

  /** Take one word as a bigint. */
  big() {
    this.next();
    return (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  /** Take some words, as their halves. */
  take(count) {
    const halves = new Uint32Array(2 * count);
    for (let i = 0; i < 2 * count; i += 2) {
      this.next();
      halves[i] = this.low;
      halves[i + 1] = this.high;
    }
    return halves;
  }
}

/** The system's cryptographic randomness, drawn in blocks. */
export const secureWords = new Words((block) => webcrypto.getRandomValues(block));

/** Flip a coin of chance threshold / 2^bits. */
export function flip({ threshold, bits }, words) {
  return words.big() >> BigInt(64 - bits) < threshold;
}

/** Draw a whole number below a bigint. */
export function wholeBelow(bound, words) {
  const last = (1n << 64n) - ((1n << 64n) % bound);
  let word = words.big();
  while (word >= last) word = words.big();
  return word % bound;
}

/** Draw a whole number below a number of at most 2^53. */
export function below(bound, words) {
  if (bound > FAST) return Number(wholeBelow(BigInt(bound), words));
  const refused = HALF - (((HALF % bound) * HALF) % bound);
  do words.next();
  while (words.high === HALF - 1 && words.low >= refused);
  return ((words.high % bound) * HALF + words.low) % bound;
}

/** Draw bytes whose bits are each set as a coin falls; see docs/wire.md. */
export function biasedBits({ threshold, bits }, size, words) {
  const count = Math.ceil(size / 8);
  const heads = new Uint32Array(2 * count);
  for (let level = 0; level < bits; level++) {
    const row = words.take(count);
    const join = (threshold >> BigInt(level)) & 1n;
    for (let i = 0; i < row.length; i++) heads[i] = join ? heads[i] | row[i] : heads[i] & row[i];
  }
  return littleEndian(heads).subarray(0, size);
}

/** Draw a subset of `size` of the whole numbers below `count` (Floyd); on `skip` the first draw is left out. */
export function subset(count, size, words, skip = false) {
  const held = new Set();
  for (let last = count - size, first = skip; last < count; last++, first = false) {
    const drawn = below(last + 1, words);
    if (!first) held.add(held.has(drawn) ? last : drawn);
  }
  return held;
}

/** Return the bytes of numbers of 32 bits. */
export function littleEndian(halves) {
  const bytes = new Uint8Array(4 * halves.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = halves[i >> 2] >>> (8 * (i & 3));
  return bytes;
}
