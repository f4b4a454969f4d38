// The categories of a question, as a specification states them, and their digest.
import { concat, hex, sha256, utf8 } from "./bytes.js";
import { SfumatoError, refuse } from "./errors.js";

const VERSION = utf8("sfumato domain 1\n");
const LARGEST = 1n << 53n;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Whether a value is text without half of a surrogate pair, which has no bytes in UTF-8. */
export const isText = (value) => typeof value === "string" && !LONE.test(value);

/** Return how a value is looked up, or undefined: whole numbers and booleans by what they equal. */
function key(value) {
  if (typeof value === "string") return isText(value) ? value : undefined;
  if (typeof value === "number" && !Number.isInteger(value)) return undefined;
  return ["number", "bigint", "boolean"].includes(typeof value) ? BigInt(value) : undefined;
}

const written = (tag, content) => concat(utf8(`${tag}${content.length}:`), content);

function member(value) {
  if (typeof value === "string") return written("s", utf8(value));
  return typeof value === "boolean" ? written("?", utf8(value ? "1" : "0")) : written("i", utf8(String(value)));
}

export class Domain {
  #indices;

  constructor(size, digest, indices) {
    this.size = size;
    this.digest = digest;
    this.#indices = indices;
  }

  /** Return the domain of a part of a specification. */
  static async from(given) {
    const table = given !== null && typeof given === "object" && !Array.isArray(given) ? given : {};
    const names = Object.keys(table).sort().join();
    const [size, content, indices] =
      names === "digest,range" ? range(table.range) : names === "digest,values" ? values(table.values) : [];
    if (!size) refuse("domain", "be written with its values or as a range");
    const digest = hex(await sha256(concat(VERSION, content)));
    if (digest !== table.digest) refuse("domain", "have the digest that it states");
    return new Domain(size, digest, indices);
  }

  /** Return the index of a value; the one error does not show it. */
  indexOf(value) {
    const found = this.#indices(key(value));
    if (found === undefined) {
      const remedy = "give such answers a category of their own";
      throw new SfumatoError(`value must be a category of the domain, got one that is not; ${remedy}`);
    }
    return found;
  }
}

function range(given) {
  if (!Array.isArray(given) || given.length !== 3 || !given.every((part) => typeof part === "bigint")) return [];
  const [start, stop, step] = given;
  if (!step) return [];
  const away = step > 0n ? stop - start : start - stop;
  const size = away > 0n ? (away - 1n) / (step > 0n ? step : -step) + 1n : 0n;
  if (size < 2n || size > LARGEST) refuse("domain", "have from 2 to 2**53 categories", size, "ask in parts");
  const find = (value) => {
    const gap = typeof value === "bigint" ? value - start : 1n;
    if (typeof value !== "bigint" || gap % step) return undefined;
    const at = gap / step;
    return at >= 0n && at < size ? Number(at) : undefined;
  };
  return [Number(size), written("r", utf8(`${start},${step},${size}`)), find];
}

function values(given) {
  if (!Array.isArray(given) || given.length < 2) return [];
  if (given.some((value) => typeof value === "number" || key(value) === undefined)) return [];
  const indices = new Map(given.map((value, index) => [key(value), index]));
  if (indices.size < given.length) refuse("domain", "have each value once");
  const content = written("t", concat(...given.map(member)));
  return [given.length, content, (value) => indices.get(value)];
}
