// Numbers between two bounds: windows on a grid, two of them mixed, and noise: docs/wire.md.
import { floor, named } from "../bytes.js";
import { SfumatoError, refuse } from "../errors.js";
import { listed } from "../fields.js";
import { noiseOf } from "../noise.js";
import { ceilDivide, exact, ratio } from "../numbers.js";
import { below, flip } from "../words.js";

export const FINEST = 1 << 14;

/** Read what all of them have, and return how a number becomes a place on the grid, and that a point of it. */
export function grid(fields, steps) {
  const [lower, upper] = fields.pair("bounds");
  if (!isFinite(upper - lower)) refuse("bounds", "be a finite distance apart");
  const encode = (value) => {
    if (typeof value !== "number" || !(value >= lower && value <= upper)) {
      throw new SfumatoError(`value must be a number from ${lower} to ${upper}, got another; clip it before`);
    }
    return ((value - lower) / (upper - lower)) * steps;
  };
  const point = (place, word) => {
    const low = Math.min(floor(place), steps - 1);
    return low + (word >> 11n < BigInt(floor((place - low) * 2 ** 53)));
  };
  return { encode, point };
}

/** Draw a report of a point from its window, or from elsewhere. */
function windowed(point, steps, window, coin, words) {
  const near = point + below(window, words);
  const far = below(steps, words);
  return flip(coin, words) ? near : far + (far >= point ? window : 0);
}

const windowMean = (finest) => async (fields) => {
  const steps = fields.whole("steps", 1, finest);
  const window = fields.whole("window", 1, steps);
  const coin = fields.truth(window, steps, "inside");
  const { encode, point } = grid(fields, steps);
  const made = named(window + steps, (place, words) => windowed(point(place, words.next()), steps, window, coin, words));
  return { ...made, encode };
};

async function hybridMean(fields) {
  const steps = fields.whole("steps", 1, FINEST);
  const [first, size, last] = listed(fields.any("parts"), 3);
  const window = fields.whole("parts", 1, steps, size);
  const part = (a, b, stated) => fields.truth(a, b, "parts", fields.epsilon, stated ?? null);
  const [bit, inside] = [part(1, 1, first), part(window, steps, last)];
  fields.whole("choice", 0, (1n << 64n) - 1n);
  const { choice } = fields.table;
  const { encode, point } = grid(fields, steps);
  const made = named(2 * (window + steps), (place, words) => {
    const at = point(place, words.next());
    const end = +(below(steps, words) < at);
    const one = windowed(end, 1, 1, bit, words);
    const piece = windowed(at, steps, window, inside, words);
    return choice && flip([choice, 64], words) ? 2 * piece + 1 : 2 * one;
  });
  return { ...made, encode };
}

async function laplaceMean(fields) {
  const steps = fields.whole("steps", 1, FINEST);
  const [top, bottom] = exact(fields.epsilon);
  const scale = ratio(BigInt(steps) * bottom, top);
  if (scale[0] > scale[1] << 24n) refuse("epsilon", "be at least 2**-10");
  const farthest = ceilDivide(64n * scale[0], scale[1]);
  fields.equals("reach", farthest);
  const [reach, draw] = [Number(farthest), noiseOf(scale)];
  const { encode, point } = grid(fields, steps);
  const made = named(steps + 2 * reach + 1, (place, words) => {
    const noisy = point(place, words.next()) + draw(1, words)[0];
    return Math.max(-reach, Math.min(steps + reach, noisy)) + reach;
  });
  return { ...made, encode };
}

/** Protocols that estimate means, by their names on the wire: pass them as `protocols`. */
export const means = {
  "hybrid-mean": hybridMean,
  "laplace-mean": laplaceMean,
  "one-bit-mean": windowMean(1),
  "piecewise-mean": windowMean(FINEST),
  "square-wave": windowMean(FINEST),
  "stochastic-rounding-mean": windowMean(FINEST),
};
