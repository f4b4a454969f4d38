/* Exact sampling from tables of thresholds: the loops, apart from Python.
 *
 * A table holds, for k = 1, 2, ..., the integers T[k] = floor(2^63 P(K >= k)), never increasing. A 63-bit uniform u
 * stands for the first bits of an infinite uniform U: u < T[k] proves U < P(K >= k), u > T[k] proves the contrary, and
 * u == T[k] decides nothing. So K = #{k : T[k] > u} exactly, unless u is in the table; then the draw is open: it is
 * left to the caller, who appends bits. A u below MIN_UNIFORM (probability 2^-47) is open too: there, rounded
 * thresholds crowd, and to search them would take every draw more steps.
 *
 * The index of u is found without a data-dependent branch: its leading bit and the next `mantissa` bits name a bucket
 * of relative width 2^-mantissa, whose guide entry is followed by a fixed number of halving steps.
 */
#ifndef SFUMATO_KERNELS_H
#define SFUMATO_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 256
#define MIN_UNIFORM 65536
#define MAX_THRESHOLDS (1 << 20)
#define MIN_MANTISSA 5
#define MAX_MANTISSA 10
#define ENOUGH_STEPS 2

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define LEADING_ZEROS(x) ((uint64_t)__builtin_clzll(x))
#else
#define INLINE static inline
static inline uint64_t LEADING_ZEROS(uint64_t x) {
    uint64_t n = 0;
    while (!(x >> 63)) {
        x <<= 1;
        n++;
    }
    return n;
}
#endif

typedef struct {
    uint32_t *guide;      /* 63 << mantissa starting positions, each at most `count` */
    uint64_t *thresholds; /* count + 1 + 2^steps entries: unused, T[1..count], zeros */
    uint32_t count;
    int mantissa;
    int steps;
} Table;

/* How a draw of a coarse cell and a uniform position in it becomes a value: see cells_block. */
typedef struct {
    int low_bits;
    double alpha, beta, delta;
} Cell;

typedef struct {
    ptrdiff_t consumed, produced;
} Progress;

static void table_free(Table *t) {
    if (t) {
        free(t->guide);
        free(t->thresholds);
        free(t);
    }
}

/* Smallest u of a bucket; bucket 0 also holds u = 0. */
static uint64_t bucket_start(uint64_t index, int mantissa) {
    uint64_t e = index >> mantissa, low = index & (((uint64_t)1 << mantissa) - 1);
    if (index == 0) return 0;
    if ((int)e >= mantissa) return ((uint64_t)1 << e) + (low << (e - (uint64_t)mantissa));
    uint64_t drop = (uint64_t)mantissa - e;
    return ((uint64_t)1 << e) + ((low + ((uint64_t)1 << drop) - 1) >> drop);
}

/* Fill the guide for one mantissa; return the most thresholds that a bucket leaves to be searched, buckets of
 * uniforms that are open anyway apart. */
static uint32_t build_guide(uint32_t *guide, const uint64_t *T, uint32_t count, int mantissa) {
    uint64_t buckets = (uint64_t)63 << mantissa;
    uint32_t above = 0, widest = 0; /* above = #{k : T[k] > last u of the bucket} */
    for (uint64_t i = buckets; i-- > 0;) {
        uint64_t first = bucket_start(i, mantissa);
        uint32_t at_first = above;
        guide[i] = above;
        while (at_first < count && T[at_first + 1] > first) at_first++;
        if (first >= MIN_UNIFORM && at_first - above > widest) widest = at_first - above;
        /* The next bucket down ends at first - 1: thresholds equal to `first` are above it. */
        above = at_first;
        while (above < count && first > 0 && T[above + 1] > first - 1) above++;
    }
    return widest;
}

static int steps_for(uint32_t widest) {
    int steps = 1;
    while ((((uint32_t)1 << steps) - 1) < widest) steps++;
    return steps;
}

