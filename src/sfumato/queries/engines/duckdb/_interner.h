/* Numbers for distinct values, in the order in which they first come: texts, or rows of words.
 *
 * Tables are open-addressed. Their hashes are keyed, so that no data can be made to be slow to look up. */
#ifndef SFUMATO_INTERNER_H
#define SFUMATO_INTERNER_H

#include <stdlib.h>

#include "_siphash.h"

#define MOST_CODES 0x7ffffff0

/* Both halves of a product, folded. */
static inline uint64_t folded(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A fast keyed hash for tables and partitions; nothing rests on it but time. */
static inline uint64_t mixed(SipKey key, uint64_t a, uint64_t b) {
    return folded(folded(a ^ key.k0, 0x9e3779b97f4a7c15u ^ key.k1) ^ b ^ rotated(key.k0, 29),
                  0xd6e8feb86659fd93u ^ rotated(key.k1, 17));
}

static inline uint64_t mixed_bytes(SipKey key, const unsigned char *bytes, size_t length) {
    uint64_t h = mixed(key, length, 0);
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = mixed(key, word, h);
    }
    return length ? mixed(key, little(bytes, length), h) : h;
}

typedef struct {
    SipKey key;
    int words;        /* of a row; 0 for texts */
    int64_t count;    /* codes given */
    int64_t room;     /* codes that `entries` has room for */
    uint64_t *hashes; /* by code */
    uint64_t *rows;   /* by code: `words` words, or the end of its text in `bytes` */
    unsigned char *bytes;
    size_t bytes_room;
    uint32_t *table; /* code + 1, or 0 */
    uint64_t mask;
} Interner;

static void interner_free(Interner *in) {
    free(in->hashes);
    free(in->rows);
    free(in->bytes);
    free(in->table);
    *in = (Interner){0};
}

static int interner_init(Interner *in, SipKey key, int words) {
    *in = (Interner){.key = key, .words = words, .room = 64, .mask = 255};
    in->hashes = malloc(64 * 8);
    in->rows = malloc(64 * 8 * (size_t)(words ? words : 1));
    in->table = calloc(256, sizeof *in->table);
    in->bytes = words ? NULL : malloc(in->bytes_room = 1024);
    return in->hashes && in->rows && in->table && (words || in->bytes);
}

static inline size_t text_start(const Interner *in, int64_t code) { return code ? in->rows[code - 1] : 0; }

static int interner_grow(Interner *in) {
    if (in->count == in->room) {
        size_t room = (size_t)in->room * 2, stride = (size_t)(in->words ? in->words : 1);
        uint64_t *hashes = realloc(in->hashes, room * 8);
        if (!hashes) return 0;
        in->hashes = hashes;
        uint64_t *rows = realloc(in->rows, room * 8 * stride);
        if (!rows) return 0;
        in->rows = rows;
        in->room = (int64_t)room;
    }
    if ((uint64_t)in->count * 2 > in->mask) {
        uint64_t mask = in->mask * 2 + 1;
        uint32_t *table = calloc(mask + 1, sizeof *table);
        if (!table) return 0;
        for (int64_t code = 0; code < in->count; code++) {
            uint64_t at = in->hashes[code] & mask;
            while (table[at]) at = (at + 1) & mask;
            table[at] = (uint32_t)code + 1;
        }
        free(in->table);
        in->table = table;
        in->mask = mask;
    }
    return 1;
}

/* Add what is not there yet, at its place in the table; -1 where memory or codes end. */
static int64_t interner_add(Interner *in, uint64_t hash, uint64_t at, const void *value, size_t length) {
    if (in->count == MOST_CODES) return -1;
    int64_t code = in->count;
    if (in->words) {
        memcpy(in->rows + code * in->words, value, length);
    } else {
        size_t start = text_start(in, code);
        if (start + length > in->bytes_room) {
            size_t room = (start + length) * 2;
            unsigned char *bytes = realloc(in->bytes, room);
            if (!bytes) return -1;
            in->bytes = bytes;
            in->bytes_room = room;
        }
        if (length) memcpy(in->bytes + start, value, length);
        in->rows[code] = start + length;
    }
    in->hashes[code] = hash;
    in->table[at] = (uint32_t)code + 1;
    in->count++;
    return interner_grow(in) ? code : -1;
}

static inline int64_t intern_text(Interner *in, const unsigned char *bytes, size_t length) {
    uint64_t hash = mixed_bytes(in->key, bytes, length), at = hash & in->mask;
    for (; in->table[at]; at = (at + 1) & in->mask) {
        int64_t code = in->table[at] - 1;
        size_t start = text_start(in, code);
        if (in->hashes[code] == hash && in->rows[code] - start == length &&
            (!length || !memcmp(in->bytes + start, bytes, length)))
            return code;
    }
    return interner_add(in, hash, at, bytes, length);
}

static inline int64_t intern_row(Interner *in, const uint64_t *row) {
    uint64_t hash = 0;
    for (int i = 0; i < in->words; i += 2) hash = mixed(in->key, row[i], hash ^ (i + 1 < in->words ? row[i + 1] : 0));
    uint64_t at = hash & in->mask;
    for (; in->table[at]; at = (at + 1) & in->mask) {
        const uint64_t *known = in->rows + (int64_t)(in->table[at] - 1) * in->words;
        int same = 1;
        for (int i = 0; i < in->words; i++) same &= known[i] == row[i];
        if (same) return in->table[at] - 1;
    }
    return interner_add(in, hash, at, row, (size_t)in->words * 8);
}

#endif
