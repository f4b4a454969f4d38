/* What ranks are computed from: a word for each unit, key and value; and which rank is the n-th. */
#ifndef SFUMATO_RANKS_H
#define SFUMATO_RANKS_H

#include "_rows.h"

typedef struct {
    uint64_t *words, *nulls; /* by group, for ranks: one for each key */
} KeyWords;

static inline uint64_t text_word(const Interner *in, SipKey texts, uint64_t code) {
    size_t start = text_start(in, (int64_t)code);
    return sip_bytes(texts, in->bytes + start, in->rows[code] - start);
}

static void key_words_free(KeyWords *k) {
    free(k->words);
    free(k->nulls);
    *k = (KeyWords){0};
}

/* The words of all groups' keys for ranks under a key. */
static int key_words(const Rows *r, SipKey key, KeyWords *made) {
    int64_t groups = group_count(r);
    size_t room = (size_t)groups * (size_t)(r->keys ? r->keys : 1) * 8;
    made->words = malloc(room ? room : 8);
    made->nulls = malloc(room ? room : 8);
    if (!made->words || !made->nulls) return 0;
    SipKey texts = sip_text_key(key);
    for (int64_t g = 0; g < groups && r->keys; g++) {
        const uint64_t *row = r->group_rows.rows + g * (r->keys + 1);
        for (int i = 0; i < r->keys; i++) {
            uint64_t word = row[i], null = row[r->keys] >> i & 1;
            if (r->key_is_text[i] && !null) word = text_word(&r->key_texts[i], texts, word);
            made->words[g * r->keys + i] = word;
            made->nulls[g * r->keys + i] = null;
        }
    }
    return 1;
}

static inline uint64_t unit_word(const Rows *r, SipKey texts, uint64_t u) {
    return r->unit_is_text ? text_word(&r->unit_texts, texts, u) : u;
}

/* The word of a value that is there. */
static inline uint64_t value_word(const Rows *r, SipKey texts, int column, uint64_t value) {
    return r->value_is_text[column] ? text_word(&r->value_texts[column], texts, value) : value;
}

/* Arrange that ranks[index] is the value that it has in order. */
static void select_rank(int64_t *ranks, int64_t count, int64_t index) {
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t pivot = ranks[low + (high - low) / 2], i = low, j = high;
        while (i <= j) {
            while (ranks[i] < pivot) i++;
            while (ranks[j] > pivot) j--;
            if (i <= j) {
                int64_t swap = ranks[i];
                ranks[i++] = ranks[j];
                ranks[j--] = swap;
            }
        }
        if (index <= j)
            high = j;
        else if (index >= i)
            low = i;
        else
            return;
    }
}

#endif
