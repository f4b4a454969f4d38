const REMEDY = "pass the text that sfumato wrote, unaltered";

/** Input that this client refuses: the message names the parameter, the rule, and what to do. */
export class SfumatoError extends Error {
  constructor(message) {
    super(message);
    this.name = "SfumatoError";
  }
}

/** Refuse a parameter. Nothing of a true value is ever passed here. */
export function refuse(name, rule, found = "another", remedy = REMEDY) {
  throw new SfumatoError(`${name} must ${rule}, got ${found}; ${remedy}`);
}
