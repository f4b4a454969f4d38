// For tests alone: what a report draws from can be given here, and then protects nobody.
export { blake2b } from "./blake2b.js";
export { canonical, parse } from "./json.js";
export { fromTable } from "./randomizer.js";
export { PublicKey } from "./seal.js";
export { Words, webcrypto, wholeBelow } from "./words.js";
