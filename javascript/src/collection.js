// A question that a shuffler collects, and the envelope that a device sends to it.
import { concat, hex, unhex, utf8 } from "./bytes.js";
import { SKIP, checkBytes, refuse } from "./errors.js";
import { Fields } from "./fields.js";
import { digestOf, parse } from "./json.js";
import { checkBudget, checkLimits, fromTable } from "./randomizer.js";
import { SEAL, hmac, publicKey, seal } from "./seal.js";

const NONCE = 16;

const context = (label, ...parts) => concat(utf8(`sfumato shuffle 2 ${label}\0`), ...parts);

export class Collection {
  #analyst;
  #shuffler;

  constructor(shown, keys) {
    Object.assign(this, shown, { envelopeWidth: NONCE + 1 + shown.randomizer.width + 2 * SEAL });
    [this.#analyst, this.#shuffler] = keys;
    Object.freeze(this);
  }

  /** Return the collection of a text, within the device's own limits. */
  static async fromText(text, { maxEpsilon, id, budget, protocols } = {}) {
    checkBudget(budget);
    const fields = new Fields("collection", parse("collection", text), "sfumato.collection");
    const { table } = fields;
    fields.any("protocol"); // which is the analyst's
    const batchSize = fields.whole("batch_size", 2, 2 ** 53 - 1);
    const colluders = fields.whole("colluders", 0, batchSize - 1);
    const name = fields.any("name");
    if (typeof name !== "string" || [...name].length > 200) {
      refuse("name", "be a text of at most 200 characters", "another", "shorten it");
    }
    const randomizer = await fromTable(fields.any("randomizer"), budget, protocols);
    const analyst = await publicKey(fields.any("analyst"), "analyst");
    const shuffler = await publicKey(fields.any("shuffler"), "shuffler");
    if (hex(analyst.point) === hex(shuffler.point)) refuse("shuffler", "have another key than the analyst", "the same", SKIP);
    fields.done();
    const digested = { ...table, randomizer: randomizer.digest, analyst: analyst.text, shuffler: shuffler.text };
    delete digested.protocol;
    const found = hex(await digestOf(digested));
    checkLimits(maxEpsilon, randomizer.epsilon, "id", id, found);
    return new Collection({ randomizer, id: found, batchSize, colluders, name }, [analyst.point, shuffler.point]);
  }

  /** Return the nonce of the device that holds a secret of at least 16 bytes. */
  async nonce(secret) {
    checkBytes("secret", secret, secret?.length >= NONCE, "at least 16", "draw it once and store it");
    return (await hmac(secret, context("nonce", unhex(this.id)))).subarray(0, NONCE);
  }

  /** Return what the device sends: its answer, randomized and sealed. Store it, and send these same bytes. */
  async envelope(value, secret) {
    await this.nonce(secret); // refused before anything is spent
    return this.seal(await this.randomizer.randomize(value), secret);
  }

  /** Return the envelope of a record that was drawn before, such as one of a client with memos. */
  async seal(record, secret, [inner, outer] = []) {
    const { width } = this.randomizer;
    checkBytes("record", record, record?.length === width, width, "pass what randomize returned");
    const nonce = await this.nonce(secret);
    const bound = [unhex(this.randomizer.digest), unhex(this.id)];
    const sealed = await seal(this.#analyst, concat([0], record), context("report", ...bound), "analyst", inner);
    return seal(this.#shuffler, concat(nonce, sealed), context("envelope", ...bound), "shuffler", outer);
  }
}
