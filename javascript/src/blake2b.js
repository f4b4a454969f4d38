// BLAKE2b (RFC 7693) with a key and a personalisation, on halves of 32 bits.
import { littleEndian } from "./words.js";

const IV = Uint32Array.of(
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
);
const ORDER = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => Array.from(row, (digit) => 2 * parseInt(digit, 16)));
const BLOCK = 128;
const v = new Uint32Array(32);
const m = new Uint32Array(32);

function add(to, low, high) {
  const sum = v[to] + low;
  v[to + 1] += high + (sum > 0xffffffff ? 1 : 0);
  v[to] = sum;
}

/** v[to] = (v[to] XOR v[with]) rotated right, by 32, 24, 16 or 63 bits. */
function turn(to, other, bits) {
  const low = v[to] ^ v[other];
  const high = v[to + 1] ^ v[other + 1];
  if (bits === 32) [v[to], v[to + 1]] = [high, low];
  else if (bits === 63) [v[to], v[to + 1]] = [(low << 1) | (high >>> 31), (high << 1) | (low >>> 31)];
  else [v[to], v[to + 1]] = [(low >>> bits) | (high << (32 - bits)), (high >>> bits) | (low << (32 - bits))];
}

function mix(a, b, c, d, x, y) {
  a *= 2;
  b *= 2;
  c *= 2;
  d *= 2;
  for (const [word, first, second] of [[x, 32, 24], [y, 16, 63]]) {
    add(a, v[b], v[b + 1]);
    add(a, m[word], m[word + 1]);
    turn(d, a, first);
    add(c, v[d], v[d + 1]);
    turn(b, c, second);
  }
}

function compress(h, block, counted, last) {
  for (let i = 0; i < 32; i++) {
    m[i] = block[4 * i] | (block[4 * i + 1] << 8) | (block[4 * i + 2] << 16) | (block[4 * i + 3] << 24);
    v[i] = i < 16 ? h[i] : IV[i - 16];
  }
  v[24] ^= counted;
  if (last) [v[28], v[29]] = [~v[28], ~v[29]];
  for (let round = 0; round < 12; round++) {
    const s = ORDER[round % 10];
    for (let i = 0; i < 4; i++) mix(i, 4 + i, 8 + i, 12 + i, s[2 * i], s[2 * i + 1]);
    for (let i = 0; i < 4; i++) {
      mix(i, 4 + ((i + 1) & 3), 8 + ((i + 2) & 3), 12 + ((i + 3) & 3), s[8 + 2 * i], s[9 + 2 * i]);
    }
  }
  for (let i = 0; i < 16; i++) h[i] ^= v[i] ^ v[i + 16];
}

/** Return a digest of `size` bytes of less than 4 GiB. */
export function blake2b(message, size, person, key = new Uint8Array()) {
  const parameters = new Uint8Array(64);
  parameters.set([size, key.length, 1, 1]);
  parameters.set(new TextEncoder().encode(person), 48);
  const h = IV.slice();
  for (let i = 0; i < 64; i++) h[i >> 2] ^= parameters[i] << (8 * (i & 3));
  const before = key.length ? BLOCK : 0;
  const whole = new Uint8Array(before + message.length);
  whole.set(key);
  whole.set(message, before);
  for (let at = 0; ; at += BLOCK) {
    const block = new Uint8Array(BLOCK);
    block.set(whole.subarray(at, at + BLOCK));
    const end = at + BLOCK >= whole.length;
    compress(h, block, end ? whole.length : at + BLOCK, end);
    if (end) return littleEndian(h).subarray(0, size);
  }
}
