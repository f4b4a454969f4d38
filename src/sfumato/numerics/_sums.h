/* Sums and products of two independent positive numbers, counted in cells.
 *
 * Cells are narrow and of one width near 1, and widen with the distance from 1 on both sides; below 1/2 they widen with
 * the number itself. Which cell a number is in is read off its bits, or those of its distance, so that every edge is a
 * float and no logarithm is taken. An index never falls as the number rises.
 */
#ifndef SFUMATO_SUMS_H
#define SFUMATO_SUMS_H

#include <math.h>

#include "_kernels.h"

/* Pairs that are added up before they join the rest: each sum then has few roundings. */
#define SUMS_AT_ONCE 16384

typedef struct {
    double near, rate; /* up to this distance from 1 cells are of width 1 / rate */
    int64_t begin[4];  /* the first index of each zone */
    int64_t first[4];  /* the leading bits that belong to it */
    int64_t shift[4];  /* bits that do not count */
    int64_t cells;
} Zones;

INLINE int64_t bits_of(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The cell of a value, by the zone that it is in: 3 from 1 + near on, 2 from 1 - near on, 1 from 1/2 on, else 0. */
INLINE int64_t zone_cell(const Zones *z, int zone, double value) {
    int64_t cell;
    if (zone == 3)
        cell = z->begin[3] + ((bits_of(value - 1) >> z->shift[3]) - z->first[3]);
    else if (zone == 2)
        cell = z->begin[2] + (int64_t)((value - (1 - z->near)) * z->rate);
    else if (zone == 1)
        cell = z->begin[1] + (z->first[1] - (bits_of(1 - value) >> z->shift[1]));
    else
        cell = z->begin[0] + ((bits_of(value) >> z->shift[0]) - z->first[0]);
    cell = cell < 0 ? 0 : cell;
    return cell < z->cells ? cell : z->cells - 1;
}

INLINE double joined(double x, double y, int product) { return product ? x * y : x + y; }

/* The first j from `start` on whose joined value is not below `limit`. */
INLINE int64_t first_from(double x, const double *b, int64_t start, int64_t m, double limit, int product) {
    while (start < m) {
        int64_t middle = start + (m - start) / 2;
        if (joined(x, b[middle], product) < limit)
            start = middle + 1;
        else
            m = middle;
    }
    return start;
}

/* Count x with b[start], ..., b[end - 1], all of which are in one zone. */
INLINE void row_sums(const Zones *z, int zone, double x, double mass, const double *restrict b,
                     const double *restrict q, int64_t start, int64_t end, int product, double *restrict block) {
    for (int64_t j = start; j < end; j++) {
        double value = joined(x, b[j], product), both = mass * q[j];
        double *at = block + 2 * zone_cell(z, zone, value);
        at[0] += both;
        at[1] += both * value;
    }
}

/* Add a block's sums to all, and empty it. */
INLINE void sums_flush(double *restrict block, double *restrict sums, int64_t from, int64_t to) {
    for (int64_t i = 2 * from; i < 2 * (to + 1); i++) {
        sums[i] += block[i];
        block[i] = 0;
    }
}

/* sums[2 k] and sums[2 k + 1] grow by the masses p[i] q[j] whose value is in cell k, and by mass times value; the value
 * is a[i] + b[j], or their product. If `same`, both lists are one, and each two of its entries are met once. Values
 * rise along both lists. `block` has room for as many numbers as `sums`, all 0. */
INLINE void pair_sums(const Zones *z, const double *restrict a, const double *restrict p, int64_t n,
                      const double *restrict b, const double *restrict q, int64_t m, int product, int same,
                      double *restrict block, double *restrict sums) {
    const double limits[4] = {0.5, 1 - z->near, 1 + z->near, INFINITY};
    int64_t lowest = z->cells, highest = -1, met = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t start = same ? i : 0;
        if (met + m - start > SUMS_AT_ONCE && met) {
            sums_flush(block, sums, lowest, highest);
            lowest = z->cells, highest = -1, met = 0;
        }
        met += m - start;
        for (int zone = 0; zone < 4 && start < m; zone++) {
            int64_t end = zone == 3 ? m : first_from(a[i], b, start, m, limits[zone], product);
            if (start == end) continue;
            int64_t low = zone_cell(z, zone, joined(a[i], b[start], product));
            int64_t high = zone_cell(z, zone, joined(a[i], b[end - 1], product));
            if (low < lowest) lowest = low;
            if (high > highest) highest = high;
            if (same && start == i) row_sums(z, zone, a[i], p[i], b, q, start, start + 1, product, block), start++;
            double mass = same ? 2 * p[i] : p[i];
            switch (zone) {
                case 0: row_sums(z, 0, a[i], mass, b, q, start, end, product, block); break;
                case 1: row_sums(z, 1, a[i], mass, b, q, start, end, product, block); break;
                case 2: row_sums(z, 2, a[i], mass, b, q, start, end, product, block); break;
                default: row_sums(z, 3, a[i], mass, b, q, start, end, product, block);
            }
            start = end;
        }
    }
    if (met) sums_flush(block, sums, lowest, highest);
}

#endif
