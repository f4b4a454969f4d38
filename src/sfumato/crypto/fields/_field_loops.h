/* Loops over vectors of one field: included once for each. */

static inline FIELD OF(load)(const uint64_t *at, ptrdiff_t i) {
    const int limbs = sizeof(FIELD) / 8;
    FIELD x = at[i * limbs];
    if (limbs == 2) x |= (FIELD)((wide)at[i * limbs + limbs - 1] << 64);
    return x;
}

static inline void OF(store)(uint64_t *at, ptrdiff_t i, FIELD x) {
    const int limbs = sizeof(FIELD) / 8;
    at[i * limbs] = (uint64_t)x;
    if (limbs == 2) at[i * limbs + limbs - 1] = (uint64_t)((wide)x >> 64);
}

static void OF(combine)(int kind, const uint64_t *a, const uint64_t *b, uint64_t *out, ptrdiff_t count) {
    if (kind == 0)
        for (ptrdiff_t i = 0; i < count; i++) OF(store)(out, i, OF(add)(OF(load)(a, i), OF(load)(b, i)));
    else if (kind == 1)
        for (ptrdiff_t i = 0; i < count; i++) OF(store)(out, i, OF(sub)(OF(load)(a, i), OF(load)(b, i)));
    else
        for (ptrdiff_t i = 0; i < count; i++) OF(store)(out, i, OF(mul)(OF(load)(a, i), OF(load)(b, i)));
}

/* Sums of a * b over groups of `inner` neighbors; of a alone where b is NULL. b repeats every `period` groups of a
 * times one group of its own: group g of a meets group g / period of b. */
static void OF(dots)(const uint64_t *a, const uint64_t *b, ptrdiff_t inner, ptrdiff_t period, uint64_t *out,
                     ptrdiff_t groups) {
    for (ptrdiff_t g = 0; g < groups; g++) {
        FIELD total = 0;
        if (b) {
            OF(Sum) sum = {0};
            for (ptrdiff_t i = 0; i < inner; i++)
                OF(multiply_add)(&sum, OF(load)(a, g * inner + i), OF(load)(b, g / period * inner + i));
            total = OF(total)(sum);
        } else
            for (ptrdiff_t i = 0; i < inner; i++) total = OF(add)(total, OF(load)(a, g * inner + i));
        OF(store)(out, g, total);
    }
}

/* For each group of `count` rows of `inner` elements, the sum of its rows, each times a weight of its own. */
static void OF(combined_rows)(const uint64_t *a, const uint64_t *weights, ptrdiff_t inner, ptrdiff_t count,
                              uint64_t *out, ptrdiff_t groups) {
    for (ptrdiff_t g = 0; g < groups; g++)
        for (ptrdiff_t i = 0; i < inner; i++) {
            OF(Sum) sum = {0};
            for (ptrdiff_t k = g * count; k < (g + 1) * count; k++)
                OF(multiply_add)(&sum, OF(load)(a, k * inner + i), OF(load)(weights, k));
            OF(store)(out, g * inner + i, OF(total)(sum));
        }
}

/* For each group of `count` pairs of rows of `inner` elements, the sum of the products of each pair's rows. */
static void OF(paired_products)(const uint64_t *a, ptrdiff_t inner, ptrdiff_t count, uint64_t *out, ptrdiff_t groups) {
    for (ptrdiff_t g = 0; g < groups; g++)
        for (ptrdiff_t i = 0; i < inner; i++) {
            OF(Sum) sum = {0};
            for (ptrdiff_t k = g * count; k < (g + 1) * count; k++)
                OF(multiply_add)(&sum, OF(load)(a, 2 * k * inner + i), OF(load)(a, (2 * k + 1) * inner + i));
            OF(store)(out, g * inner + i, OF(total)(sum));
        }
}

/* For each group of `inner` elements x and its r: pairs of r^(i + 1) x_i and x_i - less. */
static void OF(pairs)(const uint64_t *r, const uint64_t *x, const uint64_t *less, ptrdiff_t inner, uint64_t *out,
                      ptrdiff_t groups) {
    FIELD constant = OF(load)(less, 0);
    for (ptrdiff_t g = 0; g < groups; g++) {
        /* Odd and even powers apart, so that a product need not wait for the one before it. */
        FIELD base = OF(load)(r, g), square = OF(mul)(base, base), powers[2] = {base, square};
        for (ptrdiff_t i = 0; i < inner; i++) {
            ptrdiff_t at = g * inner + i;
            FIELD value = OF(load)(x, at), power = powers[i & 1];
            OF(store)(out, 2 * at, OF(mul)(power, value));
            OF(store)(out, 2 * at + 1, OF(sub)(value, constant));
            powers[i & 1] = OF(mul)(power, square);
        }
    }
}

