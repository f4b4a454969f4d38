// What the client must do, for any JavaScript that has WebCrypto: each check throws where it does not.
import { Collection, Randomizer, SfumatoError } from "sfumato-client";
import { Budget } from "sfumato-client/budget";
import { longitudinal } from "sfumato-client/longitudinal";
import { means } from "sfumato-client/means";
import { vectors as directions } from "sfumato-client/vectors";
import { CountedWords, blake2b, canonical, fromTable, normalTable, parse, seal, webcrypto, wholeBelow } from "sfumato-client/testing";

const protocols = { ...means, ...longitudinal, ...directions };
let given;
/** Words of the vector at hand. */
const vectorWords = { next: () => given.next(), take: (count) => given.take(count) };
const made = (specification) => fromTable(parse("specification", specification), null, protocols);
const drawing = (specification) => fromTable(parse("specification", specification), null, protocols, vectorWords);

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

export function same(found, wanted, what) {
  if (found !== wanted) throw new Error(`${what}: got ${found}, not ${wanted}`);
}

/** Require that a call is refused with one clear error, in which some words stand. */
export async function refused(call, words, what) {
  try {
    await call();
  } catch (error) {
    if (error instanceof SfumatoError && words.test(error.message)) return;
    throw new Error(`${what}: ${error.name} ${error.message}`);
  }
  throw new Error(`${what}: was not refused`);
}

/** Return the words of a vector: some given ones, then those that follow from its seed. */
async function stream({ seed, given: first = [], words = 64 }) {
  const held = first.map((text) => BigInt(`0x${text}`));
  const name = new DataView(new ArrayBuffer(8));
  name.setUint32(0, seed, true);
  for (let block = 0; 4 * block < words; block++) {
    name.setUint32(4, block, true);
    const digest = new DataView(await webcrypto.subtle.digest("SHA-256", name.buffer));
    for (let at = 0; at < 32; at += 8) held.push(digest.getBigUint64(at, true));
  }
  given = new CountedWords((block) => {
    block.fill(0n);
    block.set(held.splice(0, block.length));
  });
  return given;
}

/** Reproduce all reports; return how many there were. */
export async function checkVectors(vectors) {
  let reports = 0;
  for (const one of vectors.integers) {
    const words = await stream(one);
    same(String(wholeBelow(BigInt(one.bound), words)), one.value, `below ${one.bound}`);
    same(words.taken, one.words, `words below ${one.bound}`);
  }
  for (const one of [...vectors.randomizers, ...vectors.rare, ...vectors.directions]) {
    await checkReports(await drawing(one.specification), one);
    reports += one.reports.length;
  }
  for (const one of vectors.clients) {
    const client = (await drawing(one.specification)).client(unhex(one.key));
    same(client.cohort, one.cohort, "cohort");
    for (const report of one.reports) {
      same(hex(client.memo(report.value)), report.memo, "memo");
      await stream(report);
      same(hex(await client.report(report.value)), report.record, "report of a client");
      reports++;
    }
  }
  return reports + (await checkMemoizing(vectors.memoizing));
}

/** Reproduce a randomizer's digest and width, and the reports of one question. */
async function checkReports(randomizer, one) {
  const { protocol } = randomizer;
  same(randomizer.digest, one.digest, `digest of ${protocol}`);
  same(randomizer.width, one.width, `width of ${protocol}`);
  for (const report of one.reports) {
    const words = await stream(report);
    same(hex(await randomizer.randomize(report.value)), report.record, `${protocol} of seed ${report.seed}`);
    same(words.taken, report.words, `words of ${protocol}`);
  }
}

/** Reproduce the reports of new devices and of devices that remember, whose store is read anew for each report. */
async function checkMemoizing(cases) {
  let reports = 0;
  for (const one of cases) {
    const randomizer = await drawing(one.specification);
    const { protocol } = randomizer;
    await checkReports(randomizer, one);
    reports += one.reports.length;
    for (const device of one.devices) {
      const words = await stream({ seed: device.seed, words: device.rounds.at(-1).words });
      const held = storage();
      for (const round of device.rounds) {
        const client = randomizer.client({ storage: held, maxEpsilon: 40 });
        same(hex(await client.report(round.value)), round.record, `${protocol} again of seed ${device.seed}`);
        same(words.taken, round.words, `words of ${protocol} again`);
        reports++;
      }
      const kept = JSON.parse(held.getItem(`sfumato-memos:${one.digest}`));
      same(kept.memos.length, device.memos, `memos of ${protocol}`);
    }
  }
  return reports;
}

