// Apple's sketches and RAPPOR, whose hash functions are BLAKE2b: docs/wire.md.
import { blake2b } from "../blake2b.js";
import { bitsFor, concat, numbered, put, utf8 } from "../bytes.js";
import { isText } from "../domain.js";
import { SfumatoError, refuse } from "../errors.js";
import { exact, oddsBelow, truthThreshold } from "../numbers.js";
import { below, biasedBits, flip } from "../words.js";
import { hashOf, keeps, keyOf, limited, unaryBits } from "./categories.js";
import { parity } from "./designs.js";

function sketch(fields, domain) {
  limited(domain, 2 ** 32);
  const size = fields.whole("size", 8, 1 << 16);
  if (size & (size - 1)) refuse("size", "be a power of two", size);
  const hashes = fields.whole("hashes", 2, 1 << 20);
  const key = fields.any("key");
  if (typeof key !== "bigint" || key < 0n || key >> 64n) refuse("key", "be below 2**64");
  fields.equals("hash", "blake2b, mix3");
  const keyed = numbered(key, 8);
  const shift = 32 - bitsFor(size);
  const bucketOf = (number, x) => {
    const seed = blake2b(numbered(number, 4), 4, "sfumato sketch", keyed);
    return hashOf(new DataView(seed.buffer).getInt32(0, true), keyOf(x)) >>> shift;
  };
  return { size, hashes, bucketOf, named: bitsFor(hashes) };
}

export function countMeanSketch(fields, domain) {
  const { size, hashes, bucketOf, named } = sketch(fields, domain);
  const heads = fields.coin("truth");
  const tails = { threshold: (1n << BigInt(heads.bits)) - heads.threshold, bits: heads.bits };
  keeps(heads, tails, oddsBelow(fields.any("epsilon") / 2), true);
  const write = (record, x, words) => {
    const number = below(hashes, words);
    record.set(unaryBits(bucketOf(number, x), size, { heads, tails }, words));
    put(record, size, named, number);
  };
  return { bits: size + named, write };
}

export function hadamardCountMeanSketch(fields, domain) {
  const { size, hashes, bucketOf, named } = sketch(fields, domain);
  const coin = fields.coin("truth");
  fields.same("truth", coin.threshold, coin.bits === 64 && truthThreshold(fields.any("epsilon"), 1n, 1n));
  const entries = bitsFor(size);
  const write = (record, x, words) => {
    const number = below(hashes, words);
    const bucket = bucketOf(number, x);
    const entry = below(size, words);
    put(record, 0, 1, parity(entry & bucket) ^ +!flip(coin, words));
    put(record, 1, entries, entry);
    put(record, 1 + entries, named, number);
  };
  return { bits: 1 + entries + named, write };
}

/** Return the coin of a chance in steps of 2^-16, with as few bits as it needs. */
function shortCoin(name, { top, bottom }) {
  let [threshold, bits] = [(top << 16n) / bottom, 16];
  if (threshold < 1n || threshold >> 16n) refuse(name, "be at least 2**-15 away from 0 and 1");
  for (; !(threshold & 1n); bits--) threshold >>= 1n;
  return { threshold, bits };
}

/** Return the bytes that a text or bytes are hashed as; the one error does not show them. */
function hashable(value) {
  if (value instanceof Uint8Array) return concat(utf8("b"), value);
  if (isText(value)) return concat(utf8("s"), utf8(value));
  throw new SfumatoError("value must be well-formed text or a Uint8Array, got another; pass String(value)");
}

function rapporCoins(fields) {
  const permanent = exact(fields.float("permanent"));
  const flips = shortCoin("permanent", { top: permanent.top, bottom: 2n * permanent.bottom });
  const stated = fields.any("instantaneous");
  if (stated === null) return { flips, fresh: null };
  const [low, high] = fields.pair("instantaneous").map((x) => shortCoin("instantaneous", exact(x)));
  return { flips, fresh: { low, high } };
}

/** Require that a report of so many hashes keeps epsilon: chances are in steps of 2^-32 here. */
function checkRappor(epsilon, hashes, { flips, fresh }) {
  const scaled = (coin) => coin.threshold << BigInt(16 - coin.bits);
  const [low, high] = fresh ? [scaled(fresh.low), scaled(fresh.high)] : [0n, 1n << 16n];
  const [p, q] = [(low << 16n) + scaled(flips) * (high - low), (high << 16n) - scaled(flips) * (high - low)];
  const one = 1n << 32n;
  const { top, bottom } = oddsBelow(epsilon);
  if (q <= p || (q * (one - p)) ** hashes * bottom > (p * (one - q)) ** hashes * top) {
    refuse("epsilon", "be that of the chances");
  }
}

export function rappor(fields) {
  const hashes = fields.whole("hashes", 1, 8);
  const bits = fields.whole("bits", Math.max(8, 2 * hashes), 4096);
  if (bits % 8) refuse("bits", "be a multiple of 8", bits);
  const cohorts = fields.whole("cohorts", 1, 1 << 16);
  fields.equals("hash", "blake2b");
  const coins = rapporCoins(fields);
  checkRappor(fields.any("epsilon"), BigInt(hashes), coins);
  const { flips, fresh } = coins;
  const [size, named] = [bits / 8, bitsFor(cohorts)];

  const filter = (cohort, value) => {
    const positions = new Uint8Array(size);
    const found = blake2b(concat(numbered(cohort, 4), value), 8 * hashes, "sfumato bloom");
    const view = new DataView(found.buffer);
    for (let at = 0; at < 8 * hashes; at += 8) {
      const position = Number(view.getBigUint64(at, true) % BigInt(bits));
      positions[position >> 3] |= 1 << (position & 7);
    }
    return positions;
  };
  const memoOf = (cohort, value, words) => xor(filter(cohort, value), biasedBits(flips, size, words));
  const instant = (memo, words) => {
    if (!fresh) return memo;
    const { low, high } = fresh;
    const zeros = biasedBits(low, size, words);
    const even = low.bits === high.bits && low.threshold + high.threshold === 1n << BigInt(low.bits);
    if (even) return xor(memo, zeros);
    const ones = biasedBits(high, size, words);
    return memo.map((byte, at) => (byte & ones[at]) | (~byte & zeros[at]));
  };
  const finish = (record, memo, cohort, words) => {
    record.set(instant(memo, words));
    put(record, bits, named, cohort);
  };
  const write = (record, value, words) => {
    const cohort = below(cohorts, words);
    finish(record, memoOf(cohort, value, words), cohort, words);
  };
  const client = (key, digest) => {
    const stream = (label, length) => {
      const made = [];
      for (let at = 0; at < length; at += 64) {
        made.push(blake2b(concat(numbered(at / 64, 4), digest, label), 64, "sfumato rappor", key));
      }
      return concat(...made);
    };
    const drawn = new DataView(stream(utf8("cohort"), 16).buffer);
    const number = (drawn.getBigUint64(8, true) << 64n) | drawn.getBigUint64(0, true);
    const cohort = Number(number % BigInt(cohorts));
    const memo = (value) => {
      const length = 8 * Math.ceil(bits / 64) * flips.bits;
      const held = new DataView(stream(concat(utf8("memo"), value), length).buffer);
      let at = 0;
      const given = { take: (count) => Uint32Array.from({ length: 2 * count }, () => held.getUint32(4 * at++, true)) };
      return memoOf(cohort, value, given);
    };
    return { cohort, memo, write: (record, value, source) => finish(record, memo(value), cohort, source) };
  };
  return { bits: bits + named, write, encode: hashable, client };
}

const xor = (one, other) => one.map((byte, at) => byte ^ other[at]);
