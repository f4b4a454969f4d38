// Public keys, and seals for their owners: HPKE in base mode with X25519, HKDF-SHA256 and AES-256-GCM (RFC 9180).
import { bytes, concat, hex, sha256, utf8, webcrypto } from "./bytes.js";
import { refuse } from "./errors.js";

const { subtle } = webcrypto;
/** DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM, as 6 bytes in base64. */
const ALGORITHMS = "ACAAAQAC";
const KEM = concat(utf8("HPKE-v1KEM"), [0, 32]);
const SUITE = concat(utf8("HPKE-v1HPKE"), [0, 32, 0, 1, 0, 2]);
const CURVE = { name: "X25519" };
const EMPTY = bytes(0);
const UNSALTED = bytes(32); // to HMAC the same as no key, which some refuse
const AGAIN = "copy the line again from its owner";

/** Bytes that a seal adds. */
export const SEAL = 48;

/** Return the text and the point of a public key, read from its line. */
export async function publicKey(given, role) {
  const prefix = `sfumato-${role}-public-2:`;
  const text = `${given}`.trimEnd();
  const [, line = ""] = text.match(RegExp(`^${prefix}([A-Za-z0-9+/]{99}=)$`)) ?? [];
  const content = Uint8Array.from(atob(line), (letter) => letter.charCodeAt());
  const whole = content.subarray(0, 70);
  const checksum = await sha256(concat(utf8(prefix), whole));
  if (hex(content.subarray(70)) !== hex(checksum.subarray(0, 4))) {
    refuse(role, `be the public key of one ${role}, of version 2, without a typo`, "another line", AGAIN);
  }
  if (!line.startsWith(ALGORITHMS)) {
    const remedy = "its owner makes one by keygen --cipher aes-256-gcm";
    refuse(role, "be a key for AES-256-GCM", "one for another cipher", remedy);
  }
  const point = whole.slice(6, 38);
  await seal(point, EMPTY, EMPTY, role); // refuses a point of small order
  return { text, point };
}

/** Seal a message so that only the owner of a point reads it, and only in the same context. */
export async function seal(point, message, context, name, pair) {
  pair ??= await subtle.generateKey(CURVE, true, ["deriveBits"]).catch(() =>
    refuse("WebCrypto", "have X25519", "none", "use Node 18.19, Chrome 133, Firefox 130, Safari 17 or later"),
  );
  const encapsulated = bytes(await subtle.exportKey("raw", pair.publicKey));
  const shared = await exchanged(pair.privateKey, point).catch(() => EMPTY); // as some return zeros, and others refuse
  if (!shared.some((byte) => byte)) refuse(name, "be a key, not a point of small order", "such a point", AGAIN);
  const prk = await extract(KEM, UNSALTED, "eae_prk", shared);
  const secret = await expand(KEM, prk, "shared_secret", concat(encapsulated, point), 32);
  const ids = [await extract(SUITE, UNSALTED, "psk_id_hash", EMPTY), await extract(SUITE, UNSALTED, "info_hash", context)];
  const schedule = concat([0], ...ids);
  const base = await extract(SUITE, secret, "secret", EMPTY);
  const key = await expand(SUITE, base, "key", schedule, 32);
  const iv = await expand(SUITE, base, "base_nonce", schedule, 12);
  const cipher = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  return concat(encapsulated, bytes(await subtle.encrypt({ name: "AES-GCM", iv }, cipher, message)));
}

async function exchanged(privateKey, point) {
  const other = await subtle.importKey("raw", point, CURVE, true, []);
  return bytes(await subtle.deriveBits({ ...CURVE, public: other }, privateKey, 256));
}

/** HMAC-SHA256. */
export async function hmac(key, message) {
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return bytes(await subtle.sign("HMAC", imported, message));
}

const extract = (suite, salt, label, material) => hmac(salt, concat(suite, utf8(label), material));

async function expand(suite, key, label, context, size) {
  return (await hmac(key, concat([0, size], suite, utf8(label), context, [1]))).subarray(0, size);
}
