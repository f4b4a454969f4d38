// The checks, a run of devices, and two pages that spend one budget; what came of them goes back to the page's own server.
import { Collection, SfumatoError, send } from "sfumato-client";
import { Budget, databaseStorage } from "sfumato-client/budget";
import * as checks from "./checks.js";

const answer = async (place) => (await fetch(place)).text();
const read = async (place) => JSON.parse(await answer(place));

async function everything() {
  const [vectors, sealed, blake2b, run] = await Promise.all(
    ["/vectors.json", "/sealed.json", "/blake2b.json", "/run.json"].map(read),
  );
  const reports = await checks.checkVectors(vectors);
  const envelopes = await checks.checkSealed(sealed);
  await checks.checkRefusals(vectors, sealed);
  checks.checkBlake2b(blake2b);
  await checks.checkSecure(vectors);
  await checks.checkBudget(vectors);
  await checks.checkMemos(vectors);
  await checks.checkDirections(vectors);
  await checks.checkCanonical();
  checks.checkErased();
  const text = await answer(new URL("/v1/collection", run.url));
  for (const storage of [localStorage, sessionStorage]) {
    await checks.refused(() => new Budget({ lifetime: 1, storage }), /^storage must show at once/, "a storage of texts");
  }
  const budget = new Budget({ lifetime: run.epsilon * run.values.length });
  const collection = await Collection.fromText(text, { maxEpsilon: run.epsilon, id: run.id, budget });
  const counts = { taken: 0, refused: 0 };
  for (const value of run.values) {
    const secret = crypto.getRandomValues(new Uint8Array(16));
    const found = await send(run.url, await collection.envelope(value, secret));
    counts.taken += found.taken;
    counts.refused += found.refused;
  }
  return { reports, envelopes, ...counts, left: await budget.left };
}

/** The same page under another name of this machine, which the shuffler does not list, reads nothing. */
async function stranger() {
  const { url } = await read("/run.json");
  return fetch(new URL("/v1/collection", url)).then(() => "was answered", () => "was not answered");
}

/** Read and write in two steps, with time between them for others. */
function slowStorage() {
  const held = databaseStorage("slow");
  const getItem = async (name) => {
    let found;
    await held.change(name, (text) => (found = text ?? "0"));
    return found;
  };
  return { getItem, setItem: (name, value) => held.change(name, () => value) };
}

/** Wait for another page that does the same. */
async function meet(name) {
  const channel = new BroadcastChannel(name);
  await new Promise((resolve) => {
    channel.onmessage = () => {
      channel.postMessage("here");
      resolve();
    };
    channel.postMessage("here");
  });
}

/** Spend a budget as often as it allows, at once with another page. */
async function spend() {
  const { lifetime, tries } = await read("/spend.json");
  const allowed = {};
  for (const [name, storage] of [["database", undefined], ["locks", slowStorage()]]) {
    const budget = new Budget({ lifetime, storage });
    await meet(name);
    allowed[name] = 0;
    for (let i = 0; i < tries; i++) {
      try {
        await budget.charge(1);
        allowed[name]++;
      } catch (error) {
        if (!(error instanceof SfumatoError && /^epsilon must be at most 0, which is left/.test(error.message))) throw error;
      }
    }
  }
  return allowed;
}

async function twoPages() {
  for (const _ of [1, 2]) window.open("/test/page.html?spend", "_blank", "noopener");
  return "opened";
}

const listed = location.hostname === "127.0.0.1";
const roles = { "?spend": spend, "?two": twoPages, "": listed ? everything : stranger };
const result = await roles[location.search]().catch((error) => ({ failed: String(error.stack ?? error) }));
await fetch("/result", { method: "POST", body: JSON.stringify(result) });
if (listed && !location.search) location.href = `http://localhost:${location.port}/test/page.html`;
