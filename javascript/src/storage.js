// Where a device keeps what must last: one change at a time, read and written in one step.
import { SfumatoError, refuse } from "./errors.js";

const STORE = "held";
const turns = [new WeakMap(), new Map()]; // of a storage, and of a name: two storages may keep their texts at one place

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** The page's database: pages and workers of one origin change it one after the other, whatever process they are in. */
export function databaseStorage(name = "sfumato") {
  const change = async (key, step) => {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    const database = await settled(opening);
    try {
      await new Promise((resolve, reject) => {
        const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
        const store = transaction.objectStore(STORE);
        const reading = store.get(key);
        let failure;
        reading.onsuccess = () => {
          try {
            store.put(step(reading.result ?? null), key);
          } catch (error) {
            failure = error;
            transaction.abort();
          }
        };
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(failure ?? transaction.error);
      });
    } finally {
      database.close();
    }
  };
  return { change };
}

/** Change what a storage with getItem and setItem holds: one after the other here, and wherever Web Locks reach. */
async function changeItem(storage, name, step) {
  const run = async () => {
    const next = step((await storage.getItem(name)) ?? null);
    await storage.setItem(name, next);
    if ((await storage.getItem(name)) !== next) refuse("storage", "hold what was written", "another text", "pass one that lasts");
  };
  const { locks } = globalThis.navigator ?? {};
  const kept = [storage, name];
  const before = Promise.all(turns.map((held, at) => held.get(kept[at])));
  const turn = before.then(() => (locks ? locks.request(`sfumato:${name}`, run) : run()));
  turns.forEach((held, at) => held.set(kept[at], turn.catch(() => {})));
  return turn;
}

/**
 * Return what changes a storage: `change(name, step)` gives `step` the text that is held, or null, and holds what it
 * returns; where it throws, nothing is changed.
 */
export function changing(storage = globalThis.indexedDB && databaseStorage()) {
  const items = typeof storage?.getItem === "function" && typeof storage.setItem === "function";
  const remedy = "leave it out in a page, or pass one of the program";
  if (!items && typeof storage?.change !== "function") refuse("storage", "have getItem and setItem, or change", "another", remedy);
  if (typeof Storage === "function" && storage instanceof Storage) {
    refuse("storage", "show at once what another page wrote", "localStorage or sessionStorage, which do not", remedy);
  }
  return async (name, step) => {
    try {
      await (items ? changeItem(storage, name, step) : storage.change(name, step));
    } catch (error) {
      if (error instanceof SfumatoError) throw error;
      refuse("storage", "be one that can be read and written", String(error?.name), "free some space, or pass another one");
    }
  };
}