/** Return a key pair of a secret half, and of the public half that begins a seal. */
async function pairOf(secret, seal) {
  const [d, x] = [base64url(unhex(secret)), base64url(unhex(seal.slice(0, 64)))];
  const key = { kty: "OKP", crv: "X25519", x };
  const import_ = (jwk, uses) => webcrypto.subtle.importKey("jwk", jwk, { name: "X25519" }, true, uses);
  return { privateKey: await import_({ ...key, d }, ["deriveBits"]), publicKey: await import_(key, []) };
}

/** Reproduce envelopes, and refuse those of a cipher that WebCrypto does not have. */
export async function checkSealed(sealed) {
  let envelopes = 0;
  for (const one of sealed.collections) {
    const limits = { maxEpsilon: 40, id: one.id, budget: null };
    if (one.cipher !== "aes-256-gcm") {
      await refused(() => Collection.fromText(one.specification, limits), /analyst must be a key for AES-256-GCM/, one.cipher);
      continue;
    }
    const made = await Collection.fromText(one.specification, limits);
    same(made.id, one.id, "id");
    same(hex(await made.nonce(unhex(one.secret))), one.nonce, "nonce");
    same(made.envelopeWidth, one.envelope.length / 2, "width of an envelope");
    const pairs = [await pairOf(one.ephemeral[0], one.sealed_record), await pairOf(one.ephemeral[1], one.envelope)];
    same(hex(await made.seal(unhex(one.record), unhex(one.secret), pairs)), one.envelope, "envelope");
    const drawn = await made.envelope(one.value, unhex(one.secret));
    same(drawn.length, made.envelopeWidth, "width of a drawn envelope");
    same(hex(drawn) === one.envelope, false, "an ephemeral key is drawn anew");
    envelopes++;
  }
  return envelopes;
}

const change = (text, alter) => {
  const table = parse("text", text);
  alter(table);
  return canonical(table);
};

/** Refuse specifications that break a rule, whatever a server says. */
export async function checkRefusals(vectors, sealed) {
  const named = (name) => vectors.randomizers.find((one) => JSON.parse(one.specification).protocol === name);
  const response = named("randomized-response");
  const read = (text, limits = { maxEpsilon: 40, digest: response.digest, budget: null, protocols }) => Randomizer.fromText(text, limits);
  await read(response.specification);
  const cases = [
    [(t) => { t.truth += 1n; }, /^truth must be what follows/],
    [(t) => { t.epsilon = 0.5; }, /^truth must be what follows/],
    [(t) => { t.epsilon = 41.5; }, /^epsilon must be above 0 and at most 40/],
    [(t) => { t.epsilon = "1"; }, /^epsilon must be a number/],
    [(t) => { t.surprise = 1n; }, /^specification must have known fields only/],
    [(t) => { t.version = 3n; }, /^specification must be a document/],
    [(t) => { t.format = "other"; }, /^specification must be a document/],
    [(t) => { t.protocol = "__proto__"; }, /^protocol must be known here/],
    [(t) => { t.domain.values.reverse(); }, /^domain must have the digest/],
    [(t) => { t.domain.values.push("a"); }, /^domain must have each value once/],
    [(t) => { delete t.domain.values; }, /^domain must be written with its values/],
    [(t) => { t.domain = { digest: t.domain.digest, range: [0n, 1n << 60n, 1n] }; }, /^domain must have from 2/],
    [(t) => { t.domain.values[0] = "\ud800"; }, /^domain must be written/],
    [(t) => { t.domain = { digest: t.domain.digest, range: [0n, 6n, 0n] }; }, /^domain must be written/],
    [(t) => { t.epsilon = 1e-300; t.truth = (1n << 64n) / 6n; }, /^truth must be what follows/],
  ];
  for (const [alter, words] of cases) await refused(() => read(change(response.specification, alter)), words, alter);
  for (const text of ["", "{", "[1]", "null", "7", '{"format": 1e999}', `${"[".repeat(1e5)}`]) {
    await refused(() => read(text), /^specification must be /, text.slice(0, 20));
  }
  await refused(() => read(JSON.parse(response.specification)), /JSON.parse rounds/, "an object");
  await refused(() => read(response.specification, { budget: null }), /^maxEpsilon must be/, "no limit");
  await refused(() => read(response.specification, { maxEpsilon: 40, budget: null }), /^digest must be 64/, "no digest");
  await refused(() => read(response.specification, { maxEpsilon: 40, digest: "0".repeat(64), budget: null }), /^digest must be that/, "another");
  await refused(() => read(response.specification, { maxEpsilon: 0.9, digest: response.digest, budget: null }), /^epsilon must be above 0 and at most 0.9, got 1/, "too much");
  await refused(() => read(response.specification + " ".repeat(1 << 24)), /at most 16 MiB/, "a long text");
  await checkStructures(named, read);
  const asked = await read(response.specification);
  for (const value of ["g", 1, null, undefined, {}, NaN, "\ud800", ["a"]]) {
    await refused(() => asked.randomize(value), /^value must be a category .* got one that is not/, "a value outside");
  }
  await refused(() => asked.client(new Uint8Array(32)), /^protocol must be one of sfumato-client.longitudinal/, "a client");
  const piecewise = named("piecewise-mean");
  const plain = { maxEpsilon: 40, digest: piecewise.digest, budget: null };
  await refused(() => read(piecewise.specification, plain), /^protocol must be known here, .* pass protocols/, "a mean by the main entry");
  const stepped = await made(vectors.randomizers.find((one) => one.specification.includes("[30, 3, -4]")).specification);
  for (const value of [34, 2, 29, -1e9, 2 ** 70, 6.5]) {
    await refused(() => stepped.randomize(value), /^value must be a category/, `${value} of a range`);
  }
  const rappor = await made(named("rappor").specification);
  await refused(() => rappor.client(new Uint8Array(31)), /^key must be a Uint8Array of 32/, "a short key");
  await refused(() => rappor.randomize("\ud800"), /^value must be well-formed text/, "half a pair");
  await checkKeys(sealed);
}