/* The transform of a row whose order of indices is that of their reversed bits, to the natural order. */
static inline void OF(butterflies)(uint64_t *at, ptrdiff_t n, const uint64_t *table) {
    for (ptrdiff_t half = 1; half < n; half *= 2)
        for (ptrdiff_t start = 0; start < n; start += 2 * half)
            for (ptrdiff_t k = 0; k < half; k++) {
                FIELD x = OF(load)(at, start + k), y = OF(load)(at, start + k + half);
                if (k) y = OF(mul)(y, OF(load)(table, k * (n / 2 / half)));
                OF(store)(at, start + k, OF(add)(x, y));
                OF(store)(at, start + k + half, OF(sub)(x, y));
            }
}

/* The transform of a row in natural order to that of reversed bits. */
static inline void OF(backward)(uint64_t *at, ptrdiff_t n, const uint64_t *table) {
    for (ptrdiff_t half = n / 2; half > 0; half /= 2)
        for (ptrdiff_t start = 0; start < n; start += 2 * half)
            for (ptrdiff_t k = 0; k < half; k++) {
                FIELD x = OF(load)(at, start + k), y = OF(load)(at, start + k + half), less = OF(sub)(x, y);
                OF(store)(at, start + k, OF(add)(x, y));
                OF(store)(at, start + k + half, k ? OF(mul)(less, OF(load)(table, k * (n / 2 / half))) : less);
            }
}

/* Number-theoretic transforms in place, of rows of n = 2^k; table: the powers of the root, n / 2 of them. */
static void OF(transform)(uint64_t *rows, ptrdiff_t n, ptrdiff_t count, const uint64_t *table) {
    for (ptrdiff_t row = 0; row < count; row++) {
        uint64_t *at = rows + row * n * (ptrdiff_t)(sizeof(FIELD) / 8);
        for (ptrdiff_t i = 1, j = 0; i < n; i++) {
            ptrdiff_t bit = n >> 1;
            for (; j & bit; bit >>= 1) j ^= bit;
            j ^= bit;
            if (i < j) {
                FIELD x = OF(load)(at, i);
                OF(store)(at, i, OF(load)(at, j));
                OF(store)(at, j, x);
            }
        }
        OF(butterflies)(at, n, table);
    }
}

/* Of each row of n values at a root's powers, 2n at those of a root of it: the old ones and the new in turn. `back` and
 * `ahead` are tables of the root's inverse and of the root, `between` the finer root's powers over n, in the order of
 * their reversed bits, so that no row is put into another order. */
static void OF(doubled)(const uint64_t *rows, ptrdiff_t n, ptrdiff_t count, const uint64_t *back,
                        const uint64_t *between, const uint64_t *ahead, uint64_t *scratch, uint64_t *out) {
    for (ptrdiff_t row = 0; row < count; row++) {
        for (ptrdiff_t i = 0; i < n; i++) OF(store)(scratch, i, OF(load)(rows, row * n + i));
        OF(backward)(scratch, n, back);
        for (ptrdiff_t i = 0; i < n; i++) OF(store)(scratch, i, OF(mul)(OF(load)(scratch, i), OF(load)(between, i)));
        OF(butterflies)(scratch, n, ahead);
        for (ptrdiff_t i = 0; i < n; i++) {
            OF(store)(out, 2 * (row * n + i), OF(load)(rows, row * n + i));
            OF(store)(out, 2 * (row * n + i) + 1, OF(load)(scratch, i));
        }
    }
}

/* Inverses in place by Montgomery's trick: three products each and one power for all. Returns 0 if one is zero. */
static int OF(invert)(uint64_t *values, ptrdiff_t count, uint64_t *before, wide exponent) {
    FIELD product = 1, inverse = 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        FIELD x = OF(load)(values, i);
        if (!x) return 0;
        OF(store)(before, i, product);
        product = OF(mul)(product, x);
    }
    for (int bit = 127; bit >= 0; bit--) {
        inverse = OF(mul)(inverse, inverse);
        if (exponent >> bit & 1) inverse = OF(mul)(inverse, product);
    }
    for (ptrdiff_t i = count - 1; i >= 0; i--) {
        FIELD x = OF(load)(values, i);
        OF(store)(values, i, OF(mul)(inverse, OF(load)(before, i)));
        inverse = OF(mul)(inverse, x);
    }
    return 1;
}
