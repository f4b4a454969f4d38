// The device's half of a protocol: a true value becomes a record, after it is paid for.
import { hex, stamped } from "./bytes.js";
import { SKIP, refuse } from "./errors.js";
import { Fields } from "./fields.js";
import { digestOf, parse } from "./json.js";
import { frequency } from "./protocols/frequency.js";
import { secureWords } from "./words.js";

const MOST = 40;

function checkEpsilon(name, value, most, remedy) {
  if (!(typeof value === "number" && value > 0 && value <= most)) refuse(name, `be above 0 and at most ${most}`, value, remedy);
}

/** Require what the device itself holds on to: a largest epsilon, and digests, of which the question has one. */
export function checkLimits(maxEpsilon, epsilon, name, pinned, found) {
  checkEpsilon("maxEpsilon", maxEpsilon, MOST, "pass the most that a report may cost");
  checkEpsilon("epsilon", epsilon, maxEpsilon, SKIP);
  const list = [pinned].flat();
  if (!list.length || !list.every((one) => /^[0-9a-f]{64}$/.test(one))) {
    refuse(name, "be 64 hexadecimal digits, or a list of such", "others", "pin what came another way than from the server");
  }
  if (!list.includes(found)) refuse(name, "be that of the question", "another", SKIP);
}

/** Require a budget, or that the program says that it keeps one itself. */
export function checkBudget(budget) {
  if (budget !== null && typeof budget?.charge !== "function") {
    refuse("budget", "be a Budget", "another", "pass null if the program itself limits what all reports cost");
  }
}

/** Return a randomizer from the fields of its specification, unchecked against the device's limits. */
export async function fromTable(table, budget = null, protocols, words = secureWords) {
  const fields = new Fields("specification", table, "sfumato.randomizer");
  const protocol = fields.any("protocol");
  const known = { __proto__: null, ...frequency, ...protocols };
  const make = typeof protocol === "string" && known[protocol];
  if (!make) refuse("protocol", "be known here", "another", "pass protocols, or use a newer client");
  const epsilon = (fields.epsilon = fields.float("epsilon"));
  checkEpsilon("epsilon", epsilon, MOST);
  const made = await make(fields);
  fields.done();
  const digested = { __proto__: null };
  for (const key in table) digested[key] = table[key]?.digest ?? table[key];
  const digest = await digestOf(digested);
  return new Randomizer({ protocol, epsilon }, { encode: fields.indexOf, ...made, digest, budget, words });
}

export class Randomizer {
  #made;
  #empty;

  constructor(shown, made) {
    this.#made = made;
    this.#empty = stamped(made.bits, made.digest);
    Object.freeze(Object.assign(this, shown, { digest: hex(made.digest), width: this.#empty.length }));
  }

  /** Return the randomizer of a specification's text, within the device's own limits. */
  static async fromText(text, { maxEpsilon, digest, budget, protocols } = {}) {
    checkBudget(budget);
    const made = await fromTable(parse("specification", text), budget, protocols);
    checkLimits(maxEpsilon, made.epsilon, "digest", digest, made.digest);
    return made;
  }

  /** Return the record of one true value. */
  async randomize(value) {
    const { budget, encode, words, write } = this.#made;
    const encoded = encode(value);
    await budget?.charge(this.epsilon);
    const record = this.#empty.slice();
    write(record, encoded, words); // which only sets bits before the tag, whose first ones may share their last byte
    return record;
  }

  /** Return a device that reports again and again. */
  client(given) {
    const { client } = this.#made;
    if (!client) refuse("protocol", "be one of sfumato-client/longitudinal", this.protocol, "call randomize for each answer");
    return client(given, this.#made, this.#empty);
  }
}
