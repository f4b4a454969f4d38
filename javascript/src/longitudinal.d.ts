import type { Protocols } from "./index.js";

/** The protocols of devices that report again and again: pass them as `protocols`. */
export const longitudinal: Protocols;

/** One device that reports by RAPPOR again and again: its memoized bits follow from its key. */
export interface RapporClient {
  readonly cohort: number;
  /** The memoized bits of a text: private, they never leave the device. */
  memo(value: string | Uint8Array): Uint8Array;
  /** One report of a text. */
  report(value: string | Uint8Array): Promise<Uint8Array>;
}
