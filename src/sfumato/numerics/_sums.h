/* Sums and products of two independent positive numbers, counted in cells between given edges.
 *
 * A number's cell is found by a guide: its spot is read off its bits, or those of its distance from 1, near which edges
 * crowd, and a spot knows the first cell that its numbers may be in; comparisons with the edges then decide. A spot
 * never falls as the number rises, so which spots there are decides how long it takes and nothing else.
 */
#ifndef SFUMATO_SUMS_H
#define SFUMATO_SUMS_H

#include <math.h>

#include "_kernels.h"

/* Pairs that are added up before they join the rest: each sum then has few roundings. */
#define SUMS_AT_ONCE 10240
/* Spots between the near distances from 1, and at most about so many in each zone farther out. */
#define NEAR_SPOTS 16384
#define FAR_SPOTS 8192
#define MIN_BITS 6
#define MAX_BITS 10
#define ZONES 4

typedef struct {
    double near, rate;        /* up to this distance from 1 spots are of width 1 / rate */
    int64_t begin[ZONES + 1]; /* the index of each zone's first spot, and how many spots there are */
    int64_t first[ZONES];     /* its leading bits */
    int shift[ZONES];         /* bits that do not count */
    int64_t cells;
    double *ends;   /* the right end of each cell but the last */
    int32_t *guide; /* of each spot the first cell that its numbers may be in */
} Cells;

INLINE int64_t bits_of(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The spot of a value, by the zone that it is in: 3 from 1 + near on, 2 from 1 - near on, 1 from 1/2 on, else 0. */
INLINE int64_t spot_of(const Cells *c, int zone, double value) {
    int64_t spot;
    if (zone == 3)
        spot = c->begin[3] + ((bits_of(value - 1) >> c->shift[3]) - c->first[3]);
    else if (zone == 2)
        spot = c->begin[2] + (int64_t)((value - (1 - c->near)) * c->rate);
    else if (zone == 1)
        spot = c->begin[1] + (c->first[1] - (bits_of(1 - value) >> c->shift[1]));
    else
        spot = c->begin[0] + ((bits_of(value) >> c->shift[0]) - c->first[0]);
    /* A distance from 1 that is nothing but rounding may have bits of other zones. */
    spot = spot < c->begin[zone] ? c->begin[zone] : spot;
    return spot < c->begin[zone + 1] ? spot : c->begin[zone + 1] - 1;
}

INLINE int zone_of(const Cells *c, double value) {
    return value >= 1 + c->near ? 3 : value >= 1 - c->near ? 2 : value >= 0.5 ? 1 : 0;
}

/* The last cell whose left edge is not above the value; the first or the last one for values beyond all. */
INLINE int64_t cell_of(const Cells *c, int zone, double value) {
    int64_t cell = c->guide[spot_of(c, zone, value)];
    cell += value >= c->ends[cell];
    while (value >= c->ends[cell]) cell++;
    return cell;
}

/* Bits to drop so that there are not too many spots between two values. */
static int shift_between(double low, double high) {
    double doublings = log2(high) - log2(low);
    int bits = (int)floor(log2(FAR_SPOTS / (doublings > 1 ? doublings : 1)));
    return 52 - (bits < MIN_BITS ? MIN_BITS : bits > MAX_BITS ? MAX_BITS : bits);
}

/* Choose the spots for these edges and make their guide; 0 where there is no memory for it. */
static int cells_guide(Cells *c, double deviation, const double *edges, int64_t cells) {
    double low = edges[0], high = edges[cells], near = 6 * deviation;
    c->cells = cells;
    c->near = near = near < 0.5 ? near : 0.5;
    c->rate = NEAR_SPOTS / (2 * near);
    c->shift[0] = shift_between(low < 0.5 ? low : 0.5, 0.5);
    c->shift[1] = shift_between(near, 0.5);
    c->shift[2] = 0;
    c->shift[3] = shift_between(near, high > 2 * near ? high : 2 * near);
    int64_t tops[2] = {bits_of(0.5) >> c->shift[0], bits_of(0.5) >> c->shift[1]};
    c->first[0] = bits_of(low < 0.5 ? low : 0.5) >> c->shift[0];
    c->first[1] = tops[1];
    c->first[2] = 0;
    c->first[3] = bits_of(near) >> c->shift[3];
    c->begin[0] = 0;
    c->begin[1] = tops[0] - c->first[0] + 1;
    c->begin[2] = c->begin[1] + tops[1] - (bits_of(near) >> c->shift[1]) + 1;
    c->begin[3] = c->begin[2] + NEAR_SPOTS + 2;
    int64_t far = high > 1 + near ? (bits_of(high - 1) >> c->shift[3]) - c->first[3] : 0;
    c->begin[4] = c->begin[3] + far + 1;
    c->guide = calloc((size_t)c->begin[4] + 1, sizeof *c->guide);
    c->ends = malloc((size_t)cells * sizeof *c->ends);
    if (!c->guide || !c->ends) return 0;
    memcpy(c->ends, edges + 1, (size_t)cells * sizeof *c->ends);
    c->ends[cells - 1] = NAN; /* which nothing reaches, be it infinite */
    /* Of each spot: how many edges within lie in earlier spots. */
    for (int64_t k = 1; k < cells; k++) c->guide[spot_of(c, zone_of(c, edges[k]), edges[k]) + 1]++;
    for (int64_t s = 1; s < c->begin[4]; s++) c->guide[s] += c->guide[s - 1];
    return 1;
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
INLINE void row_sums(const Cells *c, int zone, double x, double mass, const double *restrict b,
                     const double *restrict q, int64_t start, int64_t end, int product, double *restrict block) {
    for (int64_t j = start; j < end; j++) {
        double value = joined(x, b[j], product), both = mass * q[j];
        double *at = block + 2 * cell_of(c, zone, value);
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
static void pair_sums(const Cells *c, const double *restrict a, const double *restrict p, int64_t n,
                      const double *restrict b, const double *restrict q, int64_t m, int product, int same,
                      double *restrict block, double *restrict sums) {
    const double limits[ZONES] = {0.5, 1 - c->near, 1 + c->near, INFINITY};
    int64_t lowest = c->cells, highest = -1, met = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t start = same ? i : 0;
        if (met + m - start > SUMS_AT_ONCE && met) {
            sums_flush(block, sums, lowest, highest);
            lowest = c->cells, highest = -1, met = 0;
        }
        met += m - start;
        for (int zone = 0; zone < ZONES && start < m; zone++) {
            int64_t end = zone == 3 ? m : first_from(a[i], b, start, m, limits[zone], product);
            if (start == end) continue;
            int64_t low = cell_of(c, zone, joined(a[i], b[start], product));
            int64_t high = cell_of(c, zone, joined(a[i], b[end - 1], product));
            if (low < lowest) lowest = low;
            if (high > highest) highest = high;
            if (same && start == i) row_sums(c, zone, a[i], p[i], b, q, start, start + 1, product, block), start++;
            double mass = same ? 2 * p[i] : p[i];
            switch (zone) {
                case 0: row_sums(c, 0, a[i], mass, b, q, start, end, product, block); break;
                case 1: row_sums(c, 1, a[i], mass, b, q, start, end, product, block); break;
                case 2: row_sums(c, 2, a[i], mass, b, q, start, end, product, block); break;
                default: row_sums(c, 3, a[i], mass, b, q, start, end, product, block);
            }
            start = end;
        }
    }
    if (met) sums_flush(block, sums, lowest, highest);
}

#endif
