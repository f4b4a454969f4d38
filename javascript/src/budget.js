// The most that a device spends in all: charged before anything is drawn, and kept in a storage.
import { SKIP, refuse } from "./errors.js";
import { changing } from "./storage.js";

export { databaseStorage } from "./storage.js";

const UNIT = 2 ** 32; // epsilons are counted in steps of 2^-32, each rounded up

/** Return the units that a text states. */
function units(text) {
  const held = text ?? "0";
  if (!/^\d{1,16}$/.test(held)) refuse("storage", "hold what a budget wrote", "another text", "never reset it: what was spent is spent");
  return Number(held);
}

export class Budget {
  #lifetime;
  #change;

  /** `storage` is the page's database if it is left out. */
  constructor({ lifetime, storage, name = "sfumato-budget" } = {}) {
    if (typeof lifetime !== "number" || !(lifetime > 0 && lifetime <= UNIT / 4096)) {
      refuse("lifetime", "be above 0 and at most 2**20", "another", "pass the most that all reports may cost together");
    }
    const change = changing(storage);
    this.#lifetime = Math.floor(lifetime * UNIT);
    this.#change = (step) => change(name, step);
    Object.freeze(this);
  }

  async #units() {
    let found;
    await this.#change((text) => String((found = units(text))));
    return found;
  }

  /** What was spent so far, in epsilon, rounded up: a promise. */
  get spent() {
    return this.#units().then((spent) => spent / UNIT);
  }

  /** What is left, in epsilon: a promise. */
  get left() {
    return this.#units().then((spent) => Math.max(0, this.#lifetime - spent) / UNIT);
  }

  /** Spend an epsilon, or refuse and spend nothing. */
  async charge(epsilon) {
    await this.#change((text) => {
      const before = units(text);
      const after = before + Math.ceil(epsilon * UNIT);
      if (typeof epsilon !== "number" || !(epsilon >= 0 && after <= this.#lifetime)) {
        const left = Math.max(0, this.#lifetime - before) / UNIT;
        refuse("epsilon", `be at most ${left}, which is left of the budget`, epsilon, SKIP);
      }
      return String(after);
    });
  }
}
