/* Bounding: of each unit the groups and rows that stay, and their exact sums; unit by unit, so one partition at a
 * time.
 *
 * What stays of a unit is a function of its own rows and of the secret: the groups below the rank that one more than
 * may stay would have, and the rows of the lowest ranks. It is what the SQL of the steps says, rank for rank. */
#ifndef SFUMATO_BOUNDING_H
#define SFUMATO_BOUNDING_H

#include "_row_counts.h"

#define NO_LIMIT (-1)

/* Which numbers a part has: rows with a value by column, sums by column, sums of products of two less a center. */
typedef struct {
    int counts, sums, products;
    int count_of[MOST_VALUES], sum_of[MOST_VALUES];
    int one[MOST_VALUES], other[MOST_VALUES];
    int64_t one_center[MOST_VALUES], other_center[MOST_VALUES];
} Layout;

typedef struct {
    int64_t groups, rows, all_rows; /* NO_LIMIT where none applies */
    int chooses_rows;               /* else a number of rows is cut */
} Limits;

/* Parts, one after the other: rows and group in one word (rows above), then the numbers of the layout. */
typedef struct {
    uint64_t *words;
    int64_t count, room;
} Parts;

static inline int part_words(const Layout *l) { return 1 + l->counts + l->sums + l->products; }

static inline uint32_t group_in(uint64_t word) { return (uint32_t)word; }
static inline int64_t rows_in(uint64_t word) { return (int64_t)(word >> 32); }

/* Add a row to a part; whether a sum left its 64 bits. */
static inline int add_to_part(uint64_t *part, const uint64_t *values, const Layout *l) {
    int over = 0;
    part[0] += (uint64_t)1 << 32;
    int64_t *number = (int64_t *)part + 1;
    for (int i = 0; i < l->counts; i++, number++) *number += (int64_t)values[l->count_of[i]] != MISSING;
    for (int i = 0; i < l->sums; i++, number++) {
        int64_t value = (int64_t)values[l->sum_of[i]];
        if (value != MISSING) over |= __builtin_add_overflow(*number, value, number);
    }
    for (int i = 0; i < l->products; i++, number++) {
        int64_t one = (int64_t)values[l->one[i]], other = (int64_t)values[l->other[i]], product;
        if (one == MISSING || other == MISSING) continue;
        over |= __builtin_sub_overflow(one, l->one_center[i], &one);
        over |= __builtin_sub_overflow(other, l->other_center[i], &other);
        over |= __builtin_mul_overflow(one, other, &product);
        over |= __builtin_add_overflow(*number, product, number);
    }
    return over;
}

static uint64_t *parts_room(Parts *parts, int words) {
    if (parts->count == parts->room) {
        int64_t room = parts->room ? parts->room * 2 : 256;
        uint64_t *grown = realloc(parts->words, (size_t)(room * words) * 8);
        if (!grown) return NULL;
        parts->words = grown;
        parts->room = room;
    }
    return parts->words + parts->count++ * words;
}

static inline int compare_rows(const uint64_t *one, const uint64_t *other, int words) {
    for (int i = 0; i < words; i++)
        if (one[i] != other[i]) return (int64_t)one[i] < (int64_t)other[i] ? -1 : 1;
    return 0;
}

/* Sort numbers of rows by the rows' words: a merge sort, bottom up. */
static uint32_t *sort_rows(const uint64_t *rows, int words, uint32_t *order, uint32_t *other, int64_t count) {
    for (int64_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            int64_t middle = low + width < count ? low + width : count;
            int64_t high = low + 2 * width < count ? low + 2 * width : count, i = low, j = middle, k = low;
            while (i < middle && j < high)
                other[k++] = compare_rows(rows + (int64_t)order[j] * words, rows + (int64_t)order[i] * words, words) < 0
                                 ? order[j++]
                                 : order[i++];
            while (i < middle) other[k++] = order[i++];
            while (j < high) other[k++] = order[j++];
        }
        uint32_t *swap = order;
        order = other;
        other = swap;
    }
    return order;
}

