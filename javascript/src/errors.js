/** Input that this client refuses: the message names the parameter, the rule, and what to do. */
export class SfumatoError extends Error {
  name = "SfumatoError";
}

/** What to do about a parameter that breaks a rule. */
export const SKIP = "do not answer this question";
export const PARTS = "ask in parts";
const UNALTERED = "pass the text that sfumato wrote, unaltered";

/** Refuse a parameter. Nothing of a true value is ever passed here. */
export function refuse(name, rule, found = "another", remedy = UNALTERED) {
  throw new SfumatoError(`${name} must ${rule}, got ${found}; ${remedy}`);
}

/** Require bytes, as many as a condition says in code and a rule in words. */
export function checkBytes(name, value, enough, rule, remedy) {
  if (!(value instanceof Uint8Array && enough)) refuse(name, `be a Uint8Array of ${rule} bytes`, "another", remedy);
}