/** The canonical text is Python's, and no key of a document is special. */
export async function checkCanonical() {
  await refused(() => parse("text", "{1:2}"), /^text must be well-formed JSON/, "a key without quotes");
  const text = '[1e16,1e15,0.0001,1e-5,1.5e-7,123456789012345680.0,5e-324,-0.0,1e22,1.0,0.1,18446744073709551615,"π\\n\\u007f😀"]';
  const wanted = "[1e+16,1000000000000000.0,0.0001,1e-05,1.5e-07,1.2345678901234568e+17,5e-324,-0.0,1e+22,1.0,0.1,18446744073709551615,\"\\u03c0\\n\\u007f\\ud83d\\ude00\"]";
  same(canonical(parse("text", text)), wanted, "canonical text");
  same(canonical(parse("text", '{"b":1,"__proto__":{"a":null},"B":true}')), '{"B":true,"__proto__":{"a":null},"b":1}', "keys");
}

/** A word that was handed out is not kept. */
export function checkErased() {
  let held;
  const words = new CountedWords((block) => {
    held = block;
    block.fill(7n);
  });
  same(`${words.next()} ${held[0]} ${held[1]}`, "7 0 7", "a word that was taken");
}

/** What a protocol's privacy rests on is computed on the device. */
async function checkStructures(named, read) {
  const cases = [
    ["optimized-unary-encoding", (t) => { t.other[0] -= 1n; }, /^chances must be those of epsilon/],
    ["symmetric-unary-encoding", (t) => { t.true[0] += 1n; t.other[0] -= 1n; }, /^chances must be/],
    ["optimized-unary-encoding", (t) => { t.other[1] = 65n; }, /^other must be a whole number from 1 to 64/],
    ["optimized-unary-encoding", (t) => { t.other = [1n, 1n]; }, /^chances must be/],
    ["symmetric-unary-encoding", (t) => { t.true[0] -= 1n; }, /^chances must be/],
    ["hadamard-count-mean-sketch", (t) => { t.key = 1n << 64n; }, /^key must be a whole number from 0/],
    ["hadamard-count-mean-sketch", (t) => { t.key = -1n; }, /^key must be a whole number/],
    ["hybrid-mean", (t) => { t.choice = -1n; }, /^choice must be a whole number/],
    ["hybrid-mean", (t) => { t.choice = 1n << 64n; }, /^choice must be a whole number/],
    ["square-wave", (t) => { t.bounds = [-1.7e308, 1.7e308]; }, /^bounds must be a finite/],
    ["count-mean-sketch", (t) => { t.truth[0] += 1n; }, /^chances must be/],
    ["hadamard-count-mean-sketch", (t) => { t.truth[0] += 1n; }, /^truth must be what follows/],
    ["hadamard-count-mean-sketch", (t) => { t.size = 12n; }, /^size must be a power of two/],
    ["noisy-histogram", (t) => { t.scale = [127n, 1n]; }, /^scale must be what follows/],
    ["noisy-histogram", (t) => { t.limit -= 1n; }, /^limit must be what follows/],
    ["bit-flip", (t) => { t.asked = 1n; }, /^truth must be what follows/],
    ["subset-selection", (t) => { t.subset_size -= 1n; }, /^truth must be what follows/],
    ["hadamard-response", (t) => { t.size = 4n; }, /^size must have a row/],
    ["projective-geometry-response", (t) => { t.dimension = 2n; }, /^dimension must have room/],
    ["optimal-local-hashing", (t) => { t.hash = "sha"; }, /^hash must be what follows/],
    ["rappor", (t) => { t.permanent = 0.25; }, /^chances must be those of epsilon/],
    ["rappor", (t) => { t.instantaneous = [0.75, 0.5]; }, /^instantaneous must be two numbers/],
    ["rappor", (t) => { t.permanent = -0.5; }, /^permanent must be at least/],
    ["rappor", (t) => { t.permanent = 1.5; }, /^chances must be those of epsilon|^permanent/],
    ["rappor", (t) => { t.bits = 12n; }, /^bits must be a multiple of 8/],
    ["piecewise-mean", (t) => { t.inside += 1n; }, /^inside must be what follows/],
    ["hybrid-mean", (t) => { t.parts[0] += 1n; }, /^parts must be what follows/],
    ["laplace-mean", (t) => { t.reach -= 1n; }, /^reach must be what follows/],
    ["laplace-mean", (t) => { t.bounds = [1n, 1n]; }, /^bounds must be two numbers/],
  ];
  for (const [name, alter, words] of cases) {
    const text = change(named(name).specification, alter);
    await refused(() => read(text), words, `${name} ${alter}`);
  }
}

