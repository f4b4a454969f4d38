import type { Charged } from "./index.js";

/** A storage of the program, such as a file's: changed by one process at a time. */
export interface ItemStorage {
  getItem(name: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(name: string, value: string): void | Promise<void>;
}

/** A storage that reads and writes in one step, whoever else changes it. */
export interface ChangingStorage {
  /** Give `step` the text that is held, or null, and hold what it returns; where it throws, change nothing and throw. */
  change(name: string, step: (held: string | null) => string): Promise<void>;
}

/** The page's database (IndexedDB), which all pages and workers of an origin share: the storage that is taken if none is passed. */
export function databaseStorage(name?: string): ChangingStorage;

/** The most that a device spends in all, whatever it is asked: charged before anything is drawn. */
export class Budget implements Charged {
  constructor(options: { lifetime: number; storage?: ItemStorage | ChangingStorage; name?: string });
  /** What was spent so far, in epsilon. */
  readonly spent: Promise<number>;
  /** What is left, in epsilon. */
  readonly left: Promise<number>;
  /** Spend an epsilon, or refuse and spend nothing. */
  charge(epsilon: number): Promise<void>;
}
