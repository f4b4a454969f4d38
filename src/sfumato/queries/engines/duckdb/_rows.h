/* Rows of units, numbered by group and divided by unit: in memory as far as the budget goes, else in a file.
 *
 * A row is the unit, the number of its group, and its values (of a text its number); MISSING where it has none. */
#ifndef SFUMATO_ROWS_H
#define SFUMATO_ROWS_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pread and pwrite, beside C11 */
#endif
#include <unistd.h>

#include "_columns.h"
#include "_interner.h"

#define MISSING INT64_MIN
#define CHUNK_BYTES 65536
#define BLOCK 4096
#define MOST_KEYS 62
#define MOST_VALUES 64

typedef enum { FINE = 0, NO_MEMORY, TOO_MUCH, UNREADABLE } Status;

typedef struct {
    uint64_t *data; /* NULL where it lies in the file */
    int64_t at;
} Chunk;

typedef struct {
    Chunk *chunks; /* all full but the last */
    int count, room, spilled;
    int64_t rows;
} Partition;

typedef struct {
    SipKey tables, groups, ranks; /* for tables and partitions; the rank of groups; of rows */
    int keys, values, stride, bits, chunk_rows;
    int64_t budget, held, file_end;
    int file;
    Interner unit_texts, key_texts[MOST_KEYS], value_texts[MOST_VALUES], group_rows;
    int unit_is_text, key_is_text[MOST_KEYS], value_is_text[MOST_VALUES];
    int32_t *group_of_text; /* where the only key is a text: its group + 1, by the text's number */
    int64_t group_of_text_room;
    Partition *partitions;
} Rows;

static inline int64_t group_count(const Rows *r) { return r->keys ? r->group_rows.count : 1; }

static void rows_drop(Rows *r) {
    for (int64_t p = 0; r->partitions && p < (int64_t)1 << r->bits; p++) {
        for (int i = 0; i < r->partitions[p].count; i++) free(r->partitions[p].chunks[i].data);
        free(r->partitions[p].chunks);
    }
    free(r->partitions);
    r->partitions = NULL;
}

static void rows_free(Rows *r) {
    rows_drop(r);
    interner_free(&r->unit_texts);
    interner_free(&r->group_rows);
    for (int i = 0; i < r->keys; i++) interner_free(&r->key_texts[i]);
    for (int i = 0; i < r->values; i++) interner_free(&r->value_texts[i]);
    free(r->group_of_text);
    r->group_of_text = NULL;
}

/* Expects the keys, counts and kinds to be set; what was made is freed by rows_free, also after a failure. */
static int rows_init(Rows *r) {
    r->stride = 2 + r->values;
    r->chunk_rows = CHUNK_BYTES / (8 * r->stride);
    r->partitions = calloc((size_t)1 << r->bits, sizeof *r->partitions);
    int fine = r->partitions != NULL;
    if (r->unit_is_text) fine &= interner_init(&r->unit_texts, r->tables, 0);
    if (r->keys) fine &= interner_init(&r->group_rows, r->tables, r->keys + 1);
    for (int i = 0; i < r->keys; i++)
        if (r->key_is_text[i]) fine &= interner_init(&r->key_texts[i], r->tables, 0);
    for (int i = 0; i < r->values; i++)
        if (r->value_is_text[i]) fine &= interner_init(&r->value_texts[i], r->tables, 0);
    return fine;
}

static int write_all(int file, const unsigned char *data, size_t length, int64_t at) {
    while (length) {
        ssize_t done = pwrite(file, data, length, at);
        if (done <= 0) return 0;
        data += done;
        length -= (size_t)done;
        at += done;
    }
    return 1;
}

static int read_all(int file, unsigned char *data, size_t length, int64_t at) {
    while (length) {
        ssize_t done = pread(file, data, length, at);
        if (done <= 0) return 0;
        data += done;
        length -= (size_t)done;
        at += done;
    }
    return 1;
}

/* Write the full chunks of all partitions to the file. */
static Status spill(Rows *r) {
    size_t bytes = (size_t)r->chunk_rows * r->stride * 8;
    for (int64_t p = 0; p < (int64_t)1 << r->bits; p++) {
        Partition *part = &r->partitions[p];
        int full = (int)(part->rows / r->chunk_rows);
        for (; part->spilled < full; part->spilled++) {
            Chunk *chunk = &part->chunks[part->spilled];
            if (!write_all(r->file, (unsigned char *)chunk->data, bytes, r->file_end)) return UNREADABLE;
            chunk->at = r->file_end;
            r->file_end += (int64_t)bytes;
            r->held -= (int64_t)bytes;
            free(chunk->data);
            chunk->data = NULL;
        }
    }
    return FINE;
}

/* Room for one more row of a partition, or NULL. */
static inline uint64_t *row_room(Rows *r, Partition *part) {
    int64_t at = part->rows % r->chunk_rows;
    if (!at) {
        if (part->count == part->room) {
            int room = part->room ? part->room * 2 : 4;
            Chunk *chunks = realloc(part->chunks, (size_t)room * sizeof *chunks);
            if (!chunks) return NULL;
            part->chunks = chunks;
            part->room = room;
        }
        size_t bytes = (size_t)r->chunk_rows * r->stride * 8;
        uint64_t *data = malloc(bytes);
        if (!data) return NULL;
        part->chunks[part->count++] = (Chunk){data, 0};
        r->held += (int64_t)bytes;
    }
    part->rows++;
    return part->chunks[part->count - 1].data + at * r->stride;
}