/* NULL when memory is short; the caller has checked count and order. */
static Table *table_new(const uint64_t *thresholds, uint32_t count) {
    Table *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->count = count;
    t->guide = malloc(sizeof(uint32_t) * ((size_t)63 << MAX_MANTISSA));
    uint64_t *T = calloc((size_t)count + 1, sizeof *T);
    t->thresholds = T;
    if (!t->guide || !T) {
        table_free(t);
        return NULL;
    }
    memcpy(T + 1, thresholds, sizeof *T * count);
    for (t->mantissa = MIN_MANTISSA;; t->mantissa++) {
        t->steps = steps_for(build_guide(t->guide, T, count, t->mantissa));
        if (t->steps <= ENOUGH_STEPS || t->mantissa == MAX_MANTISSA) break;
    }
    uint32_t *guide = realloc(t->guide, sizeof(uint32_t) * ((size_t)63 << t->mantissa));
    if (guide) t->guide = guide;
    size_t length = (size_t)count + 1 + ((size_t)1 << t->steps);
    T = realloc(T, sizeof *T * length);
    if (!T) {
        table_free(t);
        return NULL;
    }
    t->thresholds = T;
    memset(T + 1 + count, 0, sizeof *T * ((size_t)1 << t->steps));
    return t;
}

/* #{k : T[k] > u}; *open is 1 where u equals a threshold. */
INLINE uint64_t look_up(uint64_t u, const uint64_t *T, const uint32_t *guide, int mantissa, int steps, uint64_t *open) {
    uint64_t n = LEADING_ZEROS(u | 1);
    uint64_t bucket = ((63 - n) << mantissa) | (((u << n) << 1) >> (64 - mantissa));
    uint64_t position = guide[bucket];
    for (int s = steps - 1; s >= 0; s--) {
        uint64_t half = (uint64_t)1 << s;
        position += T[position + half] > u ? half : 0;
    }
    *open = (T[position + 1] == u) | (u < MIN_UNIFORM);
    return position;
}

/* An integer below 2^52 as a double, exactly and without a conversion instruction. */
INLINE double as_double(uint64_t x) {
    union {
        uint64_t bits;
        double number;
    } both = {x | 0x4330000000000000u};
    return both.number - 4503599627370496.0;
}

/* exp(-g) for 0 <= g <= 1/8 to 2^-50: Taylor's polynomial of degree 9 leaves g^10 / 10! < 2^-51, and every rounding
 * but the last is scaled by g. Only + - * of IEEE doubles, uncontracted: the same bits on every machine. */
INLINE double exp_minus(double g) {
    double p = 1.0 - g * (1.0 / 9);
    p = 1.0 - g * (1.0 / 8) * p;
    p = 1.0 - g * (1.0 / 7) * p;
    p = 1.0 - g * (1.0 / 6) * p;
    p = 1.0 - g * (1.0 / 5) * p;
    p = 1.0 - g * 0.25 * p;
    p = 1.0 - g * (1.0 / 3) * p;
    p = 1.0 - g * 0.5 * p;
    return 1.0 - g * p;
}

/* Look up every `stride`-th word: 63 bits give the position, the lowest is the sign, left alone here. */
INLINE void look_up_block(const uint64_t *restrict words, uint64_t *restrict position, uint64_t *restrict open,
                          ptrdiff_t n, int stride, const uint64_t *restrict T, const uint32_t *restrict guide,
                          int mantissa, int steps) {
    for (ptrdiff_t i = 0; i < n; i++)
        position[i] = look_up(words[stride * i] >> 1, T, guide, mantissa, steps, &open[i]);
}

/* One word a draw. Returns nonzero if any draw is open. */
INLINE uint64_t direct_block(const uint64_t *restrict words, int64_t *restrict value, uint64_t *restrict open,
                             ptrdiff_t n, const Table *t, int steps) {
    uint64_t position[BLOCK], any = 0;
    look_up_block(words, position, open, n, 1, t->thresholds, t->guide, t->mantissa, steps);
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t sign = 0 - (words[i] & 1);
        value[i] = (int64_t)((position[i] ^ sign) - sign);
        any |= open[i];
    }
    return any;
}

/* Two words a draw. The first looks up a cell c and gives a sign; the second gives a position r in the cell, its low
 * bits, and a uniform v, the rest. The magnitude x = c 2^low_bits + r is accepted with probability exp(-g),
 * g = r (alpha c + beta r + delta) <= 1/8, except that minus zero is refused.
 * g is off by at most 8 roundings, exp_minus by 2^-50, so a v farther than 2^-48 from exp(-g) is decided.
 * verdict: 0 refused, 1 accepted, 2 open. */
