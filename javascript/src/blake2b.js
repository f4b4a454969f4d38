// BLAKE2b (RFC 7693) with a key and a personalisation.
import { bytes, bytesOf, concat, utf8, wordsOf } from "./bytes.js";

const IV = BigUint64Array.of(
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
);
/** Words of the message in the order of ten rounds, from their hexadecimal digits. */
const ORDER = Array.from(
  "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d" +
    "2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0",
  (digit) => parseInt(digit, 16),
);
const BLOCK = 128;

function compress(h, block, counted, last) {
  const m = wordsOf(block);
  const v = BigUint64Array.of(...h, ...IV);
  const turn = (to, other, bits) => {
    const word = v[to] ^ v[other];
    v[to] = (word >> bits) | (word << (64n - bits));
  };
  v[12] ^= BigInt(counted);
  if (last) v[14] = ~v[14];
  for (let i = 0; i < 192; i++) {
    // Columns, then diagonals; each in two halves.
    const row = (number) => 4 * number + (((i >> 1) + number * ((i >> 3) & 1)) & 3);
    const [a, b, c, d] = [row(0), row(1), row(2), row(3)];
    v[a] += v[b] + m[ORDER[i % 160]];
    turn(d, a, i & 1 ? 16n : 32n);
    v[c] += v[d];
    turn(b, c, i & 1 ? 63n : 24n);
  }
  return h.map((word, at) => word ^ v[at] ^ v[at + 8]);
}

/** Return a digest of `size` bytes of less than 4 GiB. */
export function blake2b(message, size, person, key = []) {
  const parameters = concat([size, key.length, 1, 1], bytes(44), utf8(person.padEnd(16, "\0")));
  let h = wordsOf(parameters).map((word, at) => word ^ IV[at]);
  const whole = concat(key, bytes(key.length && BLOCK - key.length), message);
  const padded = concat(whole, bytes(BLOCK));
  for (let at = 0, end; !end; at += BLOCK) {
    end = at + BLOCK >= whole.length;
    h = compress(h, padded.subarray(at, at + BLOCK), end ? whole.length : at + BLOCK, end);
  }
  return bytesOf(h, size);
}
