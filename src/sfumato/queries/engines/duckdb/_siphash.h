/* SipHash-2-4 (Aumasson and Bernstein, 2012): a pseudo-random function of 64 bits under a key of 128. */
#ifndef SFUMATO_SIPHASH_H
#define SFUMATO_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t k0, k1;
} SipKey;

typedef struct {
    uint64_t v0, v1, v2, v3;
} Sip;

static inline uint64_t rotated(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline void sip_round(Sip *s) {
    s->v0 += s->v1;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v2 = rotated(s->v2, 32);
}

static inline Sip sip_begin(SipKey key) {
    return (Sip){key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du, key.k0 ^ 0x6c7967656e657261u,
                 key.k1 ^ 0x7465646279746573u};
}

static inline void sip_word(Sip *s, uint64_t word) {
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t sip_end(Sip *s, uint64_t last) {
    sip_word(s, last);
    s->v2 ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* What follows the last of `words` words in the definition: the length in bytes, modulo 256, on top. */
static inline uint64_t sip_length(uint64_t words) { return words * 8 << 56; }

/* Bytes of a word in the order of the definition, whatever the machine's own is. */
static inline uint64_t little(const unsigned char *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static inline uint64_t sip_bytes(SipKey key, const unsigned char *bytes, size_t length) {
    Sip s = sip_begin(key);
    size_t whole = length / 8;
    for (size_t i = 0; i < whole; i++) sip_word(&s, little(bytes + 8 * i, 8));
    return sip_end(&s, (uint64_t)length << 56 | little(bytes + 8 * whole, length % 8));
}

/* A key for texts that nothing else uses. */
static inline SipKey sip_text_key(SipKey key) {
    static const unsigned char one[] = "texts 1", other[] = "texts 2";
    return (SipKey){sip_bytes(key, one, sizeof one), sip_bytes(key, other, sizeof other)};
}

#endif