/* What one partition is worked on with; all of it is freed by work_free. */
typedef struct {
    uint64_t *scratch;        /* a chunk from the file */
    uint32_t *table, *of_row; /* parts by hash; the part of each row */
    Parts parts;              /* the unit, then as in Parts */
    uint32_t *unit_of;        /* of each part, the number of its unit */
    uint64_t *unit_rows;      /* of each unit its rows, or its groups */
    int64_t *cuts, *ranks, *chosen_ranks;
    int64_t *starts;          /* where the rows of a crowd start */
    int32_t *crowd_of;        /* by part or unit, the number of the crowd, or -1 */
    uint64_t *rows;           /* of crowds: group and values */
    uint64_t *crowd_units;
    uint32_t *order, *other, *part_of; /* part_of: by row of a crowd */
    uint8_t *stays;
    RowCounter counter;
} Work;

static void work_free(Work *w) {
    void *all[] = {w->scratch, w->table,  w->of_row,   w->parts.words,  w->unit_of, w->unit_rows,
                   w->cuts,    w->ranks,  w->starts,   w->crowd_of,     w->rows,    w->crowd_units,
                   w->order,   w->other,  w->stays,    w->chosen_ranks, w->part_of};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    counter_free(&w->counter);
}

typedef struct {
    const Rows *rows;
    const Layout *layout;
    Limits limits;
    KeyWords group_keys, row_keys;
    RowCount *counts; /* what is counted row by row */
    int many_counts;
} Job;

/* Rows to parts. */
static Status make_parts(const Job *job, const Partition *part, Work *w) {
    const Rows *r = job->rows;
    int words = part_words(job->layout) + 1, over = 0;
    uint64_t mask = 63;
    while (mask + 1 < (uint64_t)part->rows * 2) mask = mask * 2 + 1;
    w->table = calloc(mask + 1, sizeof *w->table);
    w->scratch = malloc(CHUNK_BYTES);
    int by_row = job->limits.chooses_rows || job->many_counts;
    if (by_row) w->of_row = malloc((size_t)part->rows * sizeof *w->of_row);
    if (!w->table || !w->scratch || (by_row && !w->of_row)) return NO_MEMORY;
    int64_t at = 0;
    for (int i = 0; i < part->count; i++) {
        int64_t rows;
        const uint64_t *row = chunk_rows(r, part, i, w->scratch, &rows);
        if (!row) return UNREADABLE;
        for (; rows--; row += r->stride, at++) {
            uint64_t slot = mixed(r->tables, row[0], row[1]) & mask, *made = NULL;
            for (; w->table[slot]; slot = (slot + 1) & mask) {
                uint64_t *known = w->parts.words + (int64_t)(w->table[slot] - 1) * words;
                if (known[0] == row[0] && group_in(known[1]) == row[1]) {
                    made = known;
                    break;
                }
            }
            if (!made) {
                made = parts_room(&w->parts, words);
                if (!made) return NO_MEMORY;
                memset(made, 0, (size_t)words * 8);
                made[0] = row[0];
                made[1] = row[1];
                w->table[slot] = (uint32_t)w->parts.count;
            }
            if (w->of_row) w->of_row[at] = w->table[slot] - 1;
            over |= add_to_part(made + 1, row + 2, job->layout);
        }
    }
    return over ? TOO_MUCH : FINE;
}

/* Number the units, and count their groups (or their rows); the number of units, or -1. */
static int64_t number_units(const Job *job, Work *w, int by_rows) {
    const Rows *r = job->rows;
    int words = part_words(job->layout) + 1;
    int64_t count = w->parts.count, units = 0;
    uint64_t mask = 63;
    while (mask + 1 < (uint64_t)count * 2) mask = mask * 2 + 1;
    free(w->table);
    w->table = calloc(mask + 1, sizeof *w->table);
    w->unit_of = malloc((size_t)(count + 1) * sizeof *w->unit_of);
    w->unit_rows = malloc((size_t)(count + 1) * 8);
    w->crowd_units = malloc((size_t)(count + 1) * 8);
    if (!w->table || !w->unit_of || !w->unit_rows || !w->crowd_units) return -1;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t *part = w->parts.words + i * words;
        uint64_t slot = mixed(r->tables, part[0], 1) & mask;
        while (w->table[slot] && w->crowd_units[w->table[slot] - 1] != part[0]) slot = (slot + 1) & mask;
        if (!w->table[slot]) {
            w->crowd_units[units] = part[0];
            w->unit_rows[units++] = 0;
            w->table[slot] = (uint32_t)units;
        }
        w->unit_of[i] = w->table[slot] - 1;
        w->unit_rows[w->unit_of[i]] += by_rows ? (uint64_t)rows_in(part[1]) : 1;
    }
    return units;
}

