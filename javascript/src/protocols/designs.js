// Hadamard responses and projective geometry, whose reports are numbers that support some values: docs/wire.md.
import { bitsFor, put } from "../bytes.js";
import { refuse } from "../errors.js";
import { below, flip } from "../words.js";
import { limited, truthCoin } from "./categories.js";

const LARGEST = 1 << 26;

export function parity(number) {
  for (const shift of [16, 8, 4, 2, 1]) number ^= number >>> shift;
  return number & 1;
}

function powerOfTwo(fields, least, most) {
  const size = fields.whole("size", least, most);
  if (size & (size - 1)) refuse("size", "be a power of two", size);
  return size;
}

/** One bit about an index: the sign that its row of a Hadamard matrix has in a column. */
const oneColumn = (rowOf, signOf, rows) => (fields, domain) => {
  const size = powerOfTwo(fields, rows(limited(domain, LARGEST)), LARGEST);
  const coin = truthCoin(fields, 1, 1);
  const bits = bitsFor(2 * size);
  const write = (record, x, words) => {
    const heads = flip(coin, words);
    const column = below(size, words);
    put(record, 0, bits, 2 * column + (parity(column & rowOf(x)) ^ signOf(x) ^ +!heads));
  };
  return { bits, write };
};

export const oneBitHadamard = oneColumn((x) => x, () => 0, (count) => count);
export const signedHadamard = oneColumn((x) => x >> 1, (x) => x & 1, (count) => Math.ceil(count / 2));

export function hadamardResponse(fields, domain) {
  const count = limited(domain, LARGEST);
  const blocks = fields.whole("blocks", 1, count);
  const size = powerOfTwo(fields, 2, 2 * LARGEST);
  if (blocks * (size - 1) < count) refuse("size", "have a row for each category", size);
  const coin = truthCoin(fields, 1, 2 * blocks - 1);
  const bits = bitsFor(blocks * size);
  const write = (record, x, words) => {
    const heads = flip(coin, words);
    const block = Math.floor(x / (size - 1));
    const row = 1 + (x % (size - 1));
    const own = below(size, words);
    const other = below((2 * blocks - 1) * size, words);
    let report;
    if (heads || other < size) {
      const column = heads ? own : other;
      const turned = parity(column & row) === +heads ? row & -row : 0;
      report = block * size + (column ^ turned);
    } else {
      const beside = Math.floor((other - size) / 2);
      const away = Math.floor(beside / size);
      report = (away + (away >= block)) * size + (beside % size);
    }
    put(record, 0, bits, report);
  };
  return { bits, write };
}

export function projectiveGeometry(fields, domain) {
  const count = limited(domain, 1 << 24);
  const order = fields.whole("order", 2, 2 ** 25);
  const dimension = fields.whole("dimension", 2, 26);
  const planes = order ** (dimension - 1);
  const points = (length) => (order ** length - 1) / (order - 1);
  if (planes < count || order ** dimension > 2 ** 52) {
    refuse("dimension", "have room for each category, in at most 2**52 points", dimension);
  }
  const [all, with_] = [points(dimension), points(dimension - 1)];
  const coin = truthCoin(fields, with_, all - with_);
  const bits = bitsFor(all);
  const write = (record, x, words) => {
    const heads = flip(coin, words);
    let drawn = below(planes, words) - 1;
    if (heads && drawn < 0) drawn = below(planes - 1, words);
    if (drawn < 0) return;
    const start = Math.floor(drawn / (order - 1));
    const product = productOf(x, start);
    const last = (heads ? 0 : 1 + (drawn % (order - 1))) - product;
    put(record, 0, bits, 1 + order * start + (last < 0 ? last + order : last));
  };

  /** The scalar product of the digits of x with the coordinates of a point. */
  function productOf(x, start) {
    let length = 0;
    while (length + 1 < dimension - 1 && points(length + 1) <= start) length++;
    let y = start - points(length) + order ** length;
    let total = 0;
    for (let at = 0; at < dimension - 1; at++) {
      total = (total + (x % order) * (y % order)) % order;
      [x, y] = [Math.floor(x / order), Math.floor(y / order)];
    }
    return total;
  }

  return { bits, write };
}
