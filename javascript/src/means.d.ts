import type { Protocols } from "./index.js";

/** The protocols that estimate means: pass them as `protocols`. */
export const means: Protocols;