/* Mark which parts stay under the limit on groups. */
static Status choose_groups(const Job *job, Work *w) {
    const Rows *r = job->rows;
    int words = part_words(job->layout) + 1, keys = r->keys;
    int64_t most = job->limits.groups, units = number_units(job, w, 0), crowded = 0;
    if (units < 0) return NO_MEMORY;
    w->cuts = malloc((size_t)(units + 1) * 8);
    w->starts = malloc((size_t)(units + 1) * 8);
    if (!w->cuts || !w->starts) return NO_MEMORY;
    for (int64_t u = 0; u < units; u++) {
        w->starts[u] = crowded;
        if ((int64_t)w->unit_rows[u] > most) crowded += (int64_t)w->unit_rows[u];
    }
    if (!crowded) return FINE;
    w->ranks = malloc((size_t)w->parts.count * 8);
    w->chosen_ranks = malloc((size_t)crowded * 8);
    if (!w->ranks || !w->chosen_ranks) return NO_MEMORY;
    SipKey texts = sip_text_key(r->groups);
    for (int64_t i = 0; i < w->parts.count; i++) {
        uint32_t u = w->unit_of[i];
        if ((int64_t)w->unit_rows[u] <= most) continue;
        const uint64_t *part = w->parts.words + i * words;
        uint64_t all[MOST_KEYS + 1], nulls[MOST_KEYS + 1] = {0};
        size_t group = (size_t)group_in(part[1]) * (size_t)keys;
        all[0] = unit_word(r, texts, part[0]);
        for (int k = 0; k < keys; k++) {
            all[k + 1] = job->group_keys.words[group + (size_t)k];
            nulls[k + 1] = job->group_keys.nulls[group + (size_t)k];
        }
        w->ranks[i] = w->chosen_ranks[w->starts[u]++] = rank_of(r->groups, all, nulls, keys + 1);
    }
    for (int64_t u = 0; u < units; u++) {
        int64_t many = (int64_t)w->unit_rows[u];
        if (many <= most) continue;
        int64_t *mine = w->chosen_ranks + w->starts[u] - many;
        select_rank(mine, many, most);
        w->cuts[u] = mine[most];
    }
    for (int64_t i = 0; i < w->parts.count; i++) {
        uint32_t u = w->unit_of[i];
        w->stays[i] = (int64_t)w->unit_rows[u] <= most || w->ranks[i] < w->cuts[u];
    }
    return FINE;
}

/* The parts of a crowd from its rows of the lowest ranks; rows are sorted, so groups come one after the other. */
static Status trim(const Job *job, Work *w, uint64_t unit, int64_t from, int64_t count, int64_t most, Parts *out) {
    const Rows *r = job->rows;
    int words = 1 + r->values, keys = r->keys, over = 0;
    const uint64_t *rows = w->rows + from * words;
    const uint32_t *order = sort_rows(rows, words, w->order, w->other, count);
    uint64_t all[MOST_KEYS + MOST_VALUES + 2], nulls[MOST_KEYS + MOST_VALUES + 2] = {0}, number = 0;
    SipKey texts = sip_text_key(r->ranks);
    all[0] = unit_word(r, texts, unit);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t *row = rows + (int64_t)order[i] * words;
        number = i && !compare_rows(row, rows + (int64_t)order[i - 1] * words, words) ? number + 1 : 1;
        for (int k = 0; k < keys; k++) {
            all[k + 1] = job->row_keys.words[row[0] * (uint64_t)keys + (uint64_t)k];
            nulls[k + 1] = job->row_keys.nulls[row[0] * (uint64_t)keys + (uint64_t)k];
        }
        for (int v = 0; v < r->values; v++) {
            nulls[keys + 1 + v] = (int64_t)row[1 + v] == MISSING;
            all[keys + 1 + v] = nulls[keys + 1 + v] ? 0 : value_word(r, texts, v, row[1 + v]);
        }
        all[keys + 1 + r->values] = number;
        w->ranks[i] = w->chosen_ranks[i] = rank_of(r->ranks, all, nulls, keys + r->values + 2);
    }
    select_rank(w->chosen_ranks, count, most);
    int64_t cut = w->chosen_ranks[most];
    uint64_t *part = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (w->ranks[i] >= cut) continue; /* equal ranks at the cut all go: they leave no choice */
        const uint64_t *row = rows + (int64_t)order[i] * words;
        if (!part || group_in(part[0]) != row[0]) {
            part = parts_room(out, part_words(job->layout));
            if (!part) return NO_MEMORY;
            memset(part, 0, (size_t)part_words(job->layout) * 8);
            part[0] = row[0];
        }
        over |= add_to_part(part, row + 1, job->layout);
        if (w->counter.many && !count_row(&w->counter, w->part_of[from + order[i]], row[0], row + 1)) return NO_MEMORY;
    }
    return over ? TOO_MUCH : FINE;
}

