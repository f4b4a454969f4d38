// Numbers between two bounds: windows on a grid, two of them mixed, and noise: docs/wire.md.
import { bitsFor, put } from "../bytes.js";
import { SfumatoError, refuse } from "../errors.js";
import { Noise } from "../noise.js";
import { ceilDivide, exact, ratio } from "../numbers.js";
import { below, flip } from "../words.js";
import { truthCoin } from "./categories.js";

const FINEST = 1 << 14;

/** Read what all of them have, and return how a number becomes a point of the grid. */
function grid(fields, steps) {
  const [lower, upper] = fields.pair("bounds");
  if (!Number.isFinite(upper - lower)) refuse("bounds", "be a finite distance apart");
  const encode = (value) => {
    if (typeof value !== "number" || !(value >= lower && value <= upper)) {
      throw new SfumatoError(`value must be a number from ${lower} to ${upper}, got another; clip it before`);
    }
    return ((value - lower) / (upper - lower)) * steps;
  };
  const point = (place, words) => {
    const low = Math.min(Math.floor(place), steps - 1);
    return low + (words.big() >> 11n < BigInt(Math.floor((place - low) * 2 ** 53)));
  };
  return { encode, point };
}

/** Draw a report of a point from its window, or from elsewhere. */
function windowed(point, steps, window, coin, words) {
  const near = point + below(window, words);
  const far = below(steps, words);
  return flip(coin, words) ? near : far + (far >= point ? window : 0);
}

export const windowMean = (oneBit) => (fields) => {
  const steps = oneBit ? fields.whole("steps", 1, 1) : fields.whole("steps", 1, FINEST);
  const window = fields.whole("window", 1, steps);
  const coin = truthCoin(fields, window, steps, fields.any("epsilon"), "inside");
  const { encode, point } = grid(fields, steps);
  const bits = bitsFor(window + steps);
  const write = (record, place, words) =>
    put(record, 0, bits, windowed(point(place, words), steps, window, coin, words));
  return { bits, write, encode };
};

export function hybridMean(fields) {
  const steps = fields.whole("steps", 1, FINEST);
  const [parts, choice] = [fields.any("parts"), fields.any("choice")];
  const given = Array.isArray(parts) && parts.length === 3 ? parts : [];
  const window = fields.checkedWhole("parts", given[1], 1, steps);
  const part = (at, a, b) => {
    const stated = { equals: (_, wanted) => fields.same("parts", given[at], wanted) };
    return truthCoin(stated, a, b, fields.any("epsilon"));
  };
  const [bit, inside] = [part(0, 1, 1), part(2, window, steps)];
  if (typeof choice !== "bigint" || choice < 0n || choice >> 64n) {
    refuse("choice", "be a chance below 1");
  }
  const { encode, point } = grid(fields, steps);
  const bits = 1 + bitsFor(window + steps);
  const write = (record, place, words) => {
    const at = point(place, words);
    const end = +(below(steps, words) < at);
    const one = windowed(end, 1, 1, bit, words);
    const piece = windowed(at, steps, window, inside, words);
    const chosen = choice && flip({ threshold: choice, bits: 64 }, words);
    put(record, 0, bits, chosen ? 2 * piece + 1 : 2 * one);
  };
  return { bits, write, encode };
}

export function laplaceMean(fields) {
  const steps = fields.whole("steps", 1, FINEST);
  const { top, bottom } = exact(fields.any("epsilon"));
  const scale = ratio(BigInt(steps) * bottom, top);
  if (scale.top > scale.bottom << 24n) refuse("epsilon", "be at least 2**-10");
  const farthest = ceilDivide(64n * scale.top, scale.bottom);
  fields.equals("reach", farthest);
  const [reach, noise] = [Number(farthest), new Noise(scale)];
  const { encode, point } = grid(fields, steps);
  const bits = bitsFor(steps + 2 * reach + 1);
  const write = (record, place, words) => {
    const noisy = point(place, words) + noise.draw(1, words)[0];
    put(record, 0, bits, Math.max(-reach, Math.min(steps + reach, noisy)) + reach);
  };
  return { bits, write, encode };
}