/** A typo in a key is refused, and a point whose shared secret everybody knows. */
async function checkKeys(sealed) {
  const one = sealed.collections.find((made) => made.cipher === "aes-256-gcm");
  const read = (alter) => Collection.fromText(change(one.specification, alter), { maxEpsilon: 40, id: one.id, budget: null });
  const typo = (text) => text.replace(/.(.{9})$/, (end) => (end[0] === "A" ? "B" : "A") + end.slice(1));
  await refused(() => read((t) => { t.analyst = typo(t.analyst); }), /^analyst must be the public key .* without a typo/, "a typo");
  await refused(() => read((t) => { t.analyst = t.shuffler; }), /^analyst must be the public key of one analyst/, "a role");
  await refused(() => read((t) => { t.name = "other"; }), /^id must be that of the question/, "another collection");
  await refused(() => read((t) => { t.name = "x".repeat(201); }), /^name must be/, "a long name");
  await refused(() => read((t) => { t.surprise = 1n; }), /^collection must have known fields/, "a surprise");
  const alike = (line) => `sfumato-shuffler-public-2:${line.split(":")[1]}`;
  const content = (line) => Uint8Array.from(atob(line.split(":")[1]), (letter) => letter.charCodeAt(0)).subarray(0, 70);
  const twin = async (line) => {
    const whole = [...new TextEncoder().encode("sfumato-shuffler-public-2:"), ...content(line)];
    const digest = new Uint8Array(await webcrypto.subtle.digest("SHA-256", Uint8Array.from(whole)));
    return alike(`:${btoa(String.fromCharCode(...content(line), ...digest.subarray(0, 4)))}`);
  };
  const shuffler = await twin(JSON.parse(one.specification).analyst);
  await refused(() => read((t) => { t.shuffler = shuffler; }), /^shuffler must have another key/, "one key for both");
  const budget = new Budget({ lifetime: 80, storage: storage() });
  const paid = await Collection.fromText(one.specification, { maxEpsilon: 40, id: one.id, budget });
  await refused(() => paid.envelope("a", new Uint8Array(15)), /^secret must be/, "a short secret");
  same(await budget.spent, 0, "what a short secret costs");
  await paid.envelope("a", unhex(one.secret));
  same(await budget.left, 40, "what an envelope leaves");
  await paid.envelope("a", unhex(one.secret));
  same(await budget.left, 0, "a budget can be spent whole");
  await refused(() => read((t) => { t.batch_size = 1n; }), /^batch_size must be/, "a batch of one");
  const nothing = new Uint8Array();
  await refused(() => seal(new Uint8Array(32), nothing, nothing, "analyst"), /^analyst .* small order/, "a point of small order");
  const made = await read(() => {});
  await refused(() => made.envelope("a", new Uint8Array(15)), /^secret must be a Uint8Array of at least 16/, "a short secret");
  await refused(() => made.seal(new Uint8Array(3), unhex(one.secret)), /^record must be/, "a cut record");
}

