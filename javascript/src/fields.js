// The fields of a specification, checked one by one.
import { domainOf } from "./domain.js";
import { PARTS, refuse } from "./errors.js";
import { oddsBelow } from "./numbers.js";

/** Return a list of so many things as it is, anything else as an empty one. */
export const listed = (value, size) => (Array.isArray(value) && value.length === size ? value : []);

const double = (value) => (["number", "bigint"].includes(typeof value) ? Number(value) : NaN);

export class Fields {
  #left;

  constructor(name, table, format) {
    if (table?.format !== format || table.version !== 2n) refuse(name, `be a document of the format ${format}, version 2`);
    this.name = name;
    this.table = table;
    this.#left = new Set(Object.keys(table));
    this.any("format");
    this.any("version");
  }

  /** Return a field as it is. */
  any(name) {
    this.#left.delete(name);
    return this.table[name];
  }

  /** Return a whole number between two bounds. */
  whole(name, least, most, value = this.any(name)) {
    if (!(typeof value === "bigint" && value >= least && value <= most)) refuse(name, `be a whole number from ${least} to ${most}`);
    return Number(value);
  }

  /** Return a power of two between two bounds. */
  power(name, least, most) {
    const value = this.whole(name, least, most);
    if (value & (value - 1)) refuse(name, "be a power of two", value);
    return value;
  }

  /** Return a float; a whole number stands for one, in the specification's digest too. */
  float(name) {
    const value = double(this.any(name));
    if (isNaN(value)) refuse(name, "be a number");
    return (this.table[name] = value);
  }

  /** Return a pair of floats, one below the other. */
  pair(name) {
    const found = listed(this.any(name), 2).map(double);
    if (!(found[0] < found[1])) refuse(name, "be two numbers, the lower one first");
    return (this.table[name] = found);
  }

  /** Require that a field is what follows from the others. */
  equals(name, wanted, found = this.any(name)) {
    if (found !== wanted || !wanted) refuse(name, "be what follows from the other fields");
  }

  /** Return a coin that is written as its threshold and its bits. */
  coin(name) {
    const [threshold, bits] = listed(this.any(name), 2);
    const width = this.whole(name, 1, 64, bits);
    this.whole(name, 1, (1n << BigInt(width)) - 1n, threshold);
    return [threshold, width];
  }

  /** Return the coin of a truth that a of a + b reports support, which the specification must state. */
  truth(a, b, name = "truth", epsilon = this.epsilon, found = this.any(name)) {
    const [one, other, [top, bottom]] = [BigInt(a), BigInt(b), oddsBelow(epsilon)];
    const threshold = ((top * one) << 64n) / (top * one + bottom * other);
    this.equals(name, threshold * other > ((1n << 64n) - threshold) * one && threshold, found);
    return [threshold, 64];
  }

  /** Read the domain, and return how many categories it has. */
  async domain(most) {
    const [size, indexOf] = await domainOf(this.any("domain"));
    if (size > most) refuse("domain", `have at most ${most} categories`, size, PARTS);
    this.indexOf = indexOf;
    return size;
  }

  /** Require that all fields were asked for. */
  done() {
    if (this.#left.size) refuse(this.name, "have known fields only", "others", "use a newer client");
  }
}
