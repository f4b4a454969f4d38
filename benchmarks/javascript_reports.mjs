// A thousand reports of each question: node javascript_reports.mjs CLIENT QUESTIONS; milliseconds of CPU time, best of 5.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, questions] = process.argv.slice(2);
const { Randomizer } = await import(pathToFileURL(client));
const found = {};
for (const [name, { specification, digest, value }] of Object.entries(JSON.parse(readFileSync(questions, "utf8")))) {
  const randomizer = await Randomizer.fromText(specification, { maxEpsilon: 40, digest, budget: null });
  const times = [];
  for (let run = 0; run < 5; run++) {
    const start = process.cpuUsage();
    for (let report = 0; report < 1000; report++) await randomizer.randomize(value);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1000);
  }
  found[name] = { first: times[0], best: Math.min(...times), width: randomizer.width };
}
console.log(JSON.stringify(found));
