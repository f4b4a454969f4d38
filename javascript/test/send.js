// A run of devices: node send.js COLLECTION URL EPSILON ID VALUE..., one report for each value; prints the counts.
import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { Collection, send } from "sfumato-client";

const [file, url, epsilon, id, ...values] = process.argv.slice(2);
const collection = await Collection.fromText(readFileSync(file, "utf8"), { maxEpsilon: Number(epsilon), id, budget: null });
const envelopes = [];
for (const value of values) {
  envelopes.push(await collection.envelope(value, webcrypto.getRandomValues(new Uint8Array(16))));
}
const first = await send(url, envelopes[0]);
const rest = await send(url, envelopes.slice(1));
const again = await send(url, envelopes); // as if the answer was lost: nobody is counted twice
console.log(JSON.stringify({ taken: first.taken + rest.taken, refused: first.refused + rest.refused, again: again.taken }));
