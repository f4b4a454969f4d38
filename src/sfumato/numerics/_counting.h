/* Bits and counts of local reports: coins by the word, and how many records support each value.
 *
 * Plain loops that compilers vectorise; whole numbers only, so all instruction sets give the same bits.
 */
#ifndef SFUMATO_COUNTING_H
#define SFUMATO_COUNTING_H

#include "_kernels.h"

#define COIN_WORDS 512
#define ROW_WORDS 64
#define ROWS 8
#define PLANES 16
/* Rows after which planes are emptied: a plane number p counts 2^p rows, and all together fewer than 2^16. */
#define FLUSH 65528
#define HASH_REPORTS 2048

/* out[i] is 64 coins of chance threshold / 2^bits, each from a column of `bits` random bits: words[level * n + i] holds
 * the bit of that level, the least first. A uniform's complement is uniform, so "below" is built up from the last bit:
 * where the threshold's bit is 1, a random 1 (say: the uniform's bit is 0) decides for heads; where it is 0, a random 0
 * decides against. */
INLINE void coins_body(const uint64_t *restrict words, uint64_t threshold, int bits, uint64_t *restrict out,
                       ptrdiff_t n) {
    for (ptrdiff_t at = 0; at < n; at += COIN_WORDS) {
        ptrdiff_t m = n - at < COIN_WORDS ? n - at : COIN_WORDS;
        uint64_t heads[COIN_WORDS] = {0};
        for (int level = 0; level < bits; level++) {
            const uint64_t *restrict row = words + level * n + at;
            if (threshold >> level & 1)
                for (ptrdiff_t i = 0; i < m; i++) heads[i] |= row[i];
            else
                for (ptrdiff_t i = 0; i < m; i++) heads[i] &= row[i];
        }
        memcpy(out + at, heads, sizeof *heads * (size_t)m);
    }
}

/* Add a plane of carries into the planes above. */
INLINE void ripple(uint64_t planes[PLANES][ROW_WORDS], const uint64_t *restrict carry, int from, ptrdiff_t n) {
    uint64_t up[ROW_WORDS];
    memcpy(up, carry, sizeof *up * (size_t)n);
    for (int p = from; p < PLANES; p++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            uint64_t both = planes[p][j] & up[j];
            planes[p][j] ^= up[j];
            up[j] = both;
        }
    }
}

/* x + y + z = *sum + 2 *carry, bit by bit. */
#define ADD3(x, y, z, sum, carry)                       \
    do {                                                \
        uint64_t part_ = (x) ^ (y), third_ = (z);       \
        carry = ((x) & (y)) | (part_ & third_);         \
        sum = part_ ^ third_;                           \
    } while (0)

/* Eight rows into planes 0, 1, 2 and a carry of eights (a tree of adders, as Harley and Seal count bits). */
INLINE void add_rows(uint64_t planes[PLANES][ROW_WORDS], uint64_t r[ROWS][ROW_WORDS], uint64_t *restrict eights,
                     ptrdiff_t n) {
    for (ptrdiff_t j = 0; j < n; j++) {
        uint64_t ones = planes[0][j], twos = planes[1][j], fours = planes[2][j];
        uint64_t a, b, c, d, e, f;
        ADD3(ones, r[0][j], r[1][j], ones, a);
        ADD3(ones, r[2][j], r[3][j], ones, b);
        ADD3(twos, a, b, twos, c);
        ADD3(ones, r[4][j], r[5][j], ones, d);
        ADD3(ones, r[6][j], r[7][j], ones, e);
        ADD3(twos, d, e, twos, f);
        ADD3(fours, c, f, fours, eights[j]);
        planes[0][j] = ones;
        planes[1][j] = twos;
        planes[2][j] = fours;
    }
}

