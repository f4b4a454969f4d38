import type { ChangingStorage, ItemStorage } from "./budget.js";
import type { Protocols, TrueValue } from "./index.js";

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

/** Where memos are kept, and what they may cost. */
export interface MemoOptions {
  /** The most that all reports of one memo may cost together: the question's `permanent_epsilon` at most. */
  maxEpsilon: number;
  /** The page's database if it is left out; as of a Budget. What is kept there is private, and not encrypted. */
  storage?: ItemStorage | ChangingStorage;
  /**
   * The program's name of what is asked, empty if it is left out. Two questions whose specifications are alike need two
   * names: with one, they share their memos, and whoever sees reports of both sees whether the answers are alike.
   */
  question?: string;
}

/** One device that remembers what it drew for each value: `randomizer.client(options)` of all these protocols but RAPPOR. */
export interface MemoClient {
  /** What all reports cost together, however many: charged before the first one. */
  readonly cost: number;
  /** One report, after what it is made of is held. */
  report(value: TrueValue): Promise<Uint8Array>;
}
