// Public keys, and seals for their owners: HPKE in base mode with X25519, HKDF-SHA256 and AES-256-GCM (RFC 9180).
import { concat, hex, sha256, unhex, utf8 } from "./bytes.js";
import { refuse } from "./errors.js";
import { webcrypto } from "./words.js";

const KEM = concat(utf8("KEM"), unhex("0020"));
const SUITE = concat(utf8("HPKE"), unhex("002000010002"));
const LABEL = utf8("HPKE-v1");
const EMPTY = new Uint8Array();
const AGAIN = "copy the line again from its owner";

/** Bytes that a seal adds. */
export const SEAL = 48;

/** The public half of a key, read from its line. */
export class PublicKey {
  constructor(text, point) {
    this.text = text;
    this.point = point;
  }

  static async fromText(given, role) {
    const prefix = `sfumato-${role}-public-2:`;
    const rule = `be the public key of one ${role}, of version 2, without a typo`;
    const text = typeof given === "string" ? given.trimEnd() : "";
    if (!text.startsWith(prefix)) refuse(role, rule, "another line", AGAIN);
    const content = base64(text.slice(prefix.length));
    const [whole, checksum] = [content.subarray(0, -4), content.subarray(-4)];
    const wanted = (await sha256(concat(utf8(prefix), whole))).subarray(0, 4);
    if (whole.length !== 70 || hex(checksum) !== hex(wanted)) refuse(role, rule, "a line with a typo", AGAIN);
    if (hex(whole.subarray(0, 6)) !== "002000010002") {
      const remedy = "let its owner make one by `sfumato shuffle keygen --cipher aes-256-gcm`";
      refuse(role, "be a key for AES-256-GCM, which devices have", "one for another cipher", remedy);
    }
    const made = new PublicKey(text, whole.slice(6, 38));
    await made.seal(EMPTY, EMPTY, role); // refuses a point of small order
    return made;
  }

  /** Seal a message so that only the owner of the key reads it, and only in the same context. */
  async seal(message, context, name = "key", ephemeral) {
    const { subtle } = webcrypto;
    const pair = ephemeral ?? (await generated(subtle));
    const encapsulated = new Uint8Array(await subtle.exportKey("raw", pair.publicKey));
    const shared = await exchanged(subtle, pair.privateKey, this.point, name);
    const prk = await extract(KEM, EMPTY, "eae_prk", shared);
    const secret = await expand(KEM, prk, "shared_secret", concat(encapsulated, this.point), 32);
    const hashes = [await extract(SUITE, EMPTY, "psk_id_hash", EMPTY), await extract(SUITE, EMPTY, "info_hash", context)];
    const schedule = concat(Uint8Array.of(0), ...hashes);
    const base = await extract(SUITE, secret, "secret", EMPTY);
    const key = await expand(SUITE, base, "key", schedule, 32);
    const iv = await expand(SUITE, base, "base_nonce", schedule, 12);
    const cipher = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    return concat(encapsulated, new Uint8Array(await subtle.encrypt({ name: "AES-GCM", iv }, cipher, message)));
  }
}

async function generated(subtle) {
  try {
    return await subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
  } catch {
    return refuse("WebCrypto", "have X25519", "none", "use Node 18.19, Chrome 133, Firefox 130, Safari 17 or later");
  }
}

async function exchanged(subtle, privateKey, point, name) {
  let shared = EMPTY;
  try {
    const other = await subtle.importKey("raw", point, { name: "X25519" }, true, []);
    shared = new Uint8Array(await subtle.deriveBits({ name: "X25519", public: other }, privateKey, 256));
  } catch {
    // refused below, as some refuse the point and others return zeros
  }
  if (!shared.some((byte) => byte)) refuse(name, "be a key, not a point of small order", "such a point", AGAIN);
  return shared;
}

/** HMAC-SHA256; a key of zeros stands for none. */
export async function hmac(key, message) {
  const { subtle } = webcrypto;
  const raw = key.length ? key : new Uint8Array(32);
  const imported = await subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, message));
}

const extract = (suite, salt, label, material) => hmac(salt, concat(LABEL, suite, utf8(label), material));

async function expand(suite, key, label, context, size) {
  const info = concat(Uint8Array.of(0, size), LABEL, suite, utf8(label), context, Uint8Array.of(1));
  return (await hmac(key, info)).subarray(0, size);
}

function base64(text) {
  try {
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return EMPTY;
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return EMPTY;
  }
}
