// For tests alone: what a report draws from can be given here, and then protects nobody.
import { Words } from "./words.js";

export { blake2b } from "./blake2b.js";
export { webcrypto } from "./bytes.js";
export { canonical, parse } from "./json.js";
export { normalTable } from "./protocols/projections.js";
export { fromTable } from "./randomizer.js";
export { seal } from "./seal.js";
export { wholeBelow } from "./words.js";

/** Words that count how many were taken. */
export class CountedWords extends Words {
  taken = 0;

  next() {
    this.taken++;
    return super.next();
  }
}
