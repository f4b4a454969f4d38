// Protocols that memoize: a permanent draw for each value, and reports of what was drawn: docs/wire.md.
import { bitsFor, bytes, named, put } from "../bytes.js";
import { refuse } from "../errors.js";
import { memoizing } from "../memory.js";
import { below, flip, subset } from "../words.js";
import { ascending, exchanged, hashedTo, writeUnary } from "./categories.js";
import { randomizedBits, rappor } from "./hashes.js";
import { bitLayers, responseLayers, unaryLayers } from "./layers.js";
import { FINEST, grid } from "./means.js";

const nothing = () => null;
const itself = (x) => x;

export const longitudinalResponse = memoizing(async (fields) => {
  const count = await fields.domain();
  const { permanent, memo, again } = responseLayers(fields, count);
  const { bits, write } = named(count, (memoized, words) => exchanged(memoized, count, again, words));
  const memoize = (key, _, words) => exchanged(key, count, memo, words);
  const fresh = (record, memoized, _, words) => write(record, memoized, words);
  return { bits, keys: count, permanent, fix: nothing, keyOf: itself, memoize, fresh };
});

export const longitudinalHashing = memoizing(async (fields) => {
  await fields.domain(2 ** 32);
  fields.equals("hash", "mix3");
  const buckets = fields.whole("buckets", 2, 1 << 16);
  const { permanent, memo, again } = responseLayers(fields, buckets);
  const bits = bitsFor(buckets);
  const fix = (words) => Number(words.next() & 0xffffffffn);
  const keyOf = (x, seed) => hashedTo(buckets, seed, x);
  const memoize = (key, _, words) => exchanged(key, buckets, memo, words);
  const fresh = (record, memoized, seed, words) => {
    put(record, 0, 32, seed);
    put(record, 32, bits, exchanged(memoized, buckets, again, words));
  };
  return { bits: 32 + bits, keys: buckets, permanent, fix, keyOf, memoize, fresh };
});

export const longitudinalUnary = memoizing(async (fields) => {
  const count = await fields.domain(1 << 20);
  const { permanent, coins, high, low } = unaryLayers(fields);
  const memoize = (key, _, words) => {
    const memo = bytes(Math.ceil(count / 8));
    writeUnary(memo, key, count, coins, words);
    return [...memo];
  };
  const fresh = (record, memo, _, words) => {
    const drawn = randomizedBits(bytes(memo), high, low, words);
    for (let at = 0; at < count; at += 8) put(record, at, Math.min(8, count - at), drawn[at / 8]);
  };
  return { bits: count, keys: count, permanent, fix: nothing, keyOf: itself, memoize, fresh };
});

/** Report a memoized bit, by randomized response where there is a second layer. */
const reported = (bit, again, words) => (again ? +(bit === +flip(again, words)) : bit);

export const memoizedBitFlip = memoizing(async (fields) => {
  const count = await fields.domain(1 << 24);
  const asked = fields.whole("asked", 1, Math.min(count, 4096));
  const { permanent, memo, again } = bitLayers(fields, asked > 1 ? 2 : 1);
  const width = bitsFor(count);
  const fix = (words) => ascending(subset(count, asked, words));
  const keyOf = (x, drawn) => (drawn.includes(x) ? drawn.indexOf(x) : asked);
  const memoize = (key, drawn, words) => drawn.map((_, place) => +((place === key) === flip(memo, words)));
  const fresh = (record, bits, drawn, words) =>
    drawn.forEach((index, place) => {
      put(record, place * (width + 1), width, index);
      put(record, place * (width + 1) + width, 1, reported(bits[place], again, words));
    });
  return { bits: asked * (width + 1), keys: Math.min(asked + 1, count), permanent, fix, keyOf, memoize, fresh };
});

export const memoizedOneBitMean = memoizing(async (fields) => {
  const steps = fields.whole("steps", 1, FINEST);
  const { permanent, memo, again } = bitLayers(fields, 1);
  const { encode, point } = grid(fields, steps);
  const fix = (words) => String(words.next());
  const keyOf = (place, word) => point(place, BigInt(word));
  const memoize = (key, _, words) => {
    const upper = below(steps, words) < key;
    return +(upper === flip(memo, words));
  };
  const fresh = (record, bit, _, words) => put(record, 0, 1, reported(bit, again, words));
  return { bits: 1, encode, keys: steps + 1, permanent, fix, keyOf, memoize, fresh };
});

export const memoizedRappor = memoizing(async (fields) => {
  const { bits, encode, steps } = await rappor(fields);
  const { hashes, bits: positions } = fields.table;
  if (positions ** hashes >= 1n << 62n) refuse("hashes", "make at most 2**62 filters", hashes);
  const [threshold, shift] = steps.flips;
  const flips = Number(threshold) / 2 ** shift;
  // Rounded up: the odds are off by a part in 2^53, and so their logarithm, of at least 2^-14, by one in 2^39.
  const permanent = Number(hashes) * 2 * Math.log((1 - flips) / flips) * (1 + 2 ** -38);
  const fix = (words) => below(steps.cohorts, words);
  const keyOf = (value, cohort) => ascending(new Set(steps.positionsOf(cohort, value))).join();
  const memoize = (key, _, words) => [...steps.memoOf(key.split(",").map(Number), words)];
  const fresh = (record, memo, cohort, words) => steps.finish(record, bytes(memo), cohort, words);
  return { bits, encode, keys: Infinity, permanent, fix, keyOf, memoize, fresh };
});
