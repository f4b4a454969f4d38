// The checks and a run of devices in a page; what came of them goes back to the page's own server.
import { Budget, Collection, send } from "sfumato-client";
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
  await checks.checkCanonical();
  checks.checkErased();
  const text = await answer(new URL("/v1/collection", run.url));
  const budget = new Budget({ lifetime: run.epsilon * run.values.length, storage: localStorage });
  const collection = await Collection.fromText(text, { maxEpsilon: run.epsilon, id: run.id, budget });
  const counts = { taken: 0, refused: 0 };
  for (const value of run.values) {
    const secret = crypto.getRandomValues(new Uint8Array(16));
    const found = await send(run.url, await collection.envelope(value, secret));
    counts.taken += found.taken;
    counts.refused += found.refused;
  }
  return { reports, envelopes, ...counts, left: budget.left };
}

/** The same page under another name of this machine, which the shuffler does not list, reads nothing. */
async function stranger() {
  const { url } = await read("/run.json");
  return fetch(new URL("/v1/collection", url)).then(() => "was answered", () => "was not answered");
}

const listed = location.hostname === "127.0.0.1";
const result = await (listed ? everything() : stranger()).catch((error) => ({ failed: String(error.stack ?? error) }));
await fetch("/result", { method: "POST", body: JSON.stringify(result) });
if (listed) location.href = `http://localhost:${location.port}/test/page.html`;
