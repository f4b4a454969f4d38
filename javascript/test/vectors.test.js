import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import assert from "node:assert/strict";
import * as checks from "./checks.js";

const folder = process.env.SFUMATO_VECTORS;
const read = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));
const [vectors, sealed] = [read("vectors.json"), read("sealed.json")];

test("reports are reproduced bit for bit", async () => {
  assert.ok((await checks.checkVectors(vectors)) > 900);
});

test("envelopes are reproduced bit for bit", async () => {
  assert.equal(await checks.checkSealed(sealed), 1);
});

test("bad specifications, keys and values are refused", () => checks.checkRefusals(vectors, sealed));

test("BLAKE2b", () => checks.checkBlake2b(JSON.parse(process.env.SFUMATO_BLAKE2B)));

test("budgets", () => checks.checkBudget(vectors));

test("secure words differ", () => checks.checkSecure(vectors));

test("the types name what is exported", async () => {
  const shown = Object.keys(await import("sfumato-client")).sort();
  assert.deepEqual(shown, ["Budget", "Collection", "Randomizer", "SfumatoError", "send"]);
});
