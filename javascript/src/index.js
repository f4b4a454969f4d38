export { Collection } from "./collection.js";
export { SfumatoError } from "./errors.js";
export { Randomizer } from "./randomizer.js";
export { send } from "./send.js";