/* Gather the rows of crowds, and put the parts that their rows of the lowest ranks make. A crowd is a part, or a unit
 * where `by_unit`; crowd_of says which part (or unit) is which crowd. */
static Status trim_crowds(const Job *job, const Partition *part, Work *w, int64_t crowds, int by_unit, int64_t most,
                          Parts *out) {
    const Rows *r = job->rows;
    int words = 1 + r->values;
    int64_t total = w->starts[crowds], largest = 0, at = 0;
    for (int64_t c = 0; c < crowds; c++)
        if (w->starts[c + 1] - w->starts[c] > largest) largest = w->starts[c + 1] - w->starts[c];
    free(w->ranks);
    free(w->chosen_ranks);
    w->ranks = malloc((size_t)largest * 8);
    w->chosen_ranks = malloc((size_t)largest * 8);
    w->order = malloc((size_t)largest * sizeof *w->order);
    w->other = malloc((size_t)largest * sizeof *w->other);
    w->rows = malloc((size_t)(total * words) * 8);
    w->part_of = malloc((size_t)total * sizeof *w->part_of);
    int64_t *ends = malloc((size_t)crowds * 8);
    if (!ends || !w->ranks || !w->chosen_ranks || !w->order || !w->other || !w->rows || !w->part_of) {
        free(ends);
        return NO_MEMORY;
    }
    memcpy(ends, w->starts, (size_t)crowds * 8);
    Status status = FINE;
    for (int i = 0; i < part->count && status == FINE; i++) {
        int64_t rows;
        const uint64_t *row = chunk_rows(r, part, i, w->scratch, &rows);
        if (!row) status = UNREADABLE;
        for (; row && rows--; row += r->stride, at++) {
            uint32_t mine = w->of_row[at];
            int32_t crowd = w->crowd_of[by_unit ? w->unit_of[mine] : mine];
            if (crowd < 0) continue;
            w->part_of[ends[crowd]] = mine;
            memcpy(w->rows + ends[crowd]++ * words, row + 1, (size_t)words * 8);
        }
    }
    free(ends);
    for (int64_t c = 0; c < crowds && status == FINE; c++)
        status = trim(job, w, w->crowd_units[c], w->starts[c], w->starts[c + 1] - w->starts[c], most, out);
    return status;
}

/* Number the crowds, parts or units with too many rows; -1 where memory ends. */
static int64_t find_crowds(const Job *job, Work *w, int by_unit, int64_t units) {
    int words = part_words(job->layout) + 1;
    int64_t many = by_unit ? units : w->parts.count, crowds = 0, total = 0;
    uint64_t *owners = malloc((size_t)(many + 1) * 8);
    free(w->starts);
    w->starts = malloc((size_t)(many + 1) * 8);
    w->crowd_of = malloc((size_t)(many + 1) * sizeof *w->crowd_of);
    if (!owners || !w->starts || !w->crowd_of) {
        free(owners);
        return -1;
    }
    for (int64_t i = 0; i < many; i++) {
        const uint64_t *part = by_unit ? NULL : w->parts.words + i * words;
        int64_t rows = by_unit ? (int64_t)w->unit_rows[i] : rows_in(part[1]);
        int crowded = by_unit ? rows > job->limits.all_rows : w->stays[i] && rows > job->limits.rows;
        w->crowd_of[i] = crowded ? (int32_t)crowds : -1;
        if (!crowded) continue;
        owners[crowds] = by_unit ? w->crowd_units[i] : part[0];
        w->starts[crowds++] = total;
        total += rows;
    }
    w->starts[crowds] = total;
    free(w->crowd_units);
    w->crowd_units = owners;
    return crowds;
}

