// Exact chances: rationals of bigints, and the exponential between two whole numbers.

const BITS = 160n;

const gcd = (a, b) => {
  while (b) [a, b] = [b, a % b];
  return a;
};

/** Return a rational in lowest terms. */
export function ratio(top, bottom) {
  const common = gcd(top, bottom);
  return { top: top / common, bottom: bottom / common };
}

/** Return the rational that a positive double is; 0 for any other number. */
export function exact(number) {
  if (!(number > 0)) return { top: 0n, bottom: 1n };
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 2047n);
  const mantissa = (bits & ((1n << 52n) - 1n)) | (exponent ? 1n << 52n : 0n);
  const shift = BigInt((exponent || 1) - 1075);
  return shift < 0n ? ratio(mantissa, 1n << -shift) : { top: mantissa << shift, bottom: 1n };
}

export const bitLength = (number) => (number ? BigInt(number.toString(2).length) : 0n);
export const ceilDivide = (a, b) => (a + b - 1n) / b;
const ceilShift = (a, bits) => (a + (1n << bits) - 1n) >> bits;

/** Bound 2^bits exp(-top / bottom) by whole numbers; sfumato's exp_bounds has the proof. */
export function expBounds({ top, bottom }, bits) {
  if (!top) return [1n << bits, 1n << bits];
  if (top > bits * bottom) return [0n, 1n];
  const halvings = bitLength(top / bottom) + 7n;
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
export const oddsBelow = (epsilon) => ({ top: 1n << BITS, bottom: expBounds(exact(epsilon), BITS)[1] });

/** Return the threshold, of 2^64, of a truth that `a` reports support, as against `b` others; 0 if there is none. */
export function truthThreshold(epsilon, a, b) {
  const { top, bottom } = oddsBelow(epsilon);
  const threshold = ((top * a) << 64n) / (top * a + bottom * b);
  return threshold * b > ((1n << 64n) - threshold) * a ? threshold : 0n;
}

/** Floors and ceilings of 2^bits P(K >= k) of geometric or (folded) Laplace noise, as floors that are certain. */
export function tailThresholds({ top, bottom }, folded, bits) {
  for (let guard = 96n; ; guard *= 2n) {
    const work = bits + guard;
    const one = 1n << work;
    const [ratioLow, ratioHigh] = expBounds({ top: bottom, bottom: top }, work);
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
