/* Normal numbers that are a function of a key, a stream and a position: ChaCha20, then Box and Muller's transform.
 *
 * A group is 16 blocks of ChaCha20 (RFC 8439, with a counter of 64 bits and the stream as the nonce's other 64): block
 * l of a group holds the words w[0][l] ... w[15][l]. Read row by row, and two 32-bit words at a time, the lower first,
 * they are 128 words of 64 bits: the first 64 give radii, the other 64 directions, and the pairs 128 normal numbers,
 * cosines first.
 *
 * Only + - * / and square roots of IEEE doubles, uncontracted: the same bits on every machine.
 */
#ifndef SFUMATO_KEYED_H
#define SFUMATO_KEYED_H

#include <math.h>

#include "_kernels.h"

#define ROW 16
#define GROUP_WORDS 256
#define PAIRS 64
#define GROUP 128

typedef struct {
    uint32_t key[8];
    uint64_t stream;
} Keyed;

INLINE double from_bits(uint64_t bits) {
    union {
        uint64_t bits;
        double number;
    } both = {bits};
    return both.number;
}

INLINE uint64_t to_bits(double number) {
    union {
        double number;
        uint64_t bits;
    } both = {number};
    return both.bits;
}

/* x + 1/2 with one rounding. */
INLINE double half_above(uint64_t x) { return as_double(x >> 32) * 0x1p32 + (as_double(x & 0xffffffffu) + 0.5); }

/* The 64-bit words of a group. */
INLINE void paired(const uint32_t *restrict words, uint64_t *restrict out) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(out, words, sizeof *words * GROUP_WORDS);
#else
    for (int i = 0; i < GROUP; i++) out[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
#endif
}

/* Two normal numbers, and how many cells of 2^-64 (of 2^-61 of an eighth of a turn) the middles of the words' own
 * cells are away from the end of the radii (from the axis). */
typedef struct {
    double x, y;
    double radius_at, angle_at;
} Pair;

/* The normal pair of U = (a + 1/2) / 2^64 and the direction of b.
 *
 * Radius: sqrt(-2 ln U). Below 3/4, U = m 2^-k with m in [sqrt(1/2), sqrt(2)), and -ln U = k ln 2 - ln m; above, 1 - U
 * is taken, to full relative accuracy. ln(1 + f) = 2 artanh(s) for s = f / (2 + f), |s| < 0.1716: the series up to
 * s^17 leaves less than 8 units of 2^-53.
 * Direction: the lowest 61 bits of b are a point of an eighth of a turn, to full relative accuracy next to an axis; the
 * upper three exchange and negate the coordinates. Taylor's series leave less than 13 units.
 *
 * With the roundings, in units of 2^-53 relative to the result: -2 ln U is within 21 (the worst is U just below
 * sqrt(1/2), where half of k 2 ln 2 cancels), the radius within 12, sine and cosine within 18, either number within
 * 31: so 2^-48. */
INLINE Pair normal_pair(uint64_t a, uint64_t b) {
    uint64_t near_one = 0 - (a >> 63 & a >> 62 & 1), w = a ^ near_one;
    double d = half_above(w);
    uint64_t bits = to_bits(d), e = (bits - 0x3fd6a09e667f3bcdu) >> 52;
    double below = from_bits(bits - (e << 52) + ((uint64_t)1 << 52)) - 1.0;
    double f = from_bits((to_bits(below) & ~near_one) | (to_bits(d * -0x1p-64) & near_one));
    double k = from_bits(to_bits(65.0 - as_double(e)) & ~near_one);
    double s = f / (2.0 + f), z = s * s;
    double p = z * (1.0 / 17) + 1.0 / 15;
    p = z * p + 1.0 / 13;
    p = z * p + 1.0 / 11;
    p = z * p + 1.0 / 9;
    p = z * p + 1.0 / 7;
    p = z * p + 1.0 / 5;
    p = z * p + 1.0 / 3;
    p = z * p + 1.0;
    double r = sqrt(k * 1.3862943611198906 - 4.0 * s * p);

    double position = half_above(b & (((uint64_t)1 << 61) - 1));
    double t = position * (0.7853981633974483 * 0x1p-61), q = t * t;
    double sine = 1.0 / 6227020800 - q * (1.0 / 1307674368000);
    sine = 1.0 / 39916800 - q * sine;
    sine = 1.0 / 362880 - q * sine;
    sine = 1.0 / 5040 - q * sine;
    sine = 1.0 / 120 - q * sine;
    sine = 1.0 / 6 - q * sine;
    sine = t - t * q * sine;
    double cosine = 1.0 / 479001600 - q * (1.0 / 87178291200);
    cosine = 1.0 / 3628800 - q * cosine;
    cosine = 1.0 / 40320 - q * cosine;
    cosine = 1.0 / 720 - q * cosine;
    cosine = 1.0 / 24 - q * cosine;
    cosine = 0.5 - q * cosine;
    cosine = 1.0 - q * cosine;

    uint64_t one = to_bits(cosine), other = to_bits(sine), swap = (one ^ other) & (0 - (b >> 61 & 1));
    uint64_t sign = (uint64_t)1 << 63;
    double x = from_bits(one ^ swap ^ (b << 1 & sign)), y = from_bits(other ^ swap ^ (b & sign));
    return (Pair){r * x, r * y, d, position};
}

/* out[i] += scale * z[i], in double and rounded once. */
INLINE void accumulate(void *out, int wide, ptrdiff_t at, const double *restrict z, ptrdiff_t n, double scale) {
    if (wide) {
        double *restrict into = (double *)out + at;
        for (ptrdiff_t i = 0; i < n; i++) into[i] += scale * z[i];
    } else {
        float *restrict into = (float *)out + at;
        for (ptrdiff_t i = 0; i < n; i++) into[i] = (float)((double)into[i] + scale * z[i]);
    }
}

/* Normal numbers times `scale`, rounded to integers: the numbers of a position's true pair, not only of its middle.
 *
 * A pair (a, b) stands for all reals whose first bits they are. With i cells below the middle of a's (or above it, if
 * that is less) and j below that of b's, both more than 2^8: -ln moves by at most 1/2i' for i' = i - 1/2, which is
 * 1.74/2i' of it where U < 3/4 and 1.34/2i' above; so the radius by 0.87/i', the sine or cosine by 0.5/j', and their
 * product by less than 1/i + 1/j, relatively. What then lies farther from a half than the error is decided; for others
 * *open is set. |scale| is at most 2^46, so that |value| < 2^50. */
INLINE int64_t rounded(double z, double scale, Pair pair, uint64_t *open) {
    const double to_whole = 0x1.8p52;
    double value = scale * z, sum = value + to_whole;
    double error = fabs(value) * (0x1p-46 + 1.0 / pair.radius_at + 1.0 / pair.angle_at);
    *open = (pair.radius_at < 258) | (pair.angle_at < 258) | (0.5 - fabs(value - (sum - to_whole)) <= error);
    return (int64_t)(to_bits(sum) - to_bits(to_whole));
}

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define VARIANT portable
#define TARGET
#if defined(__GNUC__)
#define LANES 4
#else
#define LANES 1
#endif
#include "_keyed_variant.h"
#if WIDE
#define VARIANT avx2
#define TARGET __attribute__((target("avx2,bmi,bmi2")))
#define LANES 8
#include "_keyed_variant.h"
#define VARIANT avx512
#define TARGET __attribute__((target("avx2,bmi,bmi2,avx512f,avx512cd,avx512dq,avx512vl,avx512bw")))
#define LANES 16
#include "_keyed_variant.h"
#endif

#endif
