import type { Protocols } from "./index.js";

/** The protocols that estimate mean vectors, which is ProjUnit: pass them as `protocols`. */
export const vectors: Protocols;
