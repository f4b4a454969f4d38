// Exact chances: rationals of bigints, as [numerator, denominator], and the exponential between two whole numbers.

const BITS = 160n;

/** Return a rational in lowest terms. */
export function ratio(top, bottom) {
  let [common, rest] = [top, bottom];
  while (rest) [common, rest] = [rest, common % rest];
  return [top / common, bottom / common];
}

/** Return the rational that a positive double is; 0 for any other number. */
export function exact(number) {
  let bottom = 1n;
  if (!(number > 0 && number < Infinity)) return [0n, bottom];
  for (; number % 1; number *= 2) bottom *= 2n; // doubling loses nothing
  return [BigInt(number), bottom];
}

export const ceilDivide = (a, b) => (a + b - 1n) / b;
const ceilShift = (a, bits) => ceilDivide(a, 1n << bits);

/** Bound 2^bits exp(-top / bottom) by whole numbers; sfumato's exp_bounds has the proof. */
export function expBounds([top, bottom], bits) {
  if (!top) return [1n << bits, 1n << bits];
  if (top > bits * bottom) return [0n, 1n];
  let halvings = 7n;
  for (let whole = top / bottom; whole; whole >>= 1n) halvings++;
  const work = bits + halvings + 16n;
  const y = (top << (work - halvings)) / bottom;
  let term = 1n << work;
  let total = term;
  let n = 0n;
  while (term) {
    n += 1n;
    term = ((term * y) >> work) / n;
    total += n % 2n ? -term : term;
  }
  let [low, high] = [total - (3n * n + 8n), total + (3n * n + 8n)];
  for (let i = 0n; i < halvings; i++) [low, high] = [(low * low) >> work, ceilShift(high * high, work)];
  return [low >> (work - bits), ceilShift(high, work - bits)];
}

/** Return a rational that is at most exp(epsilon), and hardly less. */
export const oddsBelow = (epsilon) => [1n << BITS, expBounds(exact(epsilon), BITS)[1]];

/** Floors and ceilings of 2^bits P(K >= k) of geometric or (folded) Laplace noise, as floors that are certain. */
export function tailThresholds([top, bottom], folded, bits) {
  for (let guard = 96n; ; guard *= 2n) {
    const work = bits + guard;
    const one = 1n << work;
    const [ratioLow, ratioHigh] = expBounds([bottom, top], work);
    let [low, high] = [ratioLow, ratioHigh];
    if (folded) {
      low = (ratioLow << (work + 1n)) / (one + ratioLow);
      high = ceilDivide(ratioHigh << (work + 1n), one + ratioHigh);
    }
    const found = [];
    while (low >> guard === high >> guard) {
      if (!(low >> guard)) return found;
      found.push(low >> guard);
      [low, high] = [(low * ratioLow) >> work, ceilShift(high * ratioHigh, work)];
    }
  }
}
