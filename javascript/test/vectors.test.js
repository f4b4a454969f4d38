import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createServer } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import assert from "node:assert/strict";
import { SfumatoError, send } from "sfumato-client";
import * as checks from "./checks.js";

const folder = process.env.SFUMATO_VECTORS;
const read = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));
const [vectors, sealed] = [read("vectors.json"), read("sealed.json")];

test("reports are reproduced bit for bit", async () => {
  assert.ok((await checks.checkVectors(vectors)) > 1800);
});

test("envelopes are reproduced bit for bit", async () => {
  assert.equal(await checks.checkSealed(sealed), 1);
});

test("bad specifications, keys and values are refused", () => checks.checkRefusals(vectors, sealed));

test("BLAKE2b", () => checks.checkBlake2b(JSON.parse(process.env.SFUMATO_BLAKE2B)));

test("canonical text", () => checks.checkCanonical());

test("words are erased", () => checks.checkErased());

/** A service that puts requests off some times and then answers; what it was sent. */
async function service(statuses, answer, use) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    bodies.push(`${request.method} ${request.url} ${Buffer.concat(pieces).toString("hex")}`);
    response.writeHead(statuses[Math.min(bodies.length, statuses.length) - 1]).end(answer);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  return bodies;
}

test("the same bytes are sent again until they are taken", async () => {
  const [counts, envelopes] = ['{"taken": 2, "refused": 0}', [Uint8Array.of(1, 2), Uint8Array.of(3)]];
  const sent = await service([503, 429, 200], counts, async (url) => {
    assert.deepEqual(await send(url, envelopes), { taken: 2, refused: 0 });
  });
  assert.deepEqual(sent, Array(3).fill("POST /v1/reports 010203"));
  const twice = await service([503], counts, (url) => assert.rejects(send(url, envelopes, { attempts: 2 }), /503/));
  assert.equal(twice.length, 2);
  await service([200], "[]", (url) => assert.rejects(send(url, envelopes), SfumatoError));
  await service([404], counts, (url) => assert.rejects(send(url, envelopes), /must be a shuffler's service/));
  await assert.rejects(send("http://127.0.0.1:9", envelopes, { attempts: 1 }), /no answer/);
  await assert.rejects(send("http://127.0.0.1:9", "text"), /^SfumatoError: envelopes must be/);
});

test("budgets", () => checks.checkBudget(vectors));

test("memos", () => checks.checkMemos(vectors));

test("directions", () => checks.checkDirections(vectors));

test("secure words differ", () => checks.checkSecure(vectors));

test("the types name what is exported", async () => {
  const entries = {
    index: ["Collection", "Randomizer", "SfumatoError", "send"],
    budget: ["Budget", "databaseStorage"],
    longitudinal: ["longitudinal"],
    means: ["means"],
    vectors: ["vectors"],
  };
  for (const [entry, names] of Object.entries(entries)) {
    const shown = await import(entry === "index" ? "sfumato-client" : `sfumato-client/${entry}`);
    assert.deepEqual(Object.keys(shown).sort(), names);
    const types = readFileSync(new URL(`../node_modules/sfumato-client/src/${entry}.d.ts`, import.meta.url), "utf8");
    const named = Array.from(types.matchAll(/^export (?:class|function|const) (\w+)/gm), ([, name]) => name);
    assert.deepEqual(named.sort(), names);
  }
});
