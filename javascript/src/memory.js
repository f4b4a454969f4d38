// What a device remembers of a question that is asked again and again: docs/wire.md.
import { hex } from "./bytes.js";
import { SKIP, refuse } from "./errors.js";
import { changing } from "./storage.js";

const UNIT = 2 ** 32;

/** Return the memo of a key, which is drawn if the device may have another one, or else the last one. */
function recalled(state, key, limit, memoize) {
  const at = state.keys.indexOf(key);
  if (at >= 0) return state.memos[at];
  if (state.keys.length < limit) {
    state.keys.push(key);
    state.memos.push(memoize());
  }
  return state.memos.at(-1);
}

/** Return what a storage holds, or null where there is nothing yet. */
function stateOf(text) {
  if (!text) return null;
  try {
    const state = JSON.parse(text);
    if (state.keys.length && state.keys.length === state.memos.length) return state;
  } catch {
    // refused below
  }
  return refuse("storage", "hold what a device remembers", "another text", "never reset it: each memo is paid for once");
}

/**
 * Return a protocol that memoizes. Its `steps` read further fields, and say what a device draws for good (`fix`), what
 * a value is memoized under (`keyOf`), the permanent draw of a key (`memoize`) and a report of a memo (`fresh`).
 */
export const memoizing = (steps) => async (fields) => {
  const most = fields.whole("max_memos", 1, 1 << 16);
  const { keys, permanent, fix, keyOf, memoize, fresh, ...made } = await steps(fields);
  const limit = Math.min(most, keys);
  const cost = limit * (Math.ceil(permanent * UNIT) / UNIT);
  const write = (record, value, words) => {
    const fixed = fix(words);
    fresh(record, memoize(keyOf(value, fixed), fixed, words), fixed, words);
  };

  const client = (given, { encode, digest, budget, words }, empty) => {
    const { storage, maxEpsilon, question = "" } = given ?? {};
    if (!(typeof maxEpsilon === "number" && maxEpsilon > 0)) {
      refuse("maxEpsilon", "be above 0", maxEpsilon, "pass the most that all reports of one memo may cost");
    }
    if (permanent > maxEpsilon) refuse("permanent_epsilon", `be at most ${maxEpsilon}`, permanent, SKIP);
    if (typeof question !== "string") refuse("question", "be a text", typeof question, "name what is asked, always alike");
    const change = changing(storage);
    const name = `sfumato-memos:${hex(digest)}${question && `:${question}`}`;
    let turn = Promise.resolve();
    const next = async (encoded) => {
      let paid;
      await change(name, (text) => {
        paid = stateOf(text) !== null;
        return text ?? "";
      });
      if (!paid) await budget?.charge(cost);
      const record = empty.slice();
      await change(name, (text) => {
        if (paid && !text) refuse("storage", "hold what was written", "nothing", "pass one that lasts");
        const state = stateOf(text) ?? { fixed: fix(words), keys: [], memos: [] };
        const key = keyOf(encoded, state.fixed);
        const memo = recalled(state, key, limit, () => memoize(key, state.fixed, words));
        record.set(empty);
        fresh(record, memo, state.fixed, words);
        return JSON.stringify(state);
      });
      return record;
    };
    const report = async (value) => {
      const encoded = encode(value);
      const made = turn.then(() => next(encoded)); // one after the other, so that the first one alone pays
      turn = made.catch(() => {});
      return made;
    };
    return Object.freeze({ cost, report });
  };
  return { ...made, write, client };
};
