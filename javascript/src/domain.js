// The categories of a question, as a specification states them, and their digest.
import { concat, hex, joined, sha256, utf8 } from "./bytes.js";
import { PARTS, SfumatoError, refuse } from "./errors.js";

const LARGEST = 2n ** 53n;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Whether a value is text without half of a surrogate pair, which has no bytes in UTF-8. */
export const isText = (value) => typeof value === "string" && !LONE.test(value);

/** Return how a value is looked up, or undefined: whole numbers and booleans by what they equal. */
const keyOf = (value) => {
  if (isText(value)) return value;
  if (Number.isInteger(value) || ["bigint", "boolean"].includes(typeof value)) return BigInt(value);
};

const written = (tag, content) => concat(utf8(`${tag}${content.length}:`), content);
const TAGS = { string: "s", boolean: "?", bigint: "i" };
const member = (value) => written(TAGS[typeof value], utf8(`${typeof value === "boolean" ? +value : value}`));

/** Return the size of the domain of a part of a specification, and what finds the index of a value. */
export async function domainOf(given) {
  const names = Object.keys(Object(given)).sort().join();
  const known = names === "digest,range" ? range(given.range) : names === "digest,values" && values(given.values);
  if (!known) refuse("domain", "be written with its values or as a range");
  const [size, content, find] = known;
  if (hex(await sha256(concat(utf8("sfumato domain 1\n"), content))) !== given.digest) {
    refuse("domain", "have the digest that it states");
  }
  const indexOf = (value) => {
    const found = find(keyOf(value));
    if (found >= 0) return found;
    throw new SfumatoError("value must be a category of the domain, got one that is not; give such answers one of their own");
  };
  return [size, indexOf];
}

function range(given) {
  if (given?.length !== 3 || !given.every?.((part) => typeof part === "bigint")) return;
  const [start, stop, step] = given;
  if (!step) return;
  const size = (stop - start + step + (step > 0 ? -1n : 1n)) / step;
  if (size < 2 || size > LARGEST) refuse("domain", "have from 2 to 2**53 categories", size, PARTS);
  const find = (value) => {
    if (typeof value !== "bigint" || (value - start) % step) return;
    const at = (value - start) / step;
    if (at < size) return Number(at);
  };
  return [Number(size), written("r", utf8(`${start},${step},${size}`)), find];
}

function values(given) {
  if (!Array.isArray(given) || given.length < 2) return;
  if (given.some((value) => typeof value === "number" || keyOf(value) === undefined)) return;
  const indices = new Map(given.map((value, index) => [keyOf(value), index]));
  if (indices.size < given.length) refuse("domain", "have each value once");
  return [given.length, written("t", joined(given.map(member))), (value) => indices.get(value)];
}
