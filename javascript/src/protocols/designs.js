// Hadamard responses and projective geometry, whose reports are numbers that support some values: docs/wire.md.
import { floor, named } from "../bytes.js";
import { refuse } from "../errors.js";
import { below, flip } from "../words.js";

const LARGEST = 1 << 26;

export function parity(number) {
  let odd = 0;
  for (; number; number &= number - 1) odd ^= 1;
  return odd;
}

/** One bit about an index: the sign that its row of a Hadamard matrix has in a column. */
export const oneColumn = (signed) => async (fields) => {
  const count = await fields.domain(LARGEST);
  const size = fields.power("size", Math.ceil(count / (1 + signed)), LARGEST);
  const coin = fields.truth(1, 1);
  return named(2 * size, (x, words) => {
    const heads = flip(coin, words);
    const column = below(size, words);
    return 2 * column + (parity(column & (x >> signed)) ^ (x & signed) ^ !heads);
  });
};

export async function hadamardResponse(fields) {
  const count = await fields.domain(LARGEST);
  const blocks = fields.whole("blocks", 1, count);
  const size = fields.power("size", 2, 2 * LARGEST);
  if (blocks * (size - 1) < count) refuse("size", "have a row for each category", size);
  const coin = fields.truth(1, 2 * blocks - 1);
  return named(blocks * size, (x, words) => {
    const heads = flip(coin, words);
    const block = floor(x / (size - 1));
    const row = 1 + (x % (size - 1));
    const own = below(size, words);
    const other = below((2 * blocks - 1) * size, words);
    const beside = floor((other - size) / 2);
    const away = floor(beside / size);
    const column = heads ? own : other;
    const turned = parity(column & row) === +heads ? row & -row : 0;
    const near = heads || other < size;
    return near ? block * size + (column ^ turned) : (away + (away >= block)) * size + (beside % size);
  });
}

export async function projectiveGeometry(fields) {
  const count = await fields.domain(1 << 24);
  const order = fields.whole("order", 2, 2 ** 25);
  const dimension = fields.whole("dimension", 2, 26);
  const planes = order ** (dimension - 1);
  const points = (length) => (order ** length - 1) / (order - 1);
  if (planes < count || order ** dimension > 2 ** 52) {
    refuse("dimension", "have room for each category, in at most 2**52 points", dimension);
  }
  const [all, held] = [points(dimension), points(dimension - 1)];
  const coin = fields.truth(held, all - held);
  return named(all, (x, words) => {
    const heads = flip(coin, words);
    let drawn = below(planes, words) - 1;
    if (heads && drawn < 0) drawn = below(planes - 1, words);
    if (drawn < 0) return 0;
    const start = floor(drawn / (order - 1));
    // The scalar product of the digits of x with the coordinates of a point.
    let length = 0;
    while (points(length + 1) <= start) length++;
    let y = start - points(length) + order ** length;
    let product = 0;
    for (let at = 1; at < dimension; at++) {
      product = (product + (x % order) * (y % order)) % order;
      [x, y] = [floor(x / order), floor(y / order)];
    }
    const last = (heads ? 0 : 1 + (drawn % (order - 1))) - product;
    return 1 + order * start + (last < 0 ? last + order : last);
  });
}