/* counts[8 k + b] += rows whose byte k has bit b, for `bytes` <= 8 ROW_WORDS bytes from each of n <= FLUSH rows. */
INLINE void bits_block(const uint8_t *rows, ptrdiff_t n, ptrdiff_t width, ptrdiff_t bytes, int64_t *restrict counts) {
    uint64_t planes[PLANES][ROW_WORDS] = {{0}}, r[ROWS][ROW_WORDS] = {{0}}, eights[ROW_WORDS];
    ptrdiff_t used = (bytes + 7) / 8;
    for (ptrdiff_t at = 0; at < n; at += ROWS) {
        for (ptrdiff_t i = 0; i < ROWS; i++) {
            if (at + i < n)
                memcpy(r[i], rows + (at + i) * width, (size_t)bytes);
            else
                memset(r[i], 0, (size_t)bytes);
        }
        add_rows(planes, r, eights, used);
        ripple(planes, eights, 3, used);
    }
    for (int p = 0; p < PLANES; p++) {
        const uint8_t *plane = (const uint8_t *)planes[p];
        for (ptrdiff_t k = 0; k < bytes; k++)
            for (int b = 0; b < 8; b++) counts[8 * k + b] += (int64_t)(plane[k] >> b & 1) << p;
    }
}

INLINE void bits_body(const uint8_t *rows, ptrdiff_t n, ptrdiff_t width, int64_t *restrict counts) {
    for (ptrdiff_t at = 0; at < n; at += FLUSH) {
        ptrdiff_t m = n - at < FLUSH ? n - at : FLUSH;
        for (ptrdiff_t from = 0; from < width; from += 8 * ROW_WORDS) {
            ptrdiff_t bytes = width - from < 8 * ROW_WORDS ? width - from : 8 * ROW_WORDS;
            bits_block(rows + at * width + from, m, width, bytes, counts + 8 * from);
        }
    }
}

/* The hash of a seed and a value's key. */
INLINE uint32_t hashed(uint32_t seed, uint32_t key) {
    uint32_t x = (seed ^ key) * 0xed5ad4bbu;
    x = (x ^ x >> 11) * 0xac4c1b51u;
    return (x ^ x >> 15) * 0x31848babu;
}

/* counts[v] += #{i : low[i] <= hash(seed[i], key[v]) < low[i] + span[i]}; four values share each load. */
INLINE void hashes_body(const uint32_t *restrict seed, const uint32_t *restrict low, const uint32_t *restrict span,
                        ptrdiff_t n, const uint32_t *restrict key, ptrdiff_t values, int64_t *restrict counts) {
    for (ptrdiff_t at = 0; at < n; at += HASH_REPORTS) {
        const uint32_t *restrict s = seed + at, *restrict l = low + at, *restrict w = span + at;
        ptrdiff_t m = n - at < HASH_REPORTS ? n - at : HASH_REPORTS, v = 0;
        for (; v + 4 <= values; v += 4) {
            uint32_t a = key[v], b = key[v + 1], c = key[v + 2], d = key[v + 3], A = 0, B = 0, C = 0, D = 0;
            for (ptrdiff_t i = 0; i < m; i++) {
                A += hashed(s[i], a) - l[i] < w[i];
                B += hashed(s[i], b) - l[i] < w[i];
                C += hashed(s[i], c) - l[i] < w[i];
                D += hashed(s[i], d) - l[i] < w[i];
            }
            counts[v] += A;
            counts[v + 1] += B;
            counts[v + 2] += C;
            counts[v + 3] += D;
        }
        for (; v < values; v++) {
            uint32_t a = key[v], A = 0;
            for (ptrdiff_t i = 0; i < m; i++) A += hashed(s[i], a) - l[i] < w[i];
            counts[v] += A;
        }
    }
}

#define DEFINE_COUNTING(suffix, attribute)                                                                          \
    attribute static void coins_##suffix(const uint64_t *w, uint64_t t, int bits, uint64_t *out, ptrdiff_t n) {      \
        coins_body(w, t, bits, out, n);                                                                             \
    }                                                                                                               \
    attribute static void bits_##suffix(const uint8_t *rows, ptrdiff_t n, ptrdiff_t width, int64_t *counts) {        \
        bits_body(rows, n, width, counts);                                                                          \
    }                                                                                                               \
    attribute static void hashes_##suffix(const uint32_t *s, const uint32_t *l, const uint32_t *w, ptrdiff_t n,      \
                                          const uint32_t *key, ptrdiff_t values, int64_t *counts) {                 \
        hashes_body(s, l, w, n, key, values, counts);                                                               \
    }

DEFINE_COUNTING(portable, )
#if WIDE
DEFINE_COUNTING(avx2, __attribute__((target("avx2,bmi,bmi2"))))
DEFINE_COUNTING(avx512, __attribute__((target("avx2,bmi,bmi2,avx512f,avx512cd,avx512dq,avx512vl,avx512bw"))))
#endif

#endif