/* The rows of a chunk; those in the file come into `scratch`. NULL where they cannot be read. */
static const uint64_t *chunk_rows(const Rows *r, const Partition *part, int i, uint64_t *scratch, int64_t *rows) {
    *rows = i < part->count - 1 ? r->chunk_rows : part->rows - (int64_t)i * r->chunk_rows;
    if (part->chunks[i].data) return part->chunks[i].data;
    size_t bytes = (size_t)r->chunk_rows * r->stride * 8;
    return read_all(r->file, (unsigned char *)scratch, bytes, part->chunks[i].at) ? scratch : NULL;
}

/* The group of a text that is the only key. */
static int64_t group_of_text(Rows *r, int64_t text) {
    if (text >= r->group_of_text_room) {
        int64_t room = 2 * text + 64;
        int32_t *groups = realloc(r->group_of_text, (size_t)room * sizeof *groups);
        if (!groups) return -1;
        memset(groups + r->group_of_text_room, 0, (size_t)(room - r->group_of_text_room) * sizeof *groups);
        r->group_of_text = groups;
        r->group_of_text_room = room;
    }
    if (!r->group_of_text[text]) {
        uint64_t row[2] = {(uint64_t)text, 0};
        int64_t group = intern_row(&r->group_rows, row);
        if (group < 0) return -1;
        r->group_of_text[text] = (int32_t)group + 1;
    }
    return r->group_of_text[text] - 1;
}

/* The number of a row's group; -1 where memory ends. */
static inline int64_t group_at(Rows *r, const Column *keys, int64_t row) {
    uint64_t words[MOST_KEYS + 1], nulls = 0;
    for (int i = 0; i < r->keys; i++) {
        words[i] = 0;
        if (!has_value(&keys[i], row)) {
            nulls |= (uint64_t)1 << i;
        } else if (r->key_is_text[i]) {
            size_t length;
            const unsigned char *bytes = text_at(&keys[i], row, &length);
            int64_t text = intern_text(&r->key_texts[i], bytes, length);
            if (text < 0) return -1;
            if (r->keys == 1) return group_of_text(r, text);
            words[i] = (uint64_t)text;
        } else {
            words[i] = (uint64_t)integer_at(&keys[i], row);
        }
    }
    words[r->keys] = nulls;
    return r->keys ? intern_row(&r->group_rows, words) : 0;
}

/* Put the values of a text column at `places`. */
static Status add_texts(Rows *r, const Column *values, int i, uint64_t *const *places, int64_t from, int64_t to) {
    for (int64_t row = from; row < to; row++) {
        uint64_t *place = places[row - from];
        if (!place) continue;
        place[i] = (uint64_t)MISSING;
        if (!has_value(values, row)) continue;
        size_t length;
        const unsigned char *bytes = text_at(values, row, &length);
        int64_t text = intern_text(&r->value_texts[i], bytes, length);
        if (text < 0) return NO_MEMORY;
        place[i] = (uint64_t)text;
    }
    return FINE;
}

/* Put up to BLOCK rows where they belong; rows without a unit are left out. */
static Status add_block(Rows *r, const Column *unit, const Column *keys, const Column *values, int64_t from,
                        int64_t to) {
    uint64_t *places[BLOCK];
    for (int64_t row = from; row < to; row++) {
        places[row - from] = NULL;
        if (!has_value(unit, row)) continue;
        int64_t u, group = group_at(r, keys, row);
        if (r->unit_is_text) {
            size_t length;
            const unsigned char *bytes = text_at(unit, row, &length);
            u = intern_text(&r->unit_texts, bytes, length);
            if (u < 0) return NO_MEMORY;
        } else {
            u = integer_at(unit, row);
        }
        if (group < 0) return NO_MEMORY;
        uint64_t part = r->bits ? mixed(r->tables, (uint64_t)u, 0) >> (64 - r->bits) : 0;
        uint64_t *place = row_room(r, &r->partitions[part]);
        if (!place) return NO_MEMORY;
        place[0] = (uint64_t)u;
        place[1] = (uint64_t)group;
        places[row - from] = place + 2;
    }
    for (int i = 0; i < r->values; i++) {
        if (r->value_is_text[i]) {
            Status status = add_texts(r, &values[i], i, places, from, to);
            if (status != FINE) return status;
            continue;
        }
        const int64_t *data = (const int64_t *)values[i].data + values[i].start;
        int bad = 0;
        for (int64_t row = from; row < to; row++) {
            uint64_t *place = places[row - from];
            if (!place) continue;
            int there = has_value(&values[i], row);
            bad |= there && data[row] == MISSING;
            place[i] = there ? (uint64_t)data[row] : (uint64_t)MISSING;
        }
        if (bad) return TOO_MUCH;
    }
    return FINE;
}

static Status add_rows(Rows *r, const Column *unit, const Column *keys, const Column *values, int64_t count) {
    for (int64_t from = 0; from < count; from += BLOCK) {
        Status status = add_block(r, unit, keys, values, from, from + BLOCK < count ? from + BLOCK : count);
        if (status == FINE && r->held > r->budget && r->file >= 0) status = spill(r);
        if (status != FINE) return status;
    }
    return FINE;
}

#endif
