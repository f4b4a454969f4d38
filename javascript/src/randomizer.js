// The device's half of a protocol: a true value becomes a record, and only that leaves the device.
import { checkBudget } from "./budget.js";
import { hex, sha256, stamped, utf8 } from "./bytes.js";
import { Domain } from "./domain.js";
import { refuse } from "./errors.js";
import { Fields } from "./fields.js";
import { canonical, parse } from "./json.js";
import { CATEGORICAL, OTHER } from "./protocols/index.js";
import { Words, secureWords } from "./words.js";

const FORMAT = "sfumato.randomizer";
const MOST = 40;
const PINS = "pin what you know from another way than the server";

/** Require what the device itself holds on to: a largest epsilon. */
export function checkLimit(maxEpsilon, epsilon) {
  if (typeof maxEpsilon !== "number" || !(maxEpsilon > 0 && maxEpsilon <= MOST)) {
    refuse("maxEpsilon", `be above 0 and at most ${MOST}`, String(maxEpsilon), "pass the most that a report may cost");
  }
  if (!(epsilon > 0 && epsilon <= maxEpsilon)) {
    refuse("epsilon", `be above 0 and at most maxEpsilon, ${maxEpsilon}`, epsilon, "do not answer this question");
  }
}

/** Require that a digest is one of those that the device holds on to. */
export function checkPin(name, pinned, found) {
  const list = typeof pinned === "string" ? [pinned] : Array.isArray(pinned) ? pinned : [];
  if (!list.length || !list.every((one) => /^[0-9a-f]{64}$/.test(one))) {
    refuse(name, "be 64 hexadecimal digits, or a list of such", "others", PINS);
  }
  if (!list.includes(found)) refuse(name, "be that of the question", "another", "do not answer this question");
}

/** Return a randomizer from the fields of its specification, unchecked against the device's limits. */
export async function fromTable(table, budget = null) {
  const fields = new Fields("specification", table, FORMAT);
  const name = fields.any("protocol");
  const known = (kinds) => typeof name === "string" && Object.hasOwn(kinds, name) && kinds[name];
  const make = known(CATEGORICAL) || known(OTHER);
  if (!make) refuse("protocol", "be one that is known here", "another", "use a newer client");
  const epsilon = fields.float("epsilon");
  if (!(epsilon > 0 && epsilon <= MOST)) refuse("epsilon", `be above 0 and at most ${MOST}`, epsilon);
  const domain = known(CATEGORICAL) ? await Domain.from(fields.any("domain")) : null;
  const made = make(fields, domain);
  fields.done();
  const digested = Object.create(null);
  for (const [key, part] of Object.entries(fields.table)) digested[key] = part?.digest ?? part;
  const digest = await sha256(utf8(canonical(digested)));
  return new Randomizer({ protocol: name, epsilon, domain, made, digest, budget });
}

export class Randomizer {
  #made;
  #domain;
  #digest;
  #empty;
  #budget;

  constructor({ protocol, epsilon, domain, made, digest, budget }) {
    this.protocol = protocol;
    this.epsilon = epsilon;
    this.digest = hex(digest);
    this.#made = made;
    this.#domain = domain;
    this.#digest = digest;
    this.#budget = budget;
    this.#empty = stamped(made.bits, digest);
    this.width = this.#empty.length;
    Object.freeze(this);
  }

  /** Return the randomizer of a specification's text, within the device's own limits. */
  static async fromText(text, { maxEpsilon, digest, budget } = {}) {
    checkBudget(budget);
    const made = await fromTable(parse("specification", text), budget);
    checkLimit(maxEpsilon, made.epsilon);
    checkPin("digest", digest, made.digest);
    return made;
  }

  /** Return the record of one true value. */
  randomize(value, words = secureWords) {
    const encoded = this.#encoded(value);
    checkWords(words);
    return this.#record((record) => this.#made.write(record, encoded, words));
  }

  /** Return a device that reports by RAPPOR again and again, from a secret key of 32 bytes. */
  client(key) {
    if (!this.#made.client) refuse("protocol", "be rappor", this.protocol, "call randomize for each answer");
    if (!(key instanceof Uint8Array) || key.length !== 32) {
      refuse("key", "be a Uint8Array of 32 secret bytes", "another", "draw it once and store it");
    }
    const held = this.#made.client(key.slice(), this.#digest);
    return Object.freeze({
      cohort: held.cohort,
      memo: (value) => held.memo(this.#encoded(value)),
      report: (value, words = secureWords) => {
        const encoded = this.#encoded(value);
        checkWords(words);
        return this.#record((record) => held.write(record, encoded, words));
      },
    });
  }

  #encoded(value) {
    return this.#domain ? this.#domain.indexOf(value) : this.#made.encode(value);
  }

  /** Pay, and write a payload before the tag, whose first bits may share its last byte. */
  #record(write) {
    this.#budget?.charge(this.epsilon);
    const record = this.#empty.slice();
    const payload = new Uint8Array(this.width);
    write(payload);
    return record.map((byte, at) => byte | payload[at]);
  }
}

function checkWords(words) {
  if (!(words instanceof Words)) refuse("words", "be left out", "another value", "they are drawn securely then");
}
