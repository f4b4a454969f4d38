// Randomized response, local hashing, unary encodings, bit flips, subsets and noisy histograms: docs/wire.md.
import { bitsFor, floor, named, put } from "../bytes.js";
import { refuse } from "../errors.js";
import { listed } from "../fields.js";
import { noiseOf } from "../noise.js";
import { ceilDivide, exact, oddsBelow, ratio } from "../numbers.js";
import { below, biasedBits, flip, subset } from "../words.js";

const STEPS = 64;
const LONG = 1 << 20;

/** Return an index below count where a coin falls on heads, and else another one. */
export function exchanged(index, count, coin, words) {
  const heads = flip(coin, words);
  const other = below(count - 1, words);
  return heads ? index : other + (other >= index);
}

export async function randomizedResponse(fields) {
  const count = await fields.domain();
  const coin = fields.truth(1, count - 1);
  return named(count, (x, words) => exchanged(x, count, coin, words));
}

/** Hash an index to one of some buckets by mix3. */
export function hashedTo(buckets, seed, x) {
  const key = Math.imul(x ^ (Math.imul(x >>> 20, 0x9e379) & 0xfffff), 0x9e3779b1);
  let v = Math.imul(seed ^ key, 0xed5ad4bb);
  v = Math.imul(v ^ (v >>> 11), 0xac4c1b51);
  v = Math.imul(v ^ (v >>> 15), 0x31848bab) >>> 0;
  return floor((v * buckets) / 2 ** 32);
}

export async function localHashing(fields) {
  await fields.domain(2 ** 32);
  fields.equals("hash", "mix3");
  const buckets = fields.whole("buckets", 2, 1 << 16);
  const coin = fields.truth(1, buckets - 1);
  return named(buckets * 2 ** 32, (x, words) => {
    const seed = Number(words.next() & 0xffffffffn);
    return exchanged(hashedTo(buckets, seed, x), buckets, coin, words) * 2 ** 32 + seed;
  });
}

/** Draw the bits of a unary encoding of an index into a record. */
export function writeUnary(record, x, count, [heads, tails], words) {
  const drawn = biasedBits(tails, Math.ceil(count / 8), words);
  const bit = 1 << (x & 7);
  drawn[x >> 3] = (drawn[x >> 3] & ~bit) | (flip(heads, words) && bit);
  if (count & 7) drawn[count >> 3] &= (1 << (count & 7)) - 1;
  drawn.forEach((byte, at) => (record[at] |= byte));
}

/** Require that two coins, of a 1 where it is true and where not, keep an epsilon, in so many bits together. */
export function keeps([p, bits], [q, others], epsilon, symmetric, hashes = 1n) {
  const [top, bottom] = oddsBelow(symmetric ? epsilon / 2 : epsilon);
  const [one, other] = [1n << BigInt(bits), 1n << BigInt(others)];
  const held = symmetric
    ? one === other && p + q === one && p * bottom <= q * top
    : (p * (other - q)) ** hashes * bottom <= (q * (one - p)) ** hashes * top;
  if (!held || p * other <= q * one) refuse("chances", "be those of epsilon");
}

export const unary = (symmetric) => async (fields) => {
  const count = await fields.domain(LONG);
  const coins = [fields.coin("true"), fields.coin("other")];
  keeps(...coins, fields.epsilon, symmetric);
  return { bits: count, write: (record, x, words) => writeUnary(record, x, count, coins, words) };
};

/** Return a list of whole numbers, the lowest first. */
export const ascending = (numbers) => [...numbers].sort((a, b) => a - b);

export async function bitFlip(fields) {
  const count = await fields.domain(1 << 24);
  const asked = fields.whole("asked", 1, Math.min(count, 4096));
  const coin = fields.truth(1, 1, "truth", fields.epsilon / (asked > 1 ? 2 : 1));
  const width = bitsFor(count);
  const write = (record, x, words) =>
    ascending(subset(count, asked, words)).forEach((index, place) => {
      put(record, place * (width + 1), width + 1, index + 2 ** width * ((index === x) === flip(coin, words)));
    });
  return { bits: asked * (width + 1), write };
}

export async function subsetSelection(fields) {
  const count = await fields.domain(LONG);
  const size = fields.whole("subset_size", 1, Math.max(1, count >> 1));
  const coin = fields.truth(size, count - size);
  const width = bitsFor(count);
  const short = size * width < count;
  const write = (record, x, words) => {
    const heads = flip(coin, words);
    const held = subset(count - 1, size, words, heads);
    // The draws are from all indices but the last one, which x stands for, and the reverse.
    if (held.delete(x)) held.add(count - 1);
    if (heads) held.add(x);
    ascending(held).forEach((index, at) => (short ? put(record, at * width, width, index) : put(record, index, 1, 1)));
  };
  return { bits: short ? size * width : count, write };
}

export async function noisyHistogram(fields) {
  const count = await fields.domain(LONG);
  const [top, bottom] = exact(fields.epsilon);
  const scale = ratio(2n * BigInt(STEPS) * bottom, top);
  fields.equals("steps", BigInt(STEPS));
  fields.equals("scale", `${scale}`, `${listed(fields.any("scale"), 2)}`);
  const limit = STEPS + Number(ceilDivide(BigInt(STEPS) * scale[0], scale[1]));
  fields.equals("limit", BigInt(limit));
  if (limit >= 2 ** 31) refuse("epsilon", "be greater for noise of 4 bytes");
  const draw = noiseOf(scale);
  const bits = limit < 1 << 15 ? 16 : 32;
  const write = (record, x, words) =>
    draw(count, words).forEach((drawn, index) => {
      const number = Math.max(-limit, Math.min(limit, drawn + (index === x ? STEPS : 0)));
      put(record, index * bits, bits, number + (number < 0 ? 2 ** bits : 0));
    });
  return { bits: bits * count, write };
}
