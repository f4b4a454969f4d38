// The fields of a specification, checked one by one.
import { refuse } from "./errors.js";

export class Fields {
  #table;
  #left;

  constructor(name, table, format) {
    const given = table !== null && typeof table === "object" && !Array.isArray(table) ? table : {};
    if (given.format !== format || given.version !== 2n) {
      refuse(name, `be a document of the format ${format}, version 2`);
    }
    this.name = name;
    this.#table = given;
    this.#left = new Set(Object.keys(given));
    for (const known of ["format", "version"]) this.#left.delete(known);
  }

  /** Return a field as it is. */
  any(name) {
    this.#left.delete(name);
    return this.#table[name];
  }

  /** Return a whole number between two bounds. */
  whole(name, least, most) {
    return this.checkedWhole(name, this.any(name), least, most);
  }

  checkedWhole(name, value, least, most) {
    if (typeof value !== "bigint" || value < BigInt(least) || value > BigInt(most)) {
      refuse(name, `be a whole number from ${least} to ${most}`);
    }
    return Number(value);
  }

  /** Return a float; a whole number stands for one, in the specification's digest too. */
  float(name) {
    const value = this.any(name);
    if (typeof value === "bigint") this.#table[name] = Number(value);
    if (typeof this.#table[name] !== "number") refuse(name, "be a number");
    return this.#table[name];
  }

  /** Return a pair of floats, one below the other. */
  pair(name) {
    const value = this.any(name);
    const found = Array.isArray(value) && value.length === 2 ? value.map(Number) : [];
    if (!value?.every?.((part) => ["number", "bigint"].includes(typeof part)) || !(found[0] < found[1])) {
      refuse(name, "be two numbers, the lower one first");
    }
    return (this.#table[name] = found);
  }

  /** Require that a field is what follows from the others. */
  equals(name, wanted) {
    this.same(name, this.any(name), wanted);
  }

  same(name, found, wanted) {
    if (found !== wanted || !wanted) {
      refuse(name, "be what follows from epsilon and the other fields");
    }
  }

  /** Return a coin that is written as its threshold and its bits. */
  coin(name) {
    const value = this.any(name);
    const [threshold, bits] = Array.isArray(value) && value.length === 2 ? value : [];
    const width = this.checkedWhole(name, bits, 1, 64);
    if (typeof threshold !== "bigint" || threshold < 1n || threshold >> BigInt(width)) {
      refuse(name, "be a chance between 0 and 1");
    }
    return { threshold, bits: width };
  }

  /** Require that all fields were asked for. */
  done() {
    if (this.#left.size) refuse(this.name, "have known fields only", "others", "use a newer client");
  }

  get table() {
    return this.#table;
  }
}
