// JSON whose whole numbers keep all their digits, and the one text of a document that digests are taken of.
import { sha256, utf8 } from "./bytes.js";
import { refuse } from "./errors.js";

const TOKEN = /("(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(\s*:)?/gs;
const LONGEST = 1 << 24;

/** Return the document of a text: whole numbers are bigints, other numbers numbers. */
export function parse(name, text) {
  if (typeof text !== "string") {
    refuse(name, "be JSON text", typeof text, "pass the text: JSON.parse rounds numbers");
  }
  try {
    if (text.length > LONGEST) throw 0;
    return JSON.parse(text.replace(TOKEN, marked), (_, value) => (typeof value === "string" ? unmarked(value) : value));
  } catch {
    return refuse(name, "be well-formed JSON of at most 16 MiB");
  }
}

/** Put an s before a text, and make a number a text with an n: so JSON.parse loses nothing. Keys stay as they are. */
function marked(token, value, colon) {
  if (value[0] === '"') return colon ? token : `"s${value.slice(1)}`;
  if (colon) throw 0; // a key without quotes
  return `"n${value}"`;
}

function unmarked(value) {
  const text = value.slice(1);
  if (value[0] === "s") return text;
  if (/^-?\d+$/.test(text)) return BigInt(text);
  if (!isFinite(text)) throw 0;
  return Number(text);
}

/** Return the canonical text: sorted keys, no white space, ASCII; floats as Python writes them. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") return float(value);
  if (value === null || typeof value !== "object") return String(value);
  // Known fields are ASCII, where the order of code units is that of code points.
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${quoted(key)}:${canonical(value[key])}`).join(",")}}`;
}

/** Return the digest of a document. */
export const digestOf = (value) => sha256(utf8(canonical(value)));

function quoted(text) {
  const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[^ -~]/g, escaped);
}

function float(number) {
  const size = Math.abs(number);
  if (number && (size < 1e-4 || size >= 1e16)) return number.toExponential().replace(/([+-])(\d)$/, "$10$2");
  const text = Object.is(number, -0) ? "-0" : String(number);
  return text.includes(".") ? text : `${text}.0`;
}