/** Vectors of RFC 7693 (appendix A), and of Python's hashlib with key and personalisation. */
export function checkBlake2b(keyed) {
  const abc = hex(blake2b(new TextEncoder().encode("abc"), 64, ""));
  same(abc.slice(0, 32), "ba80a53f981c4d0d6a2797b69f12f6e9", "BLAKE2b of abc");
  for (const one of keyed) {
    const message = Uint8Array.from({ length: one.size }, (_, at) => at & 255);
    same(hex(blake2b(message, 32, "sfumato test", unhex(one.key))), one.digest, `BLAKE2b of ${one.size} bytes`);
  }
}

/** A storage that lasts as long as the page. */
export function storage() {
  const held = new Map();
  return { getItem: (name) => held.get(name) ?? null, setItem: (name, value) => held.set(name, value) };
}

/** A budget is charged before a draw, refuses at its end, and lasts as long as its storage. */
export async function checkBudget(vectors) {
  const one = vectors.randomizers.find((made) => JSON.parse(made.specification).protocol === "randomized-response");
  const held = storage();
  const budget = new Budget({ lifetime: 2.5, storage: held });
  const made = await Randomizer.fromText(one.specification, { maxEpsilon: 1, digest: one.digest, budget });
  await refused(() => made.randomize("outside"), /^value must be/, "a value outside");
  same(await budget.spent, 0, "what a refusal costs");
  const drawn = await Promise.allSettled([1, 2, 3, 4].map(() => made.randomize("a")));
  same(drawn.map((one) => one.status).join(), "fulfilled,fulfilled,rejected,rejected", "reports at once");
  const later = new Budget({ lifetime: 2.5, storage: held });
  same(`${await later.spent} ${await later.left}`, "2 0.5", "what is kept");
  await refused(() => made.randomize("a"), /^epsilon must be at most 0.5, which is left/, "a third report");
  same(await budget.spent, 2, "what a refused report costs");
  await later.charge(0.1);
  same((await later.spent) > 2.1, true, "parts are rounded up");
  for (const wrong of [NaN, -1, Infinity, "0.1"]) {
    const before = await later.spent;
    await refused(() => later.charge(wrong), /^epsilon must be at most/, `a charge of ${wrong}`);
    same(await later.spent, before, "what a wrong charge costs");
  }
  const deaf = new Budget({ lifetime: 2, storage: { getItem: () => null, setItem() {} } });
  await refused(() => deaf.charge(1), /^storage must hold what was written/, "a storage that forgets");
  for (const text of ["", "-1", "1.5", "x"]) {
    held.setItem("sfumato-budget", text);
    await refused(() => made.randomize("a"), /^storage must hold/, "a damaged storage");
  }
  await refused(() => new Budget({ lifetime: 0, storage: held }), /^lifetime must be/, "nothing");
  for (const wrong of [null, {}, { getItem: () => null }, 7]) {
    await refused(() => new Budget({ lifetime: 1, storage: wrong }), /^storage must have getItem and setItem, or change/, "no storage");
  }
  const place = new Map(); // where two storages keep their texts, which takes a while
  const slow = () => ({ getItem: async (name) => place.get(name), setItem: async (name, value) => { place.set(name, value); } });
  const several = [1, 2, 3].map(() => new Budget({ lifetime: 2, storage: slow() }));
  const charged = await Promise.allSettled(several.map((one) => one.charge(1)));
  same(charged.map((one) => one.status).join(), "fulfilled,fulfilled,rejected", "budgets of one process by turns");
  const broken = new Budget({ lifetime: 1, storage: { getItem() { throw new TypeError("secret"); }, setItem() {} } });
  await refused(() => broken.charge(1), /^storage must be one that can be read and written, got TypeError/, "a broken storage");
  const limits = { maxEpsilon: 40, digest: one.digest };
  await refused(() => Randomizer.fromText(one.specification, limits), /^budget must be a Budget/, "no budget");
}