enum { AHEAD = 32 }; /* rows whose cells are asked for before they are counted */

/* Count the rows of the parts that stay as they are. */
static Status count_rows(const Job *job, const Partition *part, Work *w, int crowds, int by_unit) {
    const Rows *r = job->rows;
    int64_t at = 0;
    for (int i = 0; i < part->count; i++) {
        int64_t rows;
        const uint64_t *row = chunk_rows(r, part, i, w->scratch, &rows);
        if (!row) return UNREADABLE;
        for (int64_t block; rows; rows -= block) {
            const uint64_t *counted[AHEAD];
            uint32_t parts[AHEAD];
            int many = 0;
            block = rows < AHEAD ? rows : AHEAD;
            for (int64_t b = 0; b < block; b++, row += r->stride, at++) {
                uint32_t mine = w->of_row[at];
                if (!w->stays[mine] || (crowds && w->crowd_of[by_unit ? w->unit_of[mine] : mine] >= 0)) continue;
                parts[many] = mine;
                counted[many++] = row;
                fetch_cells(&w->counter, row[1], row + 2);
            }
            for (int b = 0; b < many; b++)
                if (!count_row(&w->counter, parts[b], counted[b][1], counted[b] + 2)) return NO_MEMORY;
        }
    }
    return FINE;
}

/* Put the parts of a partition that stay at the end of `out`; what is counted row by row goes to the counter. */
static Status bound_with(const Job *job, const Partition *part, Work *w, Parts *out) {
    const Limits *limits = &job->limits;
    if (!part->rows) return FINE;
    if (part->rows >= MOST_CODES) return TOO_MUCH;
    int words = part_words(job->layout), by_unit = limits->all_rows != NO_LIMIT;
    int64_t units = 0, crowds = 0;
    Status status = make_parts(job, part, w);
    if (status != FINE) return status;
    w->stays = malloc((size_t)w->parts.count);
    if (!w->stays) return NO_MEMORY;
    memset(w->stays, 1, (size_t)w->parts.count);
    if (limits->groups != NO_LIMIT) status = choose_groups(job, w);
    if (status != FINE) return status;
    if (limits->chooses_rows) {
        units = by_unit ? number_units(job, w, 1) : 0;
        crowds = units < 0 ? -1 : find_crowds(job, w, by_unit, units);
        if (crowds < 0) return NO_MEMORY;
    }
    for (int64_t i = 0; i < w->parts.count; i++) {
        if (!w->stays[i] || (crowds && w->crowd_of[by_unit ? w->unit_of[i] : i] >= 0)) continue;
        uint64_t *made = parts_room(out, words);
        if (!made) return NO_MEMORY;
        memcpy(made, w->parts.words + i * (words + 1) + 1, (size_t)words * 8);
        if (!limits->chooses_rows && limits->rows != NO_LIMIT && rows_in(made[0]) > limits->rows)
            made[0] = (uint64_t)limits->rows << 32 | group_in(made[0]);
    }
    if (job->many_counts) {
        if (!counter_init(&w->counter, w->parts.count)) return NO_MEMORY;
        status = count_rows(job, part, w, crowds > 0, by_unit);
    }
    if (status == FINE && crowds)
        status = trim_crowds(job, part, w, crowds, by_unit, by_unit ? limits->all_rows : limits->rows, out);
    for (int i = 0; status == FINE && i < job->many_counts; i++)
        if (job->counts[i].most && !settle_values(&w->counter, i, w->parts.words, words + 1, w->parts.count))
            status = NO_MEMORY;
    return status;
}

/* `cells` are those that the rows are counted in, one for each count. */
static Status bound_partition(const Job *job, int64_t index, Parts *out, Cells *cells) {
    Work work = {.counter = {.rows = job->rows, .counts = job->counts, .many = job->many_counts, .totals = cells}};
    Status status = bound_with(job, &job->rows->partitions[index], &work, out);
    work_free(&work);
    return status;
}

#endif
