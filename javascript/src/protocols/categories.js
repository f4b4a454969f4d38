// Randomized response, local hashing, unary encodings, bit flips, subsets and noisy histograms: docs/wire.md.
import { bitsFor, put } from "../bytes.js";
import { refuse } from "../errors.js";
import { Noise } from "../noise.js";
import { ceilDivide, exact, oddsBelow, ratio, truthThreshold } from "../numbers.js";
import { below, biasedBits, flip, subset } from "../words.js";

const STEPS = 64;
const LONG = 1 << 20;

/** Return the coin of a truth that a of a + b reports support, which the specification must state. */
export function truthCoin(fields, a, b, epsilon = fields.any("epsilon"), name = "truth") {
  const threshold = truthThreshold(epsilon, BigInt(a), BigInt(b));
  fields.equals(name, threshold);
  return { threshold, bits: 64 };
}

export function limited(domain, most) {
  if (domain.size > most) refuse("domain", `have at most ${most} categories`, domain.size, "ask in parts");
  return domain.size;
}

/** Return an index below count where a coin falls on heads, and else another one. */
export function exchanged(index, count, coin, words) {
  const heads = flip(coin, words);
  const other = below(count - 1, words);
  return heads ? index : other + (other >= index);
}

export function randomizedResponse(fields, domain) {
  const coin = truthCoin(fields, 1, domain.size - 1);
  const bits = bitsFor(domain.size);
  return { bits, write: (record, x, words) => put(record, 0, bits, exchanged(x, domain.size, coin, words)) };
}

export const keyOf = (x) => {
  const high = Math.imul(x >>> 20, 0x9e379) & 0xfffff;
  return Math.imul((x >>> 0) ^ high, 0x9e3779b1);
};

export function hashOf(seed, key) {
  let v = Math.imul(seed ^ key, 0xed5ad4bb);
  v = Math.imul(v ^ (v >>> 11), 0xac4c1b51);
  return Math.imul(v ^ (v >>> 15), 0x31848bab) >>> 0;
}

export function localHashing(fields, domain) {
  limited(domain, 2 ** 32);
  fields.equals("hash", "mix3");
  const buckets = fields.whole("buckets", 2, 1 << 16);
  const coin = truthCoin(fields, 1, buckets - 1);
  const named = bitsFor(buckets);
  const write = (record, x, words) => {
    words.next();
    const seed = words.low;
    const bucket = Math.floor((hashOf(seed, keyOf(x)) * buckets) / 2 ** 32);
    put(record, 0, 32, seed);
    put(record, 32, named, exchanged(bucket, buckets, coin, words));
  };
  return { bits: 32 + named, write };
}

/** Draw the bits of a unary encoding of an index, in whole bytes. */
export function unaryBits(x, count, { heads, tails }, words) {
  const drawn = biasedBits(tails, Math.ceil(count / 8), words);
  const bit = 1 << (x & 7);
  drawn[x >> 3] = (drawn[x >> 3] & ~bit) | (flip(heads, words) ? bit : 0);
  return drawn;
}

/** Require that two coins, of a 1 where it is true and where not, keep epsilon. */
export function keeps(heads, tails, { top, bottom }, symmetric) {
  const [one, other] = [1n << BigInt(heads.bits), 1n << BigInt(tails.bits)];
  const [p, q] = [heads.threshold, tails.threshold];
  const private_ = symmetric
    ? one === other && p + q === one && p * bottom <= q * top
    : p * (other - q) * bottom <= q * (one - p) * top;
  if (!private_ || p * other <= q * one) {
    refuse("chances", "be those of epsilon");
  }
}

export const unary = (symmetric) => (fields, domain) => {
  const count = limited(domain, LONG);
  const [heads, tails] = [fields.coin("true"), fields.coin("other")];
  const epsilon = fields.any("epsilon");
  keeps(heads, tails, oddsBelow(symmetric ? epsilon / 2 : epsilon), symmetric);
  const spare = count % 8;
  const write = (record, x, words) => {
    const drawn = unaryBits(x, count, { heads, tails }, words);
    const last = count >> 3;
    record.set(drawn.subarray(0, last));
    if (spare) record[last] |= drawn[last] & ((1 << spare) - 1);
  };
  return { bits: count, write };
};

export function bitFlip(fields, domain) {
  const count = limited(domain, 1 << 24);
  const asked = fields.whole("asked", 1, Math.min(count, 4096));
  const epsilon = fields.any("epsilon");
  const coin = truthCoin(fields, 1, 1, asked === 1 ? epsilon : epsilon / 2);
  const named = bitsFor(count);
  const write = (record, x, words) => {
    const drawn = [...subset(count, asked, words)].sort((a, b) => a - b);
    drawn.forEach((index, place) => {
      put(record, place * (named + 1), named, index);
      put(record, place * (named + 1) + named, 1, +((index === x) === flip(coin, words)));
    });
  };
  return { bits: asked * (named + 1), write };
}

export function subsetSelection(fields, domain) {
  const count = limited(domain, LONG);
  const size = fields.whole("subset_size", 1, Math.max(1, count >> 1));
  const coin = truthCoin(fields, size, count - size);
  const named = bitsFor(count);
  const listed = size * named < count;
  const write = (record, x, words) => {
    const heads = flip(coin, words);
    const held = subset(count - 1, size, words, heads);
    // The draws are from all indices but the last one, which x stands for, and the reverse.
    if (held.delete(x)) held.add(count - 1);
    if (heads) held.add(x);
    if (listed) [...held].sort((a, b) => a - b).forEach((index, at) => put(record, at * named, named, index));
    else for (const index of held) record[index >> 3] |= 1 << (index & 7);
  };
  return { bits: listed ? size * named : count, write };
}

export function noisyHistogram(fields, domain) {
  const count = limited(domain, LONG);
  const { top, bottom } = exact(fields.any("epsilon"));
  const scale = ratio(2n * BigInt(STEPS) * bottom, top);
  const stated = fields.any("scale");
  fields.equals("steps", BigInt(STEPS));
  fields.same("scale", Array.isArray(stated) && stated.join("/"), `${scale.top}/${scale.bottom}`);
  const farthest = BigInt(STEPS) + ceilDivide(BigInt(STEPS) * scale.top, scale.bottom);
  fields.equals("limit", farthest);
  if (farthest >> 31n) refuse("epsilon", "be greater for noise of 4 bytes");
  const [limit, noise] = [Number(farthest), new Noise(scale)];
  const bits = limit < 1 << 15 ? 16 : 32;
  const write = (record, x, words) => {
    noise.draw(count, words).forEach((drawn, index) => {
      const number = Math.max(-limit, Math.min(limit, drawn + (index === x ? STEPS : 0)));
      for (let at = 0; at < bits; at += 8) record[(index * bits + at) >> 3] = number >> at;
    });
  };
  return { bits: bits * count, write };
}
