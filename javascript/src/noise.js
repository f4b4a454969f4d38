// Discrete Laplace noise, exactly: tables of tail probabilities, and more words where a draw stays open.
import { expBounds, tailThresholds } from "./numbers.js";

const DIRECT = 128n;
const LEAST = 256;
const MOST = 8192;
const GUARD = 32n;
const SURE = 2 ** -30; // far more than exp and the products before it are off by

/** Noise with chances proportional to exp(-|k| / scale), for a rational scale. */
export class Noise {
  #tables = new Map();

  constructor(scale) {
    this.scale = scale;
    this.low = 0n;
    while (scale.top > (DIRECT << this.low) * scale.bottom) this.low++;
    this.rate = Number(scale.bottom) / Number(scale.top);
    const table = this.#table(63n);
    this.count = table.length;
    // One more entry, of 0: what lies below all others is open where it equals 0.
    this.tops = Uint32Array.from([...table, 0n], (entry) => Number(entry >> 32n));
    this.rests = Uint32Array.from([...table, 0n], (entry) => Number(entry & 0xffffffffn));
  }

  #table(bits) {
    if (!this.#tables.has(bits)) {
      const { top, bottom } = this.scale;
      const found = tailThresholds({ top, bottom: bottom << this.low }, !this.low, bits);
      this.#tables.set(bits, found);
    }
    return this.#tables.get(bits);
  }

  /** Draw so many numbers. */
  draw(count, words) {
    const made = [];
    while (made.length < count) {
      const missing = Math.min(count - made.length, MOST);
      this.#block(missing, Math.max(missing, LEAST), words, made);
    }
    return made;
  }

  #block(wanted, size, words, made) {
    const each = this.low ? 2 : 1;
    const halves = words.take(each * size);
    const end = made.length + wanted;
    for (let at = 0; at < halves.length; at += 2 * each) {
      const magnitude = this.#magnitude(halves[at], halves[at + 1], halves, at + 2, words);
      const minus = halves[at] & 1;
      if (magnitude < 0 || (this.low && minus && !magnitude)) continue;
      if (made.length < end) made.push(minus ? -magnitude : magnitude);
    }
  }

  /** Return the magnitude of one draw, or -1 if it is refused. */
  #magnitude(low, high, halves, at, words) {
    const cell = this.#lookUp(((low >>> 1) | (high << 31)) >>> 0, high >>> 1, words);
    if (!this.low) return cell;
    const second = (BigInt(halves[at + 1]) << 32n) | BigInt(halves[at]);
    const offset = second & ((1n << this.low) - 1n);
    if (!this.#taken(second >> this.low, 64n - this.low, offset, words)) return -1;
    return cell * 2 ** Number(this.low) + Number(offset);
  }

  #lookUp(rest, top, words) {
    const { tops, rests } = this;
    let [above, end] = [0, this.count];
    while (above < end) {
      const middle = (above + end) >> 1;
      const exceeds = tops[middle] > top || (tops[middle] === top && rests[middle] > rest);
      if (exceeds) above = middle + 1;
      else end = middle;
    }
    if (tops[above] !== top || rests[above] !== rest) return above;
    return this.#open((BigInt(top) << 32n) | BigInt(rest), words);
  }

  #open(value, words) {
    for (let bits = 127n; ; bits += 64n) {
      value = (value << 64n) | words.big();
      const table = this.#table(bits);
      const above = table.filter((entry) => entry > value).length;
      if (value !== (table[above] ?? 0n)) return above;
    }
  }

  /** Decide whether a uniform number, of which some bits are known, lies below exp(-offset / scale). */
  #taken(value, width, offset, words) {
    const chance = Math.exp(-Number(offset) * this.rate);
    const place = Number(value) / 2 ** Number(width);
    if (place + SURE < chance) return true;
    if (place - SURE > chance) return false;
    const exponent = { top: offset * this.scale.bottom, bottom: this.scale.top };
    for (;;) {
      const [low, high] = expBounds(exponent, width + GUARD);
      if ((value + 1n) << GUARD <= low) return true;
      if (value << GUARD >= high) return false;
      value = (value << 64n) | words.big();
      width += 64n;
    }
  }
}

