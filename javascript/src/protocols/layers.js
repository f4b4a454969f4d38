// Two layers of randomization, for good and for each report: their coins are those of epsilon, in exact numbers.
import { refuse } from "../errors.js";
import { oddsBelow } from "../numbers.js";
import { keeps } from "./categories.js";

const MOST = 40;
const ONE = 1n << 64n;

/** Read the epsilon of a memo: more than that of a report, or as much where memos are reported. */
function permanentOf(fields, alike) {
  const permanent = fields.float("permanent_epsilon");
  if (!(permanent <= MOST && (alike ? permanent >= fields.epsilon : permanent > fields.epsilon))) {
    refuse("permanent_epsilon", `be ${alike ? "at least" : "above"} epsilon and at most ${MOST}`, permanent);
  }
  return permanent;
}

/** Return the coins of two layers of randomized response of so many values. */
export function responseLayers(fields, count) {
  const permanent = permanentOf(fields);
  const memo = fields.truth(1, count - 1, "permanent", permanent);
  const [size, others, first] = [BigInt(count), BigInt(count - 1), memo[0]];
  const [top, bottom] = oddsBelow(fields.epsilon);
  const all = top + bottom * others;
  const threshold = ((top * others * ONE - (ONE - first) * all) << 64n) / (all * (first * size - ONE));
  fields.equals("again", threshold < ONE && threshold * size > ONE && threshold);
  return { permanent, memo, again: [threshold, 64] };
}

/** Return the coins of memoized bits; there is no second one where memos are reported. An epsilon is of so many bits. */
export function bitLayers(fields, bits) {
  const permanent = permanentOf(fields, true);
  const memo = fields.truth(1, 1, "permanent", permanent / bits);
  if (permanent === fields.epsilon) {
    if (fields.any("again") !== null) refuse("again", "be null where memos are reported");
    return { permanent, memo };
  }
  const [top, bottom] = oddsBelow(fields.epsilon / bits);
  const truth = (top << 64n) / (top + bottom);
  const threshold = ((truth + memo[0] - ONE) << 64n) / (2n * memo[0] - ONE);
  fields.equals("again", threshold < ONE && 2n * threshold > ONE && threshold);
  return { permanent, memo, again: [threshold, 64] };
}

/** Whether the permanent layer of a chain is symmetric, and whether the fresh one is. */
const CHAINS = { __proto__: null, SUE: [true, true], OUE: [false, false], OSUE: [false, true], SOUE: [true, false] };

/** Return the coins of two layers of unary encodings. */
export function unaryLayers(fields) {
  const permanent = permanentOf(fields);
  const chain = fields.any("chain");
  const known = typeof chain === "string" && CHAINS[chain];
  if (!known) refuse("chain", `be one of ${Object.keys(CHAINS).join(", ")}`);
  const [truth, other, high, low] = ["true", "other", "high", "low"].map((name) => fields.coin(name));
  keeps(truth, other, permanent, known[0]);
  const even = high[1] === low[1] && high[0] + low[0] === 1n << BigInt(low[1]);
  if (known[1] ? !even : high[0] !== 1n || high[1] !== 1) refuse("high", "be what follows from low and the chain");
  const [p, q, most, least] = [truth, other, high, low].map(([threshold, bits]) => threshold << BigInt(64 - bits));
  const chained = (first) => [least * ONE + first * (most - least), 128];
  keeps(chained(p), chained(q), fields.epsilon);
  return { permanent, coins: [truth, other], high, low };
}
