/* Two prime fields in 64-bit limbs, the lowest first, every element below its modulus.
 *
 * Field64:  2^64 - 2^32 + 1, so that 2^64 = 2^32 - 1 and 2^96 = -1.
 * Field128: 2^128 - 28 * 2^64 + 1, so that 2^128 = 28 * 2^64 - 1.
 */
#ifndef SFUMATO_FIELD_H
#define SFUMATO_FIELD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide;

#define P64 0xffffffff00000001u
#define P128 (~(wide)0 - ((wide)28 << 64) + 2)

static inline uint64_t add_64(uint64_t a, uint64_t b) {
    uint64_t c = P64 - b;
    return a >= c ? a - c : a + b;
}

static inline uint64_t sub_64(uint64_t a, uint64_t b) { return a - b + (a < b ? P64 : 0); }

static inline uint64_t reduce_64(wide product) {
    uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    uint64_t top = high >> 32, middle = (high & 0xffffffffu) * 0xffffffffu;
    uint64_t x = low - top;
    if (low < top) x -= 0xffffffffu; /* below zero by 2^64, which is 2^32 - 1 */
    uint64_t y = x + middle;
    if (y < x) y += 0xffffffffu;
    return y >= P64 ? y - P64 : y;
}

static inline uint64_t mul_64(uint64_t a, uint64_t b) { return reduce_64((wide)a * b); }

/* A sum of products that is reduced once: low + 2^128 top. */
typedef struct {
    wide low;
    uint64_t top;
} Sum_64;

static inline void multiply_add_64(Sum_64 *sum, uint64_t a, uint64_t b) {
    wide product = (wide)a * b;
    sum->low += product;
    sum->top += sum->low < product;
}

static inline uint64_t total_64(Sum_64 sum) { /* 2^128 = -2^32 */
    return sub_64(reduce_64(sum.low), mul_64(sum.top, (uint64_t)1 << 32));
}

static inline wide sub_128(wide a, wide b) { return a - b + (P128 & -(wide)(a < b)); }

static inline wide add_128(wide a, wide b) { return sub_128(a, P128 - b); }

/* The product is high * 2^128 + low. */
static inline void product_128(wide a, wide b, wide *low, wide *high) {
    uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    wide both = (wide)a0 * b0, left = (wide)a0 * b1, right = (wide)a1 * b0;
    wide carry = (both >> 64) + (uint64_t)left + (uint64_t)right;
    *low = (uint64_t)both | carry << 64;
    *high = (wide)a1 * b1 + (left >> 64) + (right >> 64) + (carry >> 64);
}

static inline wide reduce_128(wide low, wide high) {
    /* high * 2^128 = 28 high * 2^64 - high, and the part of 28 high above 64 bits once more, and again. */
    wide first = (wide)(uint64_t)high * 28, second = (wide)(uint64_t)(high >> 64) * 28 + (first >> 64);
    wide third = (wide)(uint64_t)second * 28;
    uint64_t over = (uint64_t)(third >> 64) + (uint64_t)(second >> 64) * 28;
    /* up < 2^66 and down < 2^128 + 2^70: the whole is low + up * 2^64 - down. */
    wide up = (wide)(uint64_t)first + (uint64_t)third + (uint64_t)over * 28;
    wide down = second + over;
    int turns = (int)(up >> 64);
    wide sum = low + (up << 64);
    turns += sum < low;
    wide less = sum - down;
    turns -= sum < down;
    sum = less - high;
    turns -= less < high;
    /* Each turn is 28 * 2^64 - 1. One is as likely as none, so the first goes without a branch; hardly ever is there more. */
    do {
        wide before = sum;
        sum += ((wide)(28 * (__int128)turns) << 64) - (wide)(__int128)turns;
        turns = turns > 0 ? sum < before : -(sum > before);
    } while (turns);
    return sum >= P128 ? sum - P128 : sum;
}

static inline wide mul_128(wide a, wide b) {
    wide low, high;
    product_128(a, b, &low, &high);
    return reduce_128(low, high);
}

/* A sum of products that is reduced once: low + 2^128 high + 2^256 top. */
typedef struct {
    wide low, high;
    uint64_t top;
} Sum_128;

static inline void multiply_add_128(Sum_128 *sum, wide a, wide b) {
    wide low, high;
    product_128(a, b, &low, &high);
    sum->low += low;
    high += sum->low < low; /* at most 2^128 - 1: of a product it is at most 2^128 - 2 */
    sum->high += high;
    sum->top += sum->high < high;
}

static inline wide total_128(Sum_128 sum) { /* 2^256 = (28 * 2^64 - 1)^2 = 21896 * 2^64 - 783 */
    return add_128(reduce_128(sum.low, sum.high), mul_128(sum.top, ((wide)21896 << 64) - 783));
}

#define FIELD uint64_t
#define OF(name) name##_64
#include "_field_loops.h"
#undef FIELD
#undef OF

#define FIELD wide
#define OF(name) name##_128
#include "_field_loops.h"
#undef FIELD
#undef OF

#endif
