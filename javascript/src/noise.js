// Discrete Laplace noise, exactly: tables of tail probabilities, and more words where a draw stays open.
import { expBounds, tailThresholds } from "./numbers.js";

const DIRECT = 128n;
const LEAST = 256;
const MOST = 8192;
const GUARD = 32n;
const SURE = 2 ** -30; // far more than exp and the products before it are off by

/** Return what draws numbers with chances proportional to exp(-|k| / scale), for a rational scale. */
export function noiseOf([top, bottom]) {
  let cell = 0n;
  while (top > (DIRECT << cell) * bottom) cell++;
  const tables = {};
  const tableOf = (bits) => (tables[bits] ??= tailThresholds([top, bottom << cell], !cell, bits));
  // One more entry, of 0: what lies below all others is open where it equals 0.
  const first = [...tableOf(63n), 0n];

  /** Return how many entries exceed a number of 63 bits, of which more are drawn where it equals one. */
  const lookUp = (value, words) => {
    let [above, end] = [0, first.length - 1];
    while (above < end) {
      const middle = (above + end) >> 1;
      if (first[middle] > value) above = middle + 1;
      else end = middle;
    }
    for (let table = first, bits = 127n; value === (table[above] ?? 0n); bits += 64n) {
      value = (value << 64n) | words.next();
      table = tableOf(bits);
      above = table.filter((entry) => entry > value).length;
    }
    return above;
  };

  /** Decide whether a uniform number, of which some bits are known, lies below exp(-offset / scale). */
  const taken = (value, width, offset, words) => {
    const chance = Math.exp((-Number(offset) * Number(bottom)) / Number(top));
    const place = Number(value) / 2 ** Number(width);
    if (Math.abs(place - chance) > SURE) return place < chance;
    for (;;) {
      const [low, high] = expBounds([offset * bottom, top], width + GUARD);
      if ((value + 1n) << GUARD <= low) return true;
      if (value << GUARD >= high) return false;
      value = (value << 64n) | words.next();
      width += 64n;
    }
  };

  /** Draw so many numbers. */
  return (count, words) => {
    const made = [];
    while (made.length < count) {
      const wanted = Math.min(count, made.length + MOST);
      const drawn = words.take((cell ? 2 : 1) * Math.max(wanted - made.length, LEAST));
      for (let at = 0; at < drawn.length; ) {
        const word = drawn[at++];
        let magnitude = lookUp(word >> 1n, words);
        if (cell) {
          const rest = drawn[at++];
          const offset = rest & ((1n << cell) - 1n);
          if (!taken(rest >> cell, 64n - cell, offset, words)) continue;
          magnitude = magnitude * 2 ** Number(cell) + Number(offset);
          if (word & 1n && !magnitude) continue;
        }
        if (made.length < wanted) made.push(word & 1n ? -magnitude : magnitude);
      }
    }
    return made;
  };
}
