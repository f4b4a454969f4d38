/* What is counted of the rows that stay, one by one: a group's rows by bin, and its distinct values.
 *
 * Of distinct values a unit brings at most so many to a group: those of the lowest ranks. */
#ifndef SFUMATO_ROW_COUNTS_H
#define SFUMATO_ROW_COUNTS_H

#include "_ranks.h"

typedef struct {
    uint64_t owner, word, count; /* the owner, a group or a part, plus one; 0 where the cell is empty */
} Cell;

typedef struct {
    Cell *cells;
    int64_t count, most; /* cells in use; cells there may be */
    uint64_t mask;
} Cells;

static void cells_free(Cells *c) {
    free(c->cells);
    c->cells = NULL;
    c->count = 0;
    c->mask = 0;
}

static inline Cell *cell_of(const Cells *c, SipKey key, uint64_t owner, uint64_t word) {
    uint64_t at = mixed(key, owner, word) & c->mask;
    while (c->cells[at].owner && (c->cells[at].owner != owner + 1 || c->cells[at].word != word)) at = (at + 1) & c->mask;
    return &c->cells[at];
}

static int cells_grow(Cells *c, SipKey key) {
    uint64_t room = c->cells ? (c->mask + 1) * 2 : 256;
    if ((int64_t)room > c->most) return 0;
    Cells grown = {calloc(room, sizeof(Cell)), c->count, c->most, room - 1};
    if (!grown.cells) return 0;
    for (uint64_t i = 0; c->cells && i <= c->mask; i++)
        if (c->cells[i].owner) *cell_of(&grown, key, c->cells[i].owner - 1, c->cells[i].word) = c->cells[i];
    free(c->cells);
    *c = grown;
    return 1;
}

/* Count for an owner and a word: 1 where they are new, 0 where not, -1 where there is no room. */
static inline int cells_add(Cells *c, SipKey key, uint64_t owner, uint64_t word, uint64_t count) {
    if ((!c->cells || (uint64_t)c->count * 2 > c->mask) && !cells_grow(c, key)) return -1;
    Cell *cell = cell_of(c, key, owner, word);
    int made = !cell->owner;
    c->count += made;
    *cell = (Cell){owner + 1, word, cell->count + count};
    return made;
}

static int cells_merge(Cells *into, SipKey key, Cells *more) {
    if (!into->cells) {
        Cells swap = *into;
        *into = *more;
        *more = swap;
        return 1;
    }
    for (uint64_t i = 0; more->cells && i <= more->mask; i++)
        if (more->cells[i].owner &&
            cells_add(into, key, more->cells[i].owner - 1, more->cells[i].word, more->cells[i].count) < 0)
            return 0;
    return 1;
}

/* Rows of a column by its value; or, where `most` is positive, its distinct values, so many of a unit in a group. */
typedef struct {
    int column;
    int64_t most;
    SipKey ranks;
    KeyWords keys;
} RowCount;

/* Counts the rows of one partition. */
typedef struct {
    const Rows *rows;
    const RowCount *counts;
    int many;
    Cells *totals;        /* by group, for each count */
    Cells *values;        /* by part, of distinct values */
    uint32_t **different; /* for each count, by part its number of distinct values */
} RowCounter;

static void counter_free(RowCounter *c) {
    for (int i = 0; i < c->many; i++) {
        if (c->values) cells_free(&c->values[i]);
        if (c->different) free(c->different[i]);
    }
    free(c->values);
    free(c->different);
}

static int counter_init(RowCounter *c, int64_t parts) {
    c->values = calloc((size_t)c->many + 1, sizeof *c->values);
    c->different = calloc((size_t)c->many + 1, sizeof *c->different);
    if (!c->values || !c->different) return 0;
    for (int i = 0; i < c->many; i++) {
        if (!c->counts[i].most) continue;
        c->values[i].most = c->totals[i].most;
        c->different[i] = calloc((size_t)parts + 1, sizeof *c->different[i]);
        if (!c->different[i]) return 0;
    }
    return 1;
}