INLINE uint64_t cells_block(const uint64_t *restrict words, int64_t *restrict value, uint64_t *restrict verdict,
                            ptrdiff_t n, const Table *t, Cell cell, int steps) {
    const double guard = 0x1p-48;
    const int low = cell.low_bits, drop = low > 12 ? low : 12;
    const uint64_t mask = ((uint64_t)1 << low) - 1;
    const double unit = 1.0 / (double)((uint64_t)1 << (64 - drop));
    uint64_t position[BLOCK], open[BLOCK], any = 0;
    look_up_block(words, position, open, n, 2, t->thresholds, t->guide, t->mantissa, steps);
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t second = words[2 * i + 1], r = second & mask;
        uint64_t sign = 0 - (words[2 * i] & 1), x = (position[i] << low) + r;
        double at = as_double(r), v = as_double(second >> drop) * unit;
        double p = exp_minus(at * (cell.alpha * as_double(position[i]) + cell.beta * at + cell.delta));
        uint64_t undecided = v + unit + guard <= p ? 1 : v - guard >= p ? 0 : 2;
        uint64_t minus_zero = x | ~sign ? 3 : 0;
        verdict[i] = open[i] ? 2 : undecided & minus_zero;
        value[i] = (int64_t)((x ^ sign) - sign);
        any |= verdict[i] & 2;
    }
    return any;
}

INLINE Progress direct_body(const Table *t, const uint64_t *words, int64_t *out, ptrdiff_t n, int steps) {
    uint64_t open[BLOCK];
    for (ptrdiff_t at = 0; at < n; at += BLOCK) {
        ptrdiff_t m = n - at < BLOCK ? n - at : BLOCK;
        if (direct_block(words + at, out + at, open, m, t, steps)) {
            ptrdiff_t i = 0;
            while (!open[i]) i++;
            return (Progress){at + i, at + i};
        }
    }
    return (Progress){n, n};
}

INLINE Progress cells_body(const Table *t, Cell cell, const uint64_t *words, int64_t *out, ptrdiff_t n, int steps) {
    int64_t value[BLOCK];
    uint64_t verdict[BLOCK];
    ptrdiff_t made = 0;
    for (ptrdiff_t at = 0; at < n; at += BLOCK) {
        ptrdiff_t m = n - at < BLOCK ? n - at : BLOCK, stop = m;
        if (cells_block(words + 2 * at, value, verdict, m, t, cell, steps)) {
            stop = 0;
            while (verdict[stop] != 2) stop++;
        }
        for (ptrdiff_t i = 0; i < stop; i++) {
            out[made] = value[i];
            made += (ptrdiff_t)verdict[i];
        }
        if (stop < m) return (Progress){at + stop, made};
    }
    return (Progress){n, made};
}

/* Constant step counts let the compiler unroll and vectorise. */
#define DEFINE(suffix, attribute)                                                                                  \
    attribute static Progress direct_##suffix(const Table *t, const uint64_t *w, int64_t *out, ptrdiff_t n) {       \
        if (t->steps == 1) return direct_body(t, w, out, n, 1);                                                     \
        if (t->steps == 2) return direct_body(t, w, out, n, 2);                                                     \
        return direct_body(t, w, out, n, t->steps);                                                                 \
    }                                                                                                               \
    attribute static Progress cells_##suffix(const Table *t, Cell c, const uint64_t *w, int64_t *out, ptrdiff_t n) { \
        if (t->steps == 1) return cells_body(t, c, w, out, n, 1);                                                   \
        if (t->steps == 2) return cells_body(t, c, w, out, n, 2);                                                   \
        return cells_body(t, c, w, out, n, t->steps);                                                               \
    }

DEFINE(portable, )
#if !defined(WIDE) && defined(__x86_64__) && defined(__GNUC__)
#define WIDE 1
#elif !defined(WIDE)
#define WIDE 0
#endif
#if WIDE
DEFINE(avx2, __attribute__((target("avx2,bmi,bmi2"))))
DEFINE(avx512, __attribute__((target("avx2,bmi,bmi2,avx512f,avx512cd,avx512dq,avx512vl,avx512bw"))))
#endif

#endif
