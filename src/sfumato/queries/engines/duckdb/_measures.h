/* What units add to groups: from a part's numbers an integer for each measure, clamped, then summed exactly. */
#ifndef SFUMATO_MEASURES_H
#define SFUMATO_MEASURES_H

#include "_bounding.h"

typedef enum { ONE = 0, ROWS, VALUES, SUM, MEAN, KINDS } Kind;

/* `sum` and `count` are words of a part; `minimum` asks whether the value is at least so much, instead of it. */
typedef struct {
    Kind kind;
    int sum, count, asks;
    int64_t offset, minimum, lower, upper, center;
} MeasureSpec;

typedef struct {
    int64_t groups;
    int measures;
    __int128 *sums; /* group by group */
    uint8_t *present;
} Totals;

static int totals_init(Totals *t, int64_t groups, int measures) {
    *t = (Totals){.groups = groups, .measures = measures};
    t->sums = calloc((size_t)groups * (size_t)measures + 1, sizeof *t->sums);
    t->present = calloc((size_t)groups + 1, 1);
    return t->sums && t->present;
}

static void totals_free(Totals *t) {
    free(t->sums);
    free(t->present);
    *t = (Totals){0};
}

static void totals_add(Totals *into, const Totals *more) {
    for (int64_t i = 0; i < into->groups * into->measures; i++) into->sums[i] += more->sums[i];
    for (int64_t i = 0; i < into->groups; i++) into->present[i] |= more->present[i];
}

/* The mean, halves away from zero. */
static inline int64_t mean_of(int64_t sum, int64_t count) {
    if (count == 1) return sum;
    if (sum < INT64_MAX / 4 && sum > -(INT64_MAX / 4) && count < INT64_MAX / 4) {
        int64_t rounded = (2 * (sum < 0 ? -sum : sum) + count) / (2 * count);
        return sum < 0 ? -rounded : rounded;
    }
    __int128 rounded = (2 * (sum < 0 ? -(__int128)sum : (__int128)sum) + count) / (2 * (__int128)count);
    return (int64_t)(sum < 0 ? -rounded : rounded);
}

/* What all parts add to one measure: `value` of those where `there`. Between the limits of a measure values have 64
 * bits; a sum less its offsets may have more before. */
#define ADD_EACH(there, value)                                                                                      \
    for (int64_t i = 0; i < count; i++, part += words) {                                                            \
        int has = there;                                                                                            \
        __int128 number = has ? (__int128)(value) : 0;                                                              \
        if (m->asks)                                                                                                \
            number = has && number >= m->minimum;                                                                   \
        else if (!has)                                                                                              \
            continue;                                                                                               \
        number = number > m->upper ? m->upper : number < m->lower ? m->lower : number;                              \
        sums[(int64_t)group_in(part[0]) * many] += (int64_t)number - m->center;                                     \
    }

static void add_measure(const uint64_t *part, int64_t count, int words, const MeasureSpec *m, __int128 *sums, int many) {
#define COUNT_THERE ((int64_t)part[m->count])
#define SUM_THERE ((int64_t)part[m->sum])
    switch (m->kind) {
    case ROWS: ADD_EACH(1, rows_in(part[0])) break;
    case VALUES: ADD_EACH(1, COUNT_THERE) break;
    case SUM:
        if (m->offset) {
            ADD_EACH(COUNT_THERE != 0, (__int128)SUM_THERE - (__int128)m->offset * COUNT_THERE)
        } else {
            ADD_EACH(COUNT_THERE != 0, SUM_THERE)
        }
        break;
    case MEAN: ADD_EACH(COUNT_THERE != 0, mean_of(SUM_THERE, COUNT_THERE)) break;
    default: ADD_EACH(1, 1) break;
    }
}

/* Some parts after the others, so that they are near while each measure takes its turn. */
#define TURN 1024

static void add_parts(const Parts *parts, int words, const MeasureSpec *measures, Totals *totals) {
    for (int64_t from = 0; from < parts->count; from += TURN) {
        int64_t count = parts->count - from < TURN ? parts->count - from : TURN;
        const uint64_t *part = parts->words + from * words;
        for (int64_t i = 0; i < count; i++) totals->present[group_in(part[i * words])] = 1;
        for (int m = 0; m < totals->measures; m++)
            add_measure(part, count, words, &measures[m], totals->sums + m, totals->measures);
    }
}

#endif
