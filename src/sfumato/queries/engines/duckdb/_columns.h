/* Columns as Arrow holds them, and one word of 64 bits for each of their values.
 *
 * A fixed-width column comes as 64-bit integers. A text comes as bytes between offsets of 32 or 64 bits. */
#ifndef SFUMATO_COLUMNS_H
#define SFUMATO_COLUMNS_H

#include "_siphash.h"

typedef struct {
    const unsigned char *validity; /* a bitmap, or NULL where every row has a value */
    const void *offsets;           /* of texts; NULL for integers */
    const void *data;
    int64_t start; /* the first row in the buffers */
    int wide;      /* whether offsets have 64 bits */
} Column;

static inline int has_value(const Column *c, int64_t row) {
    int64_t at = c->start + row;
    return !c->validity || c->validity[at >> 3] >> (at & 7) & 1;
}

static inline int64_t integer_at(const Column *c, int64_t row) { return ((const int64_t *)c->data)[c->start + row]; }

static inline const unsigned char *text_at(const Column *c, int64_t row, size_t *length) {
    int64_t at = c->start + row, from, to;
    if (c->wide) {
        from = ((const int64_t *)c->offsets)[at];
        to = ((const int64_t *)c->offsets)[at + 1];
    } else {
        from = ((const int32_t *)c->offsets)[at];
        to = ((const int32_t *)c->offsets)[at + 1];
    }
    *length = (size_t)(to - from);
    return (const unsigned char *)c->data + from;
}

/* The word of a value; of a text it is its hash, so equal only for equal texts but with chance 2^-64. */
static inline uint64_t word_at(const Column *c, int64_t row, SipKey texts) {
    if (!c->offsets) return (uint64_t)integer_at(c, row);
    size_t length;
    const unsigned char *bytes = text_at(c, row, &length);
    return sip_bytes(texts, bytes, length);
}

/* The rank of a row: SipHash of which values are NULL, then of a word for each; 63 bits. */
static inline int64_t rank_of(SipKey key, const uint64_t *words, const uint64_t *nulls, int count) {
    Sip s = sip_begin(key);
    uint64_t mask = 0;
    for (int i = 0; i < count; i++) {
        mask |= (nulls[i] & 1) << (i & 63);
        if ((i & 63) == 63 || i == count - 1) {
            sip_word(&s, mask);
            mask = 0;
        }
    }
    for (int i = 0; i < count; i++) sip_word(&s, nulls[i] ? 0 : words[i]);
    return (int64_t)(sip_end(&s, sip_length((uint64_t)count + ((uint64_t)count + 63) / 64)) >> 1);
}

#endif
