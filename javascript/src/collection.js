// A question that a shuffler collects, and the envelope that a device sends to it.
import { checkBudget } from "./budget.js";
import { concat, hex, sha256, unhex, utf8 } from "./bytes.js";
import { refuse } from "./errors.js";
import { Fields } from "./fields.js";
import { canonical, parse } from "./json.js";
import { checkLimit, checkPin, fromTable } from "./randomizer.js";
import { PublicKey, SEAL, hmac } from "./seal.js";

const FORMAT = "sfumato.collection";
const NONCE = 16;

const context = (label, ...parts) => concat(utf8(`sfumato shuffle 2 ${label}\0`), ...parts);

export class Collection {
  #id;
  #analyst;
  #shuffler;

  constructor({ randomizer, id, analyst, shuffler, batchSize, colluders, name }) {
    Object.assign(this, { randomizer, id: hex(id), batchSize, colluders, name });
    this.#id = id;
    this.#analyst = analyst;
    this.#shuffler = shuffler;
    this.envelopeWidth = NONCE + 1 + randomizer.width + 2 * SEAL;
    Object.freeze(this);
  }

  /** Return the collection of a text, within the device's own limits. */
  static async fromText(text, { maxEpsilon, id, budget } = {}) {
    checkBudget(budget);
    const fields = new Fields("collection", parse("collection", text), FORMAT);
    fields.any("protocol"); // which is the analyst's
    const batchSize = fields.whole("batch_size", 2, Number.MAX_SAFE_INTEGER);
    const colluders = fields.whole("colluders", 0, batchSize - 1);
    const name = fields.any("name");
    if (typeof name !== "string" || [...name].length > 200) {
      refuse("name", "be a text of at most 200 characters", "another", "shorten it");
    }
    const randomizer = await fromTable(fields.any("randomizer"), budget);
    const analyst = await PublicKey.fromText(fields.any("analyst"), "analyst");
    const shuffler = await PublicKey.fromText(fields.any("shuffler"), "shuffler");
    if (hex(analyst.point) === hex(shuffler.point)) {
      refuse("shuffler", "have another key than the analyst", "the same", "do not answer this question");
    }
    fields.done();
    const digested = {
      format: FORMAT, version: 2n, name, randomizer: randomizer.digest, batch_size: BigInt(batchSize),
      colluders: BigInt(colluders), analyst: analyst.text, shuffler: shuffler.text,
    };
    const found = await sha256(utf8(canonical(digested)));
    checkLimit(maxEpsilon, randomizer.epsilon);
    checkPin("id", id, hex(found));
    return new Collection({ randomizer, id: found, analyst, shuffler, batchSize, colluders, name });
  }

  /** Return the nonce of the device that holds a secret of at least 16 bytes. */
  async nonce(secret) {
    if (!(secret instanceof Uint8Array) || secret.length < NONCE) {
      refuse("secret", "be a Uint8Array of at least 16 bytes", "another", "draw it once and store it");
    }
    return (await hmac(secret, context("nonce", this.#id))).subarray(0, NONCE);
  }

  /** Return what the device sends: its answer, randomized and sealed. Store it, and send these same bytes. */
  async envelope(value, secret) {
    await this.nonce(secret); // refused before anything is spent
    return this.seal(this.randomizer.randomize(value), secret);
  }

  /** Return the envelope of a record that was drawn before, such as one of a RAPPOR client. */
  async seal(record, secret, [inner, outer] = []) {
    if (!(record instanceof Uint8Array) || record.length !== this.randomizer.width) {
      refuse("record", `be a Uint8Array of ${this.randomizer.width} bytes`, "another", "pass what randomize returned");
    }
    const nonce = await this.nonce(secret);
    const bound = [unhex(this.randomizer.digest), this.#id];
    const marked = concat(Uint8Array.of(0), record);
    const sealed = await this.#analyst.seal(marked, context("report", ...bound), "analyst", inner);
    return this.#shuffler.seal(concat(nonce, sealed), context("envelope", ...bound), "shuffler", outer);
  }
}