/** Memos are paid for once, before any is drawn, and only what a device wrote itself is gone on with. */
export async function checkMemos(vectors) {
  const named = (name) => vectors.memoizing.find((one) => JSON.parse(one.specification).protocol === name);
  const one = named("longitudinal-randomized-response");
  const [held, spent] = [storage(), storage()];
  const budget = new Budget({ lifetime: 9, storage: spent });
  const read = (text, digest) => Randomizer.fromText(text, { maxEpsilon: 40, digest, budget, protocols });
  const asked = await read(one.specification, one.digest);
  const client = asked.client({ storage: held, maxEpsilon: 2 });
  same(client.cost, 6, "three memos of epsilon 2");
  await refused(() => client.report("g"), /^value must be a category/, "a value outside");
  same(await budget.spent, 0, "what a refusal costs");
  const many = await Promise.all(["a", "b", "c", "d", "a"].map((value) => client.report(value)));
  same(many.every((record) => record.length === one.width), true, "reports at once");
  same(await budget.spent, 6, "what many reports cost");
  await asked.client({ storage: held, maxEpsilon: 2 }).report("e");
  same(await budget.spent, 6, "what a later client costs");
  await refused(() => asked.client({ storage: storage(), maxEpsilon: 2 }).report("a"), /^epsilon must be at most 3, which is left/, "a second device");
  await refused(() => asked.client({ storage: held, maxEpsilon: 1.9 }), /^permanent_epsilon must be at most 1.9, got 2/, "too much for all");
  await refused(() => asked.client(null), /^maxEpsilon must be above 0/, "no options");
  await refused(() => asked.client({ storage: held }), /^maxEpsilon must be above 0/, "no limit");
  await refused(() => asked.client({ storage: {}, maxEpsilon: 2 }), /^storage must have/, "no storage");
  await refused(() => asked.client({ storage: held, maxEpsilon: 2, question: 7 }), /^question must be a text/, "a number");
  const name = `sfumato-memos:${one.digest}`;
  const kept = held.getItem(name);
  const both = await Randomizer.fromText(one.specification, { maxEpsilon: 40, digest: one.digest, budget: null, protocols });
  for (const question of ["first", "second"]) await both.client({ storage: held, maxEpsilon: 2, question }).report("b");
  same(held.getItem(name), kept, "what another question's reports are made of");
  for (const question of ["first", "second"]) {
    same(JSON.parse(held.getItem(`${name}:${question}`)).keys.join(), "1", `what the ${question} question memoizes`);
  }
  await refused(() => asked.client({ storage: held, maxEpsilon: 2, question: "third" }).report("a"), /^epsilon must be at most 3/, "a question more");
  for (const text of ["x", "{}", "[]", "null", '{"fixed":null,"keys":[],"memos":[]}']) {
    held.setItem(name, text);
    await refused(() => client.report("a"), /^storage must hold what a device remembers/, text);
  }
  same(await budget.spent, 6, "what a damaged store costs");
  let reads = 0;
  const forgets = { getItem: () => (reads++ ? null : '{"fixed":null,"keys":[0],"memos":[0]}'), setItem() {} };
  await refused(() => asked.client({ storage: forgets, maxEpsilon: 2 }).report("a"), /^storage must hold what was written/, "a store that forgets");
  const failing = { charge: () => Promise.reject(new SfumatoError("epsilon must be less")) };
  const poor = await Randomizer.fromText(one.specification, { maxEpsilon: 40, digest: one.digest, budget: failing, protocols });
  const empty = storage();
  await refused(() => poor.client({ storage: empty, maxEpsilon: 2 }).report("a"), /^epsilon must be less/, "no budget");
  same(empty.getItem(name), "", "what is drawn without a budget");
  const cases = [
    ["longitudinal-randomized-response", (t) => { t.again += 1n; }, /^again must be what follows/],
    ["longitudinal-randomized-response", (t) => { t.permanent += 1n; }, /^permanent must be what follows/],
    ["longitudinal-randomized-response", (t) => { t.permanent_epsilon = 1; }, /^permanent_epsilon must be above epsilon/],
    ["longitudinal-randomized-response", (t) => { t.permanent_epsilon = 41; }, /^permanent_epsilon must be above epsilon and at most 40/],
    ["longitudinal-randomized-response", (t) => { t.max_memos = 0n; }, /^max_memos must be a whole number from 1/],
    ["longitudinal-local-hashing", (t) => { t.buckets = 6n; }, /^permanent must be what follows/],
    ["longitudinal-local-hashing", (t) => { t.hash = "sha"; }, /^hash must be what follows/],
    ["longitudinal-unary-encoding", (t) => { t.chain = "__proto__"; }, /^chain must be one of SUE, OUE, OSUE, SOUE/],
    ["longitudinal-unary-encoding", (t) => { t.low[0] -= 1n; }, /^high must be what follows/],
    ["longitudinal-unary-encoding", (t) => { t.low[0] -= 1n; t.high[0] += 1n; }, /^chances must be those of epsilon/],
    ["longitudinal-unary-encoding", (t) => { t.other[0] -= 1n; t.true[0] += 1n; }, /^chances must be those of epsilon/],
    ["memoized-bit-flip", (t) => { t.again += 1n; }, /^again must be what follows/],
    ["memoized-bit-flip", (t) => { t.again = null; }, /^again must be what follows/],
    ["memoized-bit-flip", (t) => { t.permanent_epsilon = 0.5; }, /^permanent_epsilon must be at least epsilon/],
    ["memoized-one-bit-mean", (t) => { t.permanent -= 1n; }, /^permanent must be what follows/],
    ["memoized-one-bit-mean", (t) => { t.steps = 0n; }, /^steps must be/],
    ["memoized-rappor", (t) => { t.permanent = 0.25; }, /^chances must be those of epsilon/],
    ["memoized-rappor", (t) => { t.hashes = 8n; t.bits = 4096n; t.epsilon = 20.5; }, /^hashes must make at most/],
  ];
  for (const [protocol, alter, words] of cases) {
    await refused(() => read(change(named(protocol).specification, alter), one.digest), words, `${protocol} ${alter}`);
  }
}

