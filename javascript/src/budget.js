// The most that a device spends in all: charged before anything is drawn, and kept in a storage of the program.
import { refuse } from "./errors.js";

const UNIT = 2 ** 32; // epsilons are counted in steps of 2^-32, each rounded up

export class Budget {
  #lifetime;
  #storage;
  #name;

  /** `storage` has getItem and setItem, as localStorage does. */
  constructor({ lifetime, storage, name = "sfumato-budget" } = {}) {
    if (typeof lifetime !== "number" || !(lifetime > 0 && lifetime <= UNIT / 4096)) {
      refuse("lifetime", "be above 0 and at most 2**20", "another", "pass the most that all reports may cost together");
    }
    if (typeof storage?.getItem !== "function" || typeof storage.setItem !== "function") {
      refuse("storage", "have getItem and setItem", "another", "pass localStorage, or a file of the program");
    }
    this.#lifetime = Math.floor(lifetime * UNIT);
    this.#storage = storage;
    this.#name = name;
    this.spent; // refuses what it did not write
    Object.freeze(this);
  }

  #units() {
    const held = this.#storage.getItem(this.#name) ?? "0";
    if (!/^\d{1,16}$/.test(held)) refuse("storage", "hold what a budget wrote", "another text", "never reset it: what was spent is spent");
    return Number(held);
  }

  /** What was spent so far, in epsilon, rounded up. */
  get spent() {
    return this.#units() / UNIT;
  }

  /** What is left, in epsilon. */
  get left() {
    return Math.max(0, this.#lifetime - this.#units()) / UNIT;
  }

  /** Spend an epsilon, or refuse and spend nothing. */
  charge(epsilon) {
    const after = this.#units() + Math.ceil(epsilon * UNIT);
    if (typeof epsilon !== "number" || !(epsilon >= 0 && after <= this.#lifetime)) {
      refuse("epsilon", `be at most ${this.left}, which is left of the budget`, epsilon, "do not answer this question");
    }
    this.#storage.setItem(this.#name, String(after));
    if (this.#units() < after) refuse("storage", "hold what was written", "an older text", "pass one that lasts");
  }
}

/** Require a budget, or that the program says that it keeps one itself. */
export function checkBudget(budget) {
  if (budget !== null && !(budget instanceof Budget)) {
    refuse("budget", "be a Budget", "another", "pass null only if the program itself limits what all reports cost");
  }
}
