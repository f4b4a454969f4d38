// Apple's sketches and RAPPOR, whose hash functions are BLAKE2b: docs/wire.md.
import { blake2b } from "../blake2b.js";
import { bitsFor, bytes, bytesOf, concat, put, utf8, wordsOf } from "../bytes.js";
import { isText } from "../domain.js";
import { SfumatoError, refuse } from "../errors.js";
import { exact } from "../numbers.js";
import { below, biasedBits, flip } from "../words.js";
import { hashedTo, keeps, writeUnary } from "./categories.js";
import { parity } from "./designs.js";

export const sketch = (hadamard) => async (fields) => {
  await fields.domain(2 ** 32);
  const size = fields.power("size", 8, 1 << 16);
  const hashes = fields.whole("hashes", 2, 1 << 20);
  fields.whole("key", 0, (1n << 64n) - 1n);
  fields.equals("hash", "blake2b, mix3");
  const keyed = bytesOf([fields.table.key], 8);
  const bucketFor = (number, x) => {
    const seed = blake2b(bytesOf([BigInt(number)], 4), 4, "sfumato sketch", keyed);
    return hashedTo(size, seed.reduceRight((high, low) => (high << 8) | low), x);
  };
  const heads = fields.coin("truth");
  const [threshold, bits] = heads;
  const coins = [heads, [(1n << BigInt(bits)) - threshold, bits]];
  if (hadamard) fields.truth(1, 1, "truth", fields.epsilon, bits === 64 && threshold);
  else keeps(...coins, fields.epsilon, true);
  const width = hadamard ? bitsFor(2 * size) : size;
  const named = bitsFor(hashes);
  const write = (record, x, words) => {
    const number = below(hashes, words);
    const bucket = bucketFor(number, x);
    if (hadamard) {
      const entry = below(size, words);
      put(record, 0, width, 2 * entry + (parity(entry & bucket) ^ !flip(heads, words)));
    } else {
      writeUnary(record, bucket, size, coins, words);
    }
    put(record, width, named, number);
  };
  return { bits: width + named, write };
};

/** Return the coin of a chance in steps of 2^-16, with as few bits as it needs. */
function shortCoin(name, number, halved = 0) {
  const [top, bottom] = exact(number);
  let [threshold, bits] = [(top << 16n) / (bottom << BigInt(halved)), 16];
  if (threshold < 1 || threshold >> 16n) refuse(name, "be at least 2**-15 away from 0 and 1");
  for (; !(threshold & 1n); bits--) threshold >>= 1n;
  return [threshold, bits];
}

/** Return the bytes that a text or bytes are hashed as; the one error does not show them. */
function hashable(value) {
  if (value instanceof Uint8Array) return concat(utf8("b"), value);
  if (isText(value)) return utf8(`s${value}`);
  throw new SfumatoError("value must be well-formed text or a Uint8Array, got another; pass String(value)");
}

const xor = (one, other) => one.map((byte, at) => byte ^ other[at]);

/** Draw bits that are set as one coin falls where these are 1, and as another where they are 0. */
export function randomizedBits(bits, high, low, words) {
  const zeros = biasedBits(low, bits.length, words);
  if (low[1] === high[1] && low[0] + high[0] === 1n << BigInt(low[1])) return xor(bits, zeros);
  const ones = biasedBits(high, bits.length, words);
  return bits.map((byte, at) => (byte & ones[at]) | (~byte & zeros[at]));
}

/** RAPPOR, and its two steps: the memo of what is hashed in a cohort, and the record of a memo. */
export async function rappor(fields) {
  const hashes = fields.whole("hashes", 1, 8);
  const bits = fields.whole("bits", Math.max(8, 2 * hashes), 4096);
  if (bits % 8) refuse("bits", "be a multiple of 8", bits);
  const cohorts = fields.whole("cohorts", 1, 1 << 16);
  fields.equals("hash", "blake2b");
  const flips = shortCoin("permanent", fields.float("permanent"), 1);
  const fresh = fields.any("instantaneous") !== null && fields.pair("instantaneous").map((chance) => shortCoin("instantaneous", chance));
  const [low, high] = fresh || [[0n, 16], [1n << 16n, 16]];
  // Chances of a reported 1 where the filter is set and where not, in steps of 2^-32.
  const [flipped, least, most] = [flips, low, high].map(([threshold, shift]) => threshold << BigInt(16 - shift));
  const part = flipped * (most - least);
  keeps([(most << 16n) - part, 32], [(least << 16n) + part, 32], fields.epsilon, false, BigInt(hashes));
  const named = bitsFor(cohorts);
  const positionsOf = (cohort, value) => {
    const found = wordsOf(blake2b(concat(bytesOf([BigInt(cohort)], 4), value), 8 * hashes, "sfumato bloom"));
    return Array.from(found, (word) => Number(word % BigInt(bits)));
  };
  const memoOf = (positions, words) => {
    const filter = bytes(bits / 8);
    for (const position of positions) filter[position >> 3] |= 1 << (position & 7);
    return xor(filter, biasedBits(flips, bits / 8, words));
  };
  const finish = (record, memo, cohort, words) => {
    record.set(fresh ? randomizedBits(memo, high, low, words) : memo);
    put(record, bits, named, cohort);
  };
  const write = (record, value, words) => {
    const cohort = below(cohorts, words);
    finish(record, memoOf(positionsOf(cohort, value), words), cohort, words);
  };
  const steps = { cohorts, flips, positionsOf, memoOf, finish };
  return { bits: bits + named, write, encode: hashable, steps };
}