/* Ask for the cells that a row will be counted in: they are far apart, and the processor may fetch several at once. */
static inline void fetch_cells(const RowCounter *c, uint64_t group, const uint64_t *values) {
    for (int i = 0; i < c->many; i++) {
        const Cells *cells = &c->totals[i];
        if (c->counts[i].most || !cells->cells) continue;
        __builtin_prefetch(&cells->cells[mixed(c->rows->tables, group, values[c->counts[i].column]) & cells->mask], 1);
    }
}

/* Count a row of a part, which is of a group. */
static inline int count_row(RowCounter *c, uint32_t part, uint64_t group, const uint64_t *values) {
    for (int i = 0; i < c->many; i++) {
        uint64_t value = values[c->counts[i].column];
        if ((int64_t)value == MISSING) continue;
        if (!c->counts[i].most) {
            if (cells_add(&c->totals[i], c->rows->tables, group, value, 1) < 0) return 0;
            continue;
        }
        int made = cells_add(&c->values[i], c->rows->tables, part, value, 1);
        if (made < 0) return 0;
        c->different[i][part] += (uint32_t)made;
    }
    return 1;
}

static int64_t value_rank(const RowCounter *c, const RowCount *count, uint64_t unit, uint64_t group, uint64_t value) {
    const Rows *r = c->rows;
    SipKey texts = sip_text_key(count->ranks);
    uint64_t all[MOST_KEYS + 2], nulls[MOST_KEYS + 2] = {0};
    all[0] = unit_word(r, texts, unit);
    for (int k = 0; k < r->keys; k++) {
        all[k + 1] = count->keys.words[group * (uint64_t)r->keys + (uint64_t)k];
        nulls[k + 1] = count->keys.nulls[group * (uint64_t)r->keys + (uint64_t)k];
    }
    all[r->keys + 1] = value_word(r, texts, count->column, value);
    return rank_of(count->ranks, all, nulls, r->keys + 2);
}

/* Add the distinct values of parts to those of their groups. Of a part: `words` words, its unit and its group first. */
static int settle_values(RowCounter *c, int index, const uint64_t *parts, int words, int64_t many) {
    const RowCount *count = &c->counts[index];
    const Cells *values = &c->values[index];
    const uint32_t *different = c->different[index];
    int64_t total = 0;
    int64_t *ends = malloc((size_t)(many + 1) * 8);
    for (int64_t p = 0; ends && p < many; p++) {
        ends[p] = total;
        if ((int64_t)different[p] > count->most) total += different[p];
    }
    int64_t *ranks = malloc((size_t)total * 8 + 8), *chosen = malloc((size_t)total * 8 + 8);
    uint64_t *crowd = malloc((size_t)total * 8 + 8);
    int fine = ends && ranks && chosen && crowd;
    for (uint64_t i = 0; fine && values->cells && i <= values->mask; i++) {
        if (!values->cells[i].owner) continue;
        uint64_t part = values->cells[i].owner - 1, word = values->cells[i].word;
        uint64_t unit = parts[part * (uint64_t)words], group = (uint32_t)parts[part * (uint64_t)words + 1];
        if ((int64_t)different[part] <= count->most) {
            fine = cells_add(&c->totals[index], c->rows->tables, group, word, 1) >= 0;
        } else {
            crowd[ends[part]] = word;
            ranks[ends[part]] = chosen[ends[part]] = value_rank(c, count, unit, group, word);
            ends[part]++;
        }
    }
    for (int64_t p = 0; fine && p < many; p++) {
        int64_t have = different[p], from = ends[p] - have;
        if (have <= count->most) continue;
        select_rank(chosen + from, have, count->most);
        int64_t cut = chosen[from + count->most];
        for (int64_t i = from; fine && i < ends[p]; i++)
            if (ranks[i] < cut)
                fine = cells_add(&c->totals[index], c->rows->tables, (uint32_t)parts[p * words + 1], crowd[i], 1) >= 0;
    }
    free(ends);
    free(ranks);
    free(chosen);
    free(crowd);
    return fine;
}

#endif
