/* Field255: integers modulo 2^255 - 19 in four limbs, the lowest first, every element below the modulus. */
#ifndef SFUMATO_FIELD_255_H
#define SFUMATO_FIELD_255_H

#include "_field.h"

typedef struct {
    uint64_t limb[4];
} quad;

static const quad P255 = {{0xffffffffffffffedu, ~(uint64_t)0, ~(uint64_t)0, 0x7fffffffffffffffu}};

static inline quad load_255(const uint64_t *at, ptrdiff_t i) {
    quad x;
    memcpy(&x, at + 4 * i, sizeof x);
    return x;
}

static inline void store_255(uint64_t *at, ptrdiff_t i, quad x) { memcpy(at + 4 * i, &x, sizeof x); }

/* a - b, and whether it was below zero. */
static inline int less_255(quad a, quad b, quad *out) {
    uint64_t borrow = 0;
    for (int i = 0; i < 4; i++) {
        wide x = (wide)a.limb[i] - b.limb[i] - borrow;
        out->limb[i] = (uint64_t)x;
        borrow = (uint64_t)(x >> 64) & 1;
    }
    return (int)borrow;
}

static inline quad plus_255(quad a, quad b) {
    wide x = 0;
    for (int i = 0; i < 4; i++) {
        x += (wide)a.limb[i] + b.limb[i];
        a.limb[i] = (uint64_t)x;
        x >>= 64;
    }
    return a;
}

static inline quad reduced_255(quad x) {
    quad y;
    return less_255(x, P255, &y) ? x : y;
}

static inline quad add_255(quad a, quad b) { return reduced_255(plus_255(a, b)); }

static inline quad sub_255(quad a, quad b) {
    quad x;
    return less_255(a, b, &x) ? plus_255(x, P255) : x;
}

static inline quad mul_255(quad a, quad b) {
    uint64_t t[8] = {0};
    for (int i = 0; i < 4; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < 4; j++) {
            wide x = (wide)a.limb[i] * b.limb[j] + t[i + j] + carry;
            t[i + j] = (uint64_t)x;
            carry = (uint64_t)(x >> 64);
        }
        t[i + 4] = carry;
    }
    /* 2^256 = 38: the upper half is below 2^254, so that the sum is below 2^256 + 38 * 2^254 < 2^262. */
    quad out;
    wide x = 0;
    for (int i = 0; i < 4; i++) {
        x += (wide)t[i + 4] * 38 + t[i];
        out.limb[i] = (uint64_t)x;
        x >>= 64;
    }
    /* What stands at 2^255 and above, below 2^7, folds by 2^255 = 19; then the number is below 2^255 + 19 * 2^7. */
    uint64_t above = (uint64_t)x << 1 | out.limb[3] >> 63;
    out.limb[3] &= P255.limb[3];
    quad fold = {{above * 19, 0, 0, 0}};
    return reduced_255(plus_255(out, fold));
}

static void combine_255(int kind, const uint64_t *a, const uint64_t *b, uint64_t *out, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i++) {
        quad x = load_255(a, i), y = load_255(b, i);
        store_255(out, i, kind == 0 ? add_255(x, y) : kind == 1 ? sub_255(x, y) : mul_255(x, y));
    }
}

static void dots_255(const uint64_t *a, const uint64_t *b, ptrdiff_t inner, ptrdiff_t period, uint64_t *out,
                     ptrdiff_t groups) {
    for (ptrdiff_t g = 0; g < groups; g++) {
        quad sum = {{0}};
        for (ptrdiff_t i = 0; i < inner; i++) {
            quad x = load_255(a, g * inner + i);
            sum = add_255(sum, b ? mul_255(x, load_255(b, g / period * inner + i)) : x);
        }
        store_255(out, g, sum);
    }
}

#endif
