// JSON whose whole numbers keep all their digits, and the one text of a document that digests are taken of.
import { refuse } from "./errors.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;
const LONGEST = 1 << 24;

/** Return the document of a text: whole numbers are bigints, other numbers numbers. */
export function parse(name, text) {
  if (typeof text !== "string") {
    refuse(name, "be JSON text", typeof text, "pass the text itself: JSON.parse rounds large numbers");
  }
  try {
    if (text.length > LONGEST) throw 0;
    // Each string gets an s before it, each number becomes a string with an n: so JSON.parse loses nothing.
    const marked = text.replace(TOKEN, (t) => (t[0] === '"' ? `"s${t.slice(1)}` : `"n${t}"`));
    return unmarked(JSON.parse(marked));
  } catch {
    return refuse(name, "be well-formed JSON of at most 16 MiB");
  }
}

function unmarked(value) {
  if (Array.isArray(value)) return value.map(unmarked);
  if (typeof value === "string") return value[0] === "s" ? value.slice(1) : numeral(value.slice(1));
  if (value === null || typeof value !== "object") return value;
  const made = Object.create(null);
  for (const key of Object.keys(value)) {
    if (key[0] !== "s") throw 0; // a number without quotes
    made[key.slice(1)] = unmarked(value[key]);
  }
  return made;
}

function numeral(text) {
  if (/^-?\d+$/.test(text)) return BigInt(text);
  const number = Number(text);
  if (!Number.isFinite(number)) throw 0;
  return number;
}

/** Return the canonical text: sorted keys, no white space, ASCII; floats as Python writes them. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") return float(value);
  if (value === null || typeof value !== "object") return String(value);
  const keys = Object.keys(value).sort(byCodePoint);
  return `{${keys.map((key) => `${quoted(key)}:${canonical(value[key])}`).join(",")}}`;
}

/** Known fields are ASCII, where the order of code units is that of code points. */
const byCodePoint = (a, b) => (a < b ? -1 : 1);

function quoted(text) {
  const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[^ -~]/g, escaped);
}

function float(number) {
  const [digits, power] = number.toExponential().split("e");
  const exponent = Number(power);
  if (number !== 0 && (exponent < -4 || exponent > 15)) {
    const sign = exponent < 0 ? "-" : "+";
    return `${digits}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const text = Object.is(number, -0) ? "-0" : String(number);
  return text.includes(".") ? text : `${text}.0`;
}
