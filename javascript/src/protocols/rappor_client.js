// A device that reports by RAPPOR again and again: its memos follow from a key, and are not stored.
import { blake2b } from "../blake2b.js";
import { bytesOf, concat, utf8, wordsOf } from "../bytes.js";
import { checkBytes } from "../errors.js";
import { rappor as oneReport } from "./hashes.js";

export async function rappor(fields) {
  const made = await oneReport(fields);
  const { cohorts, positionsOf, memoOf, finish } = made.steps;
  const client = (given, { budget, digest, words }, empty) => {
    checkBytes("key", given, given?.length === 32, "32 secret", "draw it once and store it");
    const key = given.slice();
    const block = (label, at) => wordsOf(blake2b(concat(bytesOf([BigInt(at)], 4), digest, label), 64, "sfumato rappor", key));
    const [low, high] = block(utf8("cohort"), 0);
    const cohort = Number(((high << 64n) | low) % BigInt(cohorts));
    const memo = (value) => {
      const label = concat(utf8("memo"), made.encode(value));
      const held = [];
      let blocks = 0;
      const take = (count) => {
        while (held.length < count) held.push(...block(label, blocks++));
        return held.splice(0, count);
      };
      return memoOf(positionsOf(cohort, made.encode(value)), { take });
    };
    const report = async (value) => {
      const drawn = memo(value);
      await budget?.charge(fields.epsilon);
      const record = empty.slice();
      finish(record, drawn, cohort, words);
      return record;
    };
    return Object.freeze({ cohort, memo, report });
  };
  return { ...made, client };
}
