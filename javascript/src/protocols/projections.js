// ProjUnit: of some random directions and their opposites, one along which a vector points is reported: docs/wire.md.
import { bitsFor, put } from "../bytes.js";
import { SfumatoError, refuse } from "../errors.js";
import { below, flip } from "../words.js";

const UNIT = 1 << 12;
const PARTS = 1 << 15;
const SEED_BITS = 40;
const SLACK = 1e-9;
const MASK = (1n << 64n) - 1n;
const STEP = 0x9e3779b97f4a7c15n;

/** Coefficients of Wichura (1988), AS 241: quotients for probabilities near 1/2, and for those beyond. */
const NEAR = [
  [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
    1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
  [5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
    687.1870074920579083, 42.313330701600911252, 1],
];
const BEYOND = [
  [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
    3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
  [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1],
];
const quotient = (pair, x) => {
  const [top, bottom] = pair.map((coefficients) => coefficients.reduce((sum, coefficient) => sum * x + coefficient));
  return top / bottom;
};

/** Return the normal quantile of 1/2 + q, for q from 0 to 1/2 - 2^-16. */
const quantile = (q) =>
  q <= 0.425 ? q * quotient(NEAR, 0.180625 - q * q) : quotient(BEYOND, Math.sqrt(-Math.log(0.5 - q)) - 1.6);

/** Return 2^16 whole numbers that together pass for normal, in units of 2^-12; the second half is the first, negated. */
export function normalTable() {
  const table = new Int16Array(2 * PARTS);
  const height = (at) => {
    const edge = at < PARTS ? quantile(at / (2 * PARTS)) : 0;
    return (edge * Math.exp((-edge * edge) / 2)) / Math.sqrt(2 * Math.PI);
  };
  for (let at = 0; at < PARTS; at++) {
    const square = 1 + 2 * PARTS * (height(at) - height(at + 1));
    table[at] = Math.max(Math.round(UNIT * Math.sqrt(square)), 1);
    table[PARTS + at] = -table[at];
  }
  return table;
}

let normal;

/** The output function of SplitMix64 (Steele, Lea, Flood 2014). */
function mixed(word) {
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return word ^ (word >> 31n);
}

/** Return how far a vector points along each of a seed's directions, by number. */
export function heights(seed, row, count) {
  normal ??= normalTable();
  let state = mixed((BigInt(seed) + STEP) & MASK);
  return Float64Array.from({ length: count }, () => {
    let [product, square] = [0, 0];
    for (let at = 0; at < row.length; at += 4) {
      state = (state + STEP) & MASK;
      const word = mixed(state);
      const halves = [Number(word & 0xffffffffn), Number(word >> 32n)];
      for (let i = at; i < Math.min(at + 4, row.length); i++) {
        const half = halves[(i - at) >> 1];
        const number = normal[i & 1 ? half >>> 16 : half & 0xffff];
        product += number * row[i];
        square += number * number;
      }
    }
    return product / Math.sqrt(square);
  });
}

async function projunit(fields) {
  const dimension = fields.whole("dimension", 2, 1 << 16);
  const radius = fields.float("radius");
  if (!(radius > 0)) refuse("radius", "be above 0", radius);
  const count = fields.whole("candidates", 2, 1 << 12);
  if (count % 2) refuse("candidates", "be even", count);
  const near = fields.whole("near", 1, count / 2);
  const coin = fields.truth(near, count - near, "inside");
  fields.equals("vectors", "splitmix-quantiles-1");
  const named = bitsFor(count);

  /** Return a vector in units of the radius; the one error does not show it. */
  const encode = (value) => {
    const given = Array.isArray(value) || value instanceof Float64Array || value instanceof Float32Array ? value : [];
    const row = Array.from(given, (part) => (typeof part === "number" ? part / radius : NaN));
    const norm = Math.sqrt(row.reduce((sum, part) => sum + part * part, 0));
    if (row.length === dimension && norm <= 1 + SLACK) return [row, Math.min(norm, 1)];
    throw new SfumatoError(`value must be a vector of ${dimension} numbers with a norm of at most ${radius}, got another; scale it down before`);
  };

  const write = (record, [row, norm], words) => {
    const seed = Number(words.next() >> BigInt(64 - SEED_BITS));
    const side = words.next() >> 11n < BigInt(Math.floor(((1 + norm) / 2) * 2 ** 53)) ? 1 : -1;
    const aimed = norm ? row : row.map((_, at) => +!at); // nothing points anywhere: any direction will do
    const found = heights(seed, aimed, count / 2);
    const along = (number) => (number < count / 2 ? side * found[number] : -side * found[number - count / 2]);
    const order = Array.from({ length: count }, (_, number) => number).sort((a, b) => along(b) - along(a));
    const inner = below(near, words);
    const outer = near + below(count - near, words);
    put(record, 0, SEED_BITS, seed);
    put(record, SEED_BITS, named, order[flip(coin, words) ? inner : outer]);
  };
  return { bits: SEED_BITS + named, encode, write };
}

/** Protocols that estimate mean vectors, by their names on the wire: pass them as `protocols`. */
export const vectors = { projunit };