/** A vector is refused by its length alone, and its question by what its privacy rests on. */
export async function checkDirections(vectors) {
  const table = new DataView(new ArrayBuffer(2 ** 17));
  normalTable().forEach((number, at) => table.setInt16(2 * at, number, true));
  same(hex(new Uint8Array(await webcrypto.subtle.digest("SHA-256", table))), vectors.normal_table, "table of normal numbers");
  const one = vectors.directions[0];
  const randomizer = await made(one.specification);
  for (const wrong of [[], [0.5], [1, 0, 0, 0, 0.1], [NaN, 0, 0, 0, 0], [1e308, 0, 0, 0, 0], ["0", 0, 0, 0, 0], null, "00000", 5, undefined]) {
    await refused(() => randomizer.randomize(wrong), /^value must be a vector of 5 numbers with a norm of at most 1, got another;/, wrong);
  }
  for (const fine of [new Float32Array(5), new Float64Array([1, 0, 0, 0, 0]), [5e-324, 0, 0, 0, -0], [1e-200, 0, 0, 0, 1e-200]]) {
    same((await randomizer.randomize(fine)).length, one.width, "a vector");
  }
  const cases = [
    [(t) => { t.near += 1n; }, /^inside must be what follows/],
    [(t) => { t.near = 65n; }, /^near must be a whole number from 1 to 64/],
    [(t) => { t.candidates = 127n; }, /^candidates must be even/],
    [(t) => { t.candidates = 8192n; }, /^candidates must be a whole number/],
    [(t) => { t.radius = 0n; }, /^radius must be above 0/],
    [(t) => { t.dimension = 1n; }, /^dimension must be a whole number from 2/],
    [(t) => { t.vectors = "splitmix-1"; }, /^vectors must be what follows/],
  ];
  for (const [alter, words] of cases) await refused(() => made(change(one.specification, alter)), words, alter);
}

/** Draws are not those of a seed: two of many bits differ, and both categories come. */
export async function checkSecure(vectors) {
  const one = vectors.randomizers.find((made) => JSON.parse(made.specification).protocol === "optimized-unary-encoding");
  const randomizer = await made(one.specification);
  const seen = new Set(await Promise.all(Array.from({ length: 200 }, async () => hex(await randomizer.randomize("a")))));
  if (seen.size < 8) throw new Error("secure words repeat");
}
