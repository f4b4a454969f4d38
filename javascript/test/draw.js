// Reports from secure words: node draw.js QUESTIONS COUNT; prints for each question how often each record came.
import { readFileSync } from "node:fs";
import { Randomizer } from "sfumato-client";

const [file, count] = process.argv.slice(2);
const found = {};
for (const [name, { specification, digest, value, epsilon }] of Object.entries(JSON.parse(readFileSync(file, "utf8")))) {
  const randomizer = await Randomizer.fromText(specification, { maxEpsilon: epsilon, digest: [digest], budget: null });
  const counts = {};
  for (let i = 0; i < Number(count); i++) {
    const record = Buffer.from(await randomizer.randomize(value)).toString("hex");
    counts[record] = (counts[record] ?? 0) + 1;
  }
  found[name] = counts;
}
console.log(JSON.stringify(found));
